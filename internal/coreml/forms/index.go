package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpGather, single(gather))
	for op, mode := range map[ir.Op]string{
		ops.OpScatter: "update", ops.OpScatterAdd: "add", ops.OpScatterMul: "mul", ops.OpScatterMin: "min", ops.OpScatterMax: "max",
	} {
		add(op, single(func(e *Emitter, n *ir.Node, in []Value) Value { return scatter(e, n, in, mode) }))
	}
}

// addressing describes how index tuples address the rows of an operand whose axes were transposed
// to batch, indexed, window.
type addressing struct {
	ops.IndexedAxes
	operand, indices []int // sizes
	window           []int // axes of the operand
	positions        []int // axes of the indices besides the batch axes and the tuple
	rows             []int // sizes of the indexed axes
}

func addressingOf(a ops.IndexedAxes, operand, indices ir.Type) *addressing {
	d := &addressing{IndexedAxes: a, operand: whole(operand), indices: whole(indices)}
	last := len(d.indices) - 1
	d.window = permute.Others(len(d.operand), a.Axes, a.OperandBatch)
	d.positions = permute.Others(last, a.IndexBatch)
	d.rows = permute.Pick(d.operand, a.Axes)
	return d
}

// batch is the number of rows per batch element, and width the length of a row.
func (d *addressing) batch() int { return product(permute.Pick(d.operand, d.OperandBatch)) }
func (d *addressing) width() int { return product(permute.Pick(d.operand, d.window)) }

// order returns the permutation that moves the axes of the rows first.
func (d *addressing) order() []int { return slices.Concat(d.OperandBatch, d.Axes, d.window) }

// table returns an operand as rows, [batch·indexed, window].
func (d *addressing) table(e *Emitter, x mil.Ref) mil.Ref {
	x, _ = e.transpose(x, d.operand, d.order())
	return e.reshape(x, []int{d.batch() * product(d.rows), d.width()})
}

// addresses returns the row number of each index tuple, [batch, positions], clamped to the valid
// range, and whether the tuple is in range, the zero Ref if all are.
func (d *addressing) addresses(e *Emitter, indices mil.Ref) (row, inside mil.Ref) {
	last := len(d.indices) - 1
	order := slices.Concat(d.IndexBatch, d.positions, []int{last})
	indices, _ = e.transpose(indices, d.indices, order)
	count := product(d.indices[:last]) / d.batch()
	tuples := []int{d.batch(), count, len(d.Axes)}
	indices = e.reshape(indices, tuples)
	row = e.batchRows(d.batch(), product(d.rows))
	for i, size := range d.rows {
		index, _ := e.cut(indices, tuples, 2, i, i+1, 1)
		index = e.reshape(index, tuples[:2])
		within := e.op2("minimum", e.op2("maximum", index, e.number(mil.Int32, 0)), e.number(mil.Int32, float64(size-1)))
		if d.Outside != ops.OutsideClip {
			ok := e.op2("equal", within, index)
			if inside.Valid() {
				ok = e.op2("logical_and", inside, ok)
			}
			inside = ok
		}
		if stride := product(d.rows[i+1:]); stride != 1 {
			within = e.op2("mul", within, e.number(mil.Int32, float64(stride)))
		}
		row = e.op2("add", row, within)
	}
	return row, inside
}

// batchRows returns the index of the first row of each batch, [batch, 1].
func (e *Emitter) batchRows(batch, rows int) mil.Ref {
	if batch == 1 {
		return e.number(mil.Int32, 0)
	}
	first := make([]int, batch)
	for i := range first {
		first[i] = i * rows
	}
	return e.Const(mil.Ints(first, batch, 1))
}

func gather(e *Emitter, n *ir.Node, in []Value) Value {
	a := n.Attrs().(*ops.GatherAttrs)
	d := addressingOf(a.IndexedAxes, n.Input(0).Type(), n.Input(1).Type())
	row, inside := d.addresses(e, e.Whole(in[1]))
	if e.Err() != nil {
		return Value{}
	}
	count := row.Type.Len()
	r := e.withoutBools(d.table(e, e.Whole(in[0])), func(x mil.Ref) mil.Ref {
		return e.Op("gather", mil.Args{"x": x, "indices": e.reshape(row, []int{count}), "axis": 0})
	})
	if inside.Valid() {
		r = e.choose(e.reshape(inside, []int{count, 1}), r, e.number(r.Type.DType, a.Fill))
	}
	// [batch, positions, window] → the axes of the indices in their order, window
	now := slices.Concat(a.IndexBatch, d.positions)
	dims := slices.Concat(permute.Pick(d.indices, now), permute.Pick(d.operand, d.window))
	perm := make([]int, len(dims))
	for i := range perm {
		if perm[i] = i; i < len(now) {
			perm[i] = slices.Index(now, i)
		}
	}
	r, out := e.transpose(e.reshape(r, fold(dims)), dims, perm)
	return e.value(r, out)
}

// scatter updates rows. Dropped updates go to an extra last row, which is cut off at the end.
func scatter(e *Emitter, n *ir.Node, in []Value, mode string) Value {
	d := addressingOf(n.Attrs().(*ops.ScatterAttrs).IndexedAxes, n.Input(0).Type(), n.Input(1).Type())
	row, inside := d.addresses(e, e.Whole(in[1]))
	if e.Err() != nil {
		return Value{}
	}
	count, width := row.Type.Len(), d.width()
	updates := d.updates(e, e.Whole(in[2]), count)
	table := d.table(e, e.Whole(in[0]))
	size := []int{table.Type.Dims[0], width}
	r := e.withoutBools(table, func(data mil.Ref) mil.Ref {
		dims := size
		if inside.Valid() {
			row = e.choose(inside, row, e.number(mil.Int32, float64(size[0])))
			data, dims = e.extend(data, size, 0, 0, 1, e.number(data.Type.DType, 0))
		}
		places := e.tile(e.reshape(row, []int{count, 1}), []int{1, width})
		data = e.Op("scatter_along_axis", mil.Args{
			"data": data, "indices": places, "updates": e.cast(updates, data.Type.DType), "axis": 0, "mode": mode,
		})
		data, _ = e.cut(data, dims, 0, 0, size[0], 1)
		return data
	})
	order := d.order()
	dims := permute.Pick(d.operand, order)
	r, out := e.transpose(e.reshape(r, fold(dims)), dims, permute.Inverse(order))
	return e.value(r, out)
}

// updates returns the scattered values as rows, [batch·positions, window].
func (d *addressing) updates(e *Emitter, u mil.Ref, count int) mil.Ref {
	last := len(d.indices) - 1
	dims := slices.Concat(d.indices[:last], permute.Pick(d.operand, d.window))
	perm := slices.Concat(d.IndexBatch, d.positions)
	for i := last; i < len(dims); i++ {
		perm = append(perm, i)
	}
	u, _ = e.transpose(u, dims, perm)
	return e.reshape(u, []int{count, d.width()})
}
