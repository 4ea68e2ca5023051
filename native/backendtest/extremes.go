package backendtest

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// Extremes differentiates the largest of computed values. The derivative finds them by comparing the values, which a kernel
// may compute again, with the results: where it missed one by a bit, a part of the gradient would be lost. A bias
// that is added to all of them has as many parts as there are results, and there are no ties.
func Extremes(t *testing.T, b native.Backend) {
	const batch, side, channels = 8, 112, 32
	dims := ir.Dims(batch, side, side, channels)
	in := map[string]native.Tensor{
		"x": normal(1, ir.BF16, batch, side, side, channels), "y": normal(2, ir.BF16, batch, side, side, channels),
		"scale": normal(3, ir.F32, channels), "other": normal(4, ir.F32, channels), "bias": normal(5, ir.F32, channels),
	}
	pool := func(size, stride, pad int) ops.PoolAttrs {
		return ops.PoolAttrs{Sizes: []int{size, size}, Strides: []int{stride, stride}, PadLo: []int{pad, pad}, PadHi: []int{pad, pad}}
	}
	for _, c := range []struct {
		name  string
		f     func(b *ir.Builder, x ir.Value) ir.Value
		parts int // of a channel
	}{
		{"windows", func(b *ir.Builder, x ir.Value) ir.Value { return ops.MaxPool(b, x, pool(2, 2, 0)) }, batch * side / 2 * side / 2},
		{"overlapping windows", func(b *ir.Builder, x ir.Value) ir.Value { return ops.MaxPool(b, x, pool(3, 2, 1)) }, batch * side / 2 * side / 2},
		{"rows", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceMax(b, x, 1) }, batch * side},
		{"least of columns", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceMin(b, x, 0, 2) }, side},
		{"segments", func(b *ir.Builder, x ir.Value) ir.Value {
			x = ops.Reshape(b, x, ir.Dims(batch*side*side, channels)...)
			return ops.SegmentReduce(b, x, ops.Mod(b, ops.Iota(b, ir.I32, 0, ir.N(batch*side*side)), ops.Const(b, ir.I32, side)), ops.SegmentAttrs{Segments: ir.N(side), Reduction: "max"})
		}, side},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, "extremes", func(b *ir.Builder) {
				row := func(name string) ir.Value {
					return ops.BroadcastInDim(b, b.Input(name, ir.F32, ir.N(channels)), dims, []int{3})
				}
				value := func(name string) ir.Value { return ops.Convert(b, b.Input(name, ir.BF16, dims...), ir.F32) }
				x := ops.Add(b, ops.Mul(b, value("x"), row("scale")), ops.Mul(b, value("y"), row("other")))
				b.Output("loss", ops.ReduceSum(b, c.f(b, ops.Add(b, x, row("bias")))))
			})
			g, err := autodiff.Grad(g, "loss", "bias")
			if err != nil {
				t.Fatal(err)
			}
			p := compile(t, b, g)
			defer closeProgram(t, p)
			r, err := p.Run(context.Background(), g.Name(), in)
			for i, part := range floats(t, wait(t, r, err)["grad/bias"]) {
				if part != float32(c.parts) {
					t.Fatalf("the gradient of bias %d is %v, not %d", i, part, c.parts)
				}
			}
		})
	}
}

// normal returns normally distributed numbers.
func normal(seed uint64, d ir.DType, dims ...int) native.Tensor {
	random := rand.New(rand.NewPCG(seed, 0))
	a := ir.NewArray(d, dims...)
	for i := range a.F {
		a.F[i] = d.Round(random.NormFloat64())
	}
	return native.FromArray(a)
}
