package passes

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// identity returns a simpler value equal to the result of a node, or the zero Value
// if it does not apply. It must hold for every value of the operands: for
// floats with NaN, infinities and −0, for integers with wrapping. Nodes that it adds
// before returning the zero Value are dead code.
type identity func(s site) ir.Value

// identities lists the identities of each op in the order they are tried.
func identities() map[ir.Op][]identity {
	t := map[ir.Op][]identity{ir.OpConstant: {spreadLiteral}}
	for _, part := range []map[ir.Op][]identity{
		arithmeticIdentities(), comparisonIdentities(), logicIdentities(), selectIdentities(), conversionIdentities(), shapeIdentities(), sliceIdentities(), reductionIdentities(), dotIdentities(),
	} {
		for op, ids := range part {
			t[op] = append(t[op], ids...)
		}
	}
	return t
}

// simplify applies algebraic identities.
func simplify(r *run, g *ir.Graph) (*ir.Graph, error) {
	one, many := identities(), controlRules()
	return r.rewrite(g, func(s site) []ir.Value {
		if v := emptyValue(s); v.Valid() {
			return []ir.Value{v}
		}
		for _, id := range one[s.n.Op()] {
			if v := id(s); v.Valid() {
				return []ir.Value{v}
			}
		}
		for _, f := range many[s.n.Op()] {
			if results := f(s); results != nil {
				return results
			}
		}
		return nil
	})
}

// emptyValue replaces a value without elements by zeros, which makes its operands dead.
func emptyValue(s site) ir.Value {
	if s.n.NumResults() != 1 {
		return ir.Value{}
	}
	t := s.n.Types()[0]
	done := s.n.Op() == ops.OpBroadcastInDim && s.in[0].Node().Op() == ir.OpConstant
	if !t.Shape.Size().Is(0) || t.DType.IsPacked() || done {
		return ir.Value{}
	}
	return ops.Zeros(s.b, t.DType, t.Shape...)
}

// spreadLiteral replaces a literal of equal elements by a broadcast of one element.
func spreadLiteral(s site) ir.Value {
	v := s.n.Result(0)
	if v.Rank() == 0 {
		return ir.Value{}
	}
	return spread(s, v)
}

// spread returns the splat v broadcast to the type of s's result, or the zero Value if v
// is not a splat.
func spread(s site, v ir.Value) ir.Value {
	element, ok := literalOf(v)
	if !ok {
		return ir.Value{}
	}
	t := s.n.Types()[0]
	return ops.BroadcastTo(s.b, s.b.Constant(ir.Type{DType: t.DType}, element), t.Shape)
}

// either tries f with the two operands in both orders.
func either(s site, f func(x, y ir.Value) ir.Value) ir.Value {
	if v := f(s.in[0], s.in[1]); v.Valid() {
		return v
	}
	return f(s.in[1], s.in[0])
}

// constant returns a value of the type of s's result with all elements x.
func constant(s site, x float64) ir.Value {
	t := s.n.Types()[0]
	return ops.Const(s.b, t.DType, x, t.Shape...)
}
