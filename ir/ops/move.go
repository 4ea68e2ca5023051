package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// move describes an op of one operand that rearranges elements.
type move struct {
	op          ir.Op
	doc         string
	constraints []string
	newAttrs    func() ir.Attrs
	// shape returns the shape of the result.
	shape func(n *ir.Node) (ir.Shape, error)
	// source returns the position in the operand of the result element at at. It may use
	// from, a buffer of the operand's rank.
	source func(n *ir.Node, at, from []int) []int
	// index is source for index expressions.
	index     func(n *ir.Node, at ir.Index) ir.Index
	transpose func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value
	// batch is the Batch rule after the batch axis is moved to the front.
	batch func(b *ir.Builder, n *ir.Node, x ir.Value, size ir.Dim) ir.Value
}

func defineMove(m move) {
	define(&ir.Def{
		Op: m.op, Doc: m.doc, Constraints: numbered(m.constraints...), Operands: []string{"x"}, NewAttrs: m.newAttrs,
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0)
			if err := plain.check(x.DType()); err != nil {
				return nil, err
			}
			s, err := m.shape(n)
			return []ir.Type{{DType: x.DType(), Shape: s}}, err
		},
		Eval: func(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out, err := resultArray(n, 0)
			if err != nil {
				return nil, err
			}
			from := make([]int, len(in[0].Dims))
			positions(out.Dims, func(i int, at []int) {
				copyElement(out, i, in[0], offset(in[0].Dims, m.source(n, at, from)))
			})
			return []*ir.Array{out}, nil
		},
		JVP: linearJVP,
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return m.transpose(b, n, ct)
		}),
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			return []ir.Value{m.batch(b, n, MoveAxis(b, in[0], axes[0], 0), size)}, []int{0}
		},
		Lower: &ir.MapLowering{Element: func(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
			return load(0, m.index(n, at))
		}},
	})
}
