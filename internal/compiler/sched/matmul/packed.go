package matmul

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// packedPlan computes a contraction with packed weights, or those of BF16, along its rows, such as a linear layer of a
// language model that decodes several sequences at once or takes a prompt. A workgroup has a tile of rows and one of columns.
// Weights are read once for all columns of a tile: threads load packed words and unpack their integers to the registers of
// fragments, and warp groups multiply these by the columns' operand. Integers are exact in BF16, and an f32 is the sum of
// three numbers of BF16, so that products are exact. Sums of blocks are multiplied by the scales of the blocks in f32. A
// kernel before writes the three parts of the columns' operand as they lie in workgroup memory, to which a chunk of the
// contracted space is copied while the one before is multiplied. So are stages of the weights, if they are whole words of
// 16 bytes.
type packedPlan struct {
	c       *fusion.Contraction
	weights int         // the packed operand, which is along the rows of multiply-adds
	element scalar.Expr // of it, by the variables packedRow and packedK
	count   int         // columns: the other operand's free positions
	columns int         // of a tile, rounded up to whole multiply-adds
	groups  int         // warp groups of a workgroup
	parts   int         // split-K
	chunk   int         // contracted positions of the columns' operand in workgroup memory at a time
	stage   packedStage // of the weights
	offsets bool        // weights have offsets, besides scales
	plain   bool        // weights are BF16, whose words are fragments as they are
}

// The variables of an element of the weights.
const packedRow, packedK = "any_row", "any_k"

// Sizes and bounds of the plans.
const (
	packedUnit     = 64 // contracted positions of an iteration: whole words of two blocks of 18 or 34 bytes
	packedSpans    = packedUnit / quadSpan
	maxPackedSide  = 64       // columns of a tile
	packedShared   = 24 << 10 // bytes of a chunk, of which a workgroup has two
	maxPackedParts = maxPartials
	xParts         = 3  // numbers of BF16 of an f32
	packedSums     = 48 // registers of sums of blocks
)

// packedPlans returns the plans of a contraction, the cheapest first, or none if it has other operands.
func packedPlans(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction) []*packedPlan {
	in := c.Node.Inputs()
	if !e.Caps.Mma || e.Caps.Dialect != dtype.CUDA || e.Long || !tileable(c) || in[0].DType() != ir.F32 || in[1].DType() != ir.F32 {
		return nil
	}
	if fusion.Product(c.Batch) != 1 || fusion.Product(c.K)%packedUnit != 0 {
		return nil
	}
	for weights := range 2 {
		count := fusion.Product(c.Free(1 - weights))
		p := packedPlan{c: c, weights: weights, count: count}
		p.columns = emit.CeilDiv(count, 8*emit.CeilDiv(count, maxPackedSide)) * 8
		fits := count > 1 && count <= loop.MaxElements && p.rows() >= loop.MmaRows && p.rows() <= loop.MaxElements
		if !fits || p.columns/2*g.EpilogueWeight() > stationaryOps {
			continue
		}
		if count > emit.ThinSide && p.findPlain(e, g) {
			return p.sized(e.Caps)
		}
		if p.findElement(e, g) {
			p.findStage(e)
			return p.sized(e.Caps)
		}
	}
	return nil
}

func (p *packedPlan) rows() int { return fusion.Product(p.c.Free(p.weights)) }

// findPlain sets the stage of weights of BF16 that lie row by row, or reports false for others.
func (p *packedPlan) findPlain(e *emit.Emitter, g *fusion.Group) bool {
	if !slices.ContainsFunc(g.Reads(), func(t *fusion.Tensor) bool { return t.DType == ir.BF16 }) {
		return false
	}
	k := fusion.Product(p.c.K)
	x := p.elementOf(e.Sibling())
	if x.Op != scalar.OpConvert || x.Args[0].Op != scalar.OpLoad || x.Args[0].Type != ir.BF16 {
		return false
	}
	array, at := x.Args[0].Ref, x.Args[0].Args[0]
	row, kAt := packedVars(p.rows(), k)
	apart, known := e.Simplify(scalar.Sub(at, scalar.Add(scalar.Mul(row, loop.Int(k)), kAt))).IntConst()
	if !known || apart != 0 || array < 0 || e.Partition.Tensor(array).IsSlice() {
		return false
	}
	const words = packedUnit / 2
	p.plain, p.stage = true, packedStage{units: 1, words: words, pad: copyWords, row: k / 2, array: array}
	for n := 2; n <= 4 && k/packedUnit%n == 0; n *= 2 {
		p.stage.units, p.stage.words = n, n*words
	}
	return true
}

// packedVars returns the variables of an element of the weights.
func packedVars(rows, k int) (row, at scalar.Expr) {
	return scalar.NewVar(packedRow, ir.I32, 0, int64(rows-1)), scalar.NewVar(packedK, ir.I32, 0, int64(k-1))
}

// elementOf returns an element of the weights by [packedVars].
func (p *packedPlan) elementOf(e *emit.Emitter) scalar.Expr {
	row, at := packedVars(p.rows(), fusion.Product(p.c.K))
	free, kAt := e.Unflatten(row, p.c.Free(p.weights)), e.Unflatten(at, p.c.K)
	return e.Simplify(p.c.Factor(p.weights, zeroIndex(p.c.Batch), free, kAt, e.Reader().Operand(p.c.Node)))
}

// findElement sets the element of the weights, or reports false if they are not packed in blocks, or if words cannot replace
// all of their bytes.
func (p *packedPlan) findElement(e *emit.Emitter, g *fusion.Group) bool {
	k := fusion.Product(p.c.K)
	packed := func(t *fusion.Tensor) bool {
		n := t.Root().Len()
		return t.DType == ir.U8 && !t.IsSlice() && n <= 2*p.rows()*k && n%(p.rows()*k) != 0 // 8-bit floats have no blocks
	}
	if !slices.ContainsFunc(g.Reads(), packed) {
		return false
	}
	e = e.Sibling()
	p.element = p.elementOf(e)
	row, _ := packedVars(p.rows(), k)
	loads := map[int]bool{}
	scalar.Walk(p.element, func(n scalar.Expr) {
		if n.Op == scalar.OpLoad {
			loads[n.Ref] = true
		}
	})
	for id := range loads {
		if id < 0 || !packed(e.Partition.Tensor(id)) {
			return false
		}
	}
	if len(loads) == 0 {
		return false
	}
	unit, column := scalar.NewVar("unit", ir.I32, 0, int64(k/packedUnit-1)), scalar.NewVar("column", ir.I32, 0, 3)
	w, ok := reduce.LoadWeights(e, p.fragment(e, row, column, unit), nil)
	p.offsets = slices.ContainsFunc(w, func(w reduce.Weight) bool { return w.Offset != nil })
	return ok && spansOf(w) != nil
}

// fragment returns the weights of a row that a thread has of an iteration: a quad of each span.
func (p *packedPlan) fragment(e *emit.Emitter, row, column, unit scalar.Expr) (elements []scalar.Expr) {
	for at := range packedUnit / quadSpan * quad {
		k := scalar.Add(scalar.Mul(unit, loop.Int(packedUnit)), loop.Int(at/quad*quadSpan+at%quad))
		k = scalar.Add(k, scalar.Mul(column, loop.Int(quad)))
		x := scalar.SubstituteVars(p.element, map[string]scalar.Expr{packedRow: row, packedK: k})
		elements = append(elements, e.Simplify(x))
	}
	return elements
}

// weightSpan is the weights of a thread in a span of two rows, which have a scale and an offset each.
type weightSpan struct {
	rows  [2][]reduce.Weight
	first bool // the span before has other scales or offsets
}

// spansOf returns the spans of one row or of two, or nil if the weights of a span have several scales or offsets.
func spansOf(weights []reduce.Weight) []weightSpan {
	spans := make([]weightSpan, packedSpans)
	perRow := packedSpans * quad
	for i, w := range weights {
		row, at := i/perRow, i%perRow/quad
		s := &spans[at]
		s.rows[row] = append(s.rows[row], w)
		if before := s.rows[row][0]; w.Scale != before.Scale || w.Offset != before.Offset || w.Negative != before.Negative {
			return nil
		}
		if i%quad != 0 {
			continue
		}
		s.first = s.first || at == 0 || w.Scale != weights[i-quad].Scale || w.Offset != weights[i-quad].Offset
	}
	return spans
}

// sized returns the plans of all sizes, the cheapest first.
func (p *packedPlan) sized(caps loop.Caps) (plans []*packedPlan) {
	units := fusion.Product(p.c.K) / packedUnit
	for _, groups := range []int{1, 2} {
		for parts := 1; parts <= min(units, maxPackedParts); parts++ {
			if units%(parts*max(1, p.stage.units)) != 0 {
				continue
			}
			q := *p
			q.groups, q.parts = groups, parts
			q.chunk = q.largestChunk()
			plans = append(plans, &q)
		}
	}
	slices.SortStableFunc(plans, func(a, b *packedPlan) int { return cmp.Compare(a.cost(caps), b.cost(caps)) })
	return plans
}

// largestChunk returns the largest chunk that fits, of which stages or parts are multiples.
func (p *packedPlan) largestChunk() int {
	whole, chunk := fusion.Product(p.c.K)/packedUnit/p.parts, packedUnit
	if p.stage.units > 0 {
		whole = p.stage.units
	}
	for n := 1; n <= whole; n++ {
		if whole%n == 0 && p.sharedBytes(n*packedUnit) <= packedShared {
			chunk = n * packedUnit
		}
	}
	return chunk
}

// sharedBytes returns the bytes of a chunk in workgroup memory.
func (p *packedPlan) sharedBytes(chunk int) int { return xParts * ir.BF16.Size() * p.columns * chunk }

// tileRows returns the rows of a tile, rowTiles and columnTiles the number of tiles.
func (p *packedPlan) tileRows() int    { return p.groups * loop.MmaRows }
func (p *packedPlan) rowTiles() int    { return emit.CeilDiv(p.rows(), p.tileRows()) }
func (p *packedPlan) columnTiles() int { return emit.CeilDiv(p.count, p.columns) }

// schedule returns the plan's schedule.
func (p *packedPlan) schedule() emit.Schedule {
	return emit.Schedule{Family: emit.PackedTiles, M: p.tileRows(), K: p.chunk, Split: p.parts}
}

// Of an iteration of a warp group, in cycles of a multiprocessor: its instructions, as ownCycles and columnCycles for each
// column, besides the multiply-adds, and the time until its result where little else runs, unitLatency and the copy of the
// columns' operand at copyRate bytes a cycle. In q4_0 on an H200 8 × 14336 × 4096 takes 26 µs and 32 × 14336 × 4096 42 µs
// in four parts, 32 × 4096 × 14336 62 µs in four parts by workgroups of one warp group and 45 µs by those of two.
const (
	ownCycles     = 330
	columnCycles  = 5
	unitLatency   = 1200
	copyRate      = 40
	ownRegisters  = 64       // of a thread, besides sums and totals
	registerFile  = 64 << 10 // of a multiprocessor
	splitColumnNs = 3000     // of the kernel that splits the columns' operand
)

// resident estimates the workgroups that a multiprocessor holds at once.
func (p *packedPlan) resident(caps loop.Caps) int {
	sums := xParts * p.columns / 2
	registers := ownRegisters + sums*p.inFlight() + p.columns/2
	byRegisters := registerFile / (loop.WarpGroup * p.groups * registers)
	return max(1, min(byRegisters, caps.MmaBytes/(2*(p.sharedBytes(p.chunk)+p.stage.bytes(p.tileRows())))))
}

// inFlight returns the number of terms whose multiply-adds run at once.
func (p *packedPlan) inFlight() int { return max(1, min(packedSpans, packedSums/(xParts*p.columns/2))) }

// cost estimates the nanoseconds of the launches: those of the packed bytes, of the columns' operand from the cache, or of
// the iterations of the multiprocessor that has most of them.
func (p *packedPlan) cost(caps loop.Caps) float64 {
	d, k := caps.Profile(), fusion.Product(p.c.K)
	groups := p.rowTiles() * p.columnTiles() * p.parts
	each := emit.CeilDiv(groups, d.Processors)
	resident := min(each, p.resident(caps))
	products := 2 * float64(xParts*loop.MmaRows*packedUnit) / d.Matrix * d.Clock // cycles of a column
	busy := float64(resident*p.groups) * (ownCycles + (columnCycles+products)*float64(p.columns))
	latency := unitLatency + float64(resident*p.sharedBytes(packedUnit))/copyRate
	cycles := float64(each) / float64(resident) * float64(k/packedUnit/p.parts) * max(latency, busy)
	bytes := packedByte
	if p.plain {
		bytes = float64(ir.BF16.Size())
	}
	bytes *= float64(p.rows()) * float64(k)
	cached := float64(groups)*float64(p.sharedBytes(k/p.parts)) + float64(p.columnTiles())*bytes
	time := max(cycles/d.Clock, bytes/d.Bandwidth(), cached/d.CacheBandwidth())
	if p.parts > 1 {
		time += d.Launch + d.Latency + 2*4*float64(p.parts)*float64(p.rows())*float64(p.count)/d.CacheBandwidth()
	}
	return splitColumnNs + d.Launch + d.Latency + time
}

// packedByte is the size of a weight in most formats, in bytes.
const packedByte = 0.6

// packedEmitter writes the kernel of a packedPlan.
type packedEmitter struct {
	*emit.Emitter
	p          *packedPlan
	out        epilogue
	vectors    *emit.Vectorizer
	atom       loop.MmaShape
	valid      scalar.Expr // false in workgroups beyond the last
	part       scalar.Expr
	thread     scalar.Expr
	warp, lane scalar.Expr    // of the rows of the thread
	column     scalar.Expr    // origin of the thread, see [loop.MmaShape]
	parts      *fusion.Tensor // of the columns' operand, see splitColumns
	slot       int            // two chunks of it
	buffer     scalar.Expr    // of the current chunk
	left, ones []string       // fragments of the weights, and one of ones
	sums       [][]string     // of blocks, some of which are in flight
	totals     []scalar.Expr
	stages     int         // two stages of the weights in workgroup memory
	tile, side scalar.Expr // the row tile and the column tile of the workgroup
	stage      scalar.Expr // the buffer of the current stage
}

// emitPacked emits a contraction by the plan. With split-K, a second kernel adds up the partial sums.
func emitPacked(e *emit.Emitter, g *fusion.Group, p *packedPlan) []emit.Launch {
	m := &packedEmitter{Emitter: emit.New(e.Partition, e.Caps), p: p, atom: loop.MmaShape{Operand: ir.BF16, N: xParts * p.columns}}
	m.out = epilogue{Emitter: m.Emitter, g: g, c: p.c, batch: zeroIndex(p.c.Batch)}
	split, parts := splitColumns(e, g, p)
	m.parts = parts
	if p.parts == 1 {
		return []emit.Launch{split, m.kernel(g.Name(), m.out.stores)}
	}
	partial := reduce.NewPartial(0, ir.F32, g, p.parts)
	first := m.kernel(g.Name()+"_parts", func(sum scalar.Expr, at ir.Index) []emit.PendingStore {
		return []emit.PendingStore{{Tensor: partial, At: append(ir.Index{m.part}, at...), Value: sum}}
	})
	if second, ok := addPartials(e, g, p.c, p.parts, partial); ok {
		return []emit.Launch{split, first, second}
	}
	return []emit.Launch{split, first, reduce.CombineParts(e.Sibling(), g.Reduction(), p.parts, []*fusion.Tensor{partial})}
}

func (m *packedEmitter) kernel(name string, result resultStores) emit.Launch {
	m.assign()
	m.declare()
	m.vectorize(result)
	chunks, units := fusion.Product(m.p.c.K)/m.p.parts/m.p.chunk, m.p.chunk/packedUnit
	first := m.Bounded("first", scalar.Mul(m.part, loop.Int(chunks)), chunks*(m.p.parts-1)+1)
	m.copyChunk(first, loop.Int(0))
	m.copyFirstStage(first)
	m.Add(&loop.CopyCommit{})
	m.Times("chunk", chunks, func(at scalar.Expr) {
		m.Add(&loop.CopyWait{}, &loop.ProxyFence{}, &loop.Barrier{})
		m.buffer = m.Bounded("buffer", scalar.Mod(at, loop.Int(2)), min(chunks, 2))
		number := m.Bounded("number", scalar.Add(first, at), chunks*m.p.parts)
		m.When(scalar.Lt(at, loop.Int(chunks-1)), func() {
			m.copyChunk(scalar.Add(number, loop.Int(1)), scalar.Sub(loop.Int(1), m.buffer))
		})
		m.copyNextStage(first, at, chunks)
		m.Add(&loop.CopyCommit{})
		m.Times("unit", units, func(at scalar.Expr) { m.multiply(at, number) })
	})
	m.store(result)
	return m.Launch(name)
}

// assign names the part and the tiles of the workgroup, and the thread's origin. Workgroups that run at the same time have
// the same rows, whose weights the cache holds.
func (m *packedEmitter) assign() {
	p := m.p
	threads := p.groups * loop.WarpGroup
	m.Workgroup = [3]int{threads, 1, 1}
	sides, tiles := p.columnTiles(), p.columnTiles()*p.rowTiles()
	workgroup, valid := m.BoundedGroup(tiles * p.parts)
	m.valid = valid
	m.part = m.Bounded("part", scalar.FloorDiv(workgroup, loop.Int(tiles)), p.parts)
	m.tile = m.Bounded("tile", scalar.FloorDiv(scalar.Mod(workgroup, loop.Int(tiles)), loop.Int(sides)), p.rowTiles())
	m.side = m.Bounded("side", scalar.Mod(workgroup, loop.Int(sides)), sides)
	m.thread = loop.LocalID(0, threads)
	row, column := m.atom.Origin(m.thread)
	m.warp = m.Bounded("warp", scalar.FloorDiv(m.thread, loop.Int(loop.Warp)), p.tileRows()/atomRows)
	m.lane = m.Bounded("row", scalar.Mod(row, loop.Int(atomRows/2)), atomRows/2)
	m.column = m.Bounded("column", column, 4)
}

// atomRows is the number of rows of a warp, of which a thread has two, half of them apart.
const atomRows = 16

// row returns a row of the thread by its distance from the first.
func (m *packedEmitter) row(down int) scalar.Expr {
	return scalar.Add(scalar.Mul(m.tile, loop.Int(m.p.tileRows())), m.rowInTile(down))
}

// rowInTile is [packedEmitter.row] counted from the first row of the workgroup.
func (m *packedEmitter) rowInTile(down int) scalar.Expr {
	return scalar.Add(scalar.Mul(m.warp, loop.Int(atomRows)), scalar.Add(loop.Int(down), m.lane))
}

// declare declares the workgroup memory and the registers.
func (m *packedEmitter) declare() {
	buffers := min(2, fusion.Product(m.p.c.K)/m.p.parts/m.p.chunk)
	m.slot = m.Shared("columns", ir.BF16, 1, buffers*m.p.chunkLength())
	if m.p.stage.units > 0 {
		m.stages = m.Shared("weights", ir.U32, 1, 2*m.p.tileRows()*m.p.stage.pitch()+stagePadding)
	}
	zero := scalar.ConstF(ir.F32, 0)
	for range m.p.inFlight() {
		var sums []string
		for range m.atom.Sums() {
			sums = append(sums, m.Var("sum", zero).Name)
		}
		m.sums = append(m.sums, sums)
	}
	for range m.atom.Sums() / xParts {
		m.totals = append(m.totals, m.Var("total", zero))
	}
	for range packedSpans * packedSpan {
		m.left = append(m.left, m.Var("left", scalar.ConstI(ir.U32, 0)).Name)
	}
	if m.p.offsets {
		for range packedSpan {
			m.ones = append(m.ones, m.Var("one", scalar.ConstI(ir.U32, bf16Ones)).Name)
		}
	}
}

// bf16Ones is a word of two ones in BF16.
const bf16Ones = 0x3f803f80

// packedSpan is the number of registers of the weights of a span.
const packedSpan = 4

// vectorize decides which arrays the kernel sees as vectors.
func (m *packedEmitter) vectorize(result resultStores) {
	m.vectors = emit.NewVectorizer(m.Emitter)
	for i := range m.totals {
		_, stores := m.result(i, result)
		m.vectors.ObserveStores(stores, 1)
	}
	m.vectors.Decide()
}

// chunkLength returns the elements of a chunk of all parts.
func (p *packedPlan) chunkLength() int { return xParts * p.columns * p.chunk }

// copyChunk starts the copy of a chunk to a buffer.
func (m *packedEmitter) copyChunk(chunk, buffer scalar.Expr) {
	length, each := m.p.chunkLength(), loop.ChunkElements(ir.BF16)
	chunk = scalar.Add(scalar.Mul(m.side, loop.Int(fusion.Product(m.p.c.K)/m.p.chunk)), chunk)
	threads := m.p.groups * loop.WarpGroup
	m.Loop("piece", m.thread, loop.Int(length/each), threads, length/each-1, func(at scalar.Expr) {
		at = scalar.Mul(at, loop.Int(each))
		m.Add(&loop.CopyAsync{
			To: m.slot, ToAt: m.Simplify(scalar.Add(scalar.Mul(buffer, loop.Int(length)), at)),
			From: m.parts.ID, FromAt: m.Simplify(scalar.Add(scalar.Mul(chunk, loop.Int(length)), at)), Count: each,
		})
	})
}

// splitColumns returns the launch that splits the columns' operand into three numbers of BF16, and these: for each tile,
// iteration and part a [loop.Tile] of its columns, in the order of the fragments. A thread has a span.
func splitColumns(e *emit.Emitter, g *fusion.Group, p *packedPlan) (emit.Launch, *fusion.Tensor) {
	c, other, row := p.c, 1-p.weights, loop.RowElements(ir.BF16)
	units, each := fusion.Product(c.K)/packedUnit, loop.ChunkElements(ir.BF16)
	t := e.Partition.Scratch("parts", ir.BF16, p.columnTiles(), units, xParts, p.columns, row)
	w := emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads))
	load := w.Reader().Operand(c.Node)
	w.Threads(p.columnTiles()*units*p.columns*packedSpans, func(i scalar.Expr) {
		at := w.Unflatten(i, []int{p.columnTiles(), units, p.columns, packedSpans})
		side, unit, column, span := at[0], at[1], at[2], at[3]
		free := w.Unflatten(w.Simplify(scalar.Min(p.column(side, column), loop.Int(p.count-1))), c.Free(other))
		var x []scalar.Expr
		for j := range quadSpan {
			k := scalar.Add(scalar.Mul(unit, loop.Int(packedUnit)), scalar.Add(scalar.Mul(span, loop.Int(quadSpan)), loop.Int(j)))
			x = append(x, w.Simplify(c.Factor(other, zeroIndex(c.Batch), free, w.Unflatten(w.Simplify(k), c.K), load)))
		}
		var stores []emit.PendingStore
		for part := range xParts {
			for half := range 2 {
				piece := scalar.Xor(scalar.Add(scalar.Mul(span, loop.Int(2)), loop.Int(half)), scalar.Mod(column, loop.Int(8)))
				for j := range each {
					to := ir.Index{side, unit, loop.Int(part), column, w.Simplify(scalar.Add(scalar.Mul(piece, loop.Int(each)), loop.Int(j)))}
					stores = append(stores, emit.PendingStore{Tensor: t, At: to, Value: scalar.Const(ir.BF16, 0)})
				}
			}
		}
		w.Observe(x...)
		w.ObserveStores(stores, each)
		w.Decide()
		w.Load(x)
		for j, v := range x {
			v = w.Let("x", v)
			finite := w.Let("finite", scalar.IsFinite(v))
			to := j%4/2*each + j/4*2 + j%2
			for part := range xParts {
				rounded := w.Let("part", scalar.Convert(v, ir.BF16))
				stores[part*quadSpan+to].Value = rounded
				v = w.Let("rest", scalar.Select(finite, scalar.Sub(v, scalar.Convert(rounded, ir.F32)), scalar.ConstF(ir.F32, 0)))
			}
		}
		w.Store(stores, each, emit.Always(each))
	})
	return w.Launch(g.Name() + "_parts_of_columns"), t
}

// column returns a column by its tile and its place in it.
func (p *packedPlan) column(side, at scalar.Expr) scalar.Expr {
	return scalar.Add(scalar.Mul(side, loop.Int(p.columns)), at)
}

// zeroIndex returns the first position of a space.
func zeroIndex(dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i := range at {
		at[i] = loop.Int(0)
	}
	return at
}

// multiply adds the products of an iteration, the one at a place in a chunk.
func (m *packedEmitter) multiply(at, chunk scalar.Expr) {
	units := m.p.chunk / packedUnit
	number := m.Bounded("unit", scalar.Add(scalar.Mul(chunk, loop.Int(units)), at), fusion.Product(m.p.c.K)/packedUnit)
	var spans []weightSpan
	if m.p.plain {
		spans = m.loadPlain(number)
	} else {
		var weights []reduce.Weight
		for _, half := range halves {
			weights = append(weights, m.load(half, number)...)
		}
		spans = spansOf(weights)
		m.unpack(spans)
	}
	panel := scalar.Mul(at, loop.Int(xParts*loop.RowElements(ir.BF16)*m.p.columns))
	panel = m.Let("panel", scalar.Add(scalar.Mul(m.buffer, loop.Int(m.p.chunkLength())), panel))
	terms := m.terms(spans)
	for len(terms) > 0 {
		n := min(len(m.sums), len(terms))
		m.multiplyTerms(terms[:n], panel)
		terms = terms[n:]
	}
}

// packedTerm is a term of the products of an iteration: a factor of a row, its scale or offset, times the sum over the spans
// [from, to) of the columns' operand times the numbers of the weights, or of the former alone.
type packedTerm struct {
	from, to int
	factors  [2]scalar.Expr // nil for 1
	ones     bool
}

// terms returns the terms of the weights of an iteration.
func (m *packedEmitter) terms(spans []weightSpan) (terms []packedTerm) {
	for from := 0; from < packedSpans; {
		to := from + 1
		for to < packedSpans && !spans[to].first {
			to++
		}
		scales, offsets := packedTerm{from: from, to: to}, packedTerm{from: from, to: to, ones: true}
		for i, row := range spans[from].rows {
			scales.factors[i], offsets.factors[i] = row[0].Scale, row[0].Offset
			if row[0].Negative {
				offsets.factors[i] = scalar.Neg(row[0].Offset)
			}
		}
		if terms = append(terms, scales); offsets.factors[0] != nil {
			terms = append(terms, offsets)
		}
		from = to
	}
	return terms
}

// multiplyTerms adds terms, whose multiply-adds do not wait for each other, to the totals.
func (m *packedEmitter) multiplyTerms(terms []packedTerm, panel scalar.Expr) {
	s, names := &loop.Mma{Shape: m.atom}, slices.Clone(m.left)
	for span := range packedSpans {
		for i, t := range terms {
			if at := t.from + span; at < t.to {
				left := m.left[packedSpan*at : packedSpan*(at+1)]
				if t.ones {
					left = m.ones
				}
				tile := loop.Tile{Array: m.slot, At: panel, K: at * quadSpan}
				s.Terms = append(s.Terms, loop.MmaTerm{Sums: m.sums[i], First: span == 0, LeftRegisters: left, B: tile})
			}
		}
	}
	for i := range terms {
		names = append(names, m.sums[i]...)
	}
	m.Add(s, &loop.MmaWait{Names: names})
	for n, t := range terms {
		for i, total := range m.totals {
			sum := scalar.FreeVar(m.sums[n][i+2*len(m.totals)], ir.F32)
			for _, part := range []int{1, 0} { // the smallest first
				sum = scalar.Add(sum, scalar.FreeVar(m.sums[n][i+part*len(m.totals)], ir.F32))
			}
			if factor := t.factors[i/2%2]; factor != nil {
				m.Set(total, scalar.Fma(factor, sum, total))
			} else {
				m.Set(total, scalar.Add(total, sum))
			}
		}
	}
}

// unpack sets the fragments of an iteration, and names the scales.
func (m *packedEmitter) unpack(spans []weightSpan) {
	var values []scalar.Expr
	for _, s := range spans {
		for i := range packedSpan {
			values = append(values, s.rows[i%2][i/2*2].Number, s.rows[i%2][i/2*2+1].Number)
		}
	}
	numbers := len(values)
	each := func(f func(x *scalar.Expr)) {
		for _, s := range spans {
			for _, row := range s.rows {
				for _, x := range []*scalar.Expr{&row[0].Scale, &row[0].Offset} {
					if *x != nil {
						f(x)
					}
				}
			}
		}
	}
	each(func(x *scalar.Expr) { values = append(values, *x) })
	m.Add(m.NameAll(values)...)
	for i := range m.left {
		m.Add(&loop.Pack{Name: m.left[i], Type: ir.BF16, Low: values[2*i], High: values[2*i+1]})
	}
	scales := values[numbers:]
	each(func(x *scalar.Expr) { *x, scales = m.Let("scale", scales[0]), scales[1:] })
}

// result returns what to store for a sum of the thread, and whether it exists.
func (m *packedEmitter) result(i int, result resultStores) (exists scalar.Expr, stores []emit.PendingStore) {
	c := m.p.c
	down, right := m.atom.Sum(i)
	row := m.row(down)
	column := m.p.column(m.side, scalar.Add(scalar.Mul(m.column, loop.Int(2)), loop.Int(right)))
	exists = m.Simplify(scalar.And(scalar.Lt(row, loop.Int(m.p.rows())), scalar.Lt(column, loop.Int(m.p.count))))
	ofRow := m.Unflatten(m.Simplify(scalar.Min(row, loop.Int(m.p.rows()-1))), c.Free(m.p.weights))
	ofColumn := m.Unflatten(m.Simplify(scalar.Min(column, loop.Int(m.p.count-1))), c.Free(1-m.p.weights))
	at := m.out.point(ofColumn, ofRow)
	if m.p.weights == 0 {
		at = m.out.point(ofRow, ofColumn)
	}
	return exists, result(m.totals[i], at)
}

// store stores the results.
func (m *packedEmitter) store(result resultStores) {
	for i := range m.totals {
		exists, stores := m.result(i, result)
		m.When(scalar.And(m.valid, exists), func() { m.vectors.Store(stores, 1, emit.Always(1)) })
	}
}
