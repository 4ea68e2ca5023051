package scan

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// space is the schedule space of a scan: the threads and workgroups that share a row.
type space struct{ *scan } // nil without elements

// NewSpace returns the schedule space of a scan.
func NewSpace(e *emit.Emitter, g *fusion.Group) emit.Space { return space{scanOf(e, g)} }

const (
	// minAdjacent is the number of adjacent rows from which threads scan rows serially:
	// neighbouring threads then read whole sectors.
	minAdjacent = emit.SectorElements
	// minScanSteps is the minimum number of elements per thread that pays for the launches of a
	// split.
	minScanSteps = 64
	// scanEach is the number of contiguous elements of a thread at a time, where there is room:
	// a sector of f32.
	scanEach = emit.SectorElements
	// serialRows is the number of adjacent rows per workgroup: a warp's.
	serialRows = 32
	// minTiles is the minimum number of tiles of a row that is split, which reads it twice and
	// takes one or two more launches. An estimate.
	minTiles = 4
)

// fullWorkgroups returns the number of workgroups that share rows.
func fullWorkgroups(caps loop.Caps) int { return rowGroups * caps.Profile().Processors }

// rowGroups is four times the resident workgroups of 256 threads of a multiprocessor, so
// that workgroups that end early have successors: one row of 2²⁴ moved 2,504 GB/s with it,
// 2,450 with half as many (H200, WebGPU; in CUDA both 2,700).
const rowGroups = 32

// rule returns the default schedule.
func (p space) rule() emit.Schedule {
	s := p.blockScan()
	switch {
	case p.stride >= minAdjacent:
		s = p.serialScan()
	case p.vectors():
		if whole := p.registerScan(); whole.Lanes >= minLanes {
			s = whole
		}
	}
	if p.arrays() > p.e.Caps.Tensors() {
		s.Split = 1 // no bindings for the totals of chunks
	}
	return s
}

// arrays is the number of tensors that the last launch of split rows binds.
func (p space) arrays() int { return p.tensors + len(p.accs) }

// serialScan returns a serial-scan schedule with enough threads per row to fill a device, with
// split rows where a workgroup is not enough.
func (p space) serialScan() emit.Schedule {
	s := emit.Schedule{Family: emit.SerialScan, Lanes: 1, Rows: min(serialRows, emit.PowerOfTwo(p.rows)), Each: 1, Split: 1}
	if p.length < minScanSteps {
		s.Rows = min(p.e.Caps.Invocations, emit.GroupThreads)
		return s
	}
	s.Each = scanEach
	for s.Lanes*s.Rows < min(p.e.Caps.Invocations, emit.GroupThreads) && s.Lanes < scanEach {
		s.Lanes *= 2
	}
	for s.Lanes*s.Rows < min(p.e.Caps.Invocations, emit.GroupThreads) {
		s.Rows *= 2
	}
	s.Split = max(1, min(emit.FullThreads(p.e.Caps)/(p.rows*s.Lanes), p.length/(s.Lanes*minScanSteps)))
	return p.moreGroups(s)
}

// moreGroups returns a serial scan with more threads a row in more workgroups, of as few rows as fill sectors, where its
// workgroups leave processors idle and that takes less time.
func (p space) moreGroups(s emit.Schedule) emit.Schedule {
	for t := s; s.Split == 1 && t.Rows > minAdjacent && emit.CeilDiv(p.rows, t.Rows) < p.e.Caps.Profile().Processors; {
		t.Rows, t.Lanes = t.Rows/2, min(2*t.Lanes, 2*scanEach)
		if p.cost(t) < p.cost(s) {
			s = t
		}
	}
	return s
}

// blockScan returns a block-scan schedule with tiles as large as fit workgroup memory besides two
// running values per thread. Short rows share a workgroup; few long ones are split.
func (p space) blockScan() emit.Schedule {
	threads, each := min(p.e.Caps.Invocations, emit.GroupThreads), scanEach
	for !p.fitsTile(threads, each) && threads > loop.Warp { // fewer threads leave lanes of a warp idle
		threads /= 2
	}
	for each > 1 && (!p.fitsTile(threads, each) || each/2 >= p.length) {
		each /= 2
	}
	lanes := min(threads, emit.PowerOfTwo(emit.CeilDiv(p.length, each)))
	for threads > lanes && threads/2/lanes >= p.rows {
		threads /= 2
	}
	s := emit.Schedule{Family: emit.BlockScan, Lanes: lanes, Rows: threads / lanes, Each: each, Split: 1}
	p.split(&s)
	return s
}

// minLanes is the minimum number of threads per row of a register scan: with fewer, rows are
// too short for coalesced loads.
const minLanes = 8

// registerScan returns a register-scan schedule with as many strips as workgroup memory has
// room for.
func (p space) registerScan() emit.Schedule {
	s := emit.Schedule{Family: emit.RegisterScan, Each: emit.VectorWidth * maxStrips, Rows: 1, Split: 1}
	threads := min(p.e.Caps.Invocations, emit.GroupThreads)
	for s.Each > emit.VectorWidth && (!p.fitsPartials(threads, s.Each/emit.VectorWidth) || s.Each/2 >= p.length) {
		s.Each /= 2
	}
	s.Lanes = min(threads, emit.PowerOfTwo(emit.CeilDiv(p.length, s.Each)))
	for s.Rows*s.Lanes < threads && s.Rows < p.rows {
		s.Rows *= 2
	}
	p.split(&s)
	if s.Split > 1 && s.Each > emit.VectorWidth && !p.gathers(s) {
		less := s
		less.Each /= 2
		if p.split(&less); p.gathers(less) { // the gathered totals fit as well
			return less
		}
	}
	return s
}

// split splits rows of many tiles over as many workgroups as fill a device.
func (p space) split(s *emit.Schedule) {
	s.Split = 1
	if tiles := emit.CeilDiv(p.length, s.Lanes*s.Each); tiles >= minTiles {
		s.Split = max(1, min(fullWorkgroups(p.e.Caps)/p.rows, tiles))
	}
}

// fitsPartials reports whether workgroup memory holds the partial results of the strips of all
// threads, twice.
func (p space) fitsPartials(threads, strips int) bool {
	return 2*threads*strips*p.accBytes() <= p.e.Caps.SharedBytes
}

// fitsTile reports whether workgroup memory holds a tile.
func (p space) fitsTile(threads, each int) bool {
	n := threads * each
	return (n+n/padding+2*threads)*p.accBytes() <= p.e.Caps.SharedBytes
}

// accBytes is the size of a set of running values.
func (p *scan) accBytes() int {
	bytes := 0
	for _, a := range p.accs {
		bytes += loop.DeviceSize(a.DType)
	}
	return bytes
}

// Rule returns the default schedule, see [emit.Space].
func (w space) Rule() emit.Schedule {
	if w.scan == nil {
		return emit.Schedule{}
	}
	return w.rule()
}

// Candidates returns the schedules worth measuring, see [emit.Space].
func (w space) Candidates() []emit.Ranked {
	if w.scan == nil {
		return []emit.Ranked{{}}
	}
	rule := w.rule()
	list := []emit.Ranked{{Schedule: rule, Cost: w.cost(rule)}}
	add := func(s emit.Schedule) {
		if w.Fits(s) {
			list = append(list, emit.Ranked{Schedule: s, Cost: w.cost(s)})
		}
	}
	for _, base := range []emit.Schedule{rule, w.blockScan(), w.serialScan(), w.registerScan()} {
		for _, split := range []int{base.Split, 1, base.Split / 4, base.Split / 2, 2 * base.Split} {
			s := base
			s.Split = split
			add(s)
		}
		for _, each := range []int{base.Each / 2, 2 * base.Each} {
			s := base
			s.Each = each
			add(s)
		}
	}
	return list
}

// Fits reports whether the group can be lowered by a schedule.
func (w space) Fits(s emit.Schedule) bool {
	if w.scan == nil {
		return s == emit.Schedule{}
	}
	p := w
	if s.Lanes < 1 || s.Rows < 1 || s.Each < 1 || s.Split < 1 ||
		s != (emit.Schedule{Family: s.Family, Lanes: s.Lanes, Rows: s.Rows, Each: s.Each, Split: s.Split}) {
		return false
	}
	threads := s.Lanes * s.Rows
	if emit.PowerOfTwo(threads) != threads || emit.PowerOfTwo(s.Lanes) != s.Lanes || threads > p.e.Caps.Invocations || s.Each > 2*scanEach {
		return false
	}
	if s.Split > 1 && (p.arrays() > p.e.Caps.Tensors() || s.Split > emit.CeilDiv(p.length, s.Lanes*s.Each)) {
		return false
	}
	switch s.Family {
	case emit.SerialScan:
		return s.Lanes <= 2*scanEach
	case emit.BlockScan:
		return p.fitsTile(threads, s.Each)
	case emit.RegisterScan:
		return s.Each%emit.VectorWidth == 0 && p.fitsPartials(threads, s.Each/emit.VectorWidth) && p.vectors()
	}
	return false
}

// Emit returns the launches of a schedule that fits.
func (w space) Emit(s emit.Schedule) []emit.Launch {
	if w.scan == nil {
		return nil
	}
	return w.launches(s)
}

// cost estimates the time to read the elements, once more where rows are split, and to store
// the results.
func (p space) cost(s emit.Schedule) float64 {
	d, cut, elements := p.e.Caps.Profile(), p.chunking(s), float64(p.rows)*float64(p.length)
	load, apart := p.work(s), 0.0
	if cut.chunks > 1 {
		apart = d.Launch + 4*elements/d.Bandwidth()
		if p.gathers(s) {
			load.Sectors += p.gatheredBytes(s)
		} else {
			apart += d.Launch
		}
	}
	tiles := float64(emit.CeilDiv(cut.chunk, s.Lanes*s.Each))
	waves := d.Waves(emit.CeilDiv(p.rows, s.Rows)*cut.chunks, s.Rows*s.Lanes)
	return apart + math.Max(load.Time(d), d.Launch+tiles*waves*d.Latency)
}

// work is the work of the launch that stores the results, without the gathered totals.
func (p space) work(s emit.Schedule) hardware.Work {
	elements := float64(p.rows) * float64(p.length)
	threads := emit.CeilDiv(p.rows, s.Rows) * p.chunking(s).chunks * s.Rows * s.Lanes
	load := hardware.Work{Bytes: 4 * elements * float64(p.tensors), Threads: threads, BytesInFlight: 4 * s.Each}
	together := p.stride // contiguous elements per warp
	if s.Family != emit.SerialScan {
		together = emit.SectorElements
		if p.stride > 1 {
			together = 1
		}
	}
	load.Sectors = load.Bytes * math.Max(1, float64(emit.SectorElements)/float64(together))
	load.Ops = elements * emit.PointOps
	return load
}
