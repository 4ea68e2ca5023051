package passes

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxFolded bounds the number of elements of folded operands.
const maxFolded = 1 << 14

// fold is constant folding: it evaluates nodes whose operands are literals with the
// reference implementation. Results much larger than the operands are not folded:
// broadcasts stay, and elementwise ops on splats are evaluated for one element.
func fold(r *run, g *ir.Graph) (*ir.Graph, error) {
	if !slices.ContainsFunc(g.Nodes(), mayFold) {
		return g, nil
	}
	return r.rewrite(g, func(s site) []ir.Value {
		if len(s.in) == 0 || len(s.n.Subgraphs()) > 0 || s.n.Op() == ops.OpBroadcastInDim {
			return nil
		}
		if v := foldSplats(s); v.Valid() {
			return []ir.Value{v}
		}
		return foldLiterals(s)
	})
}

// mayFold reports whether all operands of a node are constant, or it has subgraphs.
func mayFold(n *ir.Node) bool {
	if len(n.Inputs()) == 0 || n.Op() == ops.OpBroadcastInDim {
		return false
	}
	return len(n.Subgraphs()) > 0 || !slices.ContainsFunc(n.Inputs(), func(v ir.Value) bool {
		_, same := literalOf(v)
		return !same && v.Node().Op() != ir.OpConstant
	})
}

// foldSplats evaluates an elementwise op on splats for one element.
func foldSplats(s site) ir.Value {
	if s.n.Def().Scalar == nil {
		return ir.Value{}
	}
	in := make([]*ir.Array, len(s.in))
	for i, v := range s.in {
		var ok bool
		if in[i], ok = splat(v); !ok {
			return ir.Value{}
		}
	}
	out, ok := evaluate(s.n, in)
	if !ok {
		return ir.Value{}
	}
	return ops.BroadcastTo(s.b, ops.Literal(s.b, out[0]), s.n.Types()[0].Shape)
}

func foldLiterals(s site) []ir.Value {
	if !worthFolding(s) {
		return nil
	}
	in := make([]*ir.Array, len(s.in))
	for i, v := range s.in {
		var ok bool
		if in[i], ok = literal(v); !ok {
			return nil
		}
	}
	arrays, ok := evaluate(s.n, in)
	if !ok {
		return nil
	}
	out := make([]ir.Value, len(arrays))
	for i, a := range arrays {
		out[i] = ops.Literal(s.b, a)
	}
	return out
}

// worthFolding reports whether all operands of a node are constant and the sizes of
// operands and results are small enough to fold.
func worthFolding(s site) bool {
	read, stored := 0, 0 // elements of all operands, and of those that are literals
	for _, v := range s.in {
		n, ok := v.Shape().Size().Const()
		if read += n; !ok || read > maxFolded {
			return false
		}
		if v.Node().Op() == ir.OpConstant {
			stored += n
		} else if _, same := literalOf(v); !same {
			return false
		}
	}
	for _, t := range s.n.Types() {
		n, ok := t.Shape.Size().Const()
		if !ok || n > max(2*stored, 64) || t.DType.IsPacked() {
			return false
		}
	}
	return true
}

// literal returns the elements of a constant v, with splats expanded.
func literal(v ir.Value) (*ir.Array, bool) {
	c, ok := v.Node().Attrs().(*ir.ConstantAttrs)
	data := []byte(nil)
	if ok {
		data = c.Data
	} else if element, same := literalOf(v); same {
		n, _ := v.Shape().Size().Const()
		data, ok = bytes.Repeat(element, n), true
	}
	if !ok || v.DType().IsPacked() {
		return nil, false
	}
	a, err := ir.ArrayOf(v.Type(), data)
	return a, err == nil
}

// evaluate computes a node for operands, which may have other shapes than those of the
// node. It returns false on errors, such as an index out of range, which are reported at
// run time.
func evaluate(n *ir.Node, in []*ir.Array) ([]*ir.Array, bool) {
	g, err := ir.Transform("fold", func(b *ir.Builder) {
		operands := make([]ir.Value, len(in))
		for i, a := range in {
			operands[i] = ops.Literal(b, a)
		}
		for i, v := range b.Copy(n, operands) {
			b.Output(strconv.Itoa(i), v)
		}
	})
	if err != nil {
		return nil, false
	}
	out, err := ir.Eval(g, nil, ir.EvalOptions{Bodies: true}) // the same numbers in the browser
	return out, err == nil
}
