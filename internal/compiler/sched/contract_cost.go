package sched

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
)

// sharedBalance is how many products there must be for each number read from workgroup
// memory so that arithmetic bounds a tile: a multiprocessor does 128 products in a cycle
// and reads 32 numbers.
const sharedBalance = 4

// sums is how many results a contraction has, and points how many products it adds up.
// They are floats, as products may be more than an int of 32 bits holds.
func sums(c *fusion.Contraction) float64 {
	return float64(fusion.Product(c.Batch)) * float64(fusion.Product(c.M)) * float64(fusion.Product(c.N))
}

func points(c *fusion.Contraction) float64 { return sums(c) * float64(fusion.Product(c.K)) }

// mostParts is into how many parts sums can be cut so that one array of f32 holds them, which
// is not long.
func mostParts(c *fusion.Contraction, caps loop.Caps) int {
	return int(math.Min(float64(caps.BindingBytes)/4, loop.MaxElements) / sums(c))
}

// rate is which part of a multiprocessor's arithmetic the tile can use, of that of tiles
// whose operands go by way of registers.
func (t tile) rate() float64 {
	if withMma && t.stages > 0 {
		return copiedRate
	}
	return math.Min(1, float64(t.rm*t.rn)/float64(t.rm+t.rn)/sharedBalance)
}

// copiedRate is how much faster tiles are whose operands are copied: products of 4096 run at
// 51 and 52 TFLOP/s in such on an H200, and at 38.6 by way of registers.
const copiedRate = 1.48

// cost estimates the nanoseconds of a contraction in tiles with its sums cut into parts.
func (t tile) cost(c *fusion.Contraction, parts int, caps loop.Caps) float64 {
	d, groups := caps.Profile(), t.count(c)*parts
	steps := ceilDiv(fusion.Product(c.K), parts*t.k)
	own := 2 * float64(t.m*t.n*t.k*steps)
	turns := math.Ceil(float64(groups) / float64(d.Processors))
	if withMma && t == tall && turns == 1 {
		turns /= alone
	}
	read := float64(groups) * float64(4*(t.m+t.n)*t.k*steps)
	time := d.Launch + max(
		turns*own/(d.Flops*t.rate()),
		read/d.CacheBandwidth(),
		float64(steps)*d.Latency/2, // of which the arithmetic of the step before hides a part
	)
	if parts > 1 {
		time += d.Launch + 8*sums(c)*float64(parts)/d.Bandwidth()
	}
	return time
}

// alone is which part of its arithmetic a multiprocessor uses that has one workgroup of tall
// tiles whose operands are copied: a product of 1024, in 128 of them, took 53 µs on an H200,
// and 56 cut into 256 (a launch more).
const alone = 0.9

// cheapestParts is into how many parts sums are cut at the least cost.
func (t tile) cheapestParts(c *fusion.Contraction, caps loop.Caps) int {
	best, least := 1, math.Inf(1)
	for parts := range min(fusion.Product(c.K)/partLength, mostParts(c, caps)) {
		if cost := t.cost(c, parts+1, caps); cost < least {
			best, least = parts+1, cost
		}
	}
	return best
}

// reductionCost estimates the nanoseconds of a contraction as a reduction, whose factors
// come from the cache: for one thread each result, neighbouring threads share one of
// them.
func reductionCost(c *fusion.Contraction, s Schedule, caps loop.Caps) float64 {
	work := points(c)
	each := fusion.Product(c.K)/max(s.Lanes*s.Split, 1) + 1
	read := 8 * work
	if s.Family == Columns {
		read = 4 * work
	}
	if thin := min(fusion.Product(c.M), fusion.Product(c.N)); thin <= thinSide {
		read = 4 * work // a matrix that is read once, and vectors that stay near
	}
	d := caps.Profile()
	time := d.Launch + max(
		read/d.CacheBandwidth(),
		d.OpsTime(work*pointOps),
		float64(each)/maxTogether*d.Latency*d.Waves(int(sums(c))*s.Split, s.Lanes),
	)
	if s.Split > 1 {
		time += d.Launch
	}
	return time
}
