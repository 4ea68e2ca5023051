package reduce

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// The costs of reductions on CUDA. The constants are of the hardware, not fitted; over 101 groups of 26 training steps
// on an H200 the cheapest schedule takes 1.05 times the fastest's time in the mean, 1.14 by the roofline alone.
const (
	// inGraph is the time of a launch behind another in a graph, over that of a launch that a host waits for.
	inGraph = 0.6
	// nextLoad is the latency of a load that waits for another, over the first's: neighbours share its lines.
	nextLoad = 0.5
	// shuffleTime is the nanoseconds of a shuffle and of a combination that waits for it.
	shuffleTime = 15
	// pointOps are the operations of an element beside its value, in a thread that has several.
	pointOps = 4
	// busyThreads are those with which a multiprocessor issues in each cycle.
	busyThreads = 512
	// maxGroups is the number of workgroups that a multiprocessor holds.
	maxGroups = 32
)

// latencyCost estimates the nanoseconds of a reduction on CUDA: waves of workgroups, each of which waits for its loads
// and for the combinations of its lanes, and issues its operations, or memory's time where it is longer.
func (w *Space) latencyCost(s emit.Schedule) float64 {
	rows, length := max(fusion.Product(w.Group.Outer), 1), max(fusion.Product(w.Group.Inner), 1)
	groups, threads := emit.CeilDiv(rows, s.Rows)*s.Split, s.Lanes*s.Rows
	d := w.e.Caps.Profile()
	bytes := w.touchedBytes()
	sectors := bytes
	if short := min(s.Lanes, length); s.Family == emit.Rows && short < emit.SectorElements {
		sectors *= float64(emit.SectorElements) / float64(short)
	} else if s.Family == emit.Rows && w.Group.RowsAreContiguous() {
		sectors *= emit.SectorElements
	}
	each := emit.CeilDiv(emit.CeilDiv(length, s.Split), s.Lanes)
	all := float64(groups) * float64(threads) // idle lanes, too
	ops := all * (float64(each)*float64(w.Group.Weight()+pointOps) + emit.PointOps)
	busy := min(1, all/float64(busyThreads*d.Processors))
	atOnce := d.Processors * min(maxGroups, max(1, d.Resident()/d.Processors/threads))
	waves := max(1, float64(groups)/float64(atOnce))
	time := inGraph*d.Launch + max(bytes/d.Bandwidth(), sectors/d.CacheBandwidth(), d.OpsTime(ops)/busy+waves*w.waitTime(s, each))
	if s.Split > 1 {
		time += d.Launch/2 + 2*4*float64(rows*s.Split)/d.Bandwidth()
	}
	return time
}

// touchedBytes returns the memory traffic: of a tensor of which the rows are a part, the sectors of their elements.
func (w *Space) touchedBytes() float64 {
	elements := float64(max(fusion.Product(w.Group.Outer), 1)) * float64(max(fusion.Product(w.Group.Inner), 1))
	bytes := emit.BytesOf(w.Group.Writes())
	for _, t := range w.Group.Reads() {
		bytes += min(float64(t.Bytes()), elements*hardware.SectorBytes)
	}
	return bytes
}

// waitTime returns the nanoseconds that a workgroup waits: for the first load of its threads, for those that wait for
// others, and for the combinations of lanes. Elements in registers are loaded together; a loop that stores them has
// no loads ahead of its stores.
func (w *Space) waitTime(s emit.Schedule, each int) float64 {
	d := w.e.Caps.Profile()
	stages := 0
	for _, l := range w.Group.Levels() {
		stages = max(stages, l)
	}
	stores := w.storesRows()
	combinations := stages + 1
	if stores {
		combinations = max(stages, 1)
	}
	loads := 1
	if layout := rowLayoutOf(s, w.Group); each > 1 && (each > maxUnrolled || each*w.Group.Weight() > maxUnrolledWeight) {
		loads = emit.CeilDiv(each, w.aheadOf(layout)) * (stages + 1)
		if stores {
			loads = emit.CeilDiv(each, w.aheadOf(layout))*stages + each
		}
	}
	return d.Latency*(1+nextLoad*float64(loads-1)) + float64(combinations)*w.combineTime(s)
}

// storesRows reports whether the kernel stores a value for each element of the rows.
func (w *Space) storesRows() bool {
	elements := fusion.Product(w.Group.Outer) * fusion.Product(w.Group.Inner)
	for _, t := range w.Group.Writes() {
		if t.Len() >= elements {
			return true
		}
	}
	return false
}

// aheadOf returns the elements of a thread whose loads are in flight together in a loop.
func (w *Space) aheadOf(layout rowLayout) int {
	ahead := MaxUnroll
	if layout.rowsFirst {
		ahead = columnUnroll(w.e, w.Group)
	}
	for ahead > 1 && ahead*w.Group.Weight() > maxUnrolledWeight {
		ahead /= 2
	}
	return ahead
}

// combineTime returns the nanoseconds to combine the lanes of a row: by shuffles, with two barriers where they are of
// several warps; in columns through shared memory, with four barriers where lanes do not read all others.
func (w *Space) combineTime(s emit.Schedule) float64 {
	d, time := w.e.Caps.Profile(), 0.0
	switch {
	case s.Lanes == 1:
	case s.Family == emit.Columns && s.Lanes > directLanes:
		time = 4 * d.Barrier
	case s.Family == emit.Columns || s.Lanes > loop.Warp:
		time = 2 * d.Barrier
	}
	for lanes := s.Lanes; s.Family == emit.Rows && lanes > 1; lanes /= 2 {
		time += shuffleTime
	}
	return time
}

// cheapestLanes returns a schedule with other lanes where its cost is lower. The parts of a row stay: twice
// the parts gain 0.4 to 2 µs alone, and lose more in a step, in which launches run beside each other. So do workgroups of
// more threads, which read rows that exceed the cache.
func (w *Space) cheapestLanes(s emit.Schedule) emit.Schedule {
	best, usual, threads := s, w.cost(s), emit.UsualThreads(w.e.Caps)
	if s.Lanes > threads {
		return s
	}
	for _, lanes := range []int{s.Lanes / 8, s.Lanes / 4, s.Lanes / 2, 2 * s.Lanes} {
		t := s
		t.Lanes = lanes
		if s.Family == emit.Rows {
			t.Rows = max(s.Rows, threads/max(lanes, 1))
		}
		if (s.Family == emit.Columns || lanes <= threads) && w.Fits(t) && w.cost(t) < min(usual/minGain, w.cost(best)) {
			best = t
		}
	}
	return best
}

// minGain is the ratio of costs from which other lanes of a row are taken.
const minGain = 1.05
