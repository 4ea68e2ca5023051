package matmul

import (
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mmaRows is the number of rows of results of a workgroup of multiply-adds: those of two warp
// groups.
const mmaRows = 2 * loop.MmaRows

// mmaThreads is the number of threads that multiply.
const mmaThreads = 2 * loop.WarpGroup

// mmaStep is the number of bytes of a step along the contracted space: a row of a tile in shared
// memory.
const mmaStep = 128

// mmaTile is the shape of a contraction by multiply-adds: a workgroup computes mmaRows × columns
// results, with stages steps of both operands in shared memory.
type mmaTile struct {
	columns, stages int
	// stagesRead is the number of stages that threads may be reading: the current one and,
	// where multiply-adds are asynchronous, the one before.
	stagesRead int
	resident   int  // workgroups that a multiprocessor holds at once
	overlay    bool // results pass through the memory of the stages, which have been read by then
}

// mmaTiles are the candidates with warp-group multiply-adds, in the order of [hardware.Rates]. Of the last ones a
// multiprocessor holds two workgroups, so that one copies or stores while the other multiplies.
var mmaTiles = []mmaTile{
	{256, 4, 2, 1, false},
	{128, 6, 2, 1, false},
	{64, 8, 2, 1, false},
	{64, 3, 2, 2, false},
	{64, 4, 2, 2, true},
	{128, 3, 2, 2, true},
}

// mmaTilesByWarps are the candidates with warp multiply-adds, with the maximum useful number of
// stages.
var mmaTilesByWarps = []mmaTile{
	{256, 4, 1, 1, false},
	{128, 6, 1, 1, false},
	{64, 6, 1, 1, false},
}

// mmaTilesFor returns the candidates on a target, with the stages that its shared memory holds.
func mmaTilesFor(caps loop.Caps) []mmaTile {
	if !caps.MmaByWarps {
		return slices.DeleteFunc(slices.Clone(mmaTiles), func(t mmaTile) bool { return t.sharedBytes() > caps.MmaBytes })
	}
	var out []mmaTile
	for _, t := range mmaTilesByWarps {
		results := t.sharedBytes() - t.stages*t.stageBytes()
		t.stages = min(t.stages, (caps.MmaBytes-results)/t.stageBytes())
		if t.stages > t.stagesRead {
			out = append(out, t)
		}
	}
	return out
}

// rasterRows is the number of rows of tiles that are computed at about the same time
// (rasterisation), so that they share columns in the cache. It is the best of 8, 16 and 32 for
// products of 8192.
const rasterRows = 16

// mmaPlan computes a contraction by multiply-adds.
type mmaPlan struct {
	mmaTile
	c          *fusion.Contraction // as it reads its relayouts
	relayouts  [2]*relayout        // of the operands; nil without
	operand    ir.DType
	rowOperand int // the operand along the rows of atoms; the other is along the columns
	layout     [2]mmaLayout
	contiguous [2]contiguity // of staged operands
	mapped     bool          // tensor maps copy both operands
	im2col     *im2col       // operand 0 in im2col mode, or nil
	steps      int           // steps of a part
	parts      int           // split-K parts, each computed by separate workgroups
	wholes     int           // tensors of the results' size that the epilogue loads
}

// mmaLayout is the layout of an operand that is copied to shared memory.
type mmaLayout uint8

const (
	// staged operands are first written to scratch memory: they are computed, or do not
	// consist of aligned pieces of 16 bytes.
	staged mmaLayout = iota
	// alongK operands are contiguous along the contracted space, alongFree operands along
	// the free space.
	alongK
	alongFree
)

// emitMma emits a contraction by multiply-adds, with kernels that stage operands or write their relayouts before it
// and that add up split-K parts after it.
func emitMma(e *emit.Emitter, g *fusion.Group, p *mmaPlan) []emit.Launch {
	var launches []emit.Launch
	var scratch [2]*fusion.Tensor
	for i, layout := range p.layout {
		var l emit.Launch
		switch {
		case layout == staged:
			l, scratch[i] = stageOperand(e, g, p.c, p, i)
		case p.relayouts[i] != nil:
			l, scratch[i] = p.relayouts[i].write(e, g, p.c, p)
		default:
			continue
		}
		launches = append(launches, l)
	}
	// Tiles and positions fit I32; only offsets into arrays may be long.
	m := newMmaEmitter(emit.New(e.Partition, e.Caps), g, p.c, p, scratch)
	if p.parts == 1 {
		return append(launches, m.kernel(g.Name(), m.out.stores))
	}
	partial := reduce.NewPartial(0, ir.F32, g, p.parts)
	first := m.kernel(g.Name()+"_parts", m.partial(partial))
	return append(launches, first, reduce.CombineParts(e.Sibling(), g.Reduction(), p.parts, []*fusion.Tensor{partial}))
}

// mmaOperand returns the type that a contraction multiplies, or false if the target has no
// multiply-adds for it.
func mmaOperand(c *fusion.Contraction, caps loop.Caps) (ir.DType, bool) {
	in := c.Node.Inputs()
	a, b := in[0].Type().DType, in[1].Type().DType
	switch {
	case !caps.Mma || a != b || c.Acc != ir.F32:
		return 0, false
	case a == ir.F16 || a == ir.BF16:
		return a, true
	}
	return a, a == ir.F32 && caps.TF32
}

// planMma returns a plan without a tile, or false if c cannot be computed by multiply-adds.
func planMma(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction) (p *mmaPlan, ok bool) {
	d, ok := mmaOperand(c, e.Caps)
	counted := max(fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)) <= loop.MaxElements
	if !ok || !counted || !tileable(c) {
		return nil, false
	}
	p = &mmaPlan{operand: d, c: c}
	for _, t := range g.EpilogueReads() {
		if float64(t.Len()) >= resultCount(c) {
			p.wholes++
		}
	}
	p.setLayouts(e, g)
	return p.orRelayouts(e, g), true
}

// setLayouts sets the layouts of the operands.
func (p *mmaPlan) setLayouts(e *emit.Emitter, g *fusion.Group) {
	var linear [2]bool
	for i, x := range p.relayouts {
		if x != nil {
			p.layout[i] = x.layout
		} else {
			p.layout[i], linear[i] = layoutOf(e, g, p.c, p.operand, i)
		}
	}
	p.mapped = e.Caps.TensorMaps && linear[0] && linear[1]
	if !p.setIm2col(e, g, linear[1]) {
		p.orient()
	}
	for i, l := range p.layout {
		if l == staged {
			p.contiguous[i] = contiguityOf(e, p.c, p.operand, i)
		}
	}
}

// setIm2col plans the copies of a convolution in im2col mode, or returns false: where tensor maps copy the operands as matrices,
// or relayouts of them are written. linear is that of operand 1, see [layoutOf].
func (p *mmaPlan) setIm2col(e *emit.Emitter, g *fusion.Group, linear bool) bool {
	if p.mapped || p.relayouts != [2]*relayout{} {
		return false
	}
	x := planIm2col(e, g, p.c, p.operand)
	if x == nil || p.layout[0] != x.layout() {
		return false
	}
	right := p.layout[1]
	if right == alongFree && p.operand == ir.F32 {
		right = staged
	}
	switch {
	case right == staged:
	case x.free:
		if !linear {
			return false
		}
	default:
		w := weights{im2col: x, e: e, c: p.c, d: p.operand, stored: right}
		if _, _, ok := w.tensorMap(); !ok {
			return false
		}
	}
	p.im2col, p.layout[1], p.mapped = x, right, true
	return true
}

// allSteps returns the steps of all parts.
func (p *mmaPlan) allSteps() int {
	if x := p.im2col; x != nil && !x.free {
		return x.taps() * x.chunks(p.operand)
	}
	return emit.CeilDiv(fusion.Product(p.c.K), p.stepLength())
}

// stepLength returns the contracted elements of a step.
func (p *mmaPlan) stepLength() int { return mmaStep / p.operand.Size() }

// tiles returns the number of tiles along the rows and along the columns.
func (p *mmaPlan) tiles() (rows, columns int) {
	r, n := p.free()
	return emit.CeilDiv(fusion.Product(r), mmaRows), emit.CeilDiv(fusion.Product(n), p.columns)
}

// split cuts the contracted space into at most parts parts of whole steps.
func (p *mmaPlan) split(parts int) {
	steps := p.allSteps()
	p.steps = emit.CeilDiv(steps, parts)
	if p.inRegisters() {
		p.steps += p.steps % 2 // the loop body has two steps
	}
	p.parts = emit.CeilDiv(steps, p.steps)
}

// inRegisters reports whether the rows' operand goes through registers, because multiply-adds
// cannot read its layout from shared memory.
func (p *mmaPlan) inRegisters() bool {
	return p.operand == ir.F32 && p.layout[p.rowOperand] == alongFree
}

// roundColumns is the number of columns of results that pass through shared memory in a round.
const roundColumns = 64

// mbarrierBytes is the size of a [loop.Mbarrier].
const mbarrierBytes = 8

// sharedBytes returns the bytes of workgroup memory of the stages and of a round of results.
func (t mmaTile) sharedBytes() int {
	stages := t.stages * (t.stageBytes() + 2*mbarrierBytes)
	if t.overlay {
		return stages
	}
	return stages + 4*mmaRows*(roundColumns+maxRoundPad)
}

func (t mmaTile) stageBytes() int { return (mmaRows + t.columns) * mmaStep }

// inFlight returns the number of steps whose copies are in flight while one is multiplied: all where each has a stage.
func (p *mmaPlan) inFlight() int {
	if p.steps <= p.stages {
		return p.steps
	}
	return p.stages - p.stagesRead
}

// longestOverlay is the number of steps up to which a multiprocessor may hold two workgroups with tensor maps. Longer
// products keep more copies in flight with the stages of one.
const longestOverlay = 48

// suits reports whether the plan's tile is worth comparing: where a multiprocessor holds two, for a product of few steps that
// all threads copy, or, with overlay, of 16 bits that fills a tile and whose operands tensor maps copy as they are.
func (p *mmaPlan) suits() bool {
	if p.overlay {
		_, n := p.free()
		return p.mapped && p.operand != ir.F32 && !p.copies() && p.parts == 1 && p.steps <= longestOverlay && fusion.Product(n) >= p.columns
	}
	return p.resident == 1 || !p.mapped && p.steps <= p.stages
}

// TileOverhead estimates the nanoseconds of a tile's prologue and epilogue, filling the stages
// and storing the results: four dependent loads and a part of a fifth (2.5 µs on an H200).
func TileOverhead(d hardware.Profile) float64 { return tileLoads * d.Latency }

const tileLoads = 25. / 6

// minStaged is the minimum number of multiply-adds of products with staged operands or of f32 that are compared
// by cost: those measured have 2 to 6 times more.
const minStaged = 1 << 26

// chooseMma completes a plan with the fastest tile, or returns false if tiles without
// multiply-adds are faster: for small products that stage operands or are of f32, if tiles are at the rate of arithmetic.
func chooseMma(p mmaPlan, c *fusion.Contraction, caps loop.Caps) (best *mmaPlan, ok bool) {
	lowest := tilesTime(c, caps)
	if mulAddCount(c) < minStaged && (p.operand == ir.F32 || p.copies()) {
		lowest = 2 * mulAddCount(c) / caps.Profile().Arithmetic()
	}
	best = p.fastest(caps, lowest)
	return best, best != nil
}

// copies reports whether kernels write operands to scratch memory.
func (p *mmaPlan) copies() bool {
	return slices.Contains(p.layout[:], staged) || p.relayouts != [2]*relayout{}
}

// fastest completes the plan with the tile and the parts that take the least time, or returns nil if none takes less than
// below, in nanoseconds.
func (p *mmaPlan) fastest(caps loop.Caps, below float64) (best *mmaPlan) {
	for _, t := range mmaTilesFor(caps) {
		q := p.withTile(t, caps)
		if time := q.cost(caps); q.suits() && time < below {
			best, below = &q, time
		}
	}
	return best
}

// withTile returns the plan with a tile and the number of split-K parts that takes the least time with it. Operands
// that tensor maps do not copy have the most parts.
func (p *mmaPlan) withTile(t mmaTile, caps loop.Caps) mmaPlan {
	best := *p
	best.mmaTile = t
	parts := best.fillingParts(caps)
	best.split(parts)
	for parts /= 2; p.mapped && parts > 0; parts /= 2 {
		q := best
		if q.split(parts); q.cost(caps) < best.cost(caps) {
			best = q
		}
	}
	return best
}

// cost estimates the nanoseconds of all launches.
func (p *mmaPlan) cost(caps loop.Caps) float64 {
	return p.time(caps) + p.stagingTime(caps) + p.relayoutTime(caps)
}

// fillingParts returns the split-K parts that keep the multiprocessors busy if there are few
// tiles, as long as each part fills the stages.
func (p *mmaPlan) fillingParts(caps loop.Caps) int {
	rows, columns := p.tiles()
	count := fusion.Product(p.c.Batch) * rows * columns
	return max(1, min(caps.Profile().Processors/count, p.allSteps()/p.stages, maxParts(p.c, caps)))
}

// time estimates the nanoseconds of the products.
func (p *mmaPlan) time(caps loop.Caps) float64 {
	rows, columns := p.tiles()
	d, results := caps.Profile(), resultCount(p.c)
	workgroups := float64(fusion.Product(p.c.Batch)*rows*columns) * float64(p.parts)
	waves := math.Ceil(workgroups / float64(d.Processors))
	work := waves * 2 * float64(mmaRows*p.columns) * float64(p.steps*p.stepLength()) / p.rate(d, caps.MmaByWarps, workgroups)
	overhead := TileOverhead(d) / float64(p.resident)
	switch {
	case !p.mapped && p.parts > 1:
		return 2*d.Launch + waves*overhead + work + 8*results*float64(p.parts)/d.Bandwidth()
	case !p.mapped:
		return d.Launch + waves*overhead + work
	}
	// The first tiles begin within the launch. No other tiles hide how those of one wave store their results.
	stored := float64(p.c.Node.Types()[0].DType.Size()) * results
	time := d.Launch + (waves-1)*p.tileOverhead(d, work/waves) + work
	if p.parts > 1 {
		stored = 4 * results * float64(p.parts)
		time += addedLaunch*d.Launch + stored/d.CacheBandwidth()
	}
	if waves == 1 {
		time += stored / d.CacheBandwidth()
	}
	return time
}

// Of a tile beside another of the same multiprocessor that multiplies meanwhile, overlayOverhead remains of [TileOverhead], and
// for each round of results and each tensor that its epilogue loads, overlaidLoad less, in cycles. On an H200 128 × 64
// results of 576 terms took 3.26 µs instead of 3.69, and 4.07 instead of 5.93 behind a select by another tensor; 128 × 128
// of 1,152 terms 7.9 instead of 8.7, and 10.6 instead of 13.6.
const (
	overlayOverhead = 1445
	overlaidLoad    = 1785
)

// tileOverhead estimates the nanoseconds by which a tile by tensor maps takes longer than its multiply-adds' work, or less than 0.
func (p *mmaPlan) tileOverhead(d hardware.Profile, work float64) float64 {
	if !p.overlay {
		return TileOverhead(d)
	}
	return max((overlayOverhead-overlaidLoad*float64(p.wholes*p.columns/roundColumns))/d.Clock, (TileOverhead(d)-work)/2)
}

// addedLaunch is the part of a launch that the kernel behind a short one takes: it starts while that one runs.
const addedLaunch = 0.5

// Tiles that no others follow run at firstTiles times the rate of many, and on a device with idle processors faster,
// as they share its cache with fewer: at most at loneTile of the rate of matrix units. Both are by the products
// in testdata/products_h200.txt.
const (
	firstTiles = 1.25
	loneTile   = 0.7
)

// rate returns the operations per nanosecond of a processor that computes its share of the workgroups' tiles.
func (p *mmaPlan) rate(d hardware.Profile, byWarps bool, workgroups float64) float64 {
	of := slices.IndexFunc(mmaTiles, func(o mmaTile) bool { return o.columns == p.columns })
	rate, busy := d.Rates().WarpGroups[of], workgroups/float64(d.Processors)
	switch {
	case byWarps:
		rate = d.Rates().Warps[of]
	case busy <= 1 && p.mapped && !p.inRegisters():
		rate = max(rate, min(firstTiles*rate/busy, loneTile*d.Matrix))
	}
	if p.operand == ir.F32 {
		rate /= 2
	}
	return rate
}

// stagingFactors are by how much it takes longer to stage an operand than to move its bytes (H200: weights' gradients
// of 3×3 convolutions took 37 µs for 64×16×16×32, contiguous along the free space, with products of 15, and 56 µs and
// 37 for 3 channels, 35 and 17 by tiles, which stage nothing). Scattered operands of f32 count as contiguous ones: there
// steps by tiles took 1 % longer.
var stagingFactors = [...]float64{contiguousAlongK: 1, contiguousAlongFree: 2, contiguousInRuns: 1, scattered: 2.5}

// stagingTime estimates the nanoseconds of the kernels that stage operands.
func (p *mmaPlan) stagingTime(caps loop.Caps) float64 {
	d, time := caps.Profile(), 0.0
	for i, free := range [2][]int{p.c.M, p.c.N} {
		if p.layout[i] == staged {
			bytes := float64(fusion.Product(p.c.Batch)*fusion.Product(free)) * float64(fusion.Product(p.c.K)) * float64(4+p.operand.Size())
			if p.operand != ir.F32 || p.contiguous[i] != scattered {
				bytes *= stagingFactors[p.contiguous[i]]
			}
			time += d.Launch + bytes/d.Bandwidth()
		}
	}
	return time
}

// mmaEmitter writes the kernel of a contraction by multiply-adds. Asynchronous copies bring the
// steps of both operands to shared memory several steps ahead of the arithmetic.
type mmaEmitter struct {
	*emit.Emitter
	out    epilogue
	p      *mmaPlan
	atom   loop.MmaShape
	part   scalar.Expr
	batch  scalar.Expr // number of the batch
	valid  scalar.Expr // false in workgroups beyond the last tile
	thread scalar.Expr
	group  scalar.Expr // the thread's warp group
	row    scalar.Expr // origin of the thread in its warp group's part,
	column scalar.Expr // see [loop.MmaShape]
	side   [2]mmaSide  // rows, columns
	sums   []string    // accumulators
	left   [2][]string // the rows' operand in registers, of even and of odd steps
}

func newMmaEmitter(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan, scratch [2]*fusion.Tensor) *mmaEmitter {
	e.Workgroup = [3]int{mmaThreads, 1, 1}
	if p.resident > 1 {
		e.Resident = p.resident
	}
	m := &mmaEmitter{Emitter: e, p: p, atom: loop.MmaShape{Operand: p.operand, N: p.columns}}
	m.out = epilogue{Emitter: e, g: g, c: c}
	row, column := m.assignTile(c)
	for i, operand := range [2]int{p.rowOperand, 1 - p.rowOperand} {
		m.side[i] = m.newSide(operand, i, scratch[operand])
		if e.Caps.TensorMaps && !m.side[i].threadRead {
			m.side[i].tensorMap = m.sideTensorMap(&m.side[i], scratch[operand])
		}
	}
	m.side[0].index, m.side[1].index = row, column
	return m
}

// threadCoords names the coordinates of a thread that multiplies.
func (m *mmaEmitter) threadCoords() {
	m.thread = loop.LocalID(0, mmaThreads)
	m.group = m.Let("warp_group", scalar.FloorDiv(m.thread, loop.Int(loop.WarpGroup)))
	row, column := m.atom.Origin(scalar.Mod(m.thread, loop.Int(loop.WarpGroup)))
	m.row, m.column = m.Let("row", row), m.Let("column", column)
}

// declareSums defines the accumulators of multiply-adds and returns their names.
func declareSums(e *emit.Emitter, atom loop.MmaShape) []string {
	sums := make([]string, atom.Sums())
	for i := range sums {
		sums[i] = "sum" + strconv.Itoa(i)
		e.Add(&loop.Var{Name: sums[i], Init: scalar.ConstF(ir.F32, 0)})
	}
	return sums
}

// assignTile names the part and the batch of the workgroup, and returns the row and the column
// of its tile. Workgroups that run at about the same time have tiles of few rows, so that the
// cache holds their operands.
func (m *mmaEmitter) assignTile(c *fusion.Contraction) (row, column scalar.Expr) {
	rows, columns := m.p.tiles()
	batches := fusion.Product(c.Batch)
	workgroup, valid := m.BoundedGroup(m.p.parts * batches * rows * columns)
	m.valid = valid
	m.part = m.Let("part", scalar.FloorDiv(workgroup, loop.Int(batches*rows*columns)))
	batch := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(rows*columns)), loop.Int(batches))
	m.batch = m.Bounded("batch", batch, batches)
	m.out.batch = m.Unflatten(m.batch, c.Batch)
	at := m.Let("tile", scalar.Mod(workgroup, loop.Int(rows*columns)))
	first := m.Let("first", scalar.Mul(scalar.FloorDiv(at, loop.Int(rasterRows*columns)), loop.Int(rasterRows)))
	high := m.Let("high", scalar.Min(scalar.Sub(loop.Int(rows), first), loop.Int(rasterRows)))
	at = m.Let("within", scalar.Mod(at, loop.Int(rasterRows*columns)))
	return m.Bounded("tile_row", scalar.Add(first, scalar.Rem(at, high)), rows), m.Bounded("tile_column", scalar.Div(at, high), columns)
}

// kernel writes the whole kernel; result returns the stores of a sum.
func (m *mmaEmitter) kernel(name string, result resultStores) emit.Launch {
	if m.declareTensorMaps() {
		m.Workgroup[0] += loop.Warp
		return m.specializedKernel(name, result)
	}
	m.threadCoords()
	m.sums = declareSums(m.Emitter, m.atom)
	m.declareLeft()
	for s := range m.p.inFlight() {
		m.prefetch(loop.Int(s))
	}
	iterations, each := m.p.steps, 1
	if m.p.inRegisters() {
		iterations, each = iterations/2, 2
	}
	m.Times("step", iterations, func(i scalar.Expr) {
		for parity := range each {
			m.step(scalar.Add(scalar.Mul(i, loop.Int(each)), loop.Int(parity)), parity)
		}
	})
	m.Add(&loop.MmaWait{Names: m.sums}, &loop.CopyWait{})
	m.store(result)
	return m.Launch(name)
}

// step multiplies a step that has arrived and starts the copies of a later one. They overwrite a
// stage that all threads have read: before the barrier each has waited for the multiply-adds of
// stagesRead steps ago.
func (m *mmaEmitter) step(at scalar.Expr, parity int) {
	m.Add(&loop.CopyWait{Pending: m.p.inFlight() - 1}, &loop.ProxyFence{}, &loop.Barrier{})
	stage := m.Let("stage", scalar.Mod(at, loop.Int(m.p.stages)))
	if m.p.inRegisters() {
		m.loadLeft(stage, parity)
	}
	m.Add(m.multiply(stage, parity))
	m.prefetch(m.Simplify(scalar.Add(at, loop.Int(m.p.inFlight()))))
	// The registers of the other parity are free once its multiply-adds are done.
	m.Add(&loop.MmaWait{Pending: m.p.stagesRead - 1, Names: m.left[1-parity]})
}

// prefetch starts the copies of a step, if it exists. It commits a group of copies in any case,
// so that groups can be counted.
func (m *mmaEmitter) prefetch(step scalar.Expr) {
	m.When(scalar.Lt(step, loop.Int(m.p.steps)), func() {
		inside := m.Bounded("ahead", scalar.Min(step, loop.Int(m.p.steps-1)), m.p.steps)
		stage := m.Let("to", scalar.Mod(inside, loop.Int(m.p.stages)))
		whole := m.Let("at", scalar.Add(scalar.Mul(m.part, loop.Int(m.p.steps)), inside))
		for i := range m.side {
			m.startCopies(&m.side[i], whole, stage)
		}
	})
	m.Add(&loop.CopyCommit{})
}

// multiply returns the multiply-adds of a step.
func (m *mmaEmitter) multiply(stage scalar.Expr, parity int) *loop.Mma {
	rows, columns := &m.side[0], &m.side[1]
	s := &loop.Mma{Shape: m.atom}
	own := loop.MmaRows * loop.RowElements(m.p.operand) // a warp group's rows, in either layout
	for k := 0; k < m.p.stepLength(); k += m.atom.K() {
		t := loop.MmaTerm{Sums: m.sums, B: m.operand(columns, stage, k, loop.Int(0))}
		if m.p.inRegisters() {
			first := k / m.atom.K() * 4
			t.LeftRegisters = m.left[parity][first : first+4]
		} else {
			t.A = m.operand(rows, stage, k, scalar.Mul(m.group, loop.Int(own)))
		}
		s.Terms = append(s.Terms, t)
	}
	return s
}

// operand returns the tile of a side at a contracted position of a step.
func (m *mmaEmitter) operand(s *mmaSide, stage scalar.Expr, k int, from scalar.Expr) loop.Tile {
	t := loop.Tile{Array: s.slot, K: k, At: m.Simplify(scalar.Add(scalar.Mul(stage, loop.Int(s.stageLength(m.p))), from))}
	if s.layout == alongFree {
		t.Depth = m.p.stepLength()
	}
	return t
}

// partial returns the stores of split-K partial sums.
func (m *mmaEmitter) partial(t *fusion.Tensor) resultStores {
	return func(sum scalar.Expr, at ir.Index) []emit.PendingStore {
		return []emit.PendingStore{{Tensor: t, At: append(ir.Index{m.part}, at...), Value: sum}}
	}
}

// specializedKernel writes a warp-specialised kernel for targets with tensor maps (TMA): one
// producer warp starts all copies and the others multiply. Each stage has two barriers: full
// completes when its operands have arrived, empty when all warps have read them.
func (m *mmaEmitter) specializedKernel(name string, result resultStores) emit.Launch {
	full := m.Mbarrier("full", m.p.stages, 1)
	empty := m.Mbarrier("empty", m.p.stages, mmaThreads/loop.Warp)
	multiply := m.Nested(func() {
		m.threadCoords()
		m.sums = declareSums(m.Emitter, m.atom)
		m.multiplySteps(full, empty)
		m.store(result)
	})
	fetch := m.Nested(func() { m.copySteps(full, empty) })
	m.Add(&loop.Roles{List: []loop.Role{{Threads: mmaThreads, Body: multiply}, {Threads: loop.Warp, Body: fetch}}})
	return m.Launch(name)
}

// stageOf returns the stage of a step and the number of its earlier uses.
func (m *mmaEmitter) stageOf(step scalar.Expr) (stage, phase scalar.Expr) {
	stages := loop.Int(m.p.stages)
	return m.Let("stage", scalar.Mod(step, stages)), m.Simplify(scalar.FloorDiv(step, stages))
}

// multiplySteps multiplies each step as it arrives, and releases the stage of the step before,
// whose multiply-adds are done.
func (m *mmaEmitter) multiplySteps(full, empty int) {
	m.Times("step", m.p.steps, func(step scalar.Expr) {
		stage, phase := m.stageOf(step)
		m.Add(&loop.Await{Mbarrier: full, At: stage, Phase: phase})
		m.Add(m.multiply(stage, 0), &loop.MmaWait{Pending: 1})
		m.When(scalar.Gt(step, loop.Int(0)), func() {
			before := m.Simplify(scalar.Mod(scalar.Add(step, loop.Int(m.p.stages-1)), loop.Int(m.p.stages)))
			m.Add(&loop.Arrive{Mbarrier: empty, At: before})
		})
	})
	m.Add(&loop.MmaWait{Names: m.sums})
}

// copySteps starts the copies of each step when its stage is empty.
func (m *mmaEmitter) copySteps(full, empty int) {
	m.Times("step", m.p.steps, func(step scalar.Expr) {
		stage, phase := m.stageOf(step)
		m.Add(&loop.Await{Mbarrier: empty, At: stage, Phase: m.Simplify(scalar.Sub(phase, loop.Int(1)))})
		whole := m.Let("at", scalar.Add(scalar.Mul(m.part, loop.Int(m.p.steps)), step))
		for i := range m.side {
			if s := &m.side[i]; s.tensorMap.Im2col != nil {
				m.copyPixels(s, whole, stage, full)
			} else {
				m.copyByTensorMap(s, whole, stage, full)
			}
		}
		m.Add(&loop.Arrive{Mbarrier: full, At: stage})
	})
}

// copyByTensorMap starts the copies of a side's tile of a step: one copy if rows in shared memory
// lie along k, otherwise one for each panel.
func (m *mmaEmitter) copyByTensorMap(s *mmaSide, step, stage scalar.Expr, full int) {
	free, row := scalar.Mul(s.index, loop.Int(s.tile)), loop.RowElements(m.p.operand)
	k, batch := scalar.Mul(step, loop.Int(m.p.stepLength())), m.batch
	if x := m.p.im2col; x != nil && !x.free {
		batch, k = m.chunk(step)
		if s.reversed {
			batch = scalar.Sub(loop.Int(x.taps()-1), batch)
		}
	}
	to := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	panels, panel := 1, 0
	if s.layout == alongFree {
		panels, panel = s.tile/row, row*m.p.stepLength()
	}
	for i := range panels {
		from := []scalar.Expr{k, free}
		if s.layout == alongFree {
			from = []scalar.Expr{scalar.Add(free, loop.Int(i*row)), k}
		}
		if s.tensorMap.batch {
			from = append(from, batch)
		}
		for j, x := range from {
			from[j] = m.Simplify(x)
		}
		m.Add(&loop.CopyTMA{
			Map: s.mapNumber, From: from, To: s.slot, ToAt: m.Simplify(scalar.Add(to, loop.Int(i*panel))), Mbarrier: full, At: stage,
		})
	}
}

// declareTensorMaps declares the tensor maps of both operands, or returns false if one has none.
// It also returns false for a product of one step, which has no arithmetic to overlap with
// copies: 64 of 256×256×64 in bf16 ran at 79 TFLOP/s with copies by all threads and at 73 with
// tensor maps on an H200; those of 4096 at 711 and 747.
func (m *mmaEmitter) declareTensorMaps() bool {
	if m.p.steps == 1 && m.p.im2col == nil {
		return false
	}
	for i := range m.side {
		if m.side[i].tensorMap == nil {
			return false
		}
	}
	for i := range m.side {
		s := &m.side[i]
		row := loop.RowElements(m.p.operand)
		b := s.tensorMap.TensorMap
		b.Size = []int{row, s.tile}
		if s.layout == alongFree {
			b.Size[1] = m.p.stepLength()
		}
		if s.tensorMap.batch {
			b.Size = append(b.Size, 1)
		}
		s.mapNumber = len(m.TensorMaps)
		m.TensorMaps = append(m.TensorMaps, b)
	}
	return true
}

// maxRoundPad is the maximum padding of a row of results in shared memory.
const maxRoundPad = 4

// roundStride returns the elements from one row of results in shared memory to the next. Threads
// read results coalesced along the last axis of the output: if that is the atoms' columns, a
// pitch of 68 limits a warp's writes to two-way bank conflicts; if it is their rows, 65 makes a
// warp's reads free of conflicts.
func (m *mmaEmitter) roundStride() int {
	if m.p.rowOperand == 1 {
		return roundColumns + 1
	}
	return roundColumns + maxRoundPad
}

// A thread computes quadsInFlight times four adjacent results at a time, so that their loads are in
// flight together, or fewer where the unrolled epilogue would exceed maxQuadOps operations.
const (
	quadsInFlight = 4
	maxQuadOps    = 256
)

// store stores the accumulators through shared memory, in rounds of some columns. The epilogue
// is then a loop with coalesced stores.
func (m *mmaEmitter) store(result resultStores) {
	slot := m.Shared("results", ir.F32, 1, mmaRows*m.roundStride())
	m.Own[len(m.Own)-1].Overlay = m.p.overlay
	first := scalar.Add(scalar.Mul(m.group, loop.Int(loop.MmaRows)), m.row)
	own := m.Let("own", scalar.Add(scalar.Mul(first, loop.Int(m.roundStride())), scalar.Mul(m.column, loop.Int(2))))
	m.Times("round", m.p.columns/roundColumns, func(round scalar.Expr) {
		m.Barrier()
		m.stageRound(slot, round, own)
		m.Barrier()
		m.storeRound(slot, round, result)
	})
}

// neighbours returns the number of results next to each other in memory that a thread stores: a
// vector, where the last axis of the output consists of whole ones.
func (m *mmaEmitter) neighbours() int {
	if m.side[1-m.p.rowOperand].free%emit.VectorWidth != 0 {
		return 1
	}
	return emit.VectorWidth
}

// storeRound computes and stores the results of a round. A thread has several runs of neighbours
// at a time.
func (m *mmaEmitter) storeRound(slot int, round scalar.Expr, result resultStores) {
	run := m.neighbours()
	runs := quadsInFlight
	for runs > 1 && runs*run*m.out.g.Weight() > maxQuadOps {
		runs /= 2
	}
	total := mmaRows * roundColumns / run
	m.Loop("result", m.thread, loop.Int(total), runs*mmaThreads, total-1, func(at scalar.Expr) {
		v := emit.NewVectorizer(m.Emitter)
		v.ObserveWritten()
		var list [][]emit.PendingStore
		var inside []scalar.Expr
		for j := range runs {
			stores, exists := m.runStores(slot, round, scalar.Add(at, loop.Int(j*mmaThreads)), run, result)
			list, inside = append(list, stores), append(inside, exists)
			v.ObserveStores(stores, run)
		}
		v.Decide()
		if x, known := inside[0].IntConst(); known && x != 0 {
			v.Store(slices.Concat(list...), run, emit.Always(run))
			return
		}
		for j, stores := range list {
			m.When(inside[j], func() { v.Store(stores, run, emit.Always(run)) })
		}
	})
}

// stageRound stores the accumulators of a round, the thread's first at offset own. Registers are
// named statically, so each round has a branch.
func (m *mmaEmitter) stageRound(slot int, round, own scalar.Expr) {
	per := m.atom.Sums() * roundColumns / m.p.columns
	var body []loop.Stmt
	for r := m.p.columns/roundColumns - 1; r >= 0; r-- {
		then := m.Nested(func() {
			for i := range per {
				row, column := m.atom.Sum(i)
				m.Put(slot, scalar.Add(own, loop.Int(row*m.roundStride()+column)), scalar.FreeVar(m.sums[r*per+i], ir.F32))
			}
		})
		if body != nil {
			then = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(r+1)), Then: then, Else: body}}
		}
		body = then
	}
	m.Add(body...)
}

// runStores returns the stores of run neighbouring results of a round, by tensor, and the condition
// that they exist.
func (m *mmaEmitter) runStores(slot int, round, at scalar.Expr, run int, result resultStores) (stores []emit.PendingStore, exists scalar.Expr) {
	along := 1 - m.p.rowOperand // the side of the neighbours
	sizes := [2]int{mmaRows, roundColumns}
	sizes[along] /= run
	var tile [2]scalar.Expr // coordinates in the round
	tile[1-along], tile[along] = scalar.FloorDiv(at, loop.Int(sizes[along])), scalar.Mul(scalar.Mod(at, loop.Int(sizes[along])), loop.Int(run))
	first := [2]scalar.Expr{
		scalar.Mul(m.side[0].index, loop.Int(mmaRows)),
		scalar.Add(scalar.Mul(m.side[1].index, loop.Int(m.p.columns)), scalar.Mul(round, loop.Int(roundColumns))),
	}
	var position [2]scalar.Expr
	exists = m.valid
	for i, s := range m.side {
		x, unit := scalar.Add(first[i], tile[i]), 1
		if i == along {
			unit = run
		}
		if s.free%s.tile != 0 {
			exists = scalar.And(exists, scalar.Lt(x, loop.Int(s.free)))
			x = scalar.Min(x, loop.Int(s.free-unit))
		}
		x = m.Bounded([2]string{"m", "n"}[i], scalar.FloorDiv(x, loop.Int(unit)), s.free/unit)
		position[i] = scalar.Mul(x, loop.Int(unit))
	}
	exists = scalar.And(exists, m.stored(position))
	each := make([][]emit.PendingStore, run)
	for j := range each {
		here, in := position, tile
		here[along], in[along] = scalar.Add(here[along], loop.Int(j)), scalar.Add(in[along], loop.Int(j))
		sum := m.Let("total", scalar.LoadAt(slot, ir.F32, m.Simplify(scalar.Add(scalar.Mul(in[0], loop.Int(m.roundStride())), in[1]))))
		each[j] = result(sum, m.pointAt(here))
	}
	return byTensor(each), m.Simplify(exists)
}

// pointAt returns the point of the group at a row and a column.
func (m *mmaEmitter) pointAt(position [2]scalar.Expr) ir.Index {
	rows, columns := m.p.free()
	x, y := m.Unflatten(m.Simplify(position[0]), rows), m.Unflatten(m.Simplify(position[1]), columns)
	if m.p.rowOperand == 1 {
		x, y = y, x
	}
	return m.out.point(x, y)
}
