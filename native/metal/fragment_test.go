//go:build cgo && (darwin || linux)

package metal_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal"
)

// checkFragments computes products that are large enough for fragments, with prologues and
// epilogues, and split. Their elements are small integers, so that results are exact. bf16 factors
// use bfloat if the compiler supports it.
func checkFragments(t *testing.T, b native.Backend) {
	t.Helper()
	bfloat := metal.HasBFloat(b)
	for name, c := range map[string]struct {
		m, n, k int
		d       ir.DType
		turned  bool
	}{
		"f32":             {130, 200, 90, ir.F32, false},
		"f32, turned":     {130, 200, 90, ir.F32, true},
		"f16":             {130, 200, 90, ir.F16, false},
		"f16, turned":     {130, 200, 90, ir.F16, true},
		"bf16":            {130, 200, 90, ir.BF16, false},
		"f32, many parts": {96, 96, 600, ir.F32, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := ir.Build("product", func(b *ir.Builder) {
				x, y := b.Input("x", c.d, ir.Dims(c.m, c.k)...), b.Input("y", c.d, ir.Dims(c.k, c.n)...)
				if c.turned {
					x, y = b.Input("xt", c.d, ir.Dims(c.k, c.m)...), b.Input("yt", c.d, ir.Dims(c.n, c.k)...)
					x, y = ops.Transpose(b, x, 1, 0), ops.Transpose(b, y, 1, 0)
				}
				b.Output("z", ops.Relu(b, ops.MatMul(b, x, ops.Neg(b, y))))
			})
			must(t, err)
			in, tensors := map[string]*ir.Array{}, map[string]native.Tensor{}
			rng := rand.New(rand.NewPCG(1, 2))
			for _, p := range g.Ports() {
				dims, _ := p.Value.Shape().Ints()
				a := ir.NewArray(c.d, dims...)
				for i := range a.F {
					a.F[i] = float64(rng.IntN(5) - 2)
				}
				in[p.Name] = a
				tensors[p.Name] = native.FromArray(a)
			}
			want, err := ir.Eval(g, in, ir.EvalOptions{})
			must(t, err)
			p := compile(t, b, g)
			if !slices.ContainsFunc(metal.Plan(p).Kernels, metal.UsesFragments) {
				t.Fatal("no kernel has fragments")
			}
			if has := slices.ContainsFunc(metal.Plan(p).Kernels, metal.UsesBFloat); has != (bfloat && c.d == ir.BF16) {
				t.Errorf("kernels with bfloat: %t", has)
			}
			r, err := p.Run(context.Background(), "step", tensors)
			must(t, err)
			out, err := r.Wait(context.Background())
			must(t, err)
			got, err := out["z"].Array()
			must(t, err)
			for i := range want[0].Len() {
				if !(math.Abs(got.Float(i)-want[0].Float(i)) <= 0) {
					t.Fatalf("element %d is %v, not %v", i, got.Float(i), want[0].Float(i))
				}
			}
		})
	}
}
