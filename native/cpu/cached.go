package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Attention over a cache reads the filled part of the caches in place. A chunk of work is a tile of
// queries that share a head of keys, processed against blocks of its keys with a running maximum
// (Dao et al., FlashAttention). With few tiles, as for one new position, the keys are split too,
// and the partial results combined at the end.

const (
	cachedTile  = 64  // maximum queries of a tile
	cachedBlock = 256 // maximum keys of a block
	// splitKeys is the minimum number of keys that repays waking another core.
	splitKeys = 256
)

// isCached reports whether a node is an attention over a cache that [cachedStep] computes.
func isCached(n *ir.Node) bool {
	if n.Op() != ops.OpCachedAttention || n.Input(0).DType() != ir.F32 {
		return false
	}
	for _, v := range n.Inputs() {
		if _, known := v.Shape().Ints(); !known {
			return false
		}
	}
	return true
}

// cachedStep computes attention over a cache.
type cachedStep struct {
	attrs                    *ops.CachedAttentionAttrs
	q, k, v, past, row, out  *buffer
	parts, work              *buffer
	env                      *environment
	heads, groups, caches    int // heads of k of all sequences and of one, and sequences of k
	rows, queries, room      int // queries of a head of k, of a head of q, and positions of a sequence
	page, pages              int // positions of a page, and pages of a sequence; pages is 0 if its cache is contiguous
	depth, width             int
	tiles                    int // of a head
	splits, maxSplits, perWk int // splits of the keys in this run, their bound; elements of work for a worker
}

// cachedAttention compiles attention over a cache.
func (c *compiler) cachedAttention(g *fusion.Group) error {
	x := fusion.RoutineOf(g)
	q, k, v := x.In[0].Dims, x.In[1].Dims, x.In[2].Dims
	rank := len(q)
	s := &cachedStep{
		attrs: x.Node.Attrs().(*ops.CachedAttentionAttrs), env: c.env,
		groups: k[rank-3], caches: product(k[:rank-3]), queries: q[rank-2], room: k[rank-2], depth: q[rank-1], width: v[rank-1],
	}
	s.heads = product(q[:rank-3]) * s.groups
	if product(q)*product(k)*product(v) == 0 {
		return c.runStore(g.Name(), *x.Out[0], x.Store(0, scalar.Const(ir.F32, 0)))
	}
	s.rows = q[rank-3] / s.groups * s.queries
	s.tiles = (s.rows + cachedTile - 1) / cachedTile
	if s.page = s.room; len(x.In) > 4 && len(x.In[4].Dims) > 1 {
		s.pages = x.In[4].Dims[1]
		s.room *= s.pages
	}
	for i, to := range []**buffer{&s.q, &s.k, &s.v, &s.past, &s.row} {
		if i < len(x.In) {
			var err error
			if *to, err = c.rowMajorBuffer(g.Name()+" "+x.Node.Def().Operands[i], x.In[i]); err != nil {
				return err
			}
		}
	}
	tile := min(s.rows, cachedTile)
	if s.maxSplits = 1; s.heads*s.tiles < 2*workers() {
		s.maxSplits = max(1, min(2*workers()/(s.heads*s.tiles), s.room/splitKeys))
	}
	s.perWk = tile * (2*cachedBlock + s.depth + s.width)
	s.work = c.scratch(ir.F32, workers()*s.perWk)
	s.parts = c.scratch(ir.F32, s.heads*s.tiles*s.maxSplits*tile*(s.width+2))
	s.out = c.scratch(ir.F32, s.heads*s.rows*s.width)
	s.env.spaces.grow(&matrixProduct{m: cachedBlock, n: max(tile, s.width), k: max(cachedBlock, s.depth)})
	c.add(s)
	return c.storeResult(g.Name(), *x.Out[0], s.out, func(value scalar.Expr) fusion.ElementStore { return x.Store(0, value) })
}

func (s *cachedStep) run(r *runner) {
	most := 0
	for h := 0; h < s.heads; h += s.groups {
		most = max(most, s.pastOf(h)+s.queries)
	}
	s.splits = max(1, min(s.maxSplits, most/splitKeys))
	r.job.run(s, s.heads*s.tiles*s.splits)
	tile := min(s.rows, cachedTile)
	for i := range s.heads * s.tiles {
		rows := min(tile, s.rows-i%s.tiles*tile)
		to := view[float32](s.out)[(i/s.tiles*s.rows+i%s.tiles*tile)*s.width:]
		s.combine(view[float32](s.parts)[i*s.splits*tile*(s.width+2):], tile, rows, to)
	}
}

// pastOf returns the number of positions before the queries of a head.
func (s *cachedStep) pastOf(head int) int {
	past := view[int32](s.past)
	if len(past) > 1 {
		past = past[head/s.groups:]
	}
	return min(max(int(past[0]), -s.queries), s.room)
}

// positionOf returns where a position of a head is in the caches.
func (s *cachedStep) positionOf(head, at int) int {
	if s.row == nil {
		return head*s.room + at
	}
	i := head / s.groups
	if s.pages > 0 {
		i = i*s.pages + at/s.page
	}
	row := min(max(int(view[int32](s.row)[i]), 0), s.caches-1)
	return (row*s.groups+head%s.groups)*s.page + at%s.page
}

// do computes the part of a tile's result that comes from some of its keys.
func (s *cachedStep) do(worker, chunk int) {
	item, split := chunk/s.splits, chunk%s.splits
	size := min(s.rows, cachedTile)
	t := &cachedPart{cachedStep: s, head: item / s.tiles, first: item % s.tiles * size}
	t.count, t.past, t.space = min(size, s.rows-t.first), s.pastOf(t.head), &s.env.spaces.f32[worker]
	out := view[float32](s.parts)[chunk*size*(s.width+2):]
	t.sums, t.most, t.total = out[:size*s.width], out[size*s.width:][:t.count], out[size*(s.width+1):][:t.count]
	clear(t.sums)
	clear(t.total)
	for i := range t.most {
		t.most[i] = float32(math.Inf(-1))
	}
	work := view[float32](s.work)[worker*s.perWk:]
	t.scores, work = work[:size*cachedBlock], work[size*cachedBlock:]
	t.weights, work = work[:size*cachedBlock], work[size*cachedBlock:]
	t.product, t.q = work[:size*s.width], work[size*s.width:][:size*s.depth]
	t.transpose()
	from, to := t.keys()
	per := (to - from + s.splits - 1) / s.splits
	from, to = from+split*per, min(to, from+(split+1)*per)
	for from < to {
		next := min(to, from+cachedBlock, from-from%s.page+s.page)
		t.block(from, next)
		from = next
	}
}

// cachedPart is a tile of queries with some of its keys.
type cachedPart struct {
	*cachedStep
	head, first, count int // the head of k, and the queries
	past               int
	space              *simd.Space[float32]
	sums, most, total  []float32 // of each query: weighted values, the maximum score, and the sum of the weights
	q                  []float32 // the queries, transposed: [depth, count]
	scores, weights    []float32 // of a block of keys: [keys, count] and [count, keys]
	product            []float32
}

// transpose sets the queries, each scaled.
func (t *cachedPart) transpose() {
	q, scale := view[float32](t.cachedStep.q)[(t.head*t.rows+t.first)*t.depth:], float32(t.attrs.Scale)
	for i := range t.count {
		for j, x := range q[i*t.depth:][:t.depth] {
			t.q[j*t.count+i] = x * scale
		}
	}
}

// visible returns the range of keys that query i of the tile attends to.
func (t *cachedPart) visible(i int) (from, to int) {
	at := t.past + (t.first+i)%t.queries
	if t.attrs.Window > 0 {
		from = max(0, at-t.attrs.Window+1)
	}
	return from, min(at+1, t.room)
}

// keys returns the range of keys that a query of the tile attends to.
func (t *cachedPart) keys() (from, to int) {
	from = t.room
	for i := range t.count {
		lo, hi := t.visible(i)
		from, to = min(from, lo), max(to, hi)
	}
	return from, to
}

// block adds a block of keys of one page.
func (t *cachedPart) block(from, to int) {
	n, at := to-from, t.positionOf(t.head, from)
	k, v := view[float32](t.k)[at*t.depth:], view[float32](t.v)[at*t.width:]
	simd.Product(t.space, simd.Size{M: n, N: t.count, K: t.depth}, rowsOf(k, t.depth), rowsOf(t.q, t.count), t.scores, t.count)
	for i := range t.count {
		t.weigh(i, t.weights[i*n:][:n], from)
	}
	simd.Product(t.space, simd.Size{M: t.count, N: t.width, K: n}, rowsOf(t.weights, n), rowsOf(v, t.width), t.product, t.width)
	for i, x := range t.product[:t.count*t.width] {
		t.sums[i] += x
	}
}

// rowsOf returns a matrix of contiguous rows.
func rowsOf(x []float32, columns int) simd.Matrix[float32] {
	return simd.Matrix[float32]{Data: x, Row: columns, Col: 1}
}

// weigh computes the weights of keys, from a position on, for query i relative to the new maximum,
// and rescales the earlier sums.
func (t *cachedPart) weigh(i int, weights []float32, position int) {
	from, to := t.visible(i)
	from = min(max(from-position, 0), len(weights))
	to = max(from, min(max(to-position, 0), len(weights)))
	clear(weights[:from])
	clear(weights[to:])
	weights = weights[from:to]
	if len(weights) == 0 {
		return
	}
	most, scores := t.most[i], t.scores[from*t.count+i:]
	for j := range weights {
		s := scores[j*t.count]
		if c := float32(t.attrs.Softcap); c != 0 {
			s = c * tanh32(s/c)
		}
		weights[j] = s
		if s > most || s != s { // NaN remains the maximum
			most = s
		}
	}
	if most == float32(math.Inf(-1)) { // the products are
		clear(weights)
		return
	}
	old, sum := exp32(t.most[i]-most), float32(0)
	for j, s := range weights {
		w := exp32(s - most)
		weights[j], sum = w, sum+w
	}
	t.most[i], t.total[i] = most, t.total[i]*old+sum
	if old != 1 {
		sums := t.sums[i*t.width:][:t.width]
		for j := range sums {
			sums[j] *= old
		}
	}
}

// combine adds the splits of a tile of size queries and divides by the sum of the weights.
func (s *cachedStep) combine(parts []float32, size, rows int, out []float32) {
	each := size * (s.width + 2)
	for i := range rows {
		most, total := float32(math.Inf(-1)), float32(0)
		for p := range s.splits {
			most = max(most, parts[p*each+size*s.width+i])
		}
		to := out[i*s.width:][:s.width]
		clear(to)
		for p := range s.splits {
			part := parts[p*each:]
			if part[size*s.width+i] == float32(math.Inf(-1)) {
				continue // none of its keys was seen
			}
			share := exp32(part[size*s.width+i] - most)
			total += share * part[size*(s.width+1)+i]
			for j, x := range part[i*s.width:][:s.width] {
				to[j] += share * x
			}
		}
		if total != 0 { // some key was seen, or a score is NaN
			for j := range to {
				to[j] /= total
			}
		}
	}
}

// exp32 returns e^x for x ≤ 0: 2^n·e^r with |r| ≤ ln 2 / 2, by a Taylor polynomial with an error of
// about one rounding to float32. NaN stays NaN.
func exp32(x float32) float32 {
	const rounding = float32(3 << 22) // so large a float32 has no fraction
	if x < -87 {
		return 0
	}
	n := float32(x*math.Log2E) + rounding
	n -= rounding
	r := x - n*0.693359375 + n*2.12194440e-4
	p := 1 + r*(1+r*(0.5+r*(1./6+r*(1./24+r*(1./120+r*(1./720))))))
	return p * math.Float32frombits(uint32(127+int32(n))<<23)
}

// tanh32 returns the hyperbolic tangent, with an absolute error of about 1e-7.
func tanh32(x float32) float32 {
	e := exp32(-2 * max(x, -x))
	y := (1 - e) / (1 + e)
	if x < 0 {
		return -y
	}
	return y
}
