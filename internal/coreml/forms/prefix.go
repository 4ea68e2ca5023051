package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

func init() {
	add(ops.OpCumSum, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		a, dims := n.Attrs().(*ops.CumSumAttrs), whole(n.Input(0).Type())
		x, at := e.along(e.Whole(in[0]), dims, a.Axis)
		return e.value(e.Op("cumsum", mil.Args{"x": x, "axis": at, "exclusive": a.Exclusive, "reverse": a.Reverse}), dims)
	}))
	for _, op := range []ir.Op{
		ops.OpCumProd, ops.OpCumMax, ops.OpCumMin, ops.OpCumLogSumExp, ops.OpLinearRecurrence, ops.OpAssociativeScan,
	} {
		add(op, prefix)
	}
}

// prefix computes a scan by its lowering in steps of doubling length: after the step of length s
// each element combines the last 2·s.
func prefix(e *Emitter, n *ir.Node, in []Value) []Value {
	lower := n.Def().Lower.(*ir.PrefixLowering)
	dims, axis := whole(n.Input(0).Type()), lower.Axis(n)
	args := make([]mil.Ref, len(in))
	for i, v := range in {
		if args[i] = e.around(e.Whole(v), dims, axis); lower.Reverse(n) {
			args[i] = e.reversed(args[i], args[i].Type.Dims, 1)
		}
	}
	elements := lower.Element(n, make(ir.Index, len(dims)), func(operand int, _ ir.Index) scalar.Expr {
		return scalar.Arg(operand, n.Input(operand).DType())
	})
	p := &running{e, n, lower, []int{product(dims[:axis]), dims[axis], product(dims[axis+1:])}}
	acc := p.print(elements, args, p.dims)
	for s := 1; s < dims[axis] && e.Err() == nil; s *= 2 {
		acc = p.step(acc, s)
	}
	if lower.Exclusive(n) {
		acc = p.exclude(acc)
	}
	final := p.arguments(0)
	if lower.Finish != nil {
		final = lower.Finish(n, final)
	}
	out := make([]Value, n.NumResults())
	for i, r := range p.print(final, acc, p.dims) {
		if lower.Reverse(n) {
			r = e.reversed(r, p.dims, 1)
		}
		out[i] = e.value(r, dims)
	}
	return out
}

// running is a scan along the second of three axes.
type running struct {
	e     *Emitter
	node  *ir.Node
	lower *ir.PrefixLowering
	dims  []int
}

// arguments returns argument expressions for all accumulators, numbered from first.
func (p *running) arguments(from int) []scalar.Expr {
	list := p.lower.Accumulators(p.node)
	out := make([]scalar.Expr, len(list))
	for i, a := range list {
		out[i] = scalar.Arg(from+i, a.DType)
	}
	return out
}

// print emits expressions whose results have the given shape.
func (p *running) print(list []scalar.Expr, args []mil.Ref, dims []int) []mil.Ref {
	out := make([]mil.Ref, len(list))
	for i, x := range list {
		out[i] = p.e.Whole(p.e.scalars(x, args, dims))
	}
	return out
}

// step combines each element from s on with the one s before it.
func (p *running) step(acc []mil.Ref, s int) []mil.Ref {
	k, length := len(acc), p.dims[1]
	args, heads := make([]mil.Ref, 2*k), make([]mil.Ref, k)
	var headDims, tailDims []int
	for i, r := range acc {
		heads[i], headDims = p.e.cut(r, p.dims, 1, 0, s, 1)
		args[i], _ = p.e.cut(r, p.dims, 1, 0, length-s, 1)
		args[k+i], tailDims = p.e.cut(r, p.dims, 1, s, length, 1)
	}
	tails := p.print(p.lower.Combine(p.node, p.arguments(0), p.arguments(k)), args, tailDims)
	out := make([]mil.Ref, k)
	for i := range out {
		out[i], _ = p.e.join([]mil.Ref{heads[i], tails[i]}, [][]int{headDims, tailDims}, 1)
	}
	return out
}

// exclude shifts all elements by one; the first becomes the identity of the combination.
func (p *running) exclude(acc []mil.Ref) []mil.Ref {
	out := slices.Clone(acc)
	for i, a := range p.lower.Accumulators(p.node) {
		first := p.e.scalars(a.Init, nil, []int{1}).Ref
		r, dims := p.e.extend(acc[i], p.dims, 1, 1, 0, first)
		out[i], _ = p.e.cut(r, dims, 1, 0, p.dims[1], 1)
	}
	return out
}
