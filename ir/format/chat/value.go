package chat

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The values of a template are nil (none), bool, int64, float64, string, *list, *dict, function, and
// undefined. Tuples are lists.
type (
	list struct {
		items []any
		tuple bool
		lazy  bool // a generator of Python, which is true even without items
		extent
	}
	dict struct {
		keys   []any // strings and integers
		values map[any]any
		space  bool // a namespace, with settable attributes
		opaque bool // a namespace or the variable loop, which has no text and equals itself alone
		extent
	}
	// function is a macro, a method or a global function.
	function func(c *call) (any, error)
	// undefined is the value of a name that is not set.
	undefined struct{ name string }
)

// extent bounds the size of lists and mappings, which may share and repeat one another: the number of
// values in them, each as often as it appears, and how deep they are nested. It is set by [seal].
type extent struct{ size, depth int }

const maxSize = 1 << 22

// seal measures a new value. The values within it that are not new have been measured before.
func seal(v any) (extent, error) {
	e := extent{size: 1}
	var kids []any
	var own *extent
	switch v := v.(type) {
	case string:
		return extent{size: 1 + len(v)/64}, nil
	case *list:
		kids, own = v.items, &v.extent
	case *dict:
		if v.opaque {
			return e, nil
		}
		own = &v.extent
		if own.size == 0 {
			for _, k := range v.keys {
				key, _ := k.(string)
				e.size += 1 + len(key)/64
				kids = append(kids, v.values[k])
			}
		}
	default:
		return e, nil
	}
	if own.size > 0 {
		return *own, nil
	}
	for _, kid := range kids {
		k, err := seal(kid)
		if err != nil {
			return e, err
		}
		e = extent{e.size + k.size, max(e.depth, k.depth+1)}
		if e.size > maxSize || e.depth > maxDepth {
			return e, failf(ErrLimit, "a value has more than %d values in it, or they are nested more than %d deep", maxSize, maxDepth)
		}
	}
	*own = e
	return e, nil
}

func newDict() *dict { return &dict{values: map[any]any{}} }

// set sets the item of a key, a string or an integer.
func (d *dict) set(key, value any) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// item returns the item of a key, if there is one.
func (d *dict) item(key any) (any, bool) {
	switch key.(type) {
	case string, int64:
		v, ok := d.values[key]
		return v, ok
	}
	return nil, false
}

// typeName is the name of a value's type in errors.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case *list:
		return "a list"
	case *dict:
		return "a mapping"
	case undefined:
		return "undefined (" + v.name + ")"
	}
	return "a function"
}

func truthy(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return v.lazy || len(v.items) > 0
	case *dict:
		return v.opaque || len(v.keys) > 0
	case function:
		return true
	}
	return false
}

// number returns a value as a float if it is a number; booleans are 0 and 1.
func number(v any) (float64, bool) {
	if n, ok := integer(v); ok {
		return float64(n), true
	}
	x, ok := v.(float64)
	return x, ok
}

// integer returns a value as an integer if it is one; booleans are 0 and 1.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

func same(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		t, ok := b.(string)
		return ok && a == t
	case *list:
		l, ok := b.(*list)
		return ok && slices.EqualFunc(a.items, l.items, same)
	case *dict:
		d, ok := b.(*dict)
		if !ok || a.opaque || d.opaque || len(a.keys) != len(d.keys) {
			return ok && a == d
		}
		for _, k := range a.keys {
			v, ok := d.values[k]
			if !ok || !same(a.values[k], v) {
				return false
			}
		}
		return true
	}
	return false
}

// order compares numbers, strings and lists.
func order(a, b any) (int, error) {
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		switch {
		case x < y:
			return -1, nil
		case x > y:
			return 1, nil
		}
		return 0, nil
	}
	s, isText := a.(string)
	t, alsoText := b.(string)
	if isText && alsoText {
		return strings.Compare(s, t), nil
	}
	return 0, failf(ErrValue, "%s and %s have no order", typeName(a), typeName(b))
}

// appendText appends the text of a value, as Python's str writes it; with quotes, as repr does.
func appendText(out []byte, v any, quotes bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "None"...)
	case bool:
		if v {
			return append(out, "True"...)
		}
		return append(out, "False"...)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case float64:
		return appendFloat(out, v)
	case string:
		if quotes {
			return appendRepr(out, v)
		}
		return append(out, v...)
	case undefined:
		if quotes {
			return append(out, "Undefined"...)
		}
	case *list:
		return appendList(out, v)
	case *dict:
		if v.opaque {
			return append(out, "<namespace>"...)
		}
		out = append(out, '{')
		for i, k := range v.keys {
			if i > 0 {
				out = append(out, ", "...)
			}
			out = appendText(out, k, true)
			out = append(out, ": "...)
			out = appendText(out, v.values[k], true)
		}
		return append(out, '}')
	}
	return out
}

func appendList(out []byte, l *list) []byte {
	open, end := byte('['), "]"
	if l.tuple {
		open, end = '(', ")"
		if len(l.items) == 1 {
			end = ",)"
		}
	}
	out = append(out, open)
	for i, item := range l.items {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = appendText(out, item, true)
	}
	return append(out, end...)
}

// appendFloat writes a float as Python does: the shortest that is read back, with a point or an exponent.
func appendFloat(out []byte, x float64) []byte {
	switch {
	case math.IsInf(x, 1):
		return append(out, "inf"...)
	case math.IsInf(x, -1):
		return append(out, "-inf"...)
	case math.IsNaN(x):
		return append(out, "nan"...)
	}
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(out, x, 'e', -1, 64)
	}
	at := len(out)
	out = strconv.AppendFloat(out, x, 'f', -1, 64)
	if !slices.Contains(out[at:], '.') {
		out = append(out, ".0"...)
	}
	return out
}

// appendRepr writes a string as Python's repr does.
func appendRepr(out []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	out = append(out, quote)
	for _, r := range s {
		switch {
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\\' || r == rune(quote):
			out = append(out, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			const digits = "0123456789abcdef"
			out = append(out, '\\', 'x', digits[r>>4], digits[r&15])
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, quote)
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(appendText(nil, v, false))
}

// fromGo converts a value of the caller. Structs and other types are refused.
func fromGo(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, failf(ErrLimit, "a value is nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v, nil
	case Message:
		return v.value(depth)
	case []Message:
		return fromSlice(reflect.ValueOf(v), depth)
	case JSON:
		return parseJSON(v)
	case map[string]any:
		d := newDict()
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			item, err := fromGo(v[k], depth+1)
			if err != nil {
				return nil, err
			}
			d.set(k, item)
		}
		return d, nil
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32:
		return r.Int(), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(r.Uint()), nil
	case reflect.Float32:
		return r.Float(), nil
	case reflect.Slice:
		return fromSlice(r, depth)
	}
	return nil, failf(ErrValue, "a value of the Go type %T", v)
}

func fromSlice(r reflect.Value, depth int) (any, error) {
	l := &list{items: make([]any, r.Len())}
	for i := range l.items {
		var err error
		if l.items[i], err = fromGo(r.Index(i).Interface(), depth+1); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// quote rewrites the texts within a list or mapping made by [fromGo], and returns the new value of
// a text.
func quote(v any, rewrite func(string) string) any {
	inner := func(v any) any {
		if s, ok := v.(string); ok {
			return rewrite(s)
		}
		return quote(v, rewrite)
	}
	switch v := v.(type) {
	case *list:
		for i, item := range v.items {
			v.items[i] = inner(item)
		}
	case *dict:
		keys := v.keys
		values := v.values
		v.keys, v.values = nil, map[any]any{}
		for _, k := range keys {
			v.set(inner(k), inner(values[k]))
		}
	}
	return v
}
