package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

func inferLinearCall(n *ir.Node) ([]ir.Type, error) {
	r, types := n.Attrs().(*LinearCallAttrs).Residuals, n.InTypes()
	if r < 0 || r > len(types) {
		return nil, ir.Attrf("residuals is %d, not in [0, %d], the number of operands", r, len(types))
	}
	forward, transposed := n.Subgraphs()[0], n.Subgraphs()[1]
	out := outputTypes(forward)
	if isAbsent(forward) {
		out = portTypes(transposed)[min(r, len(transposed.Ports())):]
	} else if err := checkClosed(forward, types); err != nil {
		return nil, err
	}
	if isAbsent(transposed) {
		return out, nil
	}
	if err := checkClosed(transposed, slices.Concat(types[:r], out)); err != nil {
		return nil, err
	}
	return out, checkReturns(transposed, types[r:])
}

// isAbsent reports whether a graph of a linear_call stands for a missing one.
func isAbsent(g *ir.Graph) bool { return len(g.Ports()) == 0 && len(g.Outputs()) == 0 }

// failWithoutForward records why the first graph of a linear_call is missing, if it is:
// the second graph has no transpose.
func failWithoutForward(b *ir.Builder, n *ir.Node) bool {
	if !isAbsent(n.Subgraphs()[0]) {
		return false
	}
	_, err := transposedGraph(n.Subgraphs()[1], n.Attrs().(*LinearCallAttrs).Residuals, n.Types())
	b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "the transpose of a custom derivative is needed and does not exist: %v", err)))
	return true
}

// jvpLinearCall applies the map to the tangents of the linear operands and differentiates
// the graph by the residuals.
func jvpLinearCall(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	r := n.Attrs().(*LinearCallAttrs).Residuals
	forward, transposed := n.Subgraphs()[0], n.Subgraphs()[1]
	out := make([]ir.Value, n.NumResults())
	if anyValid(t[r:]) {
		linear := make([]ir.Value, len(in)-r)
		for i := range linear {
			linear[i] = orZeros(b, t[r+i], in[r+i])
		}
		copy(out, LinearCall(b, forward, transposed, in[:r], linear))
	}
	if anyValid(t[:r]) && !failWithoutForward(b, n) {
		_, by := derive.JVP(b, forward, in, slices.Concat(t[:r], make([]ir.Value, len(in)-r)))
		for i := range out {
			out[i] = addTangents(b, out[i], by[i])
		}
	}
	return out
}

func anyValid(list []ir.Value) bool { return slices.Contains(validity(list), true) }

func transposeLinearCall(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	r := n.Attrs().(*LinearCallAttrs).Residuals
	out := make([]ir.Value, len(in))
	if slices.Contains(linear[:r], true) {
		b.Fail(n.Fail(ir.Errorf(ir.ErrNoRule, "a residual depends on a tangent")))
		return out
	}
	cts := make([]ir.Value, len(ct))
	for i, t := range n.Types() {
		cts[i] = orZerosOf(b, ct[i], t)
	}
	copy(out[r:], LinearCall(b, n.Subgraphs()[1], n.Subgraphs()[0], in[:r], cts))
	return out
}

// batchLinearCall batches both graphs so that they remain transposes of each other: the
// cotangent of an unbatched linear operand is summed over the batch axis.
func batchLinearCall(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	r, batched := n.Attrs().(*LinearCallAttrs).Residuals, marked(axes)
	if failWithoutForward(b, n) {
		return make([]ir.Value, n.NumResults()), repeatInt(-1, n.NumResults())
	}
	forward, out := batchedGraph(b, n.Subgraphs()[0], batched, size, nil)
	transposed := n.Subgraphs()[1]
	if !isAbsent(transposed) {
		transposed, _ = batchedGraph(b, transposed, slices.Concat(batched[:r], out), size, batched[r:])
	}
	in = frontAxes(b, in, axes)
	return LinearCall(b, forward, transposed, in[:r], in[r:]), axesAt(out)
}
