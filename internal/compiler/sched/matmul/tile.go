package matmul

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// tile is the shape of a tiled contraction. A workgroup computes m×n results and each thread
// rm×rn of them, or together threads do as a subgroup. A step is k contracted positions. m, n,
// rm and rn are multiples of 4, the vector width. A nonzero stages selects the pipeline of
// asynchronous copies with that many stages in workgroup memory. A tile of registers has no
// workgroup memory, see [registers].
type tile struct {
	m, n, k, rm, rn, lanes, stages int
	registers                      bool
}

// tiles are the candidates, in the order of trial. Larger ones load less per result, smaller
// ones make more workgroups, narrow ones waste less on narrow results. The second is for tuners:
// a multiprocessor holds at most two of its workgroups. A step of an MLP of 4096 rows took 538
// µs with it and 517 with the first, and some of its products took 1.8 times as long as with the
// first (H200, WebGPU).
var tiles = []tile{
	{64, 128, 8, 8, 8, 1, 0, false},
	{128, 128, 8, 8, 8, 1, 0, false},
	{64, 64, 8, 8, 8, 1, 0, false},
	{32, 32, 16, 4, 4, 1, 0, false},
	{64, 16, 16, 4, 4, 1, 0, false},
	{16, 64, 16, 4, 4, 1, 0, false},
}

// tilesFor returns the candidates on a target: where it has fragments, fragment tiles replace
// others as wide.
func tilesFor(caps loop.Caps) []tile {
	if emit.CostlyBarriers(caps) {
		return registerTiles
	}
	if emit.WithMma && caps.Fragments {
		narrow := slices.DeleteFunc(slices.Clone(tiles), func(t tile) bool { return min(t.m, t.n) >= fragmentTiles[1].m })
		return append(slices.Clone(fragmentTiles), narrow...)
	}
	return tiles
}

// Thresholds of the choice of a tile. TestUntunedIsNearTuned holds the choices to times
// measured on an H200, which has 132 multiprocessors.
const (
	enoughTiles = 200 // workgroups that keep a large device busy: three for two multiprocessors
	fewTiles    = 32  // fewer workgroups idle three quarters of a large device, which
	deepSpace   = 256 // matters from this contracted length on
	// partLength is the minimum contracted length of a split-K part: at least eight steps,
	// as no arithmetic hides the load of the first.
	partLength = 128
	// Up to shortWork multiply-adds, a contraction with wholeThreads threads or more does
	// not gain from split-K: adding up the parts takes a second launch.
	shortWork    = 1 << 29
	wholeThreads = 1 << 14
	// shallowSpace is the longest step of any tile. Contractions over a network's classes
	// fit one step: of 10 positions, a tile of two steps computes 16 and waits twice. A
	// product of 4096 × 10 with 10 × 512 took 10 instead of 14 µs in one step (H200,
	// WebGPU, within a training step).
	shallowSpace = 16
	// maxWaste is the maximum ratio of computed to wanted results. On GPUs it is thinWaste, for convolutions to three
	// channels: one of f32 took 15 µs by these tiles, and 37 as a reduction (H200, CUDA, where costs choose).
	maxWaste, thinWaste = 4, 6
	// A contraction of up to [emit.SmallProduct] multiply-adds takes less time than a launch, and
	// one thread can do a row of up to shortSpace.
	shortSpace = 256
)

// threads returns the number of threads of a workgroup.
func (t tile) threads() int { return t.m / t.rm * (t.n / t.rn) * t.lanes }

// sharedBytes returns the bytes of workgroup memory of a tile: two buffers of both operands, all
// stages of a pipeline, or the buffers of fragments.
func (t tile) sharedBytes() int {
	if t.registers {
		return 0
	}
	if emit.WithMma && t.stages > 0 {
		return pipelineBytes(t)
	}
	if emit.WithMma && t.lanes > 1 {
		return fragmentBytes(t)
	}
	return 2 * t.k * (t.m + t.n) * 4
}

// draft returns the tile of a draft kernel, which has a quarter of the accumulators per thread:
// a driver takes 90 to 140 ms to compile a kernel of 64 accumulators (NVIDIA's, Vulkan), and
// half of that for one of 16. It keeps k, so that split-K cuts at the same places, and each
// thread loads one vector of each operand.
func (t tile) draft() (tile, bool) {
	return tile{32, 32, t.k, 4, 4, 1, 0, t.registers}, t.rm*t.rn > 16 && t.lanes == 1 && t.stages == 0
}

// count returns the number of tiles that cover the results of a contraction.
func (t tile) count(c *fusion.Contraction) int {
	return fusion.Product(c.Batch) * emit.CeilDiv(fusion.Product(c.M), t.m) * emit.CeilDiv(fusion.Product(c.N), t.n)
}

// padded returns the number of results that the tiles of a contraction have room for.
func (t tile) padded(c *fusion.Contraction) float64 { return float64(t.count(c)) * float64(t.m*t.n) }

// parts returns the split-K parts that fill the device: more than one if there are few
// tiles, the contracted space is long, and one array holds the partial sums.
func (t tile) parts(c *fusion.Contraction, caps loop.Caps) int {
	return max(1, min(caps.Profile().SplitThreads/(t.count(c)*t.threads()), fusion.Product(c.K)/partLength, maxParts(c, caps)))
}

// fits reports whether a target has what the tile needs.
func (t tile) fits(caps loop.Caps) bool {
	if emit.WithMma && t.stages > 0 {
		return fitsPipeline(t, caps)
	}
	return t.threads() <= caps.Invocations && t.sharedBytes() <= caps.SharedBytes && (t.lanes == 1 || caps.Fragments && caps.Lanes() == t.lanes)
}

// tileable reports whether tiles can compute c at all.
func tileable(c *fusion.Contraction) bool {
	return c.Acc == ir.F32 && mulAddCount(c) > 0
}

// small reports whether each result is best computed by one thread alone.
func small(c *fusion.Contraction) bool {
	k := fusion.Product(c.K)
	return mulAddCount(c) <= emit.SmallProduct && k <= shortSpace && float64(k) <= resultCount(c)
}

// chooseTile returns the first tile that makes enough workgroups without wasting much more than
// others, and its split-K parts. It returns false if tiles do not pay.
func chooseTile(c *fusion.Contraction, caps loop.Caps) (best tile, parts int, ok bool) {
	m, n, k := fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)
	if !tileable(c) || min(m, n) <= emit.ThinSide || small(c) {
		return tile{}, 0, false
	}
	waste := thinWaste
	if emit.CostlyBarriers(caps) || emit.WithMma && caps.Dialect == dtype.CUDA {
		waste = maxWaste
	}
	minPadded := float64(waste) * resultCount(c)
	all := tilesFor(caps)
	for _, t := range all {
		minPadded = min(minPadded, t.padded(c))
	}
	if emit.CostlyBarriers(caps) {
		return chooseRegisters(c, caps, minPadded)
	}
	groups := 0
	for _, t := range all {
		if !t.fits(caps) || t.wasteful(c, minPadded, all) || t.k < k && k <= shallowSpace {
			continue
		}
		if t.lanes < best.lanes {
			break // not measured where more workgroups outweigh fragments
		}
		if p := t.parts(c, caps); groups < enoughTiles && t.count(c)*p > groups {
			best, parts, groups = t, p, t.count(c)*p
		}
	}
	if parts > 1 && mulAddCount(c) <= shortWork {
		for _, t := range all {
			if t.fits(caps) && !t.wasteful(c, minPadded, all) && t.count(c)*t.threads() >= wholeThreads {
				return t, 1, true
			}
		}
	}
	return best, parts, groups > 0 && (groups >= fewTiles || k < deepSpace)
}

// wasteful reports whether a tile computes a quarter more results than the least, unless it is
// still faster than those that do not.
func (t tile) wasteful(c *fusion.Contraction, minPadded float64, all []tile) bool {
	if 4*t.padded(c) <= 5*minPadded {
		return false
	}
	for _, other := range all {
		own, others := t.padded(c)/t.rate(), other.padded(c)/other.rate()
		if 4*other.padded(c) <= 5*minPadded && 5*own > 4*others {
			return true
		}
	}
	return t.padded(c) > maxWaste*resultCount(c)
}

// sharedBalance is the ratio of multiply-adds to loads from workgroup memory from which on
// arithmetic bounds a tile: a multiprocessor does 128 multiply-adds and loads 32 numbers per
// cycle.
const sharedBalance = 4

// resultCount returns the number of results of a contraction. It is a float because it may
// overflow an int of 32 bits.
func resultCount(c *fusion.Contraction) float64 {
	return float64(fusion.Product(c.Batch)) * float64(fusion.Product(c.M)) * float64(fusion.Product(c.N))
}

// mulAddCount returns the number of multiply-adds of a contraction, as a float.
func mulAddCount(c *fusion.Contraction) float64 { return resultCount(c) * float64(fusion.Product(c.K)) }

// maxParts returns the maximum number of split-K parts: one array of f32, addressed by 32 bits,
// holds the partial sums.
func maxParts(c *fusion.Contraction, caps loop.Caps) int {
	return int(math.Min(float64(caps.BindingBytes)/4, loop.MaxElements) / resultCount(c))
}

// rate returns the tile's rate of arithmetic relative to the peak rate of tiles that load
// operands through registers.
func (t tile) rate() float64 {
	if emit.WithMma && t.stages > 0 {
		return copiedRate
	}
	return math.Min(1, float64(t.rm*t.rn)/float64(t.rm+t.rn)/sharedBalance)
}

// copiedRate is the rate of pipelined tiles relative to others: products of 4096 run at 51 to 52
// TFLOP/s on an H200 with asynchronous copies, and at 38.6 through registers.
const copiedRate = 1.48

// cost estimates the nanoseconds of a tiled contraction with split-K parts.
func (t tile) cost(c *fusion.Contraction, parts int, caps loop.Caps) float64 {
	d, groups := caps.Profile(), t.count(c)*parts
	if t.registers {
		return t.registersCost(c, parts, d)
	}
	steps := emit.CeilDiv(fusion.Product(c.K), parts*t.k)
	own := 2 * float64(t.m*t.n) * float64(t.k*steps)
	waves := math.Ceil(float64(groups) / float64(d.Processors))
	if emit.WithMma && t == tall && waves == 1 {
		waves /= tallAloneRate
	}
	read := float64(groups) * float64(4*(t.m+t.n)) * float64(t.k*steps)
	time := d.Launch + max(
		waves*own/(d.Flops*t.rate()),
		read/d.CacheBandwidth(),
		float64(steps)*d.Latency/2, // the arithmetic of the step before hides a part
	)
	if parts > 1 {
		time += d.Launch + 8*resultCount(c)*float64(parts)/d.Bandwidth()
	}
	return time
}

// tallAloneRate is the share of its peak at which a multiprocessor runs a single workgroup of
// tall tiles: a product of 1024, in 128 of them, took 53 µs on an H200, and 56 when split into
// 256 (one launch more).
const tallAloneRate = 0.9

// cheapestParts returns the number of split-K parts with the lowest cost.
func cheapestParts(t tile, c *fusion.Contraction, caps loop.Caps) int {
	best, lowest := 1, math.Inf(1)
	for parts := range min(fusion.Product(c.K)/partLength, maxParts(c, caps)) {
		if cost := t.cost(c, parts+1, caps); cost < lowest {
			best, lowest = parts+1, cost
		}
	}
	return best
}

// reductionCost estimates the nanoseconds of a contraction as a reduction, whose operands come
// from the cache. With one thread per result, neighbouring threads share one operand.
func reductionCost(c *fusion.Contraction, s emit.Schedule, caps loop.Caps) float64 {
	work := mulAddCount(c)
	each := fusion.Product(c.K)/max(s.Lanes*s.Split, 1) + 1
	read := 8 * work
	if s.Family == emit.Columns {
		read = 4 * work
	}
	if thin := min(fusion.Product(c.M), fusion.Product(c.N)); thin <= emit.ThinSide {
		read = 4 * work // a matrix that is read once, and vectors that stay in the cache
	}
	d := caps.Profile()
	time := d.Launch + max(
		read/d.CacheBandwidth(),
		d.OpsTime(work*emit.PointOps),
		float64(each)/reduce.MaxUnroll*d.Latency*d.Waves(int(resultCount(c))*s.Split, s.Lanes),
	)
	if s.Split > 1 {
		time += d.Launch
	}
	return time
}
