package dtype_test

import (
	"math"
	"math/big"
	"math/rand"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// nearest rounds x to a binary format of prec significant bits with math/big, an independent
// implementation; subnormal numbers have fewer bits.
func nearest(x float64, prec uint, minExp int, largest float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	bits := int(prec)
	if e := math.Ilogb(x); e < minExp {
		bits -= minExp - e
	}
	var r float64
	switch {
	case bits >= 1:
		r, _ = new(big.Float).SetPrec(uint(bits)).SetMode(big.ToNearestEven).SetFloat64(x).Float64()
	case bits == 0: // between 0 and the smallest: half of it ties to 0
		unit := math.Ldexp(1, minExp-int(prec)+1)
		if math.Abs(x) > unit/2 {
			r = unit
		}
	}
	if math.Abs(r) > largest {
		r = math.Inf(1)
	}
	return math.Copysign(r, x)
}

// hard returns numbers on and next to the values of a narrow format and the
// midpoints between them.
func hard(values []float64, visit func(x float64)) {
	for i, v := range values {
		near := []float64{v}
		if i > 0 && !math.IsInf(v, 0) {
			near = append(near, (v+values[i-1])/2)
		}
		for _, x := range near {
			visit(x)
			visit(-x)
			visit(math.Nextafter(x, math.Inf(1)))
			visit(math.Nextafter(x, math.Inf(-1)))
		}
	}
}

// positives returns all values of a 16-bit float type from 0 to infinity.
func positives(d dtype.DType) []float64 {
	var vs []float64
	for b := uint64(0); ; b++ {
		v := d.FloatFromBits(b)
		vs = append(vs, v)
		if math.IsInf(v, 1) {
			return vs
		}
	}
}

func TestRoundIsNearestEven(t *testing.T) {
	for _, tt := range []struct {
		d      dtype.DType
		prec   uint
		minExp int
	}{{dtype.F16, 11, -14}, {dtype.BF16, 8, -126}} {
		check := func(x float64) {
			got, want := tt.d.Round(x), nearest(x, tt.prec, tt.minExp, tt.d.MaxFloat())
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != math.Signbit(want) {
				t.Fatalf("%s.Round(%b) = %b, want %b", tt.d, x, got, want)
			}
		}
		hard(positives(tt.d), check)
		rng := rand.New(rand.NewSource(1))
		for range 20000 {
			check(math.Ldexp(rng.NormFloat64(), rng.Intn(60)-40))
		}
		check(math.NaN())
		check(math.MaxFloat64)
		check(math.SmallestNonzeroFloat64)
	}
	if x := 1 + 0x1p-24 + 0x1p-50; dtype.F32.Round(x) != 1+0x1p-23 || dtype.F64.Round(x) != x || dtype.I32.Round(x) != x {
		t.Error("Round of f32, f64 or i32")
	}
	// By way of float32 this would round to 1, twice down.
	if x := 1 + 0x1p-11 + 0x1p-40; dtype.F16.Round(x) != 1+0x1p-10 {
		t.Error("f16 is rounded twice")
	}
}

func TestLimitsAreValues(t *testing.T) {
	for _, d := range []dtype.DType{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		if m := d.MaxFloat(); d.Round(m) != m || d != dtype.F64 && !math.IsInf(d.Round(m*1.01), 1) {
			t.Errorf("%s: MaxFloat %v", d, m)
		}
		if e := d.Epsilon(); d.Round(1+e) != 1+e || d.Round(1+e/2) != 1 {
			t.Errorf("%s: Epsilon %v", d, e)
		}
		if s := d.SmallestNormal(); d.Round(s) != s || d.Round(s*(1+d.Epsilon())) == s {
			t.Errorf("%s: SmallestNormal %v", d, s)
		}
	}
}

func TestAllBitPatternsSurvive(t *testing.T) {
	src := make([]uint16, 1<<16)
	for i := range src {
		src[i] = uint16(i)
	}
	wide, back := make([]float32, 1<<16), make([]uint16, 1<<16)
	for _, tt := range []struct {
		d      dtype.DType
		widen  func([]float32, []uint16) int
		narrow func([]uint16, []float32) int
		quiet  uint16
	}{
		{dtype.BF16, dtype.BF16ToF32, dtype.F32ToBF16, 0x0040},
		{dtype.F16, dtype.F16ToF32, dtype.F32ToF16, 0x0200},
	} {
		if n := tt.widen(wide, src); n != len(src) {
			t.Fatalf("%s: widened %d", tt.d, n)
		}
		tt.narrow(back, wide)
		for i, h := range src {
			x := float64(wide[i])
			want := h
			if math.IsNaN(x) {
				want |= tt.quiet
			}
			if back[i] != want {
				t.Fatalf("%s: %#04x became %v and then %#04x", tt.d, h, x, back[i])
			}
			if v := tt.d.FloatFromBits(uint64(h)); v != x && !math.IsNaN(v) || math.Signbit(v) != math.Signbit(x) {
				t.Fatalf("%s: FloatFromBits(%#04x) = %v, bulk conversion %v", tt.d, h, v, x)
			}
			if b := tt.d.FloatBits(x); !math.IsNaN(x) && b != uint64(h) {
				t.Fatalf("%s: FloatBits(%v) = %#04x, want %#04x", tt.d, x, b, h)
			}
		}
	}
}

func TestNarrowingAgreesWithRound(t *testing.T) {
	for d, narrow := range map[dtype.DType]func([]uint16, []float32) int{
		dtype.BF16: dtype.F32ToBF16, dtype.F16: dtype.F32ToF16,
	} {
		hard(positives(d), func(x float64) {
			f := float32(x)
			var bits [1]uint16
			narrow(bits[:], []float32{f})
			if got, want := d.FloatFromBits(uint64(bits[0])), d.Round(float64(f)); got != want {
				t.Fatalf("%s: %v narrowed to %v, want %v", d, f, got, want)
			}
		})
	}
}

func TestSignallingNaNStaysNaN(t *testing.T) {
	// All payload in the half that bf16 drops.
	src := []float32{math.Float32frombits(0x7f800001), math.Float32frombits(0xff80ffff)}
	dst := make([]uint16, 3)
	if n := dtype.F32ToBF16(dst, src); n != 2 || dst[0] != 0x7fc0 || dst[1] != 0xffc0 || dst[2] != 0 {
		t.Errorf("%d %#04x", n, dst)
	}
}

func TestFloatBitsOfWideTypes(t *testing.T) {
	for _, x := range []float64{0, -0.5, math.Pi, math.Inf(-1)} {
		if dtype.F32.FloatBits(x) != uint64(math.Float32bits(float32(x))) || dtype.F64.FloatBits(x) != math.Float64bits(x) {
			t.Errorf("bits of %v", x)
		}
		if dtype.F64.FloatFromBits(math.Float64bits(x)) != x {
			t.Errorf("%v from bits", x)
		}
	}
	if dtype.I32.FloatBits(1) != 0 || dtype.I32.FloatFromBits(1) != 0 {
		t.Error("integers have float bits")
	}
}

func BenchmarkF32ToBF16(b *testing.B) {
	src, dst := make([]float32, 4096), make([]uint16, 4096)
	b.SetBytes(4 * 4096)
	for b.Loop() {
		dtype.F32ToBF16(dst, src)
	}
}
