package sched

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

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
