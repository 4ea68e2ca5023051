//go:build !js

package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// RoundedSigns lets comparisons of a value with 0 read the value rounded to bf16, where that is an
// operand of products and the value follows from results of products alone or from several arrays of
// its size, as a residual stream does. Such a comparison is the derivative of relu: neither the products
// nor the value is then kept for it. Only positive values of 2⁻¹³⁴ and less, which round to 0 for the
// products, compare otherwise.
func RoundedSigns(g *ir.Graph) (*ir.Graph, error) {
	uses := g.Uses()
	reads := func(n *ir.Node) bool {
		return isSignTest(n) && isRoundedOperand(n.Input(0), uses) && (isEpilogue(n.Input(0), uses) || len(arraysOf(n.Input(0), map[ir.Value]bool{})) > 1)
	}
	return replaceNodes(g, reads, func(s site) ir.Value {
		rounded := ops.Convert(s.b, ops.Convert(s.b, s.in[0], ir.BF16), ir.F32)
		return s.b.CopyWith(s.n, s.n.Attrs(), nil, []ir.Value{rounded, s.in[1]})[0]
	})
}

// replaceNodes replaces the nodes of a graph that match, those of its subgraphs not among them. It returns g if there are none.
func replaceNodes(g *ir.Graph, matches func(n *ir.Node) bool, replacement func(s site) ir.Value) (*ir.Graph, error) {
	if !slices.ContainsFunc(g.Nodes(), matches) {
		return g, nil
	}
	return newRun(Options{}).walk(g, func(s site) ([]ir.Value, bool) {
		if matches(s.n) {
			return []ir.Value{replacement(s)}, true
		}
		return s.b.CopyWith(s.n, s.n.Attrs(), s.n.Subgraphs(), s.in), false
	})
}

// isSignTest reports whether a node compares values of f32 with 0.
func isSignTest(n *ir.Node) bool {
	switch n.Op() {
	case ops.OpLt, ops.OpLe, ops.OpGt, ops.OpGe:
		return n.Input(0).DType() == ir.F32 && is(n.Input(1), 0)
	}
	return false
}

// isRoundedOperand reports whether v is rounded to bf16 for products, and otherwise only compared and added.
func isRoundedOperand(v ir.Value, uses [][]*ir.Node) bool {
	rounded := false
	for _, u := range uses[v.Node().ID()] {
		switch {
		case u.Op() == ops.OpConvert && u.Types()[0].DType == ir.BF16:
			rounded = true
		case u.Op() != ops.OpAdd && !isSignTest(u):
			return false
		}
	}
	return rounded
}

// isEpilogue reports whether v is computed elementwise from results of products and from
// smaller values, and nothing but v reads the values in between.
func isEpilogue(v ir.Value, uses [][]*ir.Node) bool {
	cone, products := []*ir.Node{v.Node()}, 0
	for i := 0; i < len(cone); i++ {
		n := cone[i]
		if isContraction(n) {
			products++
			continue
		}
		if n.Def().Scalar == nil && n.Op() != ops.OpReshape {
			return false
		}
		for _, in := range n.Inputs() {
			p := in.Node()
			if _, constant := literalOf(in); !constant && p.Op() != ops.OpBroadcastInDim && !slices.Contains(cone, p) {
				cone = append(cone, p)
			}
		}
	}
	outside := func(n *ir.Node) bool {
		return slices.ContainsFunc(uses[n.ID()], func(u *ir.Node) bool { return !slices.Contains(cone, u) })
	}
	return products > 0 && !slices.ContainsFunc(cone[1:], outside)
}
