// Package format is the subset of package fmt that error messages and printers of the
// compiler use. In the browser it replaces fmt, which adds 130 KB of compressed code;
// elsewhere it calls fmt. Its input is a format string and arguments, its output a string
// or an error. Start reading at format.go, which formats; print.go and print_js.go choose between it and fmt.
//
// The verbs are %s %d %v %q %x %g %t %T %w and %%, with zero padding and a width for %d
// and %x. They print the same as fmt.
package format

import (
	"reflect"
	"strconv"
)

// sprintf is fmt.Sprintf for the verbs of this package.
func sprintf(text string, args []any) string {
	var out []byte
	for at := 0; at < len(text); at++ {
		if text[at] != '%' {
			out = append(out, text[at])
			continue
		}
		width := 0
		for at++; at < len(text) && text[at] >= '0' && text[at] <= '9'; at++ {
			width = 10*width + int(text[at]-'0')
		}
		switch {
		case at == len(text):
			return string(out) + "%!(NOVERB)"
		case text[at] == '%':
			out = append(out, '%')
		case len(args) == 0:
			out = append(out, "%!"+text[at:at+1]+"(MISSING)"...)
		default:
			begin := len(out)
			out = appendValue(out, text[at], args[0])
			out = pad(out, begin, width)
			args = args[1:]
		}
	}
	return string(out)
}

// pad left-pads the text from begin with zeros to a width.
func pad(out []byte, begin, width int) []byte {
	missing := width - (len(out) - begin)
	if missing <= 0 {
		return out
	}
	digits := string(out[begin:])
	for out = out[:begin]; missing > 0; missing-- {
		out = append(out, '0')
	}
	return append(out, digits...)
}

// appendValue prints one argument.
func appendValue(out []byte, verb byte, x any) []byte {
	if x == nil {
		if verb == 'v' || verb == 'T' {
			return append(out, "<nil>"...)
		}
		return append(out, "%!"+string(verb)+"(<nil>)"...)
	}
	switch verb {
	case 'T':
		return append(out, reflect.TypeOf(x).String()...)
	case 's', 'v', 'w', 'q':
		switch x := x.(type) {
		case error:
			return appendText(out, verb, x.Error())
		case interface{ String() string }:
			return appendText(out, verb, x.String())
		}
	}
	return appendKind(out, verb, reflect.ValueOf(x))
}

func appendText(out []byte, verb byte, text string) []byte {
	if verb == 'q' {
		return strconv.AppendQuote(out, text)
	}
	return append(out, text...)
}

// appendKind prints an argument by the kind of its type. It does not call the String
// methods of list elements: calling methods by reflection links much code.
func appendKind(out []byte, verb byte, v reflect.Value) []byte {
	base := 10
	if verb == 'x' {
		base = 16
	}
	switch v.Kind() {
	case reflect.String:
		return appendText(out, verb, v.String())
	case reflect.Bool:
		return strconv.AppendBool(out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(out, v.Int(), base)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.AppendUint(out, v.Uint(), base)
	case reflect.Float32:
		return strconv.AppendFloat(out, v.Float(), 'g', -1, 32)
	case reflect.Float64:
		return strconv.AppendFloat(out, v.Float(), 'g', -1, 64)
	case reflect.Slice, reflect.Array:
		out = append(out, '[')
		for i := range v.Len() {
			if i > 0 {
				out = append(out, ' ')
			}
			out = appendKind(out, verb, v.Index(i))
		}
		return append(out, ']')
	}
	return append(out, v.Type().String()...) // no message of this module prints any other
}

// wrapped is an error with its own text that wraps another.
type wrapped struct {
	text  string
	cause error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.cause }

// errorf is fmt.Errorf for the verbs of this package, with at most one %w.
func errorf(text string, args []any) error {
	w := &wrapped{text: sprintf(text, args)}
	n := 0
	for at := 0; at+1 < len(text); at++ {
		if text[at] != '%' {
			continue
		}
		at++
		for at < len(text)-1 && text[at] >= '0' && text[at] <= '9' {
			at++
		}
		if text[at] == 'w' && n < len(args) {
			w.cause, _ = args[n].(error)
		}
		if text[at] != '%' {
			n++
		}
	}
	return w
}
