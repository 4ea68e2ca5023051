package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestPowersOfDoubles compares powers of numbers of every size with others in double-double arithmetic, those of small
// integers with products, and those of special numbers with package math's.
func TestPowersOfDoubles(t *testing.T) {
	const n = 1 << 13
	x, y := doubles(1, n), doubles(2, n)
	for i := range n {
		switch i % 4 {
		case 1: // results of every size
			x[i] = math.Abs(x[i])
			y[i] = 1500 * (float64(i)/n - 0.5) / math.Log(x[i])
		case 2: // near 1
			x[i] = 1 + float64(i-n/2)*0x1p-40
			y[i] = float64(i) * 0x1p30
		case 3:
			x[i], y[i] = float64(i%29-14), float64(i/29%14)
		}
	}
	special := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p53, 0x1p53 - 1, 0x1p-1074, math.MaxFloat64, -math.MaxFloat64,
	}
	for i, a := range special {
		for j, b := range special {
			x[4*(i*len(special)+j)], y[4*(i*len(special)+j)] = a, b
		}
	}
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{Long: true}
		z, _ := k.Apply(Operation{scalar.OpPow, dtype.F64, dtype.F64}, k.Load(k.Array(), dtype.F64), k.Load(k.Array(), dtype.F64))
		k.Store(k.Array(), dtype.F64, z)
		c, out := loadKernel(t, k), make([]float64, n)
		for i, array := range [][]float64{x, y, out} {
			c.Set(i, unsafe.Pointer(&array[0]))
		}
		c.Run(n)
		for i, got := range out {
			want, most := elementary.Pow(x[i], y[i]), 2.0
			if i%4 == 3 {
				most = 0
			}
			apart := math.Abs(float64(int64(math.Float64bits(got)) - int64(math.Float64bits(want))))
			if same := got != got && want != want; !same && !(apart <= most) {
				t.Fatalf("%v to the power %v is %v, not %v: %g numbers apart", x[i], y[i], got, want, apart)
			}
		}
	})
}
