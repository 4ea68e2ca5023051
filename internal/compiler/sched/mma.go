package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
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
// results, with stages steps of both operands in shared memory. rate is the operations of bf16
// per nanosecond of a multiprocessor; f32 has half of it.
type mmaTile struct {
	columns, stages int
	// read is the number of stages that threads may be reading: the current one and, where
	// multiply-adds are asynchronous, the one before.
	stagesRead int
	rate       float64
}

// mmaTiles are the candidates with warp-group multiply-adds. The rates for 256 and 128 columns
// were measured on an H200 with matrices of 8192; that for 64 is an estimate.
var mmaTiles = []mmaTile{
	{256, 4, 2, 5000},
	{128, 6, 2, 4300},
	{64, 8, 2, 2800},
}

// mmaTilesByWarps are the candidates with warp multiply-adds, with the maximum useful number of
// stages. Each warp reads all columns from shared memory at 128 bytes per cycle, which bounds
// the rate. The rate for 256 columns was measured on an H200 with matrices of 4096; the others
// are scaled by the bound.
var mmaTilesByWarps = []mmaTile{
	{256, 4, 1, 2500},
	{128, 6, 1, 2350},
	{64, 6, 1, 2100},
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
	operand ir.DType
	rows    int // the operand along the rows of atoms; the other is along the columns
	layout  [2]mmaLayout
	steps   int // steps of a part
	parts   int // split-K parts, each for workgroups of its own
}

// mmaLayout is the layout of an operand that is copied to shared memory.
type mmaLayout uint8

const (
	// storeStaged operands are first written to scratch memory: they are computed, or do not
	// consist of aligned pieces of 16 bytes.
	staged mmaLayout = iota
	// alongK operands are contiguous along the contracted space, alongFree operands along
	// the free space.
	alongK
	alongFree
)

// scheduleMma emits a contraction by multiply-adds, with kernels that stage operands before it
// and that add up split-K parts after it.
func scheduleMma(e *emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan) []Launch {
	var launches []Launch
	var scratch [2]*fusion.Tensor
	for i, layout := range p.layout {
		if layout == staged {
			var l Launch
			l, scratch[i] = stageOperand(e, g, c, p, i)
			launches = append(launches, l)
		}
	}
	// Tiles and positions fit I32; only offsets into arrays may be long.
	m := newMmaEmitter(newEmitter(e.p, e.caps), g, c, p, scratch)
	if p.parts == 1 {
		return append(launches, m.kernel(g.Name(), m.out.stores))
	}
	partial := newPartial(0, ir.F32, g, p.parts)
	first := m.kernel(g.Name()+"_parts", m.partial(partial))
	return append(launches, first, e.sibling().combineParts(g.Reduction(), p.parts, []*fusion.Tensor{partial}))
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
func planMma(e *emitter, g *fusion.Group, c *fusion.Contraction) (p *mmaPlan, ok bool) {
	d, ok := mmaOperand(c, e.caps)
	counted := max(fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)) <= loop.MaxElements
	if !ok || !counted || !tileable(c) {
		return nil, false
	}
	p = &mmaPlan{operand: d}
	for i := range p.layout {
		p.layout[i] = layoutOf(e, g, c, d, i)
	}
	p.orient()
	return p, true
}

// orient picks the operand along the rows. The one along the columns, if f32, must be contiguous
// along k, see [loop.Tile].
func (p *mmaPlan) orient() {
	if p.operand != ir.F32 || p.layout[1] != alongFree {
		return
	}
	if p.layout[0] == alongFree {
		p.layout[1] = staged
		return
	}
	p.rows = 1
}

// free returns the free spaces of the rows' and of the columns' operand.
func (p *mmaPlan) free(c *fusion.Contraction) (rows, columns []int) {
	if p.rows == 1 {
		return c.N, c.M
	}
	return c.M, c.N
}

// stepLength returns the contracted elements of a step.
func (p *mmaPlan) stepLength() int { return mmaStep / p.operand.Size() }

// tiles returns the number of tiles along the rows and along the columns.
func (p *mmaPlan) tiles(c *fusion.Contraction) (rows, columns int) {
	r, n := p.free(c)
	return ceilDiv(fusion.Product(r), mmaRows), ceilDiv(fusion.Product(n), p.columns)
}

// split cuts the contracted space into at most parts parts of whole steps.
func (p *mmaPlan) split(c *fusion.Contraction, parts int) {
	steps := ceilDiv(fusion.Product(c.K), p.stepLength())
	p.steps = ceilDiv(steps, parts)
	if p.inRegisters() {
		p.steps += p.steps % 2 // the loop body has two steps
	}
	p.parts = ceilDiv(steps, p.steps)
}

// inRegisters reports whether the rows' operand goes through registers, because multiply-adds
// cannot read its layout from shared memory.
func (p *mmaPlan) inRegisters() bool { return p.operand == ir.F32 && p.layout[p.rows] == alongFree }

// roundColumns is the number of columns of results that pass through shared memory in a round.
const roundColumns = 64

// mbarrierBytes is the size of a [loop.Mbarrier].
const mbarrierBytes = 8

// sharedBytes returns the bytes of workgroup memory of the stages and of a round of results.
func (t mmaTile) sharedBytes() int {
	return t.stages*(t.stageBytes()+2*mbarrierBytes) + 4*mmaRows*(roundColumns+maxRoundPad)
}

func (t mmaTile) stageBytes() int { return (mmaRows + t.columns) * mmaStep }

// inFlight returns the number of steps whose copies are in flight while one is multiplied.
func (t mmaTile) inFlight() int { return t.stages - t.stagesRead }

// tileOverhead estimates the nanoseconds of a tile's prologue and epilogue, filling the stages
// and storing the results: four dependent loads, whatever the device.
const tileOverhead = 2500

// chooseMma completes a plan with the fastest tile, or returns false if tiles without
// multiply-adds are faster.
func chooseMma(p mmaPlan, c *fusion.Contraction, caps loop.Caps) (best *mmaPlan, ok bool) {
	lowest := 2 * mulAddCount(c) / caps.Profile().Arithmetic()
	for _, t := range mmaTilesFor(caps) {
		q := p.withTile(t)
		q.split(c, q.wantedParts(c, caps))
		if time := q.cost(c, caps); time < lowest {
			best, lowest = &q, time
		}
	}
	return best, best != nil
}

// withTile returns the plan with a tile.
func (p *mmaPlan) withTile(t mmaTile) mmaPlan {
	q := *p
	q.mmaTile = t
	return q
}

// cost estimates the nanoseconds of all launches.
func (p *mmaPlan) cost(c *fusion.Contraction, caps loop.Caps) float64 {
	return p.time(c, caps) + p.stagingTime(c, caps)
}

// wantedParts returns the split-K parts that keep the multiprocessors busy if there are few
// tiles, as long as each part fills the stages.
func (p *mmaPlan) wantedParts(c *fusion.Contraction, caps loop.Caps) int {
	rows, columns := p.tiles(c)
	count := fusion.Product(c.Batch) * rows * columns
	steps := ceilDiv(fusion.Product(c.K), p.stepLength())
	return max(1, min(caps.Profile().Processors/count, steps/p.stages, maxParts(c, caps)))
}

// time estimates the nanoseconds of the products.
func (p *mmaPlan) time(c *fusion.Contraction, caps loop.Caps) float64 {
	rows, columns := p.tiles(c)
	d := caps.Profile()
	waves := math.Ceil(float64(fusion.Product(c.Batch)*rows*columns*p.parts) / float64(d.Processors))
	rate := p.rate * d.MatrixScale()
	if p.operand == ir.F32 {
		rate /= 2
	}
	time := d.Launch + waves*(tileOverhead+2*float64(mmaRows*p.columns*p.steps*p.stepLength())/rate)
	if p.parts > 1 {
		time += d.Launch + 8*resultCount(c)*float64(p.parts)/d.Bandwidth()
	}
	return time
}

// stagingTime estimates the nanoseconds of the kernels that stage operands.
func (p *mmaPlan) stagingTime(c *fusion.Contraction, caps loop.Caps) float64 {
	d, time := caps.Profile(), 0.0
	for i, free := range [2][]int{c.M, c.N} {
		if p.layout[i] == staged {
			elements := float64(fusion.Product(c.Batch) * fusion.Product(free) * fusion.Product(c.K))
			time += d.Launch + elements*float64(4+p.operand.Size())/d.Bandwidth()
		}
	}
	return time
}
