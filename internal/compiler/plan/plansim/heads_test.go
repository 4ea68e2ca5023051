package plansim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestHeadsAreStoredByPosition runs attention between products and its gradients, all of whose results are
// stored in the order in which the products read them, with tensor cores.
func TestHeadsAreStoredByPosition(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.BF16} {
		t.Run(d.String(), func(t *testing.T) {
			g, err := autodiff.Grad(multiHead(t, d), "loss", "x", "q", "k", "v", "out")
			if err != nil {
				t.Fatal(err)
			}
			rng, inputs := rand.New(rand.NewPCG(1, 2)), map[string]*ir.Array{}
			for _, p := range g.Ports() {
				dims, _ := p.Value.Type().Shape.Ints()
				x := normal(rng, dims...)
				for i := range x.F {
					x.F[i] /= 8
				}
				x.DType = d
				x.Round()
				inputs[p.Name] = x
			}
			checkGraphOn(t, byMma(), g, inputs)
		})
	}
}

// multiHead is a loss of attention by 4 heads of 16 over 2 sequences of 80, with operands of d.
func multiHead(t *testing.T, d ir.DType) *ir.Graph {
	t.Helper()
	const examples, positions, heads, size = 2, 80, 4, 16
	g, err := ir.Build("loss", func(b *ir.Builder) {
		product := func(x ir.Value, w string) ir.Value {
			return ops.MatMul(b, x, b.Input(w, d, ir.Dims(heads*size, heads*size)...))
		}
		x := b.Input("x", d, ir.Dims(examples*positions, heads*size)...)
		split := func(w string) ir.Value {
			return ops.Transpose(b, ops.Reshape(b, product(x, w), ir.Dims(examples, positions, heads, size)...), 0, 2, 1, 3)
		}
		y := ops.Attention(b, split("q"), split("k"), split("v"), ir.Value{}, ops.AttentionAttrs{Causal: true})
		y = ops.Reshape(b, ops.Transpose(b, y, 0, 2, 1, 3), ir.Dims(examples*positions, heads*size)...)
		b.Output("loss", ops.ReduceSum(b, ops.Sin(b, product(y, "out"))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
