package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpCond runs one of two graphs.
const OpCond ir.Op = "cond"

func init() {
	define(&ir.Def{
		Op: OpCond,
		Doc: "Runs the first graph if the predicate is true and the second one if it is false, on all other " +
			"operands, and returns its results (XLA's Conditional).",
		Constraints: numbered(
			"the predicate is a boolean of rank 0",
			"both graphs take the other operands, and have neither parameters nor states",
			"both graphs return values of the same types",
		),
		Operands:  []string{"predicate", "operands..."},
		Subgraphs: 2,
		Infer:     inferCond,
		Eval: func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			if in[0].I[0] != 0 {
				return c.Call(n.Subgraphs()[0], in[1:])
			}
			return c.Call(n.Subgraphs()[1], in[1:])
		},
		JVP:       jvpCond,
		Partial:   partialCond,
		Transpose: transposeCond,
		Batch:     batchCond,
		Prune:     pruneCond,
		Lower:     &ir.ControlLowering{},
	})
}

// Branch builds one of the graphs of a [Cond] from its operands.
type Branch = func(b *ir.Builder, in []ir.Value) []ir.Value

// Cond returns the results of whenTrue if predicate, a bool of rank 0, is true, and of
// whenFalse otherwise. Both return values of the same types. The branches cannot capture
// values of the surrounding graph: they take operands.
func Cond(b *ir.Builder, predicate ir.Value, operands []ir.Value, whenTrue, whenFalse Branch) []ir.Value {
	if !b.Require(OpCond, "branch", whenTrue != nil && whenFalse != nil) {
		return make([]ir.Value, 1)
	}
	types := typesOf(operands)
	branches := []*ir.Graph{closed(b, "when_true", types, whenTrue), closed(b, "when_false", types, whenFalse)}
	return b.AddNode(OpCond, nil, branches, slices.Concat([]ir.Value{predicate}, operands)...)
}

func inferCond(n *ir.Node) ([]ir.Type, error) {
	if len(n.Inputs()) == 0 || !n.Input(0).Type().Equal(ir.TypeOf(ir.Bool)) {
		return nil, ir.DTypef("the predicate is %s, not bool[]", n.Input(0).Type())
	}
	var out []ir.Type
	for i, g := range n.Subgraphs() {
		if err := checkClosed(g, n.InTypes()[1:]); err != nil {
			return nil, err
		}
		types := outputTypes(g)
		if i == 0 {
			out = types
			continue
		}
		if len(types) != len(out) {
			return nil, ir.Errorf(ir.ErrGraph, "the graphs return %d and %d values", len(out), len(types))
		}
		for k, t := range types {
			if !t.Equal(out[k]) {
				return nil, ir.Shapef("result %d is %s of one graph and %s of the other", k, out[k], t)
			}
		}
	}
	return out, nil
}

// union is the elementwise or of two lists.
func union(x, y []bool) []bool {
	out := slices.Clone(x)
	for i := range out {
		out[i] = out[i] || y[i]
	}
	return out
}

// batchCond batches both branches. If the predicate is batched, both are computed and each
// member selects its own.
func batchCond(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	batched := marked(axes[1:])
	operands := frontAxes(b, in, axes)
	branches := make([]*ir.Graph, 2)
	want := make([]bool, n.NumResults())
	for i := range want {
		want[i] = axes[0] >= 0
	}
	for _, g := range n.Subgraphs() {
		_, out := batchedGraph(b, g, batched, size, nil)
		want = union(want, out)
	}
	for k, g := range n.Subgraphs() {
		branches[k], _ = batchedGraph(b, g, batched, size, want)
	}
	if axes[0] < 0 || b.Err() != nil {
		return b.AddNode(OpCond, nil, branches, operands...), axesAt(want)
	}
	whenTrue, whenFalse := b.Splice(branches[0], operands[1:]), b.Splice(branches[1], operands[1:])
	out := make([]ir.Value, len(whenTrue))
	for i, x := range whenTrue {
		predicate := BroadcastInDim(b, operands[0], x.Shape(), []int{0})
		out[i] = Select(b, predicate, x, whenFalse[i])
	}
	return out, axesAt(want)
}
