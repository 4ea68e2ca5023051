package scalar_test

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// narrowFloats are the floats that kernels compute in f32.
var narrowFloats = slices.DeleteFunc(dtype.All(), func(d dtype.DType) bool { return !d.IsFloat() || d.Size() > 2 })

// evaluator returns a function of the bits of its argument, to the bits of its
// result.
func evaluator(t *testing.T, e scalar.Expr, arg dtype.DType) func(bits uint32) uint32 {
	t.Helper()
	p, env := scalar.Compile(e), &scalar.Env{Args: make([]scalar.Value, 1)}
	var scratch []scalar.Value
	return func(bits uint32) uint32 {
		env.Args[0] = scalar.Value{I: int64(bits)}
		if arg.IsFloat() {
			env.Args[0] = scalar.Value{F: arg.FloatFromBits(uint64(bits))}
		}
		var err error
		if scratch, err = p.Run(env, scratch); err != nil {
			t.Fatal(err)
		}
		if e.Type.IsFloat() {
			return uint32(e.Type.FloatBits(scratch[0].F))
		}
		return uint32(scratch[0].I)
	}
}

// Package dtype is tested against ml_dtypes and NumPy.
func TestUnpackIsExactForAllBits(t *testing.T) {
	for _, d := range narrowFloats {
		f := evaluator(t, scalar.Unpack(scalar.Arg(0, dtype.U32), d), dtype.U32)
		for b := range uint32(1) << d.Bits() {
			got, want := math.Float32frombits(f(b)), float32(d.FloatFromBits(uint64(b)))
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%s: %#x is %v, want %v", d, b, got, want)
			}
		}
	}
}

func TestPackRoundsToNearestEven(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, d := range narrowFloats {
		f := evaluator(t, scalar.Pack(scalar.Arg(0, dtype.F32), d), dtype.F32)
		check := func(x float32) {
			got, want := uint64(f(math.Float32bits(x))), d.FloatBits(float64(x))
			if got != want && (x == x || d.FloatFromBits(got) == d.FloatFromBits(got)) {
				t.Fatalf("%s: %v (%#08x) is packed to %#x, want %#x", d, x, math.Float32bits(x), got, want)
			}
		}
		// Every number of the type, the ties between, and their neighbours.
		for b := range uint64(1) << d.Bits() {
			x := d.FloatFromBits(b)
			for _, y := range []float64{x, (x + d.FloatFromBits(b+1)) / 2} {
				check(float32(y))
				check(math.Nextafter32(float32(y), float32(math.Inf(1))))
				check(math.Nextafter32(float32(y), float32(math.Inf(-1))))
			}
		}
		for range 200000 {
			check(math.Float32frombits(rng.Uint32()))
		}
		check(math.MaxFloat32)
		check(float32(math.NaN()))
	}
}

// TestPackedNumbersRoundTrip checks what preserves a value that is moved in its storage
// type the same.
func TestPackedNumbersRoundTrip(t *testing.T) {
	for _, d := range narrowFloats {
		f := evaluator(t, scalar.Pack(scalar.Unpack(scalar.Arg(0, dtype.U32), d), d), dtype.U32)
		for b := range uint32(1) << d.Bits() {
			if x := d.FloatFromBits(uint64(b)); f(b) != b && x == x {
				t.Fatalf("%s: %#x became %#x", d, b, f(b))
			}
		}
	}
}
