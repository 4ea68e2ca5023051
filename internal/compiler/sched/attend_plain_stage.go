package sched

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// stageDown copies contracted positions from k on of the rows of a block into
// workgroup memory, each with those of all the block's rows side by side.
func (a *attendPlain) stageDown(m matrix, s *attendSide, base int, k scalar.Expr, depth int) {
	a.stage(s.block/4*depth, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, down := scalar.FloorDiv(id, loop.Int(depth)), scalar.Mod(id, loop.Int(depth))
		pos := a.let("pos", scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))))
		at, ok := withinBounds(scalar.Add(k, down), m.length, m.length%depth == 0)
		for j := range 4 {
			row, exists := s.inside(scalar.Add(pos, loop.Int(j)))
			values = append(values, orZero(scalar.And(ok, exists), a.element(m.operand, row, at)))
		}
		return sum(loop.Int(base), scalar.Mul(down, loop.Int(s.block/4+1)), vec), values
	})
}

// stageRows copies rows of a block, from one on, into workgroup memory.
func (a *attendPlain) stageRows(m matrix, s *attendSide, base int, from scalar.Expr, rows int) {
	width := a.t.vectors(m.length) * a.t.across
	a.stage(rows*width, func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr) {
		vec, row := scalar.Mod(id, loop.Int(width)), scalar.FloorDiv(id, loop.Int(width))
		pos, exists := s.inside(a.let("pos", sum(s.first, from, row)))
		for j := range 4 {
			at, ok := withinBounds(sum(scalar.Mul(vec, loop.Int(4)), loop.Int(j)), m.length, m.length == 4*width)
			values = append(values, orZero(scalar.And(ok, exists), a.element(m.operand, pos, at)))
		}
		return scalar.Add(loop.Int(base), id), values
	})
}

// stage has the threads write so many vectors into workgroup memory.
func (a *attendPlain) stage(vectors int, vector func(id scalar.Expr) (to scalar.Expr, values []scalar.Expr)) {
	a.count("turn", ceilDiv(vectors, attendThreads), func(turn scalar.Expr) {
		outer := a.body
		a.body = nil
		id := a.Simplify(scalar.Add(a.lane, scalar.Mul(turn, loop.Int(attendThreads))))
		at, ok := withinBounds(id, vectors, vectors%attendThreads == 0)
		to, values := vector(at)
		a.body = append(a.body, a.nameAll(values)...)
		a.body = append(a.body, &loop.StoreVec{Array: a.slot, At: a.Simplify(to), Values: values})
		a.body = append(outer, guard(ok, a.body)...)
	})
}
