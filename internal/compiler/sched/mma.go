package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// mmaRows is the rows of results of a workgroup that computes with multiply-adds:
// those of two warp groups.
const mmaRows = 2 * loop.AtomRows

// mmaThreads is their threads.
const mmaThreads = 2 * loop.WarpGroup

// mmaStep is how many bytes a step goes along the contracted space: a row of a
// tile in shared memory.
const mmaStep = 128

// mmaTile is how many columns of results a workgroup computes, and how many steps
// of both operands its shared memory holds: those that threads may be reading, and
// those on their way. Rate is how many operations of bf16 a multiprocessor does with it
// in a nanosecond. Those of f32 are half as fast.
type mmaTile struct {
	columns, stages int
	// read is how many steps threads may be reading: one, and where multiply-adds go on
	// after they were begun one whose reading others may not have waited for.
	read int
	rate float64
}

// mmaTiles are the choices where warp groups multiply: for 256 and 128 columns measured
// on an H200 with matrices of 8192, for 64 an estimate.
var mmaTiles = []mmaTile{
	{256, 4, 2, 5000},
	{128, 6, 2, 4300},
	{64, 8, 2, 2800},
}

// mmaTilesByWarps are those where warps do, with the most stages that pay. Each warp
// reads all columns from shared memory, 128 bytes in a cycle, which bounds the rate: that
// of 256 columns was measured on an H200 with matrices of 4096, and the others are as much
// less as the bound is.
var mmaTilesByWarps = []mmaTile{
	{256, 4, 1, 2500},
	{128, 6, 1, 2350},
	{64, 6, 1, 2100},
}

// mmaTilesOf are the choices on a target, with the stages that its shared memory holds.
func mmaTilesOf(caps loop.Caps) []mmaTile {
	if !caps.MmaByWarps {
		return slices.DeleteFunc(slices.Clone(mmaTiles), func(t mmaTile) bool { return t.sharedBytes() > caps.MmaBytes })
	}
	var out []mmaTile
	for _, t := range mmaTilesByWarps {
		results := t.sharedBytes() - t.stages*t.stageBytes()
		t.stages = min(t.stages, (caps.MmaBytes-results)/t.stageBytes())
		if t.stages > t.read {
			out = append(out, t)
		}
	}
	return out
}

// mmaRowGroup is how many rows of tiles are computed near each other in time: they
// share columns in the cache. Of 8, 16 and 32 it is the best for products of 8192.
const mmaRowGroup = 16

// mmaPlan is how a contraction is computed by multiply-adds.
type mmaPlan struct {
	mmaTile
	operand ir.DType
	// rows is the operand that the rows of atoms are of; the columns are the
	// other's.
	rows   int
	layout [2]mmaLayout
	steps  int // of a part
	parts  int // of the contracted space, each for a workgroup of its own
}

// mmaLayout is how an operand comes to shared memory.
type mmaLayout uint8

const (
	// staged operands are written to memory of their own first: what has to be
	// computed, and what does not lie in pieces of 16 bytes.
	staged mmaLayout = iota
	// alongK operands have neighbours along the contracted space, alongFree along
	// the free one.
	alongK
	alongFree
)

// scheduleMma computes a contraction by multiply-adds of warp groups.
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
	// Tiles, and positions in a space, are counted in I32: only places in arrays are long.
	m := newMmaEmitter(newEmitter(e.p, e.caps), g, c, p, scratch)
	if p.parts == 1 {
		return append(launches, m.kernel(g.Name(), m.out.members))
	}
	partial := newPartial(0, ir.F32, g, p.parts)
	first := m.kernel(g.Name()+"_parts", m.partial(partial))
	return append(launches, first, e.another().combineParts(g.Reduction(), p.parts, []*fusion.Tensor{partial}))
}

// mmaOperand is the type that a contraction multiplies, if the target has
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

// planMma finds out how a contraction can be computed by multiply-adds, in tiles that
// are still to be chosen.
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

// orient decides which operand the rows are of. The columns of f32 have their
// neighbours along k, see [loop.Tile].
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

// free returns the free spaces of the rows' and the columns' operand.
func (p *mmaPlan) free(c *fusion.Contraction) (rows, columns []int) {
	if p.rows == 1 {
		return c.N, c.M
	}
	return c.M, c.N
}

// length is how many elements a step goes along the contracted space.
func (p *mmaPlan) length() int { return mmaStep / p.operand.Size() }

func (p *mmaPlan) tiles(c *fusion.Contraction) (rows, columns int) {
	r, n := p.free(c)
	return ceilDiv(fusion.Product(r), mmaRows), ceilDiv(fusion.Product(n), p.columns)
}

// split cuts the contracted space into at most so many parts of whole steps.
func (p *mmaPlan) split(c *fusion.Contraction, parts int) {
	steps := ceilDiv(fusion.Product(c.K), p.length())
	p.steps = ceilDiv(steps, parts)
	if p.inRegisters() {
		p.steps += p.steps % 2 // two of them are one turn of the loop
	}
	p.parts = ceilDiv(steps, p.steps)
}

// inRegisters reports whether the rows' operand goes through registers: where
// tiles cannot have it as it lies.
func (p *mmaPlan) inRegisters() bool { return p.operand == ir.F32 && p.layout[p.rows] == alongFree }

// roundColumns is how many columns of results go by way of shared memory at once,
// and roundRow the elements from one row of them to the next.
const roundColumns = 64

// mbarrierBytes are those of a barrier of [loop.Mbarrier].
const mbarrierBytes = 8

// sharedBytes is the workgroup memory of the stages and of a round of results.
func (t mmaTile) sharedBytes() int {
	return t.stages*(t.stageBytes()+2*mbarrierBytes) + 4*mmaRows*(roundColumns+maxRoundPad)
}

func (t mmaTile) stageBytes() int { return (mmaRows + t.columns) * mmaStep }

// ahead is how many steps are on their way while one is multiplied.
func (t mmaTile) ahead() int { return t.stages - t.read }

// tileStart is an estimate of the nanoseconds of filling the stages and storing the results
// of a tile: four loads one after the other, whatever the device.
const tileStart = 2500

// chooseMma completes a plan with the tile that takes the least time, if that is
// less than tiles without multiply-adds take.
func chooseMma(p mmaPlan, c *fusion.Contraction, caps loop.Caps) (best *mmaPlan, ok bool) {
	least := 2 * points(c) / caps.Profile().Arithmetic()
	for _, t := range mmaTilesOf(caps) {
		q := p.in(t)
		q.split(c, q.wantedParts(c, caps))
		if time := q.cost(c, caps); time < least {
			best, least = &q, time
		}
	}
	return best, best != nil
}

// in returns the plan with a tile.
func (p *mmaPlan) in(t mmaTile) mmaPlan {
	q := *p
	q.mmaTile = t
	return q
}

// cost estimates the nanoseconds of all launches.
func (p *mmaPlan) cost(c *fusion.Contraction, caps loop.Caps) float64 {
	return p.time(c, caps) + p.stagingTime(c, caps)
}

// wantedParts is over how many workgroups each sum is spread: as many as keep the
// multiprocessors busy where there are few tiles, as long as a part fills the
// stages.
func (p *mmaPlan) wantedParts(c *fusion.Contraction, caps loop.Caps) int {
	rows, columns := p.tiles(c)
	count := fusion.Product(c.Batch) * rows * columns
	steps := ceilDiv(fusion.Product(c.K), p.length())
	return max(1, min(caps.Profile().Processors/count, steps/p.stages, mostParts(c, caps)))
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
	time := d.Launch + waves*(tileStart+2*float64(mmaRows*p.columns*p.steps*p.length())/rate)
	if p.parts > 1 {
		time += d.Launch + 8*sums(c)*float64(p.parts)/d.Bandwidth()
	}
	return time
}

// stagingTime estimates the nanoseconds of what comes before the products.
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
