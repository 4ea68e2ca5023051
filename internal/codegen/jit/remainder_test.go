package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// applied runs a function of two arrays of n numbers of a type.
func applied[T float32 | float64](t *testing.T, d dtype.DType, apply func(k *Kernel, x, y Value) Value, x, y []T) []T {
	t.Helper()
	k := &Kernel{Long: d == dtype.F64}
	z := apply(k, k.Load(k.Array(), d), k.Load(k.Array(), d))
	k.Store(k.Array(), d, z)
	c, out := loadKernel(t, k), make([]T, len(x))
	for i, array := range [][]T{x, y, out} {
		c.Set(i, unsafe.Pointer(&array[0]))
	}
	c.Run(len(x))
	return out
}

// remainderPairs are numbers of every size, special ones and multiples of each other.
func remainderPairs(n int) (x, y []float64) {
	x, y = doubles(5, n), doubles(6, n)
	for i := range n {
		switch i % 5 {
		case 1:
			x[i] = y[i] * float64(i%100)
		case 2:
			x[i], y[i] = float64(i), float64(i%17)/4
		case 3:
			x[i] = y[i] * float64(i) * 0x1p50
		}
	}
	return x, y
}

// TestRemainders compares with package math, in which remainders are exact.
func TestRemainders(t *testing.T) {
	const n = 1 << 12
	x, y := remainderPairs(n)
	x32, y32 := make([]float32, n), make([]float32, n)
	for i := range n {
		x32[i], y32[i] = float32(x[i]), float32(y[i])
	}
	rem := func(d dtype.DType) func(k *Kernel, x, y Value) Value {
		return func(k *Kernel, x, y Value) Value {
			v, _ := k.Apply(Operation{scalar.OpRem, d, d}, x, y)
			return v
		}
	}
	everyLevel(t, func(t *testing.T) {
		for i, got := range applied(t, dtype.F64, rem(dtype.F64), x, y) {
			if want := math.Mod(x[i], y[i]); !sameDouble(scalar.OpRem, got, want) {
				t.Fatalf("%v mod %v is %v, not %v", x[i], y[i], got, want)
			}
		}
		for i, got := range applied(t, dtype.F32, rem(dtype.F32), x32, y32) {
			if want := math.Mod(float64(x32[i]), float64(y32[i])); !sameDouble(scalar.OpRem, float64(got), want) {
				t.Fatalf("%v mod %v is %v, not %v in f32", x32[i], y32[i], got, want)
			}
		}
	})
}

// TestPowersOfTwo compares with package math: those of integers are equal.
func TestPowersOfTwo(t *testing.T) {
	const n = 1 << 12
	x := doubles(8, n)
	x32 := make([]float32, n)
	for i := range n {
		if i%4 == 0 {
			x[i] = float64(i-n/2) * 0.6
		}
		x32[i] = float32(x[i])
	}
	pow := func(d dtype.DType) func(k *Kernel, x, y Value) Value {
		return func(k *Kernel, x, _ Value) Value {
			v, _ := k.Apply(Operation{scalar.OpPow, d, d}, k.Const(scalar.ConstF(d, 2)), x)
			return v
		}
	}
	everyLevel(t, func(t *testing.T) {
		for i, got := range applied(t, dtype.F64, pow(dtype.F64), x, x) {
			want := math.Exp2(x[i])
			apart := math.Abs(float64(int64(math.Float64bits(got)) - int64(math.Float64bits(want))))
			if same := got != got && want != want; !same && !(apart <= 2) || x[i] == math.Trunc(x[i]) && got != want {
				t.Fatalf("2 to the power %v is %v, not %v", x[i], got, want)
			}
		}
		for i, got := range applied(t, dtype.F32, pow(dtype.F32), x32, x32) {
			want := float32(math.Exp2(float64(x32[i])))
			apart := math.Abs(float64(int32(math.Float32bits(got)) - int32(math.Float32bits(want))))
			if same := got != got && want != want; !same && !(apart <= 1) {
				t.Fatalf("2 to the power %v is %v, not %v in f32", x32[i], got, want)
			}
		}
	})
}
