package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// four is the sums of four neighbouring columns of a row; the first column is a multiple
// of four.
type four struct {
	sums        []scalar.Expr
	row, column scalar.Expr
}

// finishFour stores what becomes of four sums, as vectors where memory has the results of
// four columns side by side and what is read for them.
func (te *tileEmitter) finishFour(f four, result storeResult) {
	rows, columns := &te.side[0], &te.side[1]
	m := newMover(&writer{emitter: te.emitter})
	m.keep(te.body)
	stores := te.fourResults(f, result)
	for _, s := range stores {
		m.see(s.value)
	}
	m.seeStores(stores, 4)
	m.settle()
	exists := all(4)
	for j := range exists {
		if columns.ragged() {
			exists[j] = scalar.Lt(scalar.Add(f.column, loop.Int(j)), loop.Int(fusion.Product(columns.free)))
		}
	}
	then := m.nested(func() { m.store(stores, 4, exists) })
	te.body = append(te.body, guard(te.valid, te.within(rows, f.row, te.within(columns, f.column, then)))...)
}

// fourResults returns what is stored of four sums, the elements of a tensor one after the
// other.
func (te *tileEmitter) fourResults(f four, result storeResult) []kept {
	each := make([][]kept, len(f.sums))
	for j, sum := range f.sums {
		each[j] = result(sum, te.point(te.freeAt(&te.side[0], f.row), te.columnAt(f.column, j)))
	}
	return sideBySide(each)
}

// ragged reports whether of four neighbouring positions of a side some may exist and
// others not.
func (s *side) ragged() bool {
	n := fusion.Product(s.free)
	return n%s.tile != 0 && n%4 != 0
}

// columnAt returns the coordinates of a column behind one that exists, kept inside.
func (te *tileEmitter) columnAt(first scalar.Expr, behind int) ir.Index {
	s := &te.side[1]
	at := scalar.Add(first, loop.Int(behind))
	if s.ragged() {
		at = scalar.Min(at, loop.Int(fusion.Product(s.free)-1))
	}
	return te.unflatten(te.Simplify(at), s.free)
}
