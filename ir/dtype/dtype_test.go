package dtype_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

func TestNamesParseBack(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range dtype.All() {
		if seen[d.String()] {
			t.Errorf("two types are called %s", d)
		}
		seen[d.String()] = true
		if got, err := dtype.Parse(d.String()); err != nil || got != d {
			t.Errorf("Parse(%q) = %v, %v", d.String(), got, err)
		}
	}
	for _, name := range []string{"", "invalid", "F32", "f8", "float32"} {
		var want *dtype.ParseError
		if d, err := dtype.Parse(name); !errors.As(err, &want) || d != dtype.Invalid {
			t.Errorf("Parse(%q) = %v, %v; want a ParseError", name, d, err)
		}
	}
	if dtype.DType(200).String() != "invalid" || dtype.DType(200).Valid() {
		t.Error("a number beyond the table is taken for a type")
	}
}

func TestEveryTypeHasOneClass(t *testing.T) {
	for _, d := range dtype.All() {
		classes := 0
		for _, in := range []bool{d.IsBool(), d.IsSigned(), d.IsUnsigned(), d.IsFloat(), d.IsComplex(), d.IsPacked()} {
			if in {
				classes++
			}
		}
		if classes != 1 {
			t.Errorf("%s is in %d classes", d, classes)
		}
		if d.IsInteger() != (d.IsSigned() || d.IsUnsigned()) {
			t.Errorf("%s: IsInteger = %v", d, d.IsInteger())
		}
		if d.IsNumeric() == (d.IsBool() || d.IsFloat8() || d.IsPacked()) {
			t.Errorf("%s: IsNumeric = %v", d, d.IsNumeric())
		}
	}
}

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		d          dtype.DType
		size, bits int
		n, bytes   int
	}{
		{dtype.Bool, 1, 1, 7, 7},
		{dtype.I8, 1, 8, 3, 3},
		{dtype.U16, 2, 16, 3, 6},
		{dtype.BF16, 2, 16, 0, 0},
		{dtype.F32, 4, 32, 1000, 4000},
		{dtype.I64, 8, 64, 2, 16},
		{dtype.C64, 8, 64, 2, 16},
		{dtype.C128, 16, 128, 2, 32},
		{dtype.Q4_0, 0, 0, 64, 36},
		{dtype.Q8_0, 0, 0, 32, 34},
		{dtype.Q6K, 0, 0, 512, 420},
		{dtype.Invalid, 0, 0, -1, 0},
	} {
		if tt.d.Size() != tt.size || tt.d.Bits() != tt.bits {
			t.Errorf("%s: Size %d, Bits %d; want %d, %d", tt.d, tt.d.Size(), tt.d.Bits(), tt.size, tt.bits)
		}
		if tt.n < 0 {
			continue
		}
		if got, err := tt.d.Bytes(tt.n); err != nil || got != tt.bytes {
			t.Errorf("%s.Bytes(%d) = %d, %v; want %d", tt.d, tt.n, got, err, tt.bytes)
		}
	}
}

func TestBytesRefusesTypesWithoutSize(t *testing.T) {
	for _, tt := range []struct {
		d dtype.DType
		n int
	}{
		{dtype.Invalid, 1},
		{dtype.F32, -1},
		{dtype.Q4_0, 33},
		{dtype.Q4K, 128},
		{dtype.F64, math.MaxInt / 4},
		{dtype.Q8K, math.MaxInt - math.MaxInt%256},
	} {
		var want *dtype.SizeError
		if got, err := tt.d.Bytes(tt.n); !errors.As(err, &want) || got != 0 {
			t.Errorf("%s.Bytes(%d) = %d, %v; want a SizeError", tt.d, tt.n, got, err)
		}
	}
}

// The bits an element takes in each packed format, all scales included, as the
// format's documentation gives them.
func TestBlocksHaveTheDocumentedDensity(t *testing.T) {
	for d, bits := range map[dtype.DType]float64{
		dtype.Q4_0: 4.5, dtype.Q4_1: 5, dtype.Q5_0: 5.5, dtype.Q5_1: 6, dtype.Q8_0: 8.5,
		dtype.Q2K: 2.625, dtype.Q3K: 3.4375, dtype.Q4K: 4.5, dtype.Q5K: 5.5, dtype.Q6K: 6.5625, dtype.Q8K: 9.125,
	} {
		elems, bytes := d.Block()
		if got := float64(8*bytes) / float64(elems); got != bits {
			t.Errorf("%s takes %v bits an element, want %v", d, got, bits)
		}
	}
}

func TestRelatedTypes(t *testing.T) {
	for _, tt := range []struct{ d, re, cplx, unsigned dtype.DType }{
		{dtype.F32, dtype.F32, dtype.C64, dtype.U32},
		{dtype.F64, dtype.F64, dtype.C128, dtype.U64},
		{dtype.C64, dtype.F32, dtype.C64, dtype.U64},
		{dtype.C128, dtype.F64, dtype.C128, dtype.Invalid},
		{dtype.BF16, dtype.BF16, dtype.Invalid, dtype.U16},
		{dtype.I8, dtype.I8, dtype.Invalid, dtype.U8},
		{dtype.Bool, dtype.Bool, dtype.Invalid, dtype.Invalid},
		{dtype.Q4_0, dtype.Q4_0, dtype.Invalid, dtype.Invalid},
	} {
		if tt.d.Real() != tt.re || tt.d.Complex() != tt.cplx || tt.d.Unsigned() != tt.unsigned {
			t.Errorf("%s: real %s, complex %s, unsigned %s", tt.d, tt.d.Real(), tt.d.Complex(), tt.d.Unsigned())
		}
	}
}

func TestWrapIsGoConversion(t *testing.T) {
	for _, x := range []int64{0, 1, -1, 127, 128, -129, 255, 256, 65535, 65536, 1 << 31, 1 << 32, -1 << 31, math.MaxInt64, math.MinInt64} {
		for d, want := range map[dtype.DType]int64{
			dtype.I8: int64(int8(x)), dtype.I16: int64(int16(x)), dtype.I32: int64(int32(x)), dtype.I64: x,
			dtype.U8: int64(uint8(x)), dtype.U16: int64(uint16(x)), dtype.U32: int64(uint32(x)), dtype.U64: x,
			dtype.F32: x,
		} {
			if got := d.Wrap(x); got != want {
				t.Errorf("%s.Wrap(%d) = %d, want %d", d, x, got, want)
			}
			if lo, hi, ok := d.IntRange(); ok && (d.Wrap(x) < lo || d.Wrap(x) > hi) {
				t.Errorf("%s.Wrap(%d) is outside [%d, %d]", d, x, lo, hi)
			}
		}
	}
	if dtype.Bool.Wrap(256) != 1 || dtype.Bool.Wrap(0) != 0 {
		t.Error("Bool.Wrap is not x ≠ 0")
	}
}

func TestEveryTypeIsInTheSupportTable(t *testing.T) {
	for _, d := range dtype.All() {
		if (d.On(dtype.CPU) == dtype.Unsupported) != d.IsPacked() {
			t.Errorf("%s is %s on the CPU", d, d.On(dtype.CPU))
		}
		if d.On(dtype.Dialect(9)) != dtype.Unsupported {
			t.Errorf("%s is supported on a dialect that does not exist", d)
		}
	}
	for _, tt := range []struct {
		d    dtype.DType
		on   dtype.Dialect
		want dtype.Support
	}{
		{dtype.Bool, dtype.WGSL, dtype.Arithmetic},
		{dtype.I64, dtype.WGSL, dtype.Unsupported},
		{dtype.F64, dtype.WGSL, dtype.Unsupported},
		{dtype.F16, dtype.WGSL, dtype.Arithmetic},
		{dtype.BF16, dtype.WGSL, dtype.Storage},
		{dtype.I8, dtype.CUDA, dtype.Storage},
		{dtype.F16, dtype.CUDA, dtype.Storage},
		{dtype.F8E4M3, dtype.WGSL, dtype.Storage},
		{dtype.F8E5M2, dtype.CUDA, dtype.Storage},
		{dtype.C64, dtype.CUDA, dtype.Unsupported},
		{dtype.F16, dtype.CPU, dtype.Storage},
		{dtype.F16, dtype.WASM, dtype.Storage},
		{dtype.I8, dtype.WASM, dtype.Storage},
		{dtype.C64, dtype.WASM, dtype.Unsupported},
		{dtype.F64, dtype.CUDA, dtype.Arithmetic},
		{dtype.F64, dtype.MSL, dtype.Unsupported},
		{dtype.Invalid, dtype.CPU, dtype.Unsupported},
	} {
		if got := tt.d.On(tt.on); got != tt.want {
			t.Errorf("%s on %s: %s, want %s", tt.d, tt.on, got, tt.want)
		}
	}
}
