package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// results is what becomes of the sums of a contraction group, at positions of a
// batch.
type results struct {
	*emitter
	g     *fusion.Group
	c     *fusion.Contraction
	batch ir.Index
}

// point returns the outer coordinates of the group for a result.
func (r *results) point(m, n ir.Index) ir.Index {
	at := make(ir.Index, len(r.g.Outer))
	for axis, e := range r.c.Out(r.batch, m, n) {
		if c := r.g.Members[0].Coord[axis]; c >= 0 {
			at[c] = e
		}
	}
	return at
}

// members returns what follows the contraction, computed in registers.
func (r *results) members(acc scalar.Expr, at ir.Index) []kept {
	n := r.g.Members[0].Node
	rd := r.reader()
	rd.Given = map[ir.Value]scalar.Expr{n.Result(0): scalar.Convert(acc, n.Types()[0].DType)}
	return r.values(r.g, rd, at)
}
