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
	// maxCachedBlocks is the maximum number of keys of a thread. Scores and values of a block are computed one after the
	// other, so that more keys to a workgroup take as much longer, and the second kernel reads the results of all blocks.
	maxCachedBlocks = 2
	// cachedAtOnce is the number of values that a thread loads together.
	cachedAtOnce = 8
	// combinedAtOnce is the number of blocks whose results a thread loads together.
	combinedAtOnce = 4
	// maxStrands is the maximum number of threads that divide the keys of a feature.
	maxStrands = 4
	// rowParts is the number of threads that reduce a row of scores.
	rowParts = 8
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
	if c.width > 64 || c.rows > 64/rowParts {
		c.threads = 128
	}
	if c.rows > maxCachedRows {
		return nil
	}
	if partial, ok := c.byWarps(n, caps); ok {
		return c.with(partial, n)
	}
	shared := func() int { return 4 * (c.rows*(c.block+c.depth+c.strands*c.width) + c.threads) }
	for c.block = maxCachedBlocks * c.threads; c.block > c.threads && shared() > caps.SharedBytes; {
		c.block /= 2
	}
	if c.pages > 0 {
		c.block = c.room / c.pages
	}
	if p := caps.Profile(); p.Barrier < p.Latency { // not in software, where threads take turns
		for c.strands = min(maxStrands, caps.Invocations/c.threads); c.strands > 1 && shared() > caps.SharedBytes; {
			c.strands /= 2
		}
	}
	c.blocks = (c.room + c.block - 1) / c.block
	if c.threads > caps.Invocations || shared() > caps.SharedBytes || max(c.blocks, c.sequences*c.groups*c.rows) > caps.Groups {
		return nil
	}
	return c.with(c.partial(n), n)
}

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
	w.sequence = w.Let("sequence", scalar.FloorDiv(head, loop.Int(w.groups)))
	at := w.sequence
	if w.pasts == 1 {
		at = loop.Int(0)
	}
	w.past = w.Let("past", scalar.Clamp(scalar.LoadAt(w.integers(n, 3), ir.I32, at), loop.Int(-w.queries), loop.Int(w.room)))
	w.seen = w.Let("seen", scalar.Clamp(scalar.Add(w.past, loop.Int(w.queries)), loop.Int(0), loop.Int(w.room)))
	w.cache = head
	if w.rowed {
		row := scalar.Clamp(scalar.LoadAt(w.integers(n, 4), ir.I32, w.sequence), loop.Int(0), loop.Int(w.caches-1))
		w.cache = w.Let("cache", scalar.Add(scalar.Mul(row, loop.Int(w.groups)), scalar.Mod(head, loop.Int(w.groups))))
	}
}

// keyBlock is the block of keys of a workgroup: its number, its first position, and the keys [from, count)
// of it that some query attends to.
type keyBlock struct{ number, start, from, count scalar.Expr }

// openBlock begins the workgroup's block of keys, which is a page where the caches have pages.
func (w *cachedWriter) openBlock(n *ir.Node) {
	number := w.Let("block", loop.GroupID(0, w.blocks))
	if w.pages > 0 {
		at := scalar.Add(scalar.Mul(w.sequence, loop.Int(w.pages)), number)
		page := scalar.Clamp(scalar.LoadAt(w.integers(n, 4), ir.I32, at), loop.Int(0), loop.Int(w.caches-1))
		head := scalar.Add(scalar.Mul(page, loop.Int(w.groups)), scalar.Mod(w.head, loop.Int(w.groups)))
		w.cache = w.Let("page", scalar.Mul(head, loop.Int(w.block)))
	}
	start := w.Let("start", scalar.Mul(number, loop.Int(w.block)))
	count := w.Let("count", scalar.Clamp(scalar.Sub(w.seen, start), loop.Int(0), loop.Int(w.block)))
	from := w.Let("from", scalar.Clamp(scalar.Sub(w.first(), start), loop.Int(0), loop.Int(w.block)))
	w.keys = keyBlock{number, start, from, count}
}

// position returns where a key of the block is in the caches: the last one at most.
func (w *cachedWriter) position(key scalar.Expr) scalar.Expr {
	if w.pages > 0 {
		return scalar.Add(w.cache, scalar.Min(key, loop.Int(w.block-1)))
	}
	return scalar.Add(scalar.Mul(w.cache, loop.Int(w.room)), scalar.Min(scalar.Add(w.keys.start, key), loop.Int(w.room-1)))
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
	row := scalar.Add(scalar.Mul(scalar.Add(scalar.Mul(w.head, loop.Int(w.blocks)), w.keys.number), loop.Int(w.rows)), r)
	w.Store(w.out, scalar.Add(scalar.Mul(row, loop.Int(w.width+2)), i), x)
}

// storeStats stores the maximum of each query's scores and the sum of its weights, behind its sums.
func (w *cachedWriter) storeStats(lane scalar.Expr, most, sums []scalar.Expr) {
	w.When(scalar.Eq(lane, loop.Int(0)), func() {
		for r := range w.rows {
			w.storePartial(loop.Int(r), loop.Int(w.width), most[r])
			w.storePartial(loop.Int(r), loop.Int(w.width+1), sums[r])
		}
	})
}

// first returns the first position that the queries attend to, and the last one of the cache where
// their window is past it, so that some workgroup writes the partial results that combine reads.
func (w *cachedWriter) first() scalar.Expr {
	if w.Window == 0 {
		return loop.Int(0)
	}
	return w.Let("oldest", scalar.Clamp(scalar.Add(w.past, loop.Int(1-w.Window)), loop.Int(0), loop.Int(w.room-1)))
}

// partial writes, for each block and query, the sums of the values by exp(score − maximum), that
// maximum, and the sum of the weights.
func (c *cachedAttention) partial(n *ir.Node) ir.KernelLaunch {
	threads := c.threads * c.strands
	lane := loop.LocalID(0, threads)
	w, q, k, v := c.openPartial(n, (*cachedWriter).operand)
	query, weight, part := w.shared("query", ir.F32, c.rows*c.depth), w.shared("weight", ir.F32, c.rows*c.block), w.shared("part", ir.F32, c.threads)
	w.openBlock(n)
	count := w.keys.count

	w.Loop("i", lane, loop.Int(c.rows*c.depth), threads, c.rows*c.depth-1, func(i scalar.Expr) {
		x := scalar.LoadAt(q, c.d, scalar.Add(scalar.Mul(w.head, loop.Int(c.rows*c.depth)), i))
		w.Store(query, i, scalar.Mul(scalar.Convert(x, ir.F32), scalar.Const(ir.F32, c.Scale)))
	})
	w.Barrier()
	at := func(key scalar.Expr, size int) scalar.Expr {
		return w.Let("at", scalar.Mul(w.position(key), loop.Int(size)))
	}
	w.Loop("key", lane, loop.Int(c.block), threads, c.block-1, func(key scalar.Expr) {
		w.scores(key, weight, func() []scalar.Expr { return w.dots(k, query, at(key, c.depth)) })
	})
	most := w.reduced(weight, part, lane, scalar.Max, math.Inf(-1))
	w.Barrier()
	w.Loop("key", lane, count, threads, c.block-1, func(key scalar.Expr) {
		for r := range c.rows {
			s := w.Let("s", scalar.LoadAt(weight, ir.F32, scalar.Add(loop.Int(r*c.block), key)))
			none := scalar.Const(ir.F32, math.Inf(-1))
			w.Store(weight, scalar.Add(loop.Int(r*c.block), key), scalar.Select(scalar.Eq(s, none), scalar.Const(ir.F32, 0), scalar.Exp(scalar.Sub(s, most[r]))))
		}
	})
	w.Loop("key", scalar.Add(count, lane), loop.Int(c.block), threads, c.block-1, func(key scalar.Expr) {
		for r := range c.rows {
			w.Store(weight, scalar.Add(loop.Int(r*c.block), key), scalar.Const(ir.F32, 0))
		}
	})
	sums := w.reduced(weight, part, lane, scalar.Add, 0)
	strand := w.Let("strand", scalar.FloorDiv(lane, loop.Int(c.threads)))
	of := w.shared("sums", ir.F32, c.strands*c.rows*c.width)
	w.Loop("feature", scalar.Mod(lane, loop.Int(c.threads)), loop.Int(c.width), c.threads, c.width-1, func(feature scalar.Expr) {
		for r, x := range w.weighted(v, weight, feature, strand, func(key scalar.Expr) scalar.Expr { return at(key, c.width) }) {
			row := scalar.Add(scalar.Mul(strand, loop.Int(c.rows)), loop.Int(r))
			w.Store(of, scalar.Add(scalar.Mul(row, loop.Int(c.width)), feature), x)
		}
	})
	w.Barrier()
	w.When(scalar.Gt(count, w.keys.from), func() {
		w.Loop("i", lane, loop.Int(c.rows*c.width), threads, c.rows*c.width-1, func(i scalar.Expr) {
			x := w.combined(c.strands, func(s int) scalar.Expr {
				return scalar.LoadAt(of, ir.F32, scalar.Add(loop.Int(s*c.rows*c.width), i))
			}, scalar.Add)
			w.storePartial(scalar.FloorDiv(i, loop.Int(c.width)), scalar.Mod(i, loop.Int(c.width)), x)
		})
		w.storeStats(lane, most, sums)
	})
	return w.algorithm().Launches[0]
}

// dots returns the products of a key with the queries. It loads elements from several places of the key before it adds their
// products: each is the first of a sector of memory, and their loads wait together.
func (w *cachedWriter) dots(k, query int, at scalar.Expr) []scalar.Expr {
	sums, apart := w.zeros(), 1
	for apart < cachedAtOnce && w.depth%(2*apart) == 0 {
		apart *= 2
	}
	w.Times("i", w.depth/apart, func(i scalar.Expr) {
		var own, elements []scalar.Expr
		for u := range apart {
			own = append(own, scalar.Add(i, loop.Int(u*w.depth/apart)))
			elements = append(elements, w.Let("k", scalar.Convert(scalar.LoadAt(k, w.tiles.d, scalar.Add(at, own[u])), ir.F32)))
		}
		for u, x := range elements {
			for r, sum := range sums {
				w.Set(sum, scalar.Fma(x, scalar.LoadAt(query, ir.F32, scalar.Add(loop.Int(r*w.depth), own[u])), sum))
			}
		}
	})
	return sums
}

// zeros declares a sum for each query.
func (w *cachedWriter) zeros() []scalar.Expr {
	sums := make([]scalar.Expr, w.rows)
	for r := range sums {
		sums[r] = w.Var("sum", scalar.Const(ir.F32, 0))
	}
	return sums
}

// scores stores the scores of a key in workgroup memory: -Inf where a query does not attend to it.
func (w *cachedWriter) scores(key scalar.Expr, weight int, dots func() []scalar.Expr) {
	none := scalar.Const(ir.F32, math.Inf(-1))
	to := func(r int) scalar.Expr { return scalar.Add(loop.Int(r*w.block), key) }
	w.Choose(scalar.And(scalar.Ge(key, w.keys.from), scalar.Lt(key, w.keys.count)), func() {
		gap := w.Let("gap", scalar.Sub(w.past, scalar.Add(w.keys.start, key)))
		for r, s := range dots() {
			if w.Softcap != 0 {
				s = scalar.Mul(scalar.Tanh(scalar.Mul(s, scalar.Const(ir.F32, 1/w.Softcap))), scalar.Const(ir.F32, w.Softcap))
			}
			distance := scalar.Add(gap, loop.Int(r%w.queries))
			seen := scalar.Ge(distance, loop.Int(0))
			if w.Window > 0 {
				seen = scalar.And(seen, scalar.Lt(distance, loop.Int(w.Window)))
			}
			w.Store(weight, to(r), scalar.Select(seen, s, none))
		}
	}, func() {
		for r := range w.rows {
			w.Store(weight, to(r), none)
		}
	})
}

// reduced combines each row of weights: some threads a part each, and then every thread the parts.
func (w *cachedWriter) reduced(weight, part int, lane scalar.Expr, combine func(x, y scalar.Expr) scalar.Expr, zero float64) []scalar.Expr {
	w.Barrier()
	w.When(scalar.Lt(lane, loop.Int(w.rows*rowParts)), func() {
		sum := w.Var("sum", scalar.Const(ir.F32, zero))
		row := w.Let("row", scalar.Mul(scalar.FloorDiv(lane, loop.Int(rowParts)), loop.Int(w.block)))
		w.Loop("i", scalar.Mod(lane, loop.Int(rowParts)), loop.Int(w.block), rowParts, w.block-1, func(i scalar.Expr) {
			w.Set(sum, combine(sum, scalar.LoadAt(weight, ir.F32, scalar.Min(scalar.Add(row, i), loop.Int(w.rows*w.block-1)))))
		})
		w.Store(part, lane, sum)
	})
	w.Barrier()
	out := make([]scalar.Expr, w.rows)
	for r := range out {
		out[r] = w.combined(rowParts, func(i int) scalar.Expr { return scalar.LoadAt(part, ir.F32, loop.Int(r*rowParts+i)) }, combine)
	}
	return out
}

// weighted returns the sums of a feature of the values for all queries, over the keys of a strand. It loads values of several keys before it
// adds them, as a load from memory takes longer than the products of hundreds.
func (w *cachedWriter) weighted(v, weight int, feature, strand scalar.Expr, at func(key scalar.Expr) scalar.Expr) []scalar.Expr {
	count := w.keys.count
	sums, last := w.zeros(), scalar.Sub(count, loop.Int(1))
	from := scalar.Add(w.keys.from, scalar.Mul(strand, loop.Int(cachedAtOnce)))
	w.Loop("key", from, count, cachedAtOnce*w.strands, w.block-1, func(key scalar.Expr) {
		var own, values []scalar.Expr
		for u := range cachedAtOnce {
			own = append(own, scalar.Clamp(scalar.Min(scalar.Add(key, loop.Int(u)), last), loop.Int(0), loop.Int(w.block-1)))
			values = append(values, w.Let("v", scalar.Convert(scalar.LoadAt(v, w.tiles.d, scalar.Add(at(own[u]), feature)), ir.F32)))
		}
		for u, x := range values {
			real := scalar.Lt(scalar.Add(key, loop.Int(u)), count)
			for r, sum := range sums {
				share := scalar.LoadAt(weight, ir.F32, scalar.Add(loop.Int(r*w.block), own[u]))
				w.Set(sum, scalar.Fma(x, scalar.Select(real, share, scalar.Const(ir.F32, 0)), sum))
			}
		}
	})
	return sums
}

// combine writes the results: the partial ones by exp(maximum of the block − maximum of all).
func (c *cachedAttention) combine(n *ir.Node) ir.KernelLaunch {
	w := c.writer("combine", c.threads, [3]int{c.sequences * c.groups * c.rows, 1, 1})
	lane := loop.LocalID(0, c.threads)
	row := w.Let("row", loop.GroupID(0, c.sequences*c.groups*c.rows))
	w.begin(n, w.Let("head", scalar.FloorDiv(row, loop.Int(c.rows))))
	w.memory = append(w.memory, ir.Memory{Space: ir.ScratchMemory})
	parts := w.array("parts", ir.F32, c.sequences*c.groups*c.blocks*c.rows*(c.width+2), loop.Storage, loop.Read)
	out := w.result(n, 0)
	first := w.Let("first", scalar.FloorDiv(w.first(), loop.Int(c.block)))
	end := w.Let("end", scalar.FloorDiv(scalar.Add(w.seen, loop.Int(c.block-1)), loop.Int(c.block)))
	query := w.Let("query", scalar.Mod(row, loop.Int(c.rows)))
	part := func(block, i scalar.Expr) scalar.Expr {
		at := scalar.Add(scalar.Mul(scalar.Add(scalar.Mul(w.head, loop.Int(c.blocks)), block), loop.Int(c.rows)), query)
		return scalar.LoadAt(parts, ir.F32, scalar.Add(scalar.Mul(at, loop.Int(c.width+2)), i))
	}
	none := scalar.Const(ir.F32, math.Inf(-1))
	most := w.Var("most", none)
	together := func(f func(blocks []scalar.Expr)) {
		w.Loop("block", first, end, combinedAtOnce, c.blocks-1, func(block scalar.Expr) {
			var own []scalar.Expr
			for u := range min(combinedAtOnce, c.blocks) {
				own = append(own, scalar.Add(block, loop.Int(u)))
			}
			f(own)
		})
	}
	load := func(blocks []scalar.Expr, i scalar.Expr) (out []scalar.Expr) {
		for _, block := range blocks {
			out = append(out, w.Let("part", part(scalar.Min(block, loop.Int(c.blocks-1)), i)))
		}
		return out
	}
	together(func(blocks []scalar.Expr) {
		for u, m := range load(blocks, loop.Int(c.width)) {
			w.Set(most, scalar.Max(most, scalar.Select(scalar.Lt(blocks[u], end), m, none)))
		}
	})
	w.Loop("feature", lane, loop.Int(c.width), c.threads, c.width-1, func(feature scalar.Expr) {
		sum, total := w.Var("sum", scalar.Const(ir.F32, 0)), w.Var("total", scalar.Const(ir.F32, 0))
		together(func(blocks []scalar.Expr) {
			maxima, sums, totals := load(blocks, loop.Int(c.width)), load(blocks, feature), load(blocks, loop.Int(c.width+1))
			for u, m := range maxima {
				w.When(scalar.And(scalar.Lt(blocks[u], end), scalar.Ne(m, none)), func() {
					share := w.Let("share", scalar.Exp(scalar.Sub(m, most)))
					w.Set(sum, scalar.Fma(share, sums[u], sum))
					w.Set(total, scalar.Fma(share, totals[u], total))
				})
			}
		})
		zero := scalar.Const(ir.F32, 0)
		y := scalar.Select(scalar.Eq(total, zero), zero, scalar.Div(sum, total)) // NaN if the total is
		w.Store(out, scalar.Add(scalar.Mul(row, loop.Int(c.width)), feature), scalar.Convert(y, c.d))
	})
	return w.algorithm().Launches[0]
}
