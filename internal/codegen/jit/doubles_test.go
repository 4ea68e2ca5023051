package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestRunningDoubles sums rows of every length, with masked lanes, and folds the lanes.
func TestRunningDoubles(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		add := Operation{scalar.OpAdd, dtype.F64, dtype.F64}
		for n := 1; n <= 2*MaxLanes; n++ {
			k := &Kernel{Long: true}
			sum := k.Accumulator(dtype.F64, math.Float64bits(0.5))
			next, _ := k.Apply(add, sum, k.Load(k.Array(), dtype.F64))
			k.Next(sum, next)
			k.After()
			for by := k.Width() / 2; by > 0; by /= 2 {
				sum, _ = k.Apply(add, sum, k.Rotate(sum, by))
			}
			out := k.Array()
			k.StoreFirst(out, sum)
			c := loadKernel(t, k)
			in, result := make([]float64, 3*MaxLanes), []float64{0, -1}
			for i := range in {
				in[i] = float64(i + 1)
			}
			c.Set(out, unsafe.Pointer(&result[0]))
			total, full := 0.0, n-n%c.Width()
			if full > 0 {
				c.Set(0, unsafe.Pointer(&in[0]))
				c.Run(full)
				total += result[0] - 0.5*float64(k.Width())
			}
			if full < n {
				c.Set(0, unsafe.Pointer(&in[full]))
				c.RunTail(n - full)
				total += result[0] - 0.5*float64(k.Width())
			}
			if want := float64(n * (n + 1) / 2); total != want || result[1] != -1 {
				t.Fatalf("%d lanes: %v, not %v; behind it %v", n, total, want, result[1])
			}
		}
	})
}

// doubleReferences are the functions of package math, within one ULP, except where that of
// Go 1.26 is wrong on x86-64.
var doubleReferences = map[scalar.Op]func(float64) float64{
	scalar.OpExp: exactExp, scalar.OpTanh: math.Tanh, scalar.OpExpm1: math.Expm1, scalar.OpLog1p: math.Log1p, scalar.OpErf: math.Erf,
	scalar.OpLog: func(x float64) float64 {
		if x > 0 && x < 0x1p-1022 {
			return math.Log(x*0x1p54) - 54*math.Ln2
		}
		return math.Log(x)
	},
	scalar.OpSigmoid: func(x float64) float64 {
		if x < 0 {
			return exactExp(x) / (1 + exactExp(x))
		}
		return 1 / (1 + math.Exp(-x))
	},
}

// exactExp is math.Exp, which overflows from 709.44 on.
func exactExp(x float64) float64 {
	if x > 700 {
		return math.Exp(x/2) * math.Exp(x/2)
	}
	return math.Exp(x)
}

// TestFunctionsOfDoubles compares with references on numbers of every size.
func TestFunctionsOfDoubles(t *testing.T) {
	const n = 1 << 14
	everyLevel(t, func(t *testing.T) {
		for op := range doubleFunctions {
			f := doubleReferences[op]
			k := &Kernel{Long: true}
			y, _ := k.Apply(Operation{op, dtype.F64, dtype.F64}, k.Load(k.Array(), dtype.F64))
			k.Store(k.Array(), dtype.F64, y)
			c := loadKernel(t, k)
			in, out := doubles(uint64(op), n), make([]float64, n)
			for i := range in {
				if i%4 == 1 {
					in[i] = float64(i-n/2) * 1500 / n // slightly beyond the range in which exp is neither 0 nor infinite
				}
			}
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&out[0]))
			c.Run(n)
			for i, x := range in {
				want := f(x)
				apart := math.Abs(float64(int64(math.Float64bits(out[i])) - int64(math.Float64bits(want))))
				if same := out[i] != out[i] && want != want; !same && !(apart <= 3) {
					t.Fatalf("%s(%v) is %v, not %v: %g numbers apart", op, x, out[i], want, apart)
				}
			}
		}
	})
}
