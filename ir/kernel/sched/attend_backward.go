package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendBackward writes the kernels of the cotangents of attention. Each of them
// computes the weights anew: one for blocks of queries, one for blocks of keys,
// and one for blocks of a mask that is added. So nothing is summed up by two
// workgroups.
func attendBackward(p *group.Program, caps loop.Caps, g *group.Group, s ir.Attend) []Launch {
	m := g.Members[0]
	b := backward{Attend: s, m: m, name: g.Name(), new: func() *emitter { return newEmitter(p, caps) }}
	dims := slices.Concat(s.Heads, []int{s.Queries, 2})
	b.stats = p.Scratch("attention_rows", ir.F32, dims...)
	out := []Launch{b.pack()}
	if m.Store[0] != nil {
		out = append(out, b.queries())
	}
	if m.Store[1] != nil || m.Store[2] != nil {
		out = append(out, b.keys())
	}
	if len(m.Store) > 3 && m.Store[3] != nil {
		out = append(out, b.mask())
	}
	return out
}

// backward is what the kernels of the cotangents have in common.
type backward struct {
	ir.Attend
	m    *group.Member
	name string
	new  func() *emitter
	// stats holds the two numbers of each query that its cotangents depend on,
	// in one tensor, since the kernels have hardly enough bindings.
	stats *group.Tensor
}

// The columns of stats.
const (
	statLSE   = iota // the logarithm of the sum of exponentials, 0 where it is not finite
	statDelta        // what to take off the cotangents of the weights
)

// pack writes the kernel that fills stats.
func (b *backward) pack() Launch {
	const threads = 128
	e := b.new()
	e.workgroup = [3]int{threads, 1, 1}
	dims := b.stats.Dims[:len(b.stats.Dims)-1]
	n := group.Product(dims)
	workgroup := e.linearGroup(ceilDiv(n, threads))
	i := scalar.Add(scalar.Mul(workgroup, loop.Int(threads)), loop.LocalID(0, threads))
	query, exists := withinBounds(i, n, n%threads == 0 && !e.overshoots())
	at := e.unflatten(e.Simplify(query), dims)
	load := e.reader().Operand(b.m.Node)
	body := e.store(b.stats, slices.Concat(at, ir.Index{loop.Int(statLSE)}), finiteOrZero(load(3, at)))
	body = append(body, e.store(b.stats, slices.Concat(at, ir.Index{loop.Int(statDelta)}), load(4, at))...)
	return e.finish(b.name+"_rows", guard(exists, body))
}

// stat names a number of a query, of the head at hand.
func (a *attender) stat(stats *group.Tensor, s *attendSide, query scalar.Expr, which int) scalar.Expr {
	at, _ := s.inside(query)
	name := a.name("stat")
	place := slices.Concat(a.queryHead, ir.Index{at, loop.Int(which)})
	a.body = append(a.body, &loop.Let{Name: name, Value: a.load(stats, place)})
	return scalar.FreeVar(name, ir.F32)
}

// rowQueries returns the queries of a thread's rows, with what stats has of them
// if it is there.
func (a *attender) rowQueries(stats *group.Tensor) []query {
	out := make([]query, 4)
	for i := range out {
		out[i] = a.query(stats, &a.rows, a.row(i))
	}
	return out
}

// query returns the query at a position, of the head at hand.
func (a *attender) query(stats *group.Tensor, s *attendSide, at scalar.Expr) query {
	q := query{limit: a.limit(s, at)}
	if stats != nil {
		q.lse, q.delta = a.stat(stats, s, at, statLSE), a.stat(stats, s, at, statDelta)
	}
	return q
}

// weight is the softmax of a score.
func (x element) weight(q query) scalar.Expr {
	return orZero(x.seen, scalar.Exp(scalar.Sub(x.score, q.lse)))
}

// cotangents returns the cotangents of a block's scores, or with slope those of
// its products. Its rows are queries.
func (a *attender) cotangents(queries []query, slope bool) fragment {
	weights := a.zeros("w", a.cols.block/a.t.across)
	a.product(weights, a.q(), a.k())
	a.eachScore(weights, queries, func(i, _ int, x element) scalar.Expr {
		if slope {
			return scalar.Mul(x.weight(queries[i]), a.slope(x.capped))
		}
		return x.weight(queries[i])
	})
	by := a.zeros("b", weights.columns)
	a.product(by, a.dout(), a.v())
	for i := range 4 {
		for c := range weights.columns {
			x := scalar.Mul(weights.at(i, c), scalar.Sub(by.at(i, c), queries[i].delta))
			a.body = append(a.body, &loop.Assign{Name: weights.register(i, c), Value: x})
		}
	}
	return weights
}

// queries writes the kernel of the cotangents of the queries.
func (b *backward) queries() Launch {
	a := attendQueries(b.new(), b.m, b.Attend, pickAttendTile(b.Depth))
	queries := a.rowQueries(b.stats)
	sums := a.zeros("s", 4*a.t.vectors(b.Depth))
	a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() {
		a.accumulate(sums, a.cotangents(queries, true), a.k())
	})
	a.storeSums(b.m.Store[0], a.queryHead, b.Depth, sums.at)
	return a.finish(b.name+"_queries", a.body)
}

// keys writes the kernel of the cotangents of keys and values: each workgroup
// has a block of keys and goes through the queries of all heads that see them.
func (b *backward) keys() Launch {
	dk, dv := b.m.Store[1], b.m.Store[2]
	t := pickAttendTile(b.Depth, b.Width)
	blocks := ceilDiv(b.Keys, t.rows())
	a, workgroup := newAttender(b.new(), b.m, b.Attend, t, group.Product(b.Heads)/b.Share*blocks)
	a.sides(false)
	a.move(&a.rows, scalar.Mod(workgroup, loop.Int(blocks)))
	a.atKeyHead(scalar.FloorDiv(workgroup, loop.Int(blocks)))
	var sums [2]fragment
	sums[0] = a.zeros("s", 4*t.vectors(b.Depth))
	sums[1] = a.zeros("s", 4*t.vectors(b.Width))
	a.count("head", b.Share, func(of scalar.Expr) {
		a.atQueryHead(of)
		a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() { a.blockOfQueries(b.stats, sums, dk != nil, dv != nil) })
	})
	if dk != nil {
		a.storeSums(dk, a.keyHead, b.Depth, sums[0].at)
	}
	if dv != nil {
		a.storeSums(dv, a.keyHead, b.Width, sums[1].at)
	}
	return a.finish(b.name+"_keys", a.body)
}

// blockOfQueries adds to the cotangents of keys and values, as far as they are
// wanted, what comes from the block of queries at hand.
func (a *attender) blockOfQueries(stats *group.Tensor, sums [2]fragment, keys, values bool) {
	columns := a.cols.block / a.t.across
	queries := make([]query, columns)
	for c := range queries {
		queries[c] = a.query(stats, &a.cols, a.column(c))
	}
	weights := a.zeros("w", columns)
	a.product(weights, a.k(), a.q())
	capped := func(_, _ int) scalar.Expr { return nil }
	var caps fragment
	if a.Softcap != 0 {
		caps = a.zeros("c", columns)
		capped = caps.at
	}
	a.eachScore(weights, queries, func(i, c int, x element) scalar.Expr {
		if a.Softcap != 0 {
			a.body = append(a.body, &loop.Assign{Name: caps.register(i, c), Value: x.capped})
		}
		return x.weight(queries[c])
	})
	if values {
		a.accumulate(sums[1], weights, a.dout())
	}
	if !keys {
		return
	}
	by := a.zeros("b", columns)
	a.product(by, a.v(), a.dout())
	for i := range 4 {
		for c := range columns {
			x := scalar.Mul(scalar.Mul(weights.at(i, c), a.slope(capped(i, c))), scalar.Sub(by.at(i, c), queries[c].delta))
			a.body = append(a.body, &loop.Assign{Name: weights.register(i, c), Value: x})
		}
	}
	a.accumulate(sums[0], weights, a.q())
}

// atKeyHead goes to a head of the keys, by its number among all.
func (a *attender) atKeyHead(head scalar.Expr) {
	dims := slices.Clone(a.Heads)
	if last := len(dims) - 1; last >= 0 {
		dims[last] /= a.Share
	}
	a.keyHead = a.unflatten(head, dims)
	for i, h := range a.keyHead {
		a.keyHead[i] = a.let("key_head", h)
	}
}

// atQueryHead goes to one of the heads of the queries that have the head of the
// keys at hand.
func (a *attender) atQueryHead(of scalar.Expr) {
	a.queryHead = slices.Clone(a.keyHead)
	if last := len(a.keyHead) - 1; last >= 0 {
		head := scalar.Add(scalar.Mul(a.keyHead[last], loop.Int(a.Share)), of)
		a.queryHead[last] = a.let("head", head)
	}
}
