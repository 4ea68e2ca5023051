package ir

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// A literal is written in one of three forms, each of which preserves its bytes:
//
//	2.5         one element, or any number of equal ones
//	[1, 2, 3]   the elements in row-major order
//	0x0000203f  the stored bytes; those of one element stand for
//	            any number of equal ones
//
// Decimal elements are numbers, true, false, inf, -inf and nan (the quiet NaN without payload).
// Everything else is written as bytes: other NaNs, complex numbers, packed blocks and long lists.

// maxListed is the maximum number of different elements written in decimal.
const maxListed = 16

// maxSplat limits the total bytes of literals of equal elements in a text. Without it a short text
// could require any amount of memory.
const maxSplat = 1 << 20

// splatBudget counts the used part of maxSplat. Printer and parser count alike, so that the printer
// knows when to list the elements.
type splatBudget struct{ used int }

func (s *splatBudget) spend(n int) bool {
	if n > maxSplat-s.used {
		return false
	}
	s.used += n
	return true
}

func formatLiteral(a *ConstantAttrs, splats *splatBudget) string {
	size := a.Type.DType.Size()
	if len(a.Data) == 0 {
		return "[]"
	}
	if size == 0 {
		return "0x" + encodeHex(a.Data)
	}
	data := a.Data
	if equalElements(data, size) && splats.spend(len(data)-size) {
		data = data[:size]
	}
	elems, ok := formatElements(a.Type.DType, data)
	switch {
	case !ok:
		return "0x" + encodeHex(data)
	case len(data) == size:
		return elems[0]
	}
	return "[" + strings.Join(elems, ", ") + "]"
}

func equalElements(data []byte, size int) bool {
	return len(data) <= size || bytes.Equal(data[size:], data[:len(data)-size])
}

// formatElements returns the elements in decimal, or false if there are too many or one has no
// exact decimal form.
func formatElements(d DType, data []byte) ([]string, bool) {
	size := d.Size()
	if len(data) > maxListed*size || d.IsComplex() {
		return nil, false
	}
	var out []string
	for ; len(data) > 0; data = data[size:] {
		s, ok := formatElement(d, readBits(data, size))
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func formatElement(d DType, bits uint64) (string, bool) {
	switch {
	case d == Bool:
		return strconv.FormatBool(bits != 0), true
	case d == U64:
		return strconv.FormatUint(bits, 10), true
	case d.IsInteger():
		return strconv.FormatInt(d.Wrap(int64(bits)), 10), true
	case !d.IsFloat():
		return "", false
	}
	x := d.FloatFromBits(bits)
	switch {
	case math.IsNaN(x):
		return "nan", bits == d.QuietNaN()
	case math.IsInf(x, 1):
		return "inf", true
	case math.IsInf(x, -1):
		return "-inf", true
	case d == F64:
		return strconv.FormatFloat(x, 'g', -1, 64), true
	}
	return strconv.FormatFloat(x, 'g', -1, 32), true
}

// parseLiteral returns the bytes of a constant of type t.
func parseLiteral(s string, t Type, splats *splatBudget) ([]byte, error) {
	want, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	if list, ok := strings.CutPrefix(s, "["); ok {
		return parseList(strings.TrimSuffix(list, "]"), t.DType)
	}
	digits, ok := strings.CutPrefix(s, "0x")
	var data []byte
	if ok {
		data, ok = decodeHex(digits)
	} else {
		data, err = appendElement(nil, t.DType, s)
		ok = err == nil
	}
	if !ok {
		return nil, Errorf(ErrSyntax, "%q is not a literal of %s", shorten(s), t.DType)
	}
	if len(data) == 0 || len(data) != t.DType.Size() || len(data) == want {
		return data, nil
	}
	if !splats.spend(max(want-len(data), 0)) {
		return nil, Errorf(ErrSyntax, "literals of equal elements take more than %d bytes", maxSplat)
	}
	return bytes.Repeat(data, want/len(data)), nil
}

func parseList(s string, d DType) ([]byte, error) {
	var data []byte
	if strings.TrimSpace(s) == "" {
		return data, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		var err error
		if data, err = appendElement(data, d, strings.TrimSpace(part)); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// appendElement appends the bytes of an element given in decimal.
func appendElement(data []byte, d DType, s string) ([]byte, error) {
	bits, ok := parseElement(d, s)
	if !ok {
		return nil, Errorf(ErrSyntax, "%q is not an element of %s", shorten(s), d)
	}
	return appendBits(data, d.Size(), bits), nil
}

func parseElement(d DType, s string) (bits uint64, ok bool) {
	switch {
	case d == Bool:
		if s == "true" {
			return 1, true
		}
		return 0, s == "false"
	case d.IsUnsigned():
		x, err := strconv.ParseUint(s, 10, d.Bits())
		return x, err == nil
	case d.IsInteger():
		x, err := strconv.ParseInt(s, 10, d.Bits())
		return uint64(x), err == nil
	case d.IsFloat():
		return parseFloat(d, s)
	}
	return 0, false
}

// hasInf reports whether a float type has infinities.
func hasInf(d DType) bool { return math.IsInf(d.Round(math.Inf(1)), 1) }

func parseFloat(d DType, s string) (bits uint64, ok bool) {
	switch s {
	case "nan":
		return d.QuietNaN(), true
	case "inf":
		return d.FloatBits(math.Inf(1)), hasInf(d)
	case "-inf":
		return d.FloatBits(math.Inf(-1)), hasInf(d)
	}
	// Parse with the precision of the type: rounding an f32 through float64 would round twice.
	width := 64
	if d == F32 {
		width = 32
	}
	x, err := strconv.ParseFloat(s, width)
	if err != nil || math.IsNaN(d.Round(x)) || math.IsInf(d.Round(x), 0) {
		return 0, false
	}
	return d.FloatBits(x), true
}

// shorten shortens text for error messages.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// Two digits a byte. Package encoding/hex is not used because it brings package
// fmt into the WebAssembly module.

const hexDigits = "0123456789abcdef"

func encodeHex(data []byte) string {
	out := make([]byte, 0, 2*len(data))
	for _, b := range data {
		out = append(out, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(out)
}

// decodeHex decodes hexadecimal digits of either case; ok is false for other text.
func decodeHex(text string) (data []byte, ok bool) {
	if len(text)%2 != 0 {
		return nil, false
	}
	for i := 0; i < len(text); i += 2 {
		high, low := hexDigit(text[i]), hexDigit(text[i+1])
		if high > 15 || low > 15 {
			return nil, false
		}
		data = append(data, high<<4|low)
	}
	return data, true
}

// hexDigit returns the value of a digit, 255 for another character.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
