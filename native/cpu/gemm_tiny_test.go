package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
)

// TestTinyProducts compares batches of products of few numbers with the definition: of factors that are transposed, or
// the same along an axis of the batch.
func TestTinyProducts(t *testing.T) {
	const m, n, k = 3, 2, 4
	for _, c := range []struct {
		equation string
		x, y     []int
	}{
		{"abij,bjk->abik", []int{5, 7, m, k}, []int{7, k, n}},
		{"abji,abkj->abik", []int{5, 7, k, m}, []int{5, 7, n, k}},
		{"bij,bj->bi", []int{700, k, k}, []int{700, k}},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			g := pair("", d, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Einsum(b, c.equation, x, y) }, c.x, c.y).graph(t)
			in, values := map[string]native.Tensor{}, map[string]*ir.Array{}
			for _, p := range g.Ports() {
				dims, _ := p.Value.Shape().Ints()
				a := ir.NewArray(d, dims...)
				for i, x := range random(len(a.F)) {
					a.F[i] = float64(x)
				}
				in[p.Name], values[p.Name] = native.FromArray(a), a
			}
			want, err := ir.Eval(g, values, ir.EvalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), in)["y"]
			if text := backendtest.Compare(got, want[0], irtest.Tolerance{Abs: 1e-6, Rel: 1e-6}); text != "" {
				t.Errorf("%s of %v: %s", c.equation, d, text)
			}
		}
	}
}
