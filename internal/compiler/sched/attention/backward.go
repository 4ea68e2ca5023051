package attention

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// backward returns the kernels of the cotangents of attention. Each recomputes the weights: one
// for blocks of queries, one for blocks of keys, and one for blocks of an additive mask. Only a sum
// of the mask may need several workgroups, as many heads may share few blocks.
func (n *attention) backward() []emit.Launch {
	dims := slices.Concat(n.spec.Heads, []int{n.spec.Queries, 2})
	n.stats = n.p.Scratch("attention_rows", ir.F32, dims...)
	out := []emit.Launch{n.pack()}
	if n.m.Store[0] != nil {
		out = append(out, n.queries())
	}
	if n.m.Store[1] != nil || n.m.Store[2] != nil {
		out = append(out, n.keys())
	}
	if len(n.m.Store) > 3 && n.m.Store[3] != nil {
		out = append(out, n.mask()...)
	}
	return out
}

// The columns of stats.
const (
	statLSE   = iota // log of the sum of exponentials, as an exponent; 0 if it is -Inf
	statDelta        // subtracted from the cotangents of the weights
)

// pack returns the kernel that fills stats.
func (n *attention) pack() emit.Launch {
	dims := n.stats.Dims[:len(n.stats.Dims)-1]
	w := emit.New(n.p, n.caps).WithThreads(emit.GroupThreads)
	load := w.Reader().Operand(n.m.Node)
	w.Threads(fusion.Product(dims), func(i scalar.Expr) {
		at := w.Unflatten(i, dims)
		w.Save(n.stats, slices.Concat(at, ir.Index{loop.Int(statLSE)}), times(finiteOrZero(load(3, at)), n.exponentScale()))
		w.Save(n.stats, slices.Concat(at, ir.Index{loop.Int(statDelta)}), load(4, at))
	})
	return w.Launch(n.prefix + "_rows")
}

// stat names a number of stats for a query of the current head.
func (a *kernel) stat(s *side, query scalar.Expr, which int) scalar.Expr {
	at, _ := s.clamp(query)
	return a.e.Let("stat", a.e.Load(a.stats, slices.Concat(a.heads.query, ir.Index{at, loop.Int(which)})))
}

// rowQueries returns the queries of a thread's rows, with their stats in backward kernels.
func (a *kernel) rowQueries() []query {
	out := make([]query, a.layout().own)
	for i := range out {
		out[i].end, out[i].first = a.visible.end(&a.rows, a.rows.position(i)), a.visible.first(a.rows.position(i))
		if a.spec.Backward {
			out[i].lse, out[i].delta = a.stat(&a.rows, a.rows.position(i), statLSE), a.stat(&a.rows, a.rows.position(i), statDelta)
		}
	}
	return out
}

// columnQueries returns the queries of a thread's columns.
func (a *kernel) columnQueries() []query {
	out := make([]query, a.columns())
	for c := range out {
		out[c] = query{
			end: a.visible.end(&a.cols, a.cols.position(c)), first: a.visible.first(a.cols.position(c)),
			lse: a.columnStat(c, statLSE), delta: a.columnStat(c, statDelta),
		}
	}
	return out
}

// weight returns the softmax of a score.
func (a *kernel) weight(x element, q query) scalar.Expr {
	return orZero(x.visible, a.exponential(scalar.Sub(a.exponent(x.score), q.lse)))
}

// cotangents returns the cotangents of a block's scores, or with slope those of the unscaled
// products. Rows are queries.
func (a *kernel) cotangents(queries []query, slope bool) fragment {
	weights, by := a.registers.zeros("w", a.cols.block), a.registers.zeros("b", a.cols.block)
	ready, readyBy := a.product(weights, a.q(), a.k()), a.product(by, a.dout(), a.v())
	ready()
	a.eachScore(weights, queries, func(i, _ int, x element) scalar.Expr {
		if slope {
			return scalar.Mul(a.weight(x, queries[i]), a.scoreDerivative(x.capped))
		}
		return a.weight(x, queries[i])
	})
	readyBy()
	weights.each(func(i, c int) {
		a.registers.assign(weights, i, c, scalar.Mul(weights.at(i, c), scalar.Sub(by.at(i, c), queries[i].delta)))
	})
	return weights
}

// queries returns the kernel of the queries' cotangents.
func (n *attention) queries() emit.Launch {
	a := n.overQueries(queriesKernel)
	queries := a.rowQueries()
	sums := a.registers.accumulators("s", n.spec.Depth)
	a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() {
		a.accumulate(sums, a.cotangents(queries, true), a.k())()
	})
	a.storeSums(n.m.Store[0], a.heads.query, n.spec.Depth, a.scaled(sums))
	return a.launch(n.prefix + "_queries")
}

// scaled returns sums times the scale of the scores.
func (a *kernel) scaled(sums fragment) func(i, c int) scalar.Expr {
	return func(i, c int) scalar.Expr { return times(sums.at(i, c), a.spec.Scale) }
}

// keys returns the kernel of the cotangents of keys and values. Each workgroup has a block of
// keys and loops over the queries of all heads that see them.
func (n *attention) keys() emit.Launch {
	a := n.newKernel(keysKernel)
	blocks := a.rows.blocks()
	workgroup := a.workgroups(fusion.Product(n.spec.Heads) / n.spec.Share * blocks)
	a.rows.setBlock(scalar.Mod(workgroup, loop.Int(blocks)))
	a.heads.setKey(scalar.FloorDiv(workgroup, loop.Int(blocks)))
	keys, values := a.registers.accumulators("s", n.spec.Depth), a.registers.accumulators("s", n.spec.Width)
	a.repeat("head", n.spec.Share, func(of scalar.Expr) {
		a.heads.setSharing(of)
		a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() { a.accumulateQueries(keys, values) })
	})
	if t := n.m.Store[1]; t != nil {
		a.storeSums(t, a.heads.key, n.spec.Depth, a.scaled(keys))
	}
	if t := n.m.Store[2]; t != nil {
		a.storeSums(t, a.heads.key, n.spec.Width, values.at)
	}
	return a.launch(n.prefix + "_keys")
}

// accumulateQueries adds the contributions of the current block of queries to the requested
// cotangents of keys and values.
func (a *kernel) accumulateQueries(keys, values fragment) {
	queries := a.columnQueries()
	weights, by := a.registers.zeros("w", a.cols.block), fragment{}
	ready, readyBy := a.product(weights, a.k(), a.q()), func() {}
	if a.m.Store[1] != nil {
		by = a.registers.zeros("b", a.cols.block)
		readyBy = a.product(by, a.v(), a.dout())
	}
	ready()
	capped := func(_, _ int) scalar.Expr { return nil }
	var caps fragment
	if a.spec.Softcap != 0 {
		caps = a.registers.zeros("c", a.cols.block)
		capped = caps.at
	}
	a.eachScore(weights, queries, func(i, c int, x element) scalar.Expr {
		if a.spec.Softcap != 0 {
			a.registers.assign(caps, i, c, x.capped)
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
		slope := scalar.Mul(weights.at(i, c), a.scoreDerivative(capped(i, c)))
		a.registers.assign(weights, i, c, scalar.Mul(slope, scalar.Sub(by.at(i, c), queries[c].delta)))
	})
	addKeys := a.accumulate(keys, weights, a.q())
	add()
	addKeys()
}

// maskEmitter writes the kernel of an additive mask's cotangent. Each workgroup has a block of
// the mask, or all of a broadcast axis, and loops over a part of the scores that it is added to:
// those of a head and, if the mask is broadcast along the rows, of a block of rows at a time.
type maskEmitter struct {
	*kernel
	plain     *plain
	dims      []int    // of the mask, padded to the rank of the scores
	at        ir.Index // head of the mask
	cotangent fragment // cotangents of the block, row or column
}

// mask returns the kernels of the mask's cotangent: one of the sums, and one that adds up their parts.
func (n *attention) mask() []emit.Launch {
	t := n.m.Store[3]
	rank := len(n.spec.Heads)
	a := n.newKernel(maskKernel)
	x := &maskEmitter{kernel: a, plain: a.fragments.(*plain), dims: slices.Concat(ones(rank+2-len(t.Dims)), t.Dims)}
	rows, cols := emit.CeilDiv(x.dims[rank], a.rows.block), emit.CeilDiv(x.dims[rank+1], a.cols.block)
	blocks, terms := fusion.Product(x.dims[:rank])*rows*cols, fusion.Product(x.sharing())*x.rowTerms()
	each := terms
	if emit.WithMma {
		each = emit.CeilDiv(terms, maskParts(blocks, terms, n.caps))
	}
	parts, sums := emit.CeilDiv(terms, each), t
	if emit.WithMma && parts > 1 {
		sums = n.p.Scratch("mask_parts", ir.F32, slices.Concat([]int{parts}, x.dims)...)
	}
	workgroup := a.workgroups(parts * blocks)
	part := a.e.Let("part", scalar.FloorDiv(workgroup, loop.Int(blocks)))
	block := a.e.Let("block", scalar.Mod(workgroup, loop.Int(blocks)))
	x.at = a.e.LetAll("mask_head", a.e.Unflatten(scalar.FloorDiv(block, loop.Int(rows*cols)), x.dims[:rank]))
	x.cotangent = a.registers.zeros("s", a.cols.block)
	row := a.e.Let("row_block", scalar.Mod(scalar.FloorDiv(block, loop.Int(cols)), loop.Int(rows)))
	column := a.e.Let("column_block", scalar.Mod(block, loop.Int(cols)))
	x.overTerms(part, each, terms, row, func() { x.overColumns(column) })
	x.reduceAndStore(sums, part, row, column)
	out := []emit.Launch{a.launch(n.prefix + "_mask")}
	if emit.WithMma && parts > 1 {
		out = append(out, joinMask(n, sums, t))
	}
	return out
}

// maskGroups is the number of workgroups of a processor that a mask's sums are split for.
const maskGroups = 2

// maskParts returns the number of parts that sums of a number of terms are split into, where one
// workgroup to a block would keep processors idle: on CUDA alone, as the module of a page has no room for it.
func maskParts(blocks, terms int, caps loop.Caps) int {
	if caps.Dialect != dtype.CUDA {
		return 1
	}
	return max(1, min(terms, caps.Profile().Workgroups(maskGroups)/blocks))
}

// ones returns n sizes of 1.
func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// sharing returns for each axis of heads how many share a head of the mask.
func (x *maskEmitter) sharing() []int {
	out := make([]int, len(x.spec.Heads))
	for i, all := range x.spec.Heads {
		out[i] = all / x.dims[i]
	}
	return out
}

// rowTerms returns the blocks of rows that a workgroup sums up for each head.
func (x *maskEmitter) rowTerms() int {
	if x.dims[len(x.spec.Heads)] > 1 {
		return 1
	}
	return x.rows.blocks()
}

// overTerms loops over the heads that share the mask's head, and over all blocks of rows if the
// mask is broadcast along them: over the terms of a part.
func (x *maskEmitter) overTerms(part scalar.Expr, each, terms int, row scalar.Expr, body func()) {
	perHead, sharing := x.rowTerms(), x.sharing()
	term := func(i scalar.Expr) {
		head := loop.Int(0)
		for axis, other := range x.e.Unflatten(scalar.FloorDiv(i, loop.Int(perHead)), sharing) {
			head = sum(scalar.Mul(head, loop.Int(x.spec.Heads[axis])), x.at[axis], other) // one of the two is 0
		}
		x.heads.set(x.e.Simplify(head))
		if perHead > 1 {
			row = x.e.Let("row_block", scalar.Mod(i, loop.Int(perHead)))
		}
		x.rows.setBlock(row)
		body()
	}
	if !emit.WithMma || each == terms {
		x.repeat("term", terms, term)
		return
	}
	first := scalar.Mul(part, loop.Int(each))
	x.e.Loop("term", first, scalar.Min(scalar.Add(first, loop.Int(each)), loop.Int(terms)), 1, terms-1, term)
}

// overColumns accumulates the cotangents of the scores in the current rows.
func (x *maskEmitter) overColumns(block scalar.Expr) {
	queries := x.rowQueries()
	lo, hi := loop.Int(0), loop.Int(x.cols.blocks())
	if x.dims[len(x.at)+1] > 1 {
		lo, hi = block, scalar.Add(block, loop.Int(1))
	}
	x.columnBlocks(lo, hi, func() {
		ds := x.cotangents(queries, false)
		ds.each(func(i, c int) { x.registers.assign(x.cotangent, i, c, scalar.Add(x.cotangent.at(i, c), ds.at(i, c))) })
	})
}

// reduceAndStore reduces the threads' cotangents along the broadcast axes and stores the sums in t,
// the mask's cotangent or its parts.
func (x *maskEmitter) reduceAndStore(t *fusion.Tensor, part, row, column scalar.Expr) {
	x.rows.setBlock(row)
	x.cols.setBlock(column)
	rows, rowAt, rowExists := 4, x.rows.position, func(i int) scalar.Expr { return x.inRange(&x.rows, x.rows.position(i)) }
	cols, colAt, colExists := 4, x.cols.position, func(c int) scalar.Expr { return x.inRange(&x.cols, x.cols.position(c)) }
	first := func(int) scalar.Expr { return loop.Int(0) }
	value := x.cotangent.at
	if x.dims[len(x.at)+1] == 1 {
		totals := x.totals(true, func(i int) scalar.Expr { return sum(value(i, 0), value(i, 1), value(i, 2), value(i, 3)) })
		value = func(i, _ int) scalar.Expr { return totals[i] }
		cols, colAt, colExists = 1, first, func(int) scalar.Expr { return scalar.Eq(x.plain.x, loop.Int(0)) }
	}
	if x.dims[len(x.at)] == 1 {
		before := value
		totals := x.totals(false, func(c int) scalar.Expr { return sum(before(0, c), before(1, c), before(2, c), before(3, c)) })
		value = func(_, c int) scalar.Expr { return totals[c] }
		rows, rowAt, rowExists = 1, first, func(int) scalar.Expr { return scalar.Eq(x.plain.y, loop.Int(0)) }
	}
	var body []loop.Stmt
	for i := range rows {
		for c := range cols {
			at := slices.Concat(ir.Index{part}, x.at, ir.Index{rowAt(i), colAt(c)})
			store := x.e.Store(t, at[len(at)-len(t.Dims):], scalar.Convert(value(i, c), t.DType))
			body = append(body, emit.Guard(scalar.And(rowExists(i), colExists(c)), store)...)
		}
	}
	x.e.Body = append(x.e.Body, emit.Guard(x.exists, body)...)
}

// totals sums four values of each thread over the threads of a row, or of a column.
func (x *maskEmitter) totals(across bool, value func(i int) scalar.Expr) []scalar.Expr {
	totals := x.registers.vars("total", scalar.ConstF(ir.F32, 0))
	x.plain.reduceThreads(totals, []scalar.Expr{value(0), value(1), value(2), value(3)}, across, scalar.Add)
	return floats(totals)
}

// joinLoads is the number of parts of a mask's cotangent that a thread loads before it adds them.
const joinLoads = 8

// joinMask returns the kernel that adds up the parts of a mask's cotangent, in order.
func joinMask(n *attention, parts, t *fusion.Tensor) emit.Launch {
	w := emit.New(n.p, n.caps).WithThreads(emit.GroupThreads)
	count := parts.Dims[0]
	whole := count / joinLoads * joinLoads
	w.Threads(t.Len(), func(i scalar.Expr) {
		at := w.Unflatten(i, parts.Dims[1:])
		total := w.Var("total", scalar.ConstF(ir.F32, 0))
		add := func(first scalar.Expr, n int) {
			loads := make([]scalar.Expr, n)
			for j := range loads {
				loads[j] = w.Load(parts, slices.Concat(ir.Index{scalar.Add(first, loop.Int(j))}, at))
			}
			for _, x := range w.LetAll("part", loads) {
				w.Set(total, scalar.Add(total, x))
			}
		}
		if whole > 0 {
			w.Loop("first", loop.Int(0), loop.Int(whole), joinLoads, whole-joinLoads, func(first scalar.Expr) { add(first, joinLoads) })
		}
		add(loop.Int(whole), count-whole)
		w.Save(t, at[len(at)-len(t.Dims):], scalar.Convert(total, t.DType))
	})
	return w.Launch(n.prefix + "_mask_join")
}

// inRange returns the condition that a position is in range.
func (x *maskEmitter) inRange(s *side, pos scalar.Expr) scalar.Expr {
	_, ok := s.clamp(pos)
	return x.e.Simplify(ok)
}
