package onnx

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// exportRows describes how index tuples address the rows of an operand with axes in the order
// batch, indexed, window.
type exportRows struct {
	modelMoves
	a         ops.IndexedAxes
	operand   ir.Shape
	indices   ir.Shape
	window    []int // axes of the operand
	positions []int // axes of the indices that are no batch axes, without that of the tuple
}

func (e modelMoves) rows(a ops.IndexedAxes, operand, indices ir.Type) *exportRows {
	return &exportRows{
		e, a, operand.Shape, indices.Shape,
		permute.Others(len(operand.Shape), a.Axes, a.OperandBatch), permute.Others(len(indices.Shape)-1, a.IndexBatch),
	}
}

// order returns the axes of the operand with the rows first.
func (r *exportRows) order() []int { return slices.Concat(r.a.OperandBatch, r.a.Axes, r.window) }

func (r *exportRows) batch() ir.Dim { return productDims(pickDims(r.operand, r.a.OperandBatch)) }
func (r *exportRows) width() ir.Dim { return productDims(pickDims(r.operand, r.window)) }
func (r *exportRows) count() ir.Dim { return productDims(pickDims(r.operand, r.a.Axes)) } // rows of a batch

// table returns an operand as rows, [batch·indexed, window].
func (r *exportRows) table(t tensorRef) tensorRef {
	return r.reshape(r.transpose(t, r.order()), ir.Shape{r.batch().Mul(r.count()), r.width()})
}

// index returns the indices as i64; those of u64 above the largest i64 are that one.
func (r *exportRows) index(t tensorRef, d ir.DType) tensorRef {
	t = r.cast(t, ir.I64)
	if d == ir.U64 {
		t = r.choose(r.compare("Less", t, r.number(ir.I64, 0)), r.integer(ir.I64, math.MaxInt64), t)
	}
	return t
}

// clamped returns an index inside an axis of a size, and whether it was.
func (e modelMoves) clamped(index tensorRef, size ir.Dim) (within, inside tensorRef) {
	last := e.binary("Sub", e.reshape(e.dimVector(size), nil), e.number(ir.I64, 1))
	if n, ok := size.Const(); ok {
		last = e.number(ir.I64, float64(n-1))
	}
	within = e.binary("Min", e.binary("Max", index, e.number(ir.I64, 0)), last)
	return within, e.compare("Equal", within, index)
}

// addresses returns for each index tuple, [batch, positions], the number of its row, which is inside in any
// case, and whether the tuple is; no tensor where it always is.
func (r *exportRows) addresses(t tensorRef) (row, inside tensorRef) {
	last := len(r.indices) - 1
	t = r.transpose(t, slices.Concat(r.a.IndexBatch, r.positions, []int{last}))
	tuples := ir.Shape{r.batch(), productDims(pickDims(r.indices, r.positions)), ir.N(len(r.a.Axes))}
	t = r.reshape(t, tuples)
	row = r.number(ir.I64, 0)
	if !r.batch().Is(1) {
		first := r.reshape(r.counting(r.batch()), ir.Shape{r.batch(), ir.N(1)})
		row = r.binary("Mul", first, r.reshape(r.dimVector(r.count()), nil))
	}
	for i, axis := range r.a.Axes {
		index := r.reshape(r.cutAxis(t, 2, ir.N(i), ir.N(1), 1), tuples[:2])
		index, ok := r.clamped(index, r.operand[axis])
		if r.a.Outside != ops.OutsideClip {
			if inside.name != "" {
				ok = r.binary("And", inside, ok)
			}
			inside = ok
		}
		if stride := productDims(pickDims(r.operand, r.a.Axes[i+1:])); !stride.Is(1) {
			index = r.binary("Mul", index, r.reshape(r.dimVector(stride), nil))
		}
		row = r.binary("Add", row, index)
	}
	if len(r.a.Axes) == 0 {
		row = r.whole(exported{row, tuples[:2]})
	}
	return row, inside
}

// isEmpty reports whether an indexed axis has no elements, so that every index is outside.
func (r *exportRows) isEmpty() bool {
	return slices.ContainsFunc(r.a.Axes, func(axis int) bool { return r.operand[axis].Is(0) })
}

func exportGather(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, out := n.Attrs().(*ops.GatherAttrs), n.Types()[0].Shape
	r := e.rows(a.IndexedAxes, n.Input(0).Type(), n.Input(1).Type())
	fill := e.number(in[0].dtype, a.Fill)
	if r.isEmpty() || out.Size().Is(0) {
		return e.whole(exported{fill, out})
	}
	table, index := e.whole(in[0]), r.index(e.whole(in[1]), n.Input(1).DType())
	if len(a.Axes) == 1 && len(a.OperandBatch) == 0 {
		return e.gatherAxis(r, table, index, fill)
	}
	row, inside := r.addresses(index)
	count := productDims(row.dims)
	t := e.op("Gather", table.dtype, ir.Shape{count, r.width()}, []tensorRef{r.table(table), e.reshape(row, ir.Shape{count})}, attrInt("axis", 0))
	if inside.name != "" {
		t = e.choose(e.reshape(inside, ir.Shape{count, ir.N(1)}), t, fill)
	}
	// [batch, positions, window] → the axes of the indices in their order, window
	now := slices.Concat(a.IndexBatch, r.positions)
	dims := slices.Concat(pickDims(r.indices, now), pickDims(r.operand, r.window))
	perm := all(len(dims))
	for i := range now {
		perm[i] = slices.Index(now, i)
	}
	return e.transpose(e.reshape(t, dims), perm)
}

// gatherAxis reads along one axis.
func (e *exporter) gatherAxis(r *exportRows, t, index, fill tensorRef) tensorRef {
	axis, positions := r.a.Axes[0], r.indices[:len(r.indices)-1]
	index, inside := e.clamped(e.reshape(index, positions), r.operand[axis])
	dims := slices.Concat(r.operand[:axis], positions, r.operand[axis+1:])
	t = e.op("Gather", t.dtype, dims, []tensorRef{t, index}, attrInt("axis", axis))
	front := all(len(dims))[axis : axis+len(positions)]
	t = e.transpose(t, slices.Concat(front, permute.Others(len(dims), front)))
	if r.a.Outside == ops.OutsideClip {
		return t
	}
	mask := slices.Concat(positions, ir.Dims(slices.Repeat([]int{1}, len(r.window))...))
	return e.choose(e.reshape(inside, mask), t, fill)
}

// exportScatter updates rows. Updates that are dropped go to a row after the last one, which is cut off in
// the end.
func exportScatter(e *exporter, n *ir.Node, in []exported, reduction string) tensorRef {
	r := e.rows(n.Attrs().(*ops.ScatterAttrs).IndexedAxes, n.Input(0).Type(), n.Input(1).Type())
	data, d := e.whole(in[0]), in[0].dtype
	if r.isEmpty() || n.Input(2).Shape().Size().Is(0) || r.operand.Size().Is(0) {
		return data
	}
	row, inside := r.addresses(r.index(e.whole(in[1]), n.Input(1).DType()))
	count := productDims(row.dims)
	updates, table := r.updates(e.whole(in[2]), count), r.table(data)
	turn := n.Types()[0].DType == ir.U64 && (reduction == "min" || reduction == "max")
	switch {
	case turn:
		table, updates = e.flipSign(table), e.flipSign(updates)
	case d == ir.Bool:
		table, updates = e.cast(table, ir.I32), e.cast(updates, ir.I32)
	case d == ir.F16:
		table, updates = e.cast(table, ir.F32), e.cast(updates, ir.F32)
	}
	rows := table.dims[0]
	if inside.name != "" {
		row = e.choose(inside, row, e.reshape(e.dimVector(rows), nil))
		table = e.extend(table, 0, ir.N(0), ir.N(1), e.number(table.dtype, 0))
	}
	t := e.op("ScatterND", table.dtype, table.dims, []tensorRef{table, e.reshape(row, ir.Shape{count, ir.N(1)}), updates}, attrText("reduction", reduction))
	if t = e.cast(e.cutAxis(t, 0, ir.N(0), rows, 1), d); turn {
		t = e.flipSign(t)
	}
	order := r.order()
	t = e.transpose(e.reshape(t, pickDims(r.operand, order)), permute.Inverse(order))
	return e.narrowed(t, n)
}

// updates returns the scattered values as rows, [batch·positions, window].
func (r *exportRows) updates(t tensorRef, count ir.Dim) tensorRef {
	last := len(r.indices) - 1
	perm := slices.Concat(r.a.IndexBatch, r.positions)
	for i := last; i < len(t.dims); i++ {
		perm = append(perm, i)
	}
	return r.reshape(r.transpose(t, perm), ir.Shape{count, r.width()})
}
