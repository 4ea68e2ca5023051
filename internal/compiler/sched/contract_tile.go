package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// tile is how a contraction is cut: a workgroup computes m×n results, each of
// its threads rm×rn of them, or so many threads together, in steps of k along the
// contracted space. m, n, rm and rn are multiples of 4, the width of a vector. Where stages
// is not 0, copies bring the operands, and so many steps of them are in workgroup memory.
type tile struct{ m, n, k, rm, rn, together, stages int }

// tiles are the choices, in the order in which they are tried. Larger ones load less per
// result, smaller ones make more workgroups, narrow ones waste less on narrow results. The
// second, of which a multiprocessor has two workgroups at most, is for tuners: a step of an
// MLP of 4096 rows took 538 µs by it and 517 by the first, and some of its products have
// taken 1.8 times as long as those of the first (H200, WebGPU).
var tiles = []tile{
	{64, 128, 8, 8, 8, 1, 0},
	{128, 128, 8, 8, 8, 1, 0},
	{64, 64, 8, 8, 8, 1, 0},
	{32, 32, 16, 4, 4, 1, 0},
	{64, 16, 16, 4, 4, 1, 0},
	{16, 64, 16, 4, 4, 1, 0},
}

// tilesOf are the tiles that are chosen from on a target: where it has fragments, those in
// place of others as wide.
func tilesOf(caps loop.Caps) []tile {
	if withMma && caps.Fragments {
		narrow := slices.DeleteFunc(slices.Clone(tiles), func(t tile) bool { return min(t.m, t.n) >= fragmentTiles[1].m })
		return append(slices.Clone(fragmentTiles), narrow...)
	}
	return tiles
}

// Bounds of cutting a contraction into tiles. What they choose is held to times that were
// measured on an H200, which has 132 multiprocessors: see TestUntunedIsNearTuned.
const (
	enoughTiles = 200 // workgroups that keep a large device busy: three for two multiprocessors
	fewTiles    = 32  // so few leave three quarters of it idle,
	deepSpace   = 256 // which matters when each of them has this long to go
	// partLength is of a contracted space that is cut into parts, eight steps or more: of
	// the first one nothing is computed while it is loaded.
	partLength = 128
	// wantedThreads is how many threads a product should have to fill a large device:
	// four workgroups of 64×128 results on each of an H200's 132 multiprocessors.
	wantedThreads = 132 * 4 * 128
	// Products of shortWork multiplications take little longer in tiles for wholeThreads or
	// more than a second launch does, which adds up parts.
	shortWork    = 1 << 29
	wholeThreads = 1 << 14
	// shallowSpace is the longest step of any tile. What is contracted fits it where a network's
	// classes are: of 10 a tile of two steps computes 16, and waits twice. A product of 4096 × 10 with
	// 10 × 512 took 4 of its 14 µs less in one step (H200, WebGPU, within a training step).
	shallowSpace = 16
	thinSide     = 2 // results this thin are a matrix times a vector
	mostWaste    = 4 // how often what is asked for the tiles may compute
	// smallProduct is so few multiplications that a launch takes longer, and
	// shortSpace so few in a row that one thread can do them. Tiles gain nothing
	// there, and on GPUs made of software cost much: SwiftShader takes a second to
	// compile their workgroup memory, whose initialisation it writes out word by
	// word, and long at every barrier.
	smallProduct = 1 << 21
	shortSpace   = 256
)

func (t tile) threads() int { return t.m / t.rm * (t.n / t.rn) * t.together }

// sharedBytes is the workgroup memory of two buffers of both operands, and of what
// fragments need besides.
func (t tile) sharedBytes() int {
	if withMma && t.stages > 0 {
		return t.pipelineBytes()
	}
	if withMma && t.together > 1 {
		return t.fragmentBytes()
	}
	return 2 * t.k * (t.m + t.n) * 4
}

// draft returns the tile of a draft, which has a quarter of the sums in each thread: a
// driver takes 90 to 140 ms to compile a kernel of 64 sums (NVIDIA's, Vulkan), and half of that
// for one of 16. Steps are as long as the tile's own, so that sums are
// cut at the same places, and each thread brings one vector of either operand.
func (t tile) draft() (tile, bool) {
	return tile{32, 32, t.k, 4, 4, 1, 0}, t.rm*t.rn > 16 && t.together == 1 && t.stages == 0
}

// count is how many tiles cover the results of a contraction.
func (t tile) count(c *fusion.Contraction) int {
	return fusion.Product(c.Batch) * ceilDiv(fusion.Product(c.M), t.m) * ceilDiv(fusion.Product(c.N), t.n)
}

// padded is how many results the tiles of a contraction have room for.
func (t tile) padded(c *fusion.Contraction) float64 { return float64(t.count(c)) * float64(t.m*t.n) }

// parts is over how many workgroups the sum of each result is spread, where
// there are few tiles, the contracted space is long, and the partial sums fit an
// array.
func (t tile) parts(c *fusion.Contraction, caps loop.Caps) int {
	return max(1, min(wantedThreads/(t.count(c)*t.threads()), fusion.Product(c.K)/partLength, mostParts(c, caps)))
}

func (t tile) fits(caps loop.Caps) bool {
	if withMma && t.stages > 0 {
		return t.pipelines(caps)
	}
	return t.threads() <= caps.Invocations && t.sharedBytes() <= caps.SharedBytes && (t.together == 1 || caps.Fragments && caps.Lanes() == t.together)
}

// tileable reports whether a tile can compute c at all.
func tileable(c *fusion.Contraction) bool {
	return c.Acc == ir.F32 && points(c) > 0
}

// small reports whether each result is best computed by one thread alone.
func small(c *fusion.Contraction) bool {
	k := fusion.Product(c.K)
	return points(c) <= smallProduct && k <= shortSpace && float64(k) <= sums(c)
}

// chooseTile returns the first tile that makes enough workgroups and computes
// hardly more in vain than any other, and how many parts it cuts sums into; or
// false where tiles do not pay.
func chooseTile(c *fusion.Contraction, caps loop.Caps) (best tile, parts int, ok bool) {
	m, n, k := fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)
	if !tileable(c) || min(m, n) <= thinSide || small(c) {
		return tile{}, 0, false
	}
	least := mostWaste * sums(c)
	all := tilesOf(caps)
	for _, t := range all {
		least = min(least, t.padded(c))
	}
	groups := 0
	for _, t := range all {
		if !t.fits(caps) || t.wastes(c, least, all) || t.k < k && k <= shallowSpace {
			continue
		}
		if t.together < best.together {
			break // nobody has measured where more workgroups outweigh what fragments do at once
		}
		if p := t.parts(c, caps); groups < enoughTiles && t.count(c)*p > groups {
			best, parts, groups = t, p, t.count(c)*p
		}
	}
	if parts > 1 && points(c) <= shortWork {
		for _, t := range all {
			if t.fits(caps) && !t.wastes(c, least, all) && t.count(c)*t.threads() >= wholeThreads {
				return t, 1, true
			}
		}
	}
	return best, parts, groups > 0 && (groups >= fewTiles || k < deepSpace)
}

// wastes reports whether a tile computes a quarter more, in vain, than the one that does
// least, and is not the faster one all the same.
func (t tile) wastes(c *fusion.Contraction, least float64, all []tile) bool {
	if 4*t.padded(c) <= 5*least {
		return false
	}
	for _, other := range all {
		own, others := t.padded(c)/t.rate(), other.padded(c)/other.rate()
		if 4*other.padded(c) <= 5*least && 5*own > 4*others {
			return true
		}
	}
	return t.padded(c) > mostWaste*sums(c)
}

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
