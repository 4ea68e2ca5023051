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

// BenchmarkFunctions tells the least nanoseconds of an operation for each lane, of
// random numbers in the nearest cache, in f32 and in f64, how many times as long the
// latter takes, and how many instructions a register takes in each.
func BenchmarkFunctions(b *testing.B) {
	for _, op := range []scalar.Op{
		scalar.OpAdd, scalar.OpDiv, scalar.OpMax, scalar.OpSqrt, scalar.OpExp, scalar.OpExpm1, scalar.OpLog, scalar.OpLog1p,
		scalar.OpTanh, scalar.OpSigmoid, scalar.OpErf,
	} {
		b.Run(op.String(), func(b *testing.B) {
			const n = 2048
			narrow := benchCall[float32](b, Operation{op, dtype.F32, dtype.F32}, n)
			wide := benchCall[float64](b, Operation{op, dtype.F64, dtype.F64}, n)
			best := [2]float64{math.Inf(1), math.Inf(1)}
			for b.Loop() {
				for i, c := range []*Call{narrow, wide} {
					start := time.Now()
					for range 20 {
						c.Run(n)
					}
					best[i] = min(best[i], float64(time.Since(start).Nanoseconds())/20)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(best[0]/n, "ns/f32")
			b.ReportMetric(best[1]/n, "ns/f64")
			b.ReportMetric(best[1]/best[0], "x-f32")
			b.ReportMetric(float64(Steps(Operation{op, dtype.F32, dtype.F32})), "steps-f32")
			b.ReportMetric(float64(Steps(Operation{op, dtype.F64, dtype.F64})), "steps-f64")
		})
	}
}

// benchCall returns a call of an operation on random numbers of type T.
func benchCall[T float32 | float64](b *testing.B, o Operation, n int) *Call {
	b.Helper()
	k := &Kernel{Long: o.From == dtype.F64}
	x := k.Load(k.Array(), o.From)
	y, ok := k.Apply(o, []Value{x, x}[:o.Op.Arity()]...)
	if !ok {
		b.Fatalf("no kernel of %s in %s", o.Op, o.From)
	}
	k.Store(k.Array(), o.To, y)
	set := &Set{}
	code := set.Compile(One(k))
	if err := set.Load(); err != nil {
		b.Fatal(err)
	}
	in, out := make([]T, n), make([]T, n)
	for i := range in {
		in[i] = T(rand.NormFloat64() * 3)
	}
	c := code.NewCall()
	c.Set(0, unsafe.Pointer(&in[0]))
	c.Set(1, unsafe.Pointer(&out[0]))
	return c
}
