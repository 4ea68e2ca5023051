package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// chunk is one inner point of a thread: number j of those written out, or the
// body of the loop over them (j = -1).
type chunk struct {
	j     int
	inner ir.Index
	valid scalar.Expr // the point exists, where the row has no whole number of chunks
}

// overPoints writes code for all inner points of a thread.
func (r *rowEmitter) overPoints(f func(c *chunk)) {
	n, lanes := fusion.Product(r.g.Inner), r.shape.lanes
	if n == 0 {
		return
	}
	if r.shape.chunks == 0 {
		r.loopOver(f)
		return
	}
	for j := range r.shape.chunks {
		at, valid := scalar.Add(r.lane, loop.Int(j*lanes)), scalar.ConstBool(true)
		if (j+1)*lanes > n {
			valid = scalar.Lt(at, loop.Int(n))
			at = scalar.Min(at, loop.Int(n-1))
		}
		f(&chunk{j, r.unflatten(r.Simplify(at), r.g.Inner), r.Simplify(valid)})
	}
}

// reader returns a reader for the expressions at a chunk.
func (c *chunk) reader(r *rowEmitter) *fusion.Reader {
	return r.reader().InGroup(r.g, slices.Concat(r.row, c.inner), func(v ir.Value) (scalar.Expr, bool) {
		x, ok := r.named[v]
		if !ok && c.j >= 0 {
			x, ok = r.points[c.j][v]
		}
		return x, ok
	})
}

// namePoints computes, where chunks are written out, the pointwise members that
// a level makes possible, so that later stages find them in registers.
func (c *chunk) namePoints(r *rowEmitter, level int) {
	if c.j < 0 {
		return
	}
	at := slices.Concat(r.row, c.inner)
	for _, m := range r.membersAt(level, false) {
		if !m.Pointwise(len(r.g.Outer)) {
			continue
		}
		for i := range m.Node.Types() {
			v := m.Node.Result(i)
			if _, ok := r.points[c.j][v]; ok {
				continue
			}
			x := c.cached(r, c.reader(r).Body(m.Node, i, m.At(at)))
			r.points[c.j][v] = r.let("p", x)
		}
	}
}

// cached replaces the loads of an expression by variables that keep them for
// later stages. In a loop there is nothing to keep.
func (c *chunk) cached(r *rowEmitter, x scalar.Expr) scalar.Expr {
	if c.j < 0 {
		return x
	}
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		key := r.Shared(n)
		v, ok := r.loads[c.j][key]
		if !ok {
			v = r.let("x", scalar.LoadAt(n.Ref, n.Type, c.cached(r, n.Args[0])))
			r.loads[c.j][key] = v
		}
		return v, true
	})
}

func (c *chunk) accumulate(r *rowEmitter, m *fusion.Member, accs []accumulator) {
	l := m.Reduction()
	rd := c.reader(r)
	at := slices.Concat(r.row, c.inner)
	elements := l.Element(m.Node, m.At(at), m.InnerAt(at), rd.Operand(m.Node))
	own := ownAccumulators(accs, m)
	var old, next []scalar.Expr
	for i, x := range elements {
		old = append(old, scalar.FreeVar(own[i].name, own[i].spec.DType))
		next = append(next, scalar.Select(c.valid, c.cached(r, x), own[i].spec.Init))
	}
	r.assign(own, l.Combine(m.Node, old, next))
}

// finishPoints stores what there is one of for each inner point.
func (r *rowEmitter) finishPoints() {
	var members []*fusion.Member
	last := 0
	for _, m := range r.g.Members {
		kept := slices.ContainsFunc(m.Store, func(t *fusion.Tensor) bool { return t != nil })
		if kept && m.Pointwise(len(r.g.Outer)) {
			members = append(members, m)
			last = max(last, r.levels[m])
		}
	}
	if len(members) == 0 {
		return
	}
	r.overPoints(func(c *chunk) {
		c.namePoints(r, last)
		r.storePoints(c, members)
	})
}

func (r *rowEmitter) storePoints(c *chunk, members []*fusion.Member) {
	at := slices.Concat(r.row, c.inner)
	rd := c.reader(r)
	var stores []loop.Stmt
	for _, m := range members {
		for i, t := range m.Store {
			if t != nil {
				pos := m.At(at)
				stores = append(stores, r.store(t, pos, rd.Element(m.Node.Result(i), pos))...)
			}
		}
	}
	r.body = append(r.body, guard(scalar.And(c.valid, r.inRange), stores)...)
}
