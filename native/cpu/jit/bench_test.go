package jit

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// BenchmarkFunctions tells the least nanoseconds of an operation for each lane,
// of numbers in the nearest cache.
func BenchmarkFunctions(b *testing.B) {
	for _, op := range []scalar.Op{scalar.OpAdd, scalar.OpMax, scalar.OpExp, scalar.OpLog, scalar.OpTanh, scalar.OpSigmoid, scalar.OpErf} {
		b.Run(op.String(), func(b *testing.B) {
			const n = 2048
			k := &Kernel{}
			x := k.Load(k.Array(), dtype.F32)
			args := []Value{x, x}[:op.Arity()]
			y, _ := k.Apply(Operation{Op: op, From: dtype.F32, To: dtype.F32}, args...)
			k.Store(k.Array(), dtype.F32, y)
			set := &Set{}
			code := set.Compile(One(k))
			if err := set.Load(); err != nil {
				b.Fatal(err)
			}
			in, out := make([]float32, n), make([]float32, n)
			for i := range in {
				in[i] = float32(i%17) - 8
			}
			c := code.NewCall()
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&out[0]))
			least := math.Inf(1)
			for b.Loop() {
				start := time.Now()
				for range 20 {
					c.Run(n)
				}
				least = min(least, float64(time.Since(start).Nanoseconds())/20)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(least/n, "ns/lane")
		})
	}
}
