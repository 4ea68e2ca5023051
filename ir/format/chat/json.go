package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON is a value as JSON text, such as the list of tools. Objects keep the order of their keys.
type JSON []byte

// parseJSON returns the value of a JSON text.
func parseJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeJSON(d, 0)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = failf(ErrValue, "a JSON value has text after it")
		}
	}
	return v, err
}

func decodeJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, failf(ErrLimit, "a JSON value is nested more than %d deep", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, failf(ErrValue, "a JSON value: %v", err)
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		x, err := t.Float64()
		if err != nil {
			return nil, failf(ErrValue, "a JSON value: %v", err)
		}
		return x, nil
	case json.Delim:
		out, l := newDict(), &list{}
		for d.More() {
			var key string
			if t == '{' {
				k, err := d.Token()
				if err != nil {
					return nil, failf(ErrValue, "a JSON value: %v", err)
				}
				key, _ = k.(string)
			}
			v, err := decodeJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			if t == '{' {
				out.set(key, v)
			} else {
				l.items = append(l.items, v)
			}
		}
		if _, err := d.Token(); err != nil {
			return nil, failf(ErrValue, "a JSON value: %v", err)
		}
		if t == '{' {
			return out, nil
		}
		return l, nil
	}
	return t, nil
}

// jsonWriter writes values as Python's json.dumps does; characters outside ASCII are not escaped.
type jsonWriter struct {
	out    []byte
	indent string // "" for one line
	item   string // between items
	key    string // between key and value
	sorted bool
	ascii  bool // other characters are escaped
}

func (w *jsonWriter) write(v any, depth int) error {
	if depth > maxDepth || len(w.out) > maxOutput {
		return failf(ErrLimit, "a value is too large or nested too deeply for JSON")
	}
	switch v := v.(type) {
	case nil:
		w.out = append(w.out, "null"...)
	case bool:
		w.out = strconv.AppendBool(w.out, v)
	case int64:
		w.out = strconv.AppendInt(w.out, v, 10)
	case float64:
		w.out = appendFloat(w.out, v)
	case string:
		w.string(v)
	case *list:
		return w.group('[', ']', len(v.items), depth, func(i int) error { return w.write(v.items[i], depth+1) })
	case *dict:
		if v.opaque {
			return failf(ErrValue, "a namespace has no JSON")
		}
		keys := v.keys
		if w.sorted {
			var err error
			if keys, err = sortedKeys(v); err != nil {
				return err
			}
		}
		return w.group('{', '}', len(keys), depth, func(i int) error {
			w.string(text(keys[i]))
			w.out = append(w.out, w.key...)
			return w.write(v.values[keys[i]], depth+1)
		})
	default:
		return failf(ErrValue, "%s has no JSON", typeName(v))
	}
	return nil
}

func (w *jsonWriter) group(open, end byte, n, depth int, each func(int) error) error {
	w.out = append(w.out, open)
	line := func(depth int) {
		if w.indent != "" && n > 0 {
			w.out = append(append(w.out, '\n'), strings.Repeat(w.indent, depth)...)
		}
	}
	for i := range n {
		if i > 0 {
			w.out = append(w.out, w.item...)
		}
		line(depth + 1)
		if err := each(i); err != nil {
			return err
		}
	}
	line(depth)
	w.out = append(w.out, end)
	return nil
}

// jsonEscapes are the escapes of one letter.
var jsonEscapes = map[rune]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

func (w *jsonWriter) string(s string) {
	w.out = append(w.out, '"')
	for _, r := range s {
		letter, short := jsonEscapes[r]
		switch {
		case short:
			w.out = append(w.out, '\\', letter)
		case r < ' ' || w.ascii && r > '~':
			for _, unit := range utf16.AppendRune(nil, r) {
				w.out = fmt.Appendf(w.out, `\u%04x`, unit)
			}
		default:
			w.out = utf8.AppendRune(w.out, r)
		}
	}
	w.out = append(w.out, '"')
}
