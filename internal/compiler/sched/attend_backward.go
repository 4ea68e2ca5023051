package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// backward writes the kernels of the cotangents of attention. Each of them computes
// the weights anew: one for blocks of queries, one for blocks of keys, and one for
// blocks of a mask that is added. So nothing is summed up by two workgroups.
func (n *attention) backward() []Launch {
	dims := slices.Concat(n.Heads, []int{n.Queries, 2})
	n.stats = n.p.Scratch("attention_rows", ir.F32, dims...)
	out := []Launch{n.pack()}
	if n.m.Store[0] != nil {
		out = append(out, n.queries())
	}
	if n.m.Store[1] != nil || n.m.Store[2] != nil {
		out = append(out, n.keys())
	}
	if len(n.m.Store) > 3 && n.m.Store[3] != nil {
		out = append(out, n.mask())
	}
	return out
}

// The columns of stats.
const (
	statLSE   = iota // the logarithm of the sum of exponentials as an exponent, 0 where it is not finite
	statDelta        // what to take off the cotangents of the weights
)

// pack writes the kernel that fills stats.
func (n *attention) pack() Launch {
	dims := n.stats.Dims[:len(n.stats.Dims)-1]
	w := newWriter(n.p, n.caps, mapThreads)
	load := w.reader().Operand(n.m.Node)
	w.threads(fusion.Product(dims), func(i scalar.Expr) {
		at := w.unflatten(i, dims)
		w.save(n.stats, slices.Concat(at, ir.Index{loop.Int(statLSE)}), times(zeroForNone(load(3, at)), n.base()))
		w.save(n.stats, slices.Concat(at, ir.Index{loop.Int(statDelta)}), load(4, at))
	})
	return w.launch(n.prefix + "_rows")
}

// stat names a number of a query, of the head at hand.
func (a *attender) stat(s *attendSide, query scalar.Expr, which int) scalar.Expr {
	at, _ := s.inside(query)
	return a.let("stat", a.load(a.stats, slices.Concat(a.queryHead, ir.Index{at, loop.Int(which)})))
}

// rowQueries returns the queries of a thread's rows, for cotangents with their stats.
func (a *attender) rowQueries() []query {
	out := make([]query, a.layout().own)
	for i := range out {
		out[i].limit, out[i].first = a.limit(&a.rows, a.row(i)), a.firstSeen(a.row(i))
		if a.Backward {
			out[i].lse, out[i].delta = a.stat(&a.rows, a.row(i), statLSE), a.stat(&a.rows, a.row(i), statDelta)
		}
	}
	return out
}

// columnQueries returns the queries of a thread's columns.
func (a *attender) columnQueries() []query {
	out := make([]query, a.columns())
	for c := range out {
		out[c] = query{
			limit: a.limit(&a.cols, a.column(c)), first: a.firstSeen(a.column(c)),
			lse: a.columnStat(c, statLSE), delta: a.columnStat(c, statDelta),
		}
	}
	return out
}

// weight is the softmax of a score.
func (a *attender) weight(x element, q query) scalar.Expr {
	return orZero(x.seen, a.power(scalar.Sub(a.exponent(x.score), q.lse)))
}

// cotangents returns the cotangents of a block's scores, or with slope those of
// its products but for the scale. Its rows are queries.
func (a *attender) cotangents(queries []query, slope bool) fragment {
	weights, by := a.zeros("w", a.cols.block), a.zeros("b", a.cols.block)
	ready, readyBy := a.product(weights, a.q(), a.k()), a.product(by, a.dout(), a.v())
	ready()
	a.eachScore(weights, queries, func(i, _ int, x element) scalar.Expr {
		if slope {
			return scalar.Mul(a.weight(x, queries[i]), a.slope(x.capped))
		}
		return a.weight(x, queries[i])
	})
	readyBy()
	weights.each(func(i, c int) {
		a.assign(weights, i, c, scalar.Mul(weights.at(i, c), scalar.Sub(by.at(i, c), queries[i].delta)))
	})
	return weights
}

// queries writes the kernel of the cotangents of the queries.
func (n *attention) queries() Launch {
	a := n.overQueries(attendQueries)
	queries := a.rowQueries()
	sums := a.total("s", n.Depth)
	a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() {
		a.accumulate(sums, a.cotangents(queries, true), a.k())()
	})
	a.storeSums(n.m.Store[0], a.queryHead, n.Depth, a.scaled(sums))
	return a.launch(n.prefix + "_queries")
}

// scaled returns sums times the scale of the scores.
func (a *attender) scaled(sums fragment) func(i, c int) scalar.Expr {
	return func(i, c int) scalar.Expr { return times(sums.at(i, c), a.Scale) }
}

// keys writes the kernel of the cotangents of keys and values: each workgroup
// has a block of keys and goes through the queries of all heads that see them.
func (n *attention) keys() Launch {
	a := n.attender(attendKeys)
	blocks := a.rows.blocks()
	workgroup := a.workgroups(fusion.Product(n.Heads) / n.Share * blocks)
	a.move(&a.rows, scalar.Mod(workgroup, loop.Int(blocks)))
	a.atKeyHead(scalar.FloorDiv(workgroup, loop.Int(blocks)))
	keys, values := a.total("s", n.Depth), a.total("s", n.Width)
	a.count("head", n.Share, func(of scalar.Expr) {
		a.atQueryHead(of)
		a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() { a.blockOfQueries(keys, values) })
	})
	if t := n.m.Store[1]; t != nil {
		a.storeSums(t, a.keyHead, n.Depth, a.scaled(keys))
	}
	if t := n.m.Store[2]; t != nil {
		a.storeSums(t, a.keyHead, n.Width, values.at)
	}
	return a.launch(n.prefix + "_keys")
}

// blockOfQueries adds to the cotangents of keys and values, as far as they are
// wanted, what comes from the block of queries at hand.
func (a *attender) blockOfQueries(keys, values fragment) {
	queries := a.columnQueries()
	weights, by := a.zeros("w", a.cols.block), fragment{}
	ready, readyBy := a.product(weights, a.k(), a.q()), func() {}
	if a.m.Store[1] != nil {
		by = a.zeros("b", a.cols.block)
		readyBy = a.product(by, a.v(), a.dout())
	}
	ready()
	capped := func(_, _ int) scalar.Expr { return nil }
	var caps fragment
	if a.Softcap != 0 {
		caps = a.zeros("c", a.cols.block)
		capped = caps.at
	}
	a.eachScore(weights, queries, func(i, c int, x element) scalar.Expr {
		if a.Softcap != 0 {
			a.assign(caps, i, c, x.capped)
		}
		return a.weight(x, queries[c])
	})
	add := func() {}
	if a.m.Store[2] != nil {
		add = a.accumulate(values, weights, a.dout())
	}
	if a.m.Store[1] == nil {
		add()
		return
	}
	readyBy()
	weights.each(func(i, c int) {
		slope := scalar.Mul(weights.at(i, c), a.slope(capped(i, c)))
		a.assign(weights, i, c, scalar.Mul(slope, scalar.Sub(by.at(i, c), queries[c].delta)))
	})
	addKeys := a.accumulate(keys, weights, a.q())
	add()
	addKeys()
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
