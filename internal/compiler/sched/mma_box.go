package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// boxed is an operand of multiply-adds as a box of memory, whose first axis is that along
// which neighbours lie, the second the other one of the free and the contracted positions,
// and the third the batch, where it has a part in it.
type boxed struct {
	loop.Box // of a tensor by ID, without Size
	batch    bool
}

// operandAt returns where memory has 16 bytes of an operand, at positions that are whole
// pieces along the layout's axis.
type operandAt func(batch, free, k scalar.Expr) (p piece, ok bool)

// boxOf finds out whether an operand is a box.
func (e *emitter) boxOf(d ir.DType, layout mmaLayout, batches, free, length int, at operandAt) (b boxed, ok bool) {
	each := loop.PieceElements(d)
	axes := [3]axis{{"k", length, each}, {"f", free, 1}, {"b", batches, 1}}
	read := func(x [3]scalar.Expr) (piece, bool) { return at(x[2], x[1], x[0]) }
	if layout == alongFree {
		axes[0], axes[1] = axis{"f", free, each}, axis{"k", length, 1}
		read = func(x [3]scalar.Expr) (piece, bool) { return at(x[2], x[0], x[1]) }
	}
	first, ok := read([3]scalar.Expr{loop.Int(0), loop.Int(0), loop.Int(0)})
	if !ok || first.valid != nil {
		return b, false
	}
	from, known := e.Simplify(first.at).IntConst()
	if !known {
		return b, false
	}
	b.Array, b.First = first.array, int(from)
	for i, a := range axes {
		stride, linear := e.strideOf(read, axes, i)
		switch {
		case !linear || i == 0 && stride != each || i == 1 && stride == 0 || stride%each != 0:
			return b, false
		case i == 2 && stride == 0: // one for all batches
			return b, true
		}
		b.Dims = append(b.Dims, a.length)
		if i > 0 {
			b.Strides = append(b.Strides, stride)
		}
	}
	b.batch = true
	return b, true
}

// axis is a space of positions, which are looked at in steps.
type axis struct {
	name         string
	length, step int
}

// position returns any position of the axis but those that so many steps lead out of it.
func (a axis) position(steps int) scalar.Expr {
	return scalar.Mul(scalar.NewVar(a.name, ir.I32, 0, int64(max(a.length/a.step-1-steps, 0))), loop.Int(a.step))
}

// strideOf returns how many elements a step along one axis leads on, wherever it begins.
func (e *emitter) strideOf(read func([3]scalar.Expr) (piece, bool), axes [3]axis, i int) (stride int, linear bool) {
	var here, there [3]scalar.Expr
	for j, a := range axes {
		here[j] = a.position(0)
		there[j] = here[j]
	}
	if axes[i].length <= axes[i].step {
		if i == 2 {
			return 0, true
		}
		return axes[0].length, true // there is no other
	}
	here[i] = axes[i].position(1)
	there[i] = scalar.Add(here[i], loop.Int(axes[i].step))
	p, ok := read(here)
	q, also := read(there)
	if !ok || !also || p.valid != nil || q.valid != nil || p.array != q.array {
		return 0, false
	}
	apart, known := e.Simplify(scalar.Sub(q.at, p.at)).IntConst()
	return int(apart), known
}

// boxOfSide finds the box of an operand of a contraction, or of the memory that it is
// staged in.
func (m *mmaEmitter) boxOfSide(operand int, s *mmaSide, scratch *fusion.Tensor) (boxed, bool) {
	c := m.out.c
	at := func(batch, free, k scalar.Expr) (piece, bool) {
		if scratch != nil {
			root, place := m.emitter.p.Place(scratch, ir.Index{batch, free, k})
			return piece{array: root.ID, at: m.Simplify(place)}, true
		}
		r := &reading{e: m.emitter, c: c, d: m.p.operand, operand: operand, batch: m.unflatten(m.Simplify(batch), c.Batch)}
		return r.pieceAt(m.reader().Operand(c.Node), m.Simplify(free), m.Simplify(k), s.layout)
	}
	return m.boxOf(m.p.operand, s.layout, fusion.Product(c.Batch), s.free, s.length, at)
}
