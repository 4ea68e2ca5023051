package padding

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestAttentionOfJoinedSequences attends along b sequences of s rows joined to one. Each has its padding at its own
// end: the rows keep their order, not their distances. Queries that are all equal have no such gaps.
func TestAttentionOfJoinedSequences(t *testing.T) {
	rows := ir.Sym("b").Mul(ir.Sym("s"))
	for _, c := range []struct {
		name  string
		equal bool // queries
		a     ops.AttentionAttrs
		want  outcome
	}{
		{"all", false, ops.AttentionAttrs{Scale: 1}, equal},
		{"causal", false, ops.AttentionAttrs{Scale: 1, Causal: true}, equal},
		{"window", false, ops.AttentionAttrs{Scale: 1, Causal: true, Window: 2}, refused},
		{"equal queries", true, ops.AttentionAttrs{Scale: 1, Causal: true}, refused},
	} {
		g, err := ir.Build("joined", func(b *ir.Builder) {
			x := ops.Reshape(b, b.Input("x", ir.F32, ir.Sym("b"), ir.Sym("s"), ir.N(2)), ir.N(1), rows, ir.N(2))
			q := x
			if c.equal {
				q = ops.BroadcastTo(b, b.Input("q", ir.F32, ir.Dims(1, 1, 2)...), x.Shape())
			}
			b.Output("y", ops.Attention(b, q, x, x, ir.Value{}, c.a))
		})
		if err != nil {
			t.Fatal(err)
		}
		in, sizes := map[string]*ir.Array{}, map[string]int{"b": 2, "s": 3}
		if err := addCotangents(g, in, sizes); err != nil {
			t.Fatal(err)
		}
		if o, err := tryPadded(t, g, in, sizes, irtest.ToleranceFor(ir.F32)); o != c.want {
			t.Errorf("%s: outcome %d, not %d: %v", c.name, o, c.want, err)
		}
	}
}
