//go:build cgo && (darwin || linux)

package metal_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
	"github.com/rlx-go/rlx/native/metal"
)

// checkAttention computes attention whose scores are not kept, and its gradients, by
// matrices of SIMD-groups: lengths that no block divides, causal, in two heads that share
// their keys. What it is compared with is the CPU's, which other tests hold to the reference
// of the ops.
func checkAttention(t *testing.T, b native.Backend) {
	t.Helper()
	const queries, keys, depth, width = 1030, 1041, 12, 20
	loss, err := ir.Build("attention", func(b *ir.Builder) {
		q, k := b.Param("q", ir.F32, ir.Dims(2, queries, depth)...), b.Param("k", ir.F32, ir.Dims(1, keys, depth)...)
		v := b.Param("v", ir.F32, ir.Dims(1, keys, width)...)
		y := ops.Attention(b, q, k, v, ir.Value{}, ops.AttentionAttrs{Causal: true})
		b.Output("y", y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, y, y)))
	})
	must(t, err)
	g, err := autodiff.GradWith(loss, autodiff.GradOptions{Loss: "loss", Wrt: []string{"q", "k", "v"}})
	must(t, err)
	values := map[string]native.Tensor{}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(ir.F32, dims...)
		for i := range a.F {
			a.F[i] = rng.NormFloat64()
		}
		a.Round()
		values[p.Name] = native.FromArray(a)
	}
	results := func(b native.Backend) (map[string]native.Tensor, native.Program) {
		p := compile(t, b, g)
		for name, x := range values {
			must(t, p.Set(context.Background(), name, x))
		}
		r, err := p.Run(context.Background(), "step", nil)
		must(t, err)
		out, err := r.Wait(context.Background())
		must(t, err)
		return out, p
	}
	want, _ := results(cpu.Backend())
	got, p := results(b)
	kernels := slices.DeleteFunc(slices.Clone(metal.Plan(p).Kernels), func(k plan.Kernel) bool { return !metal.Attends(k) || !metal.UsesFragments(k) })
	if len(kernels) != 3 { // forward, the cotangents of queries, those of keys and values
		t.Errorf("%d kernels of attention have fragments", len(kernels))
	}
	for name := range want {
		x, err := got[name].Float32s()
		must(t, err)
		y, err := want[name].Float32s()
		must(t, err)
		largest := 0.0
		for _, e := range y {
			largest = math.Max(largest, math.Abs(float64(e)))
		}
		for i := range y {
			if !(math.Abs(float64(x[i]-y[i])) <= 1e-4*largest) {
				t.Fatalf("element %d of %s is %v, not %v", i, name, x[i], y[i])
			}
		}
	}
}
