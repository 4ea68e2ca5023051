//go:build !js

package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Narrow selects between values of a 16-bit float type before it widens them to f32, not after: select(p, convert(x), 0)
// becomes convert(select(p, x, 0)). Every element keeps its bits, and where the result is stored it takes half the
// memory. An example is the derivative of a relu behind a convolution of half precision, which the statistics of a
// norm and the derivative of its operand then read. Selects that are only rounded to the type stay as they are.
func Narrow(g *ir.Graph) (*ir.Graph, error) {
	uses := g.Uses()
	matches := func(n *ir.Node) bool { return widened(n) != 0 && !onlyRounded(n, widened(n), uses) }
	return replaceNodes(g, matches, func(s site) ir.Value {
		half := widened(s.n)
		return ops.Convert(s.b, ops.Select(s.b, s.in[0], narrowed(s.b, s.in[1], half), narrowed(s.b, s.in[2], half)), ir.F32)
	})
}

// widened returns the 16-bit type of which both branches of a select have values, or 0. One branch at
// least is widened from it, the other may be 0.
func widened(n *ir.Node) ir.DType {
	if n.Op() != ops.OpSelect || n.Types()[0].DType != ir.F32 {
		return 0
	}
	half := ir.DType(0)
	for _, v := range n.Inputs()[1:] {
		switch x, ok := operandOf(v, ops.OpConvert); {
		case is(v, 0):
		case ok && x.DType().IsFloat() && x.DType().Size() == 2 && (half == 0 || half == x.DType()):
			half = x.DType()
		default:
			return 0
		}
	}
	return half
}

// narrowed returns a branch of a select in the type that it was widened from.
func narrowed(b *ir.Builder, v ir.Value, half ir.DType) ir.Value {
	if x, ok := operandOf(v, ops.OpConvert); ok {
		return x
	}
	return ops.Convert(b, v, half)
}

// onlyRounded reports whether all users of a node round its result to a type.
func onlyRounded(n *ir.Node, half ir.DType, uses [][]*ir.Node) bool {
	return !slices.ContainsFunc(uses[n.ID()], func(u *ir.Node) bool { return u.Op() != ops.OpConvert || u.Types()[0].DType != half })
}
