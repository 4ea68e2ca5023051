package jit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// BenchmarkFunctions reports the minimum nanoseconds per lane of an operation on random numbers in
// the first-level cache, in f32 and in f64, the ratio of the two, and the number of steps of each.
// The ratio is at least 2, and more where a function needs polynomials of a higher degree, and for
// quotients and roots, which processors compute at less than half the rate.
func BenchmarkFunctions(b *testing.B) {
	for _, op := range []scalar.Op{
		scalar.OpAdd, scalar.OpDiv, scalar.OpMax, scalar.OpSqrt, scalar.OpExp, scalar.OpExpm1, scalar.OpLog, scalar.OpLog1p,
		scalar.OpTanh, scalar.OpSigmoid, scalar.OpErf, scalar.OpSin, scalar.OpPow,
	} {
		b.Run(op.String(), func(b *testing.B) {
			const n = 2048
			list := []dtype.DType{dtype.F32, dtype.F64}
			calls, best := make([]*Call, len(list)), []float64{math.Inf(1), math.Inf(1)}
			for i, t := range list {
				if o := (Operation{op, t, t}); Has(o) {
					calls[i] = benchCall(b, o, n)
				}
			}
			for b.Loop() {
				for i, c := range calls {
					if c == nil {
						continue
					}
					start := time.Now()
					for range 20 {
						c.Run(n)
					}
					best[i] = min(best[i], float64(time.Since(start).Nanoseconds())/20)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(best[0]/n, "ns/f32")
			b.ReportMetric(float64(Steps(Operation{op, dtype.F32, dtype.F32})), "steps-f32")
			if calls[1] != nil {
				b.ReportMetric(best[1]/n, "ns/f64")
				b.ReportMetric(best[1]/best[0], "x-f32")
				b.ReportMetric(float64(Steps(Operation{op, dtype.F64, dtype.F64})), "steps-f64")
			}
		})
	}
}

// benchCall returns a call of an operation of floats on random numbers.
func benchCall(b *testing.B, o Operation, n int) *Call {
	b.Helper()
	k := &Kernel{Long: o.From == dtype.F64}
	x := k.Load(k.Array(), o.From)
	y, _ := k.Apply(o, []Value{x, x}[:o.Op.Arity()]...)
	k.Store(k.Array(), o.To, y)
	set := &Set{}
	code := set.Compile(One(k))
	if err := set.Load(); err != nil {
		b.Fatal(err)
	}
	c := code.NewCall()
	if k.Long {
		c.Set(0, unsafe.Pointer(&normal[float64](n)[0]))
		c.Set(1, unsafe.Pointer(&make([]float64, n)[0]))
	} else {
		c.Set(0, unsafe.Pointer(&normal[float32](n)[0]))
		c.Set(1, unsafe.Pointer(&make([]float32, n)[0]))
	}
	return c
}

func normal[T float32 | float64](n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rand.NormFloat64() * 3)
	}
	return x
}
