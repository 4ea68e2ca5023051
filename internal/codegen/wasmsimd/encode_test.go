package wasmsimd

import "testing"

// The examples of LEB128 are those of the DWARF Debugging Information Format,
// version 5, figures 22 and 23, and of appendix C there.
func TestVariableLengthNumbers(t *testing.T) {
	for x, want := range map[uint64]string{2: "\x02", 127: "\x7f", 128: "\x80\x01", 12857: "\xb9\x64"} {
		if got := string(appendUnsigned(nil, x)); got != want {
			t.Errorf("%d: % x, want % x", x, got, want)
		}
	}
	for x, want := range map[int64]string{
		2: "\x02", -2: "\x7e", 127: "\xff\x00", -127: "\x81\x7f", 128: "\x80\x01", -128: "\x80\x7f", 129: "\x81\x01", -129: "\xff\x7e",
	} {
		if got := string(appendSigned(nil, x)); got != want {
			t.Errorf("%d: % x, want % x", x, got, want)
		}
	}
}
