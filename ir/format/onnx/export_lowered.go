package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxLowered bounds the elements of the space over which an op is computed number by number.
const maxLowered = 1 << 24

// lowered exports an op by its lowering: scalar expressions over index tensors, with operands read
// by Gather. Sizes must be constant.
func lowered(e *exporter, n *ir.Node, in []exported) []exported {
	for _, t := range append(n.InTypes(), n.Types()...) {
		size, ok := t.Shape.Size().Const()
		if !ok {
			e.fail(ir.Errorf(ir.ErrSymbol, "the op is exported by its elements, which takes constant sizes; one is %s", t))
		}
		if size > maxLowered {
			e.unsupported("the op is exported by its elements, up to %d of them; it has %d", maxLowered, size)
		}
	}
	if e.err == nil {
		switch l := n.Def().Lower.(type) {
		case *ir.MapLowering:
			return e.loweredMap(n, l, in)
		case *ir.ReduceLowering:
			return e.loweredReduce(n, l, in)
		case *ir.PrefixLowering:
			return e.loweredPrefix(n, l, in)
		}
		e.unsupported("ONNX has no such operation, and the op has no body")
	}
	return make([]exported, n.NumResults())
}

// space is a space of indices, over which expressions are computed whole.
type space struct {
	e    modelMoves
	n    *ir.Node
	in   []exported
	dims ir.Shape
	args []func() tensorRef
	done []tensorRef
	p    *scalars
}

// space returns a space of the given sizes and its indices.
func (e modelMoves) space(n *ir.Node, in []exported, dims ir.Shape) (*space, ir.Index) {
	s := &space{e: e, n: n, in: in, dims: dims}
	s.p = e.scalars(s.argument)
	at := make(ir.Index, len(dims))
	for axis := range dims {
		at[axis] = s.add(ir.I32, func() tensorRef {
			ones := ir.Dims(slices.Repeat([]int{1}, len(dims))...)
			ones[axis] = dims[axis]
			return e.reshape(e.cast(e.counting(dims[axis]), ir.I32), ones)
		})
	}
	return s, at
}

// add adds an argument, which f makes when it is first used.
func (s *space) add(d ir.DType, f func() tensorRef) scalar.Expr {
	s.args, s.done = append(s.args, f), append(s.done, tensorRef{})
	return scalar.Arg(len(s.args)-1, d)
}

func (s *space) argument(i int) tensorRef {
	if s.done[i].name == "" {
		s.done[i] = s.args[i]()
	}
	return s.done[i]
}

// load exports an [ir.Load]. It clamps positions out of range; their elements are not used.
func (s *space) load(operand int, at ir.Index) scalar.Expr {
	return s.add(s.n.Input(operand).DType(), func() tensorRef {
		e, t := s.e, s.e.whole(s.in[operand])
		row := e.number(ir.I64, 0)
		for axis, x := range at {
			index, _ := e.clamped(e.cast(s.p.print(x), ir.I64), t.dims[axis])
			stride, _ := productDims(t.dims[axis+1:]).Const()
			row = e.binary("Add", row, e.binary("Mul", index, e.number(ir.I64, float64(stride))))
		}
		if size := productDims(t.dims); size.Is(0) {
			return e.number(t.dtype, 0)
		}
		flat := e.reshape(t, ir.Shape{productDims(t.dims)})
		return e.op("Gather", t.dtype, row.dims, []tensorRef{flat, row}, attrInt("axis", 0))
	})
}

// whole returns an expression over the space as a tensor of its sizes.
func (s *space) whole(x scalar.Expr) tensorRef {
	return s.e.whole(exported{s.p.print(x), s.dims})
}

func (e *exporter) loweredMap(n *ir.Node, l *ir.MapLowering, in []exported) []exported {
	out := make([]exported, n.NumResults())
	for i, t := range n.Types() {
		s, at := e.space(n, in, t.Shape)
		out[i] = exported{s.p.print(l.Element(n, i, at, s.load)), t.Shape}
	}
	return out
}

// loweredReduce computes all contributions, [result..., reduced], and combines halves of them until one is
// left.
func (e *exporter) loweredReduce(n *ir.Node, l *ir.ReduceLowering, in []exported) []exported {
	result, list := n.Types()[0].Shape, l.Accumulators(n)
	acc := e.contributions(n, l, in)
	f, at := e.space(n, in, result)
	final := make([]scalar.Expr, len(list))
	for i, a := range list {
		final[i] = f.add(a.DType, func() tensorRef { return acc[i] })
	}
	if l.Finish != nil {
		final = l.Finish(n, at, final)
	}
	out := make([]exported, n.NumResults())
	for i := range out {
		out[i] = exported{f.p.print(final[i]), result}
	}
	return out
}

// contributions returns the accumulators of a reduction, [result...].
func (e *exporter) contributions(n *ir.Node, l *ir.ReduceLowering, in []exported) []tensorRef {
	result, reduced, inits := n.Types()[0].Shape, ir.Dims(l.Space(n)...), l.Accumulators(n)
	count, _ := productDims(reduced).Const()
	size, _ := productDims(result).Const()
	acc := make([]tensorRef, len(inits))
	if size*count > maxLowered {
		e.unsupported("the op is exported by its elements, up to %d of them; it has %d", maxLowered, size*count)
	}
	if count == 0 {
		for i, a := range inits {
			acc[i] = e.print(a.Init, nil)
		}
		return acc
	}
	s, at := e.space(n, in, slices.Concat(result, reduced))
	for i, x := range l.Element(n, at[:len(result)], at[len(result):], s.load) {
		acc[i] = e.reshape(s.whole(x), append(result.Clone(), ir.N(count)))
	}
	axis := len(result)
	for ; count > 1 && e.err == nil; count = (count + 1) / 2 {
		half := (count + 1) / 2
		pairs := make([]tensorRef, 2*len(acc))
		for i, t := range acc {
			t = e.extend(t, axis, ir.N(0), ir.N(2*half-count), e.print(inits[i].Init, nil))
			pairs[i] = e.cutAxis(t, axis, ir.N(0), ir.N(half), 1)
			pairs[len(acc)+i] = e.cutAxis(t, axis, ir.N(half), ir.N(half), 1)
		}
		acc = e.combined(inits, pairs, func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) })
	}
	for i := range acc {
		acc[i] = e.reshape(acc[i], result)
	}
	return acc
}

// print exports an expression whose arguments are tensors.
func (e modelMoves) print(x scalar.Expr, args []tensorRef) tensorRef {
	return e.scalars(func(i int) tensorRef { return args[i] }).print(x)
}

// combined exports the combination of accumulators; args has the left ones, then the right ones.
func (e modelMoves) combined(list []ir.Accumulator, args []tensorRef, combine func(a, b []scalar.Expr) []scalar.Expr) []tensorRef {
	a, b := make([]scalar.Expr, len(list)), make([]scalar.Expr, len(list))
	for i, x := range list {
		a[i], b[i] = scalar.Arg(i, x.DType), scalar.Arg(len(list)+i, x.DType)
	}
	p := e.scalars(func(i int) tensorRef { return args[i] })
	out := make([]tensorRef, len(list))
	for i, x := range combine(a, b) {
		out[i] = e.whole(exported{p.print(x), args[0].dims})
	}
	return out
}

// exportAssociative exports a scan whose operator consists of elementwise ops by its elements. One with composites, which are no
// scalar expressions, is exported as nodes on parts of the operands.
func exportAssociative(e *exporter, n *ir.Node, in []exported) []exported {
	composite := func(x *ir.Node) bool { return x.Def().IsComposite() }
	if _, known := n.Types()[0].Shape.Ints(); known && slices.ContainsFunc(n.Subgraphs()[0].Nodes(), composite) {
		return e.inline(n, in)
	}
	return lowered(e, n, in)
}

// loweredPrefix combines in steps of doubling length: after the step of length k each element combines the
// last 2·k.
func (e *exporter) loweredPrefix(n *ir.Node, l *ir.PrefixLowering, in []exported) []exported {
	dims, axis := n.Input(0).Shape(), l.Axis(n)
	args := e.wholes(in)
	if l.Reverse(n) {
		for i := range args {
			args[i] = e.reversed(args[i], axis)
		}
	}
	elements := l.Element(n, make(ir.Index, len(dims)), func(operand int, _ ir.Index) scalar.Expr {
		return scalar.Arg(operand, n.Input(operand).DType())
	})
	list, acc := l.Accumulators(n), make([]tensorRef, len(elements))
	p := e.scalars(func(i int) tensorRef { return args[i] })
	for i, x := range elements {
		acc[i] = e.whole(exported{p.print(x), dims})
	}
	length, _ := dims[axis].Const()
	for k := 1; k < length && e.err == nil; k *= 2 {
		pairs, heads := make([]tensorRef, 2*len(acc)), make([]tensorRef, len(acc))
		for i, t := range acc {
			heads[i] = e.cutAxis(t, axis, ir.N(0), ir.N(k), 1)
			pairs[i] = e.cutAxis(t, axis, ir.N(0), ir.N(length-k), 1)
			pairs[len(acc)+i] = e.cutAxis(t, axis, ir.N(k), ir.N(length-k), 1)
		}
		tails := e.combined(list, pairs, func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) })
		for i := range acc {
			acc[i] = e.join([]tensorRef{heads[i], tails[i]}, axis)
		}
	}
	return e.finishPrefix(n, l, list, acc)
}

// finishPrefix moves the elements of an exclusive scan on by one and computes the results.
func (e *exporter) finishPrefix(n *ir.Node, l *ir.PrefixLowering, list []ir.Accumulator, acc []tensorRef) []exported {
	dims, axis := n.Input(0).Shape(), l.Axis(n)
	final := make([]scalar.Expr, len(acc))
	for i, a := range list {
		if final[i] = scalar.Arg(i, a.DType); l.Exclusive(n) && !dims[axis].Is(0) {
			acc[i] = e.cutAxis(e.extend(acc[i], axis, ir.N(1), ir.N(0), e.print(a.Init, nil)), axis, ir.N(0), dims[axis], 1)
		}
	}
	if l.Finish != nil {
		final = l.Finish(n, final)
	}
	out := make([]exported, n.NumResults())
	for i := range out {
		t := e.whole(exported{e.print(final[i], acc), dims})
		if l.Reverse(n) {
			t = e.reversed(t, axis)
		}
		out[i] = t.value()
	}
	return out
}
