package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

const (
	// maxCachedRows is the maximum number of queries that read one head of keys together: each
	// thread keeps a sum for each of them.
	maxCachedRows = 16
	// cachedBlock is the number of keys of a workgroup: so few that a thread loads its part of a key and its values at once. For
	// caches of more than manyBlocks of them it is a multiple, up to maxCachedBlock, as the second kernel reads the results of all.
	cachedBlock, maxCachedBlock, manyBlocks = 32, 256, 128
	// cachedAtOnce is the number of values that a thread loads together, and combinedAtOnce that of partial results.
	cachedAtOnce, combinedAtOnce = 8, 16
	// maxKeyLanes is the maximum number of adjacent threads that share a key: they read a sector of memory together.
	maxKeyLanes = 8
	// maxStrands is the maximum number of threads that divide the keys of a feature.
	maxStrands = 4
	// rowParts is the number of threads that reduce a row of scores.
	rowParts = 8
	// maxRow is the maximum length of a row of which each thread reads all scores instead: a barrier less.
	maxRow = 32
)

// cachedAttention writes the two kernels of attention over a cache (Dao et al., Flash-Decoding for
// long-context inference). A workgroup of the first computes the partial result of a block of keys for
// the queries of one head of keys; workgroups beyond the filled positions have no keys. The second
// combines the blocks.
type cachedAttention struct {
	*CachedAttentionAttrs
	d         ir.DType
	sequences int // of q
	caches    int // sequences of k
	groups    int // heads of k
	share     int // heads of q for each head of k
	queries   int // m
	room      int // n
	depth     int // d
	width     int // e
	pasts     int // 1, or one for each sequence
	rowed     bool
	pages     int // of a sequence of q; 0 if its cache is contiguous
	rows      int // queries of all heads that share a head of k
	threads   int // of the features
	strands   int // threads of a feature, which divide the keys of a block
	lanes     int // adjacent threads that compute the scores of a key together
	block     int // keys of a workgroup
	blocks    int // workgroups of a head
}

func cachedAttentionKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	q, _ := n.Input(0).Shape().Ints()
	k, _ := n.Input(1).Shape().Ints()
	v, _ := n.Input(2).Shape().Ints()
	rank := len(q)
	c := &cachedAttention{
		CachedAttentionAttrs: n.Attrs().(*CachedAttentionAttrs), d: n.Input(0).DType(),
		sequences: product(q[:rank-3]), caches: product(k[:rank-3]), groups: k[rank-3], queries: q[rank-2], room: k[rank-2],
		depth: q[rank-1], width: v[rank-1], pasts: elementsOf(n.Input(3).Type()), rowed: len(n.Inputs()) > 4, threads: 64, strands: 1,
	}
	if c.rowed && n.Input(4).Rank() > 1 {
		c.pages, _ = n.Input(4).Dim(1).Const()
		c.rowed, c.room = false, c.pages*c.room
	}
	if product(q)*product(k)*product(v) == 0 || max(product(q), product(k), product(v)) > loop.MaxElements || c.d == ir.F64 {
		return nil
	}
	c.share = q[rank-3] / c.groups
	c.rows = c.share * c.queries
	if c.width > 64 {
		c.threads = 128
	}
	if c.rows > maxCachedRows {
		return nil
	}
	if partial, ok := c.byWarps(n, caps); ok {
		return c.with(partial, n)
	}
	if !c.divide(caps) {
		return nil
	}
	c.blocks = (c.room + c.block - 1) / c.block
	if max(c.blocks, c.sequences*c.groups*c.rows) > caps.Groups || 4*(3*c.blocks+rowParts+c.strands*(c.width+1)) > caps.SharedBytes {
		return nil
	}
	return c.with(c.partial(n), n)
}

// divide chooses the keys of a workgroup, and the threads of a feature and of a key. It reports false where they do not fit a
// workgroup.
func (c *cachedAttention) divide(caps loop.Caps) bool {
	c.block = 2 * c.threads
	if p := caps.Profile(); p.Barrier < p.Latency { // not in software, where threads take turns
		c.strands = min(maxStrands, caps.Invocations/c.threads)
		for c.block = cachedBlock; c.block < maxCachedBlock && c.room > manyBlocks*c.block; {
			c.block *= 2
		}
	}
	if c.pages > 0 {
		c.block = c.room / c.pages
	}
	for ; c.strands > 0; c.strands /= 2 {
		for c.lanes = maxKeyLanes; c.lanes > 1 && (c.lanes*c.block > c.threads*c.strands || c.depth%c.lanes != 0); {
			c.lanes /= 2
		}
		if 4*(c.staged()+c.rows*(c.block*(1+c.lanes)+rowParts+1)) <= caps.SharedBytes {
			return true
		}
	}
	return false
}

// staged returns the number of elements of workgroup memory that hold the queries and, once these are read, the sums of values.
func (c *cachedAttention) staged() int { return c.rows * max(c.depth, c.strands*(c.width+1)) }

// with returns the algorithm of a first kernel.
func (c *cachedAttention) with(partial ir.KernelLaunch, n *ir.Node) *ir.Algorithm {
	return &ir.Algorithm{
		Scratch:  []ir.Type{ir.TypeOf(ir.F32, ir.N(c.sequences*c.groups*c.blocks), ir.N(c.rows), ir.N(c.width+2))},
		Launches: []ir.KernelLaunch{partial, c.combine(n)},
	}
}

// cachedWriter writes one of the kernels.
type cachedWriter struct {
	*cachedAttention
	*tiles
	head       scalar.Expr // of the keys, of all sequences
	past, seen scalar.Expr // positions before the queries, and with them
	sequence   scalar.Expr // of q
	cache      scalar.Expr // the head of the keys in the caches, or where that of the block's page begins
	keys       keyBlock    // in kernels of partial results
	out        int         // the array of those
}

// writer begins a kernel. Its operands past and row come first.
func (c *cachedAttention) writer(name string, threads int, groups [3]int) *cachedWriter {
	w := &cachedWriter{cachedAttention: c, tiles: &tiles{Writer: loop.NewWriter(), d: c.d}}
	w.kernel = &loop.Kernel{Name: name, Workgroup: [3]int{threads, 1, 1}, Groups: groups}
	return w
}

// integers adds an operand of i32.
func (w *cachedWriter) integers(n *ir.Node, i int) int {
	w.memory = append(w.memory, ir.Memory{Space: ir.OperandMemory, Number: i})
	return w.array("at", ir.I32, elementsOf(n.Input(i).Type()), loop.Storage, loop.Read)
}

// begin reads how many positions the head of a sequence has.
func (w *cachedWriter) begin(n *ir.Node, head scalar.Expr) {
	w.head = head
	w.sequence = w.Let("sequence", over(head, w.groups))
	at := w.sequence
	if w.pasts == 1 {
		at = loop.Int(0)
	}
	w.past = w.Let("past", scalar.Clamp(scalar.LoadAt(w.integers(n, 3), ir.I32, at), loop.Int(-w.queries), loop.Int(w.room)))
	w.seen = w.Let("seen", scalar.Clamp(plus(w.past, w.queries), loop.Int(0), loop.Int(w.room)))
	w.cache = head
	if w.rowed {
		row := scalar.Clamp(scalar.LoadAt(w.integers(n, 4), ir.I32, w.sequence), loop.Int(0), loop.Int(w.caches-1))
		w.cache = w.Let("cache", scalar.Add(times(row, w.groups), rest(head, w.groups)))
	}
}

// keyBlock is the block of keys of a workgroup: its number, its first position, and the keys [from, count)
// of it that some query attends to.
type keyBlock struct{ number, start, from, count scalar.Expr }

// openBlock begins the workgroup's block of keys, which is a page where the caches have pages.
func (w *cachedWriter) openBlock(n *ir.Node) {
	number := w.Let("block", loop.GroupID(0, w.blocks))
	if w.pages > 0 {
		at := scalar.Add(times(w.sequence, w.pages), number)
		page := scalar.Clamp(scalar.LoadAt(w.integers(n, 4), ir.I32, at), loop.Int(0), loop.Int(w.caches-1))
		head := scalar.Add(times(page, w.groups), rest(w.head, w.groups))
		w.cache = w.Let("page", times(head, w.block))
	}
	start := w.Let("start", times(number, w.block))
	count := w.Let("count", scalar.Clamp(scalar.Sub(w.seen, start), loop.Int(0), loop.Int(w.block)))
	from := w.Let("from", scalar.Clamp(scalar.Sub(w.first(), start), loop.Int(0), loop.Int(w.block)))
	w.keys = keyBlock{number, start, from, count}
}

// position returns where a key of the block is in the caches: the last one at most.
func (w *cachedWriter) position(key scalar.Expr) scalar.Expr {
	if w.pages > 0 {
		return scalar.Add(w.cache, scalar.Min(key, loop.Int(w.block-1)))
	}
	return scalar.Add(times(w.cache, w.room), scalar.Min(scalar.Add(w.keys.start, key), loop.Int(w.room-1)))
}

// openPartial begins a kernel of partial results, whose arrays of operands operand declares.
func (c *cachedAttention) openPartial(n *ir.Node, operand func(w *cachedWriter, n *ir.Node, i int) int) (w *cachedWriter, q, k, v int) {
	w = c.writer("partial", c.threads*c.strands, [3]int{c.blocks, c.sequences * c.groups, 1})
	w.begin(n, w.Let("head", loop.GroupID(1, c.sequences*c.groups)))
	q, k, v = operand(w, n, 0), operand(w, n, 1), operand(w, n, 2)
	w.memory = append(w.memory, ir.Memory{Space: ir.ScratchMemory})
	w.out = w.array("parts", ir.F32, c.sequences*c.groups*c.blocks*c.rows*(c.width+2), loop.Storage, loop.ReadWrite)
	return w, q, k, v
}

// storePartial stores element i of the partial result of query r.
func (w *cachedWriter) storePartial(r, i, x scalar.Expr) {
	row := scalar.Add(times(scalar.Add(times(w.head, w.blocks), w.keys.number), w.rows), r)
	w.Store(w.out, scalar.Add(times(row, w.width+2), i), x)
}

// first returns the first position that the queries attend to, and the last one of the cache where
// their window is past it, so that some workgroup writes the partial results that combine reads.
func (w *cachedWriter) first() scalar.Expr {
	if w.Window == 0 {
		return loop.Int(0)
	}
	return w.Let("oldest", scalar.Clamp(plus(w.past, 1-w.Window), loop.Int(0), loop.Int(w.room-1)))
}

// partial writes, for each block and query, the sums of the values by exp(score − maximum), the sum of those weights, and the
// maximum. Each step needs all threads: products of parts of keys, scores, maxima, weights, and sums of parts of the keys.
func (c *cachedAttention) partial(n *ir.Node) ir.KernelLaunch {
	lane := loop.LocalID(0, c.threads*c.strands)
	w, q, k, v := c.openPartial(n, (*cachedWriter).operand)
	w.openBlock(n)
	stage := w.shared("stage", ir.F32, c.staged())
	w.stageQueries(stage, q, lane)
	multiply := w.dotsOf(k, lane)
	sum := w.sumsOf(lane, items{w.keys.from, w.keys.count, scalar.Max(scalar.Sub(w.keys.count, loop.Int(1)), loop.Int(0)), c.block, cachedAtOnce}, c.rows, func(key, feature scalar.Expr) scalar.Expr {
		return scalar.LoadAt(v, c.d, scalar.Add(times(w.position(key), c.width), feature))
	})
	score, weight := w.shared("score", ir.F32, c.rows*c.block), w.shared("weight", ir.F32, c.rows*c.block*c.lanes)
	w.Barrier()
	multiply(stage, weight) // products, which weights replace
	w.Barrier()
	w.each("i", lane, c.rows*c.block, func(i scalar.Expr) { w.Store(score, i, w.score(weight, i)) })
	most, maximum := w.maxima(score, lane, c.rows, c.block), w.shared("most", ir.F32, c.rows)
	w.each("i", lane, c.rows*c.block, func(i scalar.Expr) {
		row := w.Let("row", over(i, c.block))
		own := w.Let("most", most(row))
		w.Store(weight, i, w.share(float(score, i), own))
		w.When(scalar.Eq(rest(i, c.block), loop.Int(0)), func() { w.Store(maximum, row, own) })
	})
	sums := sum(stage, weight, weight)
	w.When(scalar.Gt(w.keys.count, w.keys.from), func() {
		w.each("i", lane, c.rows*(c.width+1), func(i scalar.Expr) {
			r, feature := w.Let("r", over(i, c.width+1)), rest(i, c.width+1)
			w.storePartial(r, feature, sums(i))
		})
		w.each("r", lane, c.rows, func(r scalar.Expr) { w.storePartial(r, loop.Int(c.width+1), float(maximum, r)) })
	})
	return w.algorithm().Launches[0]
}

// stageQueries copies the queries of the workgroup's head to workgroup memory, times the scale: what computes them is computed once.
func (w *cachedWriter) stageQueries(stage, q int, lane scalar.Expr) {
	w.each("i", lane, w.rows*w.depth, func(i scalar.Expr) {
		x := scalar.Convert(scalar.LoadAt(q, w.tiles.d, scalar.Add(times(w.head, w.rows*w.depth), i)), ir.F32)
		w.Store(stage, i, scalar.Mul(x, scalar.Const(ir.F32, w.Scale)))
	})
}

// each has the threads divide [0, n).
func (w *cachedWriter) each(prefix string, lane scalar.Expr, n int, f func(i scalar.Expr)) {
	w.Loop(prefix, lane, loop.Int(n), w.threads*w.strands, n-1, f)
}

// dotsOf returns a function of queries that stores the products of each key with them, in parts: a thread multiplies every lanes-th
// element. It loads some from several places of a key before it adds their products: each is in another sector of
// memory, and their loads wait together. If a thread has no more than these, they are loaded here.
func (w *cachedWriter) dotsOf(k int, lane scalar.Expr) func(queries, dots int) {
	atOnce := 1
	for atOnce < cachedAtOnce && w.depth/w.lanes%(2*atOnce) == 0 {
		atOnce *= 2
	}
	part, first := w.Let("part", rest(lane, w.lanes)), over(lane, w.lanes)
	steps := w.depth / w.lanes / atOnce
	load := func(key, i scalar.Expr) (own, elements []scalar.Expr) {
		for u := range atOnce {
			own = append(own, scalar.Add(part, times(plus(i, u*steps), w.lanes)))
			x := scalar.LoadAt(k, w.tiles.d, scalar.Add(times(w.position(key), w.depth), own[u]))
			elements = append(elements, w.Let("k", scalar.Convert(x, ir.F32)))
		}
		return own, elements
	}
	once := steps == 1 && w.block*w.lanes <= w.threads*w.strands
	var own, elements []scalar.Expr
	if once {
		own, elements = load(scalar.Max(scalar.Min(first, scalar.Sub(w.keys.count, loop.Int(1))), loop.Int(0)), loop.Int(0))
	}
	return func(queries, dots int) {
		w.Loop("key", first, w.keys.count, w.threads*w.strands/w.lanes, w.block-1, func(key scalar.Expr) {
			sums := w.zeros(w.rows)
			w.Times("i", steps, func(i scalar.Expr) {
				if !once {
					own, elements = load(key, i)
				}
				for u, x := range elements {
					for r, sum := range sums {
						w.Set(sum, scalar.Fma(x, float(queries, plus(own[u], r*w.depth)), sum))
					}
				}
			})
			for r, sum := range sums {
				w.Store(dots, scalar.Add(times(plus(key, r*w.block), w.lanes), part), sum)
			}
		})
	}
}

// score returns element i of the scores [queries, keys], from products in parts: -Inf where the query does not attend to the key.
func (w *cachedWriter) score(dots int, i scalar.Expr) scalar.Expr {
	key, score := w.Let("key", rest(i, w.block)), w.Var("score", scalar.Const(ir.F32, math.Inf(-1)))
	w.When(scalar.Lt(key, w.keys.count), func() {
		s := w.combined(w.lanes, func(u int) scalar.Expr { return float(dots, plus(times(i, w.lanes), u)) }, scalar.Add)
		query := rest(over(i, w.block), w.queries)
		w.Set(score, w.seenScore(s, key, query))
	})
	return score
}

// seenScore returns the score of a key, and -Inf if a query does not attend to it.
func (w *cachedWriter) seenScore(s, key, query scalar.Expr) scalar.Expr {
	if w.Softcap != 0 {
		s = scalar.Mul(scalar.Tanh(scalar.Mul(s, scalar.Const(ir.F32, 1/w.Softcap))), scalar.Const(ir.F32, w.Softcap))
	}
	distance := scalar.Add(scalar.Sub(w.past, scalar.Add(w.keys.start, key)), query)
	seen := scalar.Ge(distance, loop.Int(0))
	if w.Window > 0 {
		seen = scalar.And(seen, scalar.Lt(distance, loop.Int(w.Window)))
	}
	return scalar.Select(seen, s, scalar.Const(ir.F32, math.Inf(-1)))
}

// zeros declares sums.
func (w *cachedWriter) zeros(n int) []scalar.Expr {
	sums := make([]scalar.Expr, n)
	for r := range sums {
		sums[r] = w.Var("sum", scalar.Const(ir.F32, 0))
	}
	return sums
}

// maxima returns the maximum of each row of scores [rows, n]: some threads compute that of a part each.
func (w *cachedWriter) maxima(scores int, lane scalar.Expr, rows, n int) func(row scalar.Expr) scalar.Expr {
	w.Barrier()
	if n <= maxRow {
		return func(row scalar.Expr) scalar.Expr {
			return w.combined(n, func(u int) scalar.Expr { return float(scores, plus(times(row, n), u)) }, higher)
		}
	}
	parts := w.shared("part", ir.F32, rows*rowParts)
	w.each("i", lane, rows*rowParts, func(i scalar.Expr) {
		most := w.Var("most", scalar.Const(ir.F32, math.Inf(-1)))
		row := w.Let("row", times(over(i, rowParts), n))
		w.Loop("key", rest(i, rowParts), loop.Int(n), rowParts, n-1, func(key scalar.Expr) {
			w.Set(most, higher(most, float(scores, scalar.Min(scalar.Add(row, key), loop.Int(rows*n-1)))))
		})
		w.Store(parts, i, most)
	})
	w.Barrier()
	return func(row scalar.Expr) scalar.Expr {
		return w.combined(rowParts, func(u int) scalar.Expr { return float(parts, plus(times(row, rowParts), u)) }, higher)
	}
}

// higher returns the larger of two scores, and one of them if the other is NaN: a NaN appears in its weight anyway.
func higher(x, y scalar.Expr) scalar.Expr { return scalar.Select(scalar.Gt(x, y), x, y) }

// share returns exp(score − maximum), and 0 for a score of -Inf.
func (w *cachedWriter) share(score, most scalar.Expr) scalar.Expr {
	s := w.Let("s", score)
	return scalar.Select(scalar.Eq(s, scalar.Const(ir.F32, math.Inf(-1))), scalar.Const(ir.F32, 0), scalar.Exp(scalar.Sub(s, most)))
}

// items are the items [from, count) of at most room: keys of a block, or blocks. A thread loads some together, none behind last.
type items struct {
	from, count, last scalar.Expr
	room, together    int
}

// sumsOf returns a function of three arrays: workgroup memory for the sums of each strand, and weights and counted weights, both
// [rows, room]. That sums the values of items by the weights and returns the elements of the sums, [rows, width+1], whose last
// column is the sum of the counted weights. The threads of a feature divide the items, and each loads several values before it
// adds them. If a thread has no more than these, they are loaded here, so that they arrive while the weights are computed.
func (w *cachedWriter) sumsOf(lane scalar.Expr, it items, rows int, value func(item, feature scalar.Expr) scalar.Expr) func(of, weight, counted int) func(i scalar.Expr) scalar.Expr {
	strand, first := w.Let("strand", over(lane, w.threads)), w.Let("first", rest(lane, w.threads))
	from := w.Let("from", scalar.Add(it.from, times(strand, it.together)))
	load := func(item, feature scalar.Expr) (own, values []scalar.Expr) {
		for u := range it.together {
			own = append(own, w.Let("own", scalar.Min(plus(item, u), it.last)))
			values = append(values, w.Let("v", scalar.Convert(value(own[u], feature), ir.F32)))
		}
		return own, values
	}
	size, once := rows*(w.width+1), it.room <= it.together*w.strands && w.width <= w.threads
	var own, values []scalar.Expr
	if once {
		own, values = load(from, scalar.Min(first, loop.Int(w.width-1)))
	}
	return func(of, weight, counted int) func(i scalar.Expr) scalar.Expr {
		w.Barrier()
		w.Loop("feature", first, loop.Int(w.width), w.threads, w.width-1, func(feature scalar.Expr) {
			sums, totals := w.zeros(rows), w.zeros(rows)
			add := func(item scalar.Expr) {
				if !once {
					own, values = load(item, feature)
				}
				for i, x := range own {
					w.addItem(sums, values[i], weight, x, it, scalar.Lt(plus(item, i), it.count))
					w.addItem(totals, scalar.Const(ir.F32, 1), counted, x, it, scalar.Lt(plus(item, i), it.count))
				}
			}
			if once {
				add(from)
			} else {
				w.Loop("item", from, it.count, it.together*w.strands, it.room-1, add)
			}
			for r := range rows {
				row := times(plus(times(strand, rows), r), w.width+1)
				w.Store(of, scalar.Add(row, feature), sums[r])
				w.When(scalar.Eq(feature, loop.Int(0)), func() { w.Store(of, plus(row, w.width), totals[r]) })
			}
		})
		w.Barrier()
		return func(i scalar.Expr) scalar.Expr {
			return w.combined(w.strands, func(s int) scalar.Expr { return float(of, scalar.Add(loop.Int(s*size), i)) }, scalar.Add)
		}
	}
}

// addItem adds a value by the weights of an item, if it is one.
func (w *cachedWriter) addItem(sums []scalar.Expr, x scalar.Expr, weight int, item scalar.Expr, it items, real scalar.Expr) {
	for r, sum := range sums {
		share := scalar.Select(real, float(weight, scalar.Add(loop.Int(r*it.room), item)), scalar.Const(ir.F32, 0))
		w.Set(sum, scalar.Fma(x, share, sum))
	}
}

// combine writes the results: the partial ones by exp(maximum of the block − maximum of all).
func (c *cachedAttention) combine(n *ir.Node) ir.KernelLaunch {
	w := c.writer("combine", c.threads*c.strands, [3]int{c.sequences * c.groups * c.rows, 1, 1})
	lane := loop.LocalID(0, c.threads*c.strands)
	row := w.Let("row", loop.GroupID(0, c.sequences*c.groups*c.rows))
	w.begin(n, w.Let("head", over(row, c.rows)))
	w.memory = append(w.memory, ir.Memory{Space: ir.ScratchMemory})
	parts := w.array("parts", ir.F32, c.sequences*c.groups*c.blocks*c.rows*(c.width+2), loop.Storage, loop.Read)
	out := w.result(n, 0)
	first := w.Let("oldest", over(w.first(), c.block))
	end := w.Let("end", over(plus(w.seen, c.block-1), c.block))
	query := w.Let("query", rest(row, c.rows))
	part := func(block, i scalar.Expr) scalar.Expr {
		at := scalar.Add(times(scalar.Add(times(w.head, c.blocks), block), c.rows), query)
		return float(parts, scalar.Add(times(at, c.width+2), i))
	}
	none, zero := scalar.Const(ir.F32, math.Inf(-1)), scalar.Const(ir.F32, 0)
	filled := func(block scalar.Expr) scalar.Expr { return scalar.And(scalar.Ge(block, first), scalar.Lt(block, end)) }
	// Blocks without keys are read and not used, as how many have keys is not known yet.
	sum := w.sumsOf(lane, items{first, end, loop.Int(c.blocks - 1), c.blocks, combinedAtOnce}, 1, func(block, feature scalar.Expr) scalar.Expr {
		return scalar.Select(filled(block), part(block, feature), zero)
	})
	score, weight, counted := w.shared("score", ir.F32, c.blocks), w.shared("weight", ir.F32, c.blocks), w.shared("counted", ir.F32, c.blocks)
	w.each("block", lane, c.blocks, func(block scalar.Expr) {
		w.Store(score, block, scalar.Select(filled(block), part(block, loop.Int(c.width+1)), none))
		w.Store(counted, block, scalar.Select(filled(block), part(block, loop.Int(c.width)), zero))
	})
	most := w.maxima(score, lane, 1, c.blocks)
	w.each("block", lane, c.blocks, func(block scalar.Expr) {
		share := w.Let("share", w.share(float(score, block), most(loop.Int(0))))
		w.Store(weight, block, share)
		w.Store(counted, block, scalar.Mul(share, float(counted, block)))
	})
	sums := sum(w.shared("sums", ir.F32, c.strands*(c.width+1)), weight, counted)
	w.each("feature", lane, c.width, func(feature scalar.Expr) {
		total := sums(loop.Int(c.width))
		y := scalar.Select(scalar.Eq(total, zero), zero, scalar.Div(sums(feature), total)) // NaN if the total is
		w.Store(out, scalar.Add(times(row, c.width), feature), scalar.Convert(y, c.d))
	})
	return w.algorithm().Launches[0]
}
