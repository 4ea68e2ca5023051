package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/hardware"
)

// reduceWays are the ways of a reduction: over how many threads and workgroups its rows
// are spread.
type reduceWays struct {
	e *emitter
	g *fusion.Group
}

func (w *reduceWays) rule() Schedule {
	s := w.e.shapeRows(w.g)
	s.Split = w.e.evenParts(w.g, s, w.g.RowParts())
	return s
}

func (w *reduceWays) candidates() []Ranked {
	rule := w.rule()
	list := []Ranked{{rule, w.cost(rule)}}
	add := func(s Schedule) {
		if s != rule && w.fits(s) {
			list = append(list, Ranked{s, w.cost(s)})
		}
	}
	for _, lanes := range []int{rule.Lanes / 4, rule.Lanes / 2, 2 * rule.Lanes} {
		s := rule
		s.Lanes = lanes
		add(s)
		for s.Family == Rows && s.Rows*s.Lanes < usualThreads(w.e.caps) {
			s.Rows *= 2
		}
		add(s)
	}
	for _, split := range []int{1, rule.Split / 2, 2 * rule.Split, 4 * rule.Split} {
		s := rule
		s.Split = split
		add(s)
	}
	return list
}

// fits takes powers of two of threads, as those in which they meet are, and as many
// parts of rows as leave each thread something to do.
func (w *reduceWays) fits(s Schedule) bool {
	if s.Family != Rows && s.Family != Columns || s.Lanes < 1 || s.Rows < 1 || s.Split < 1 ||
		s != (Schedule{Family: s.Family, Lanes: s.Lanes, Rows: s.Rows, Split: s.Split}) {
		return false
	}
	threads, length := s.Lanes*s.Rows, max(fusion.Product(w.g.Inner), 1)
	if powerOfTwo(s.Lanes) != s.Lanes || powerOfTwo(s.Rows) != s.Rows || threads > w.e.caps.Invocations || s.Lanes > powerOfTwo(length) {
		return false
	}
	return s.Split == 1 || s.Split*s.Lanes <= length && w.splits()
}

// splits reports whether rows may be cut: the running values between the two kernels
// are bound like any other tensor.
func (w *reduceWays) splits() bool {
	if !w.g.Splits() {
		return false
	}
	running := 0
	for _, m := range w.g.Members {
		if m.Reduced {
			running += len(m.Reduction().Accumulators(m.Node))
		}
	}
	return running+max(len(w.g.Reads()), len(w.g.Writes())) <= w.e.caps.Tensors()
}

// cost is that of reading what the rows are made of, by as many threads as there are,
// and of a tree in which those of a row meet after each stage.
func (w *reduceWays) cost(s Schedule) float64 {
	rows, length := max(fusion.Product(w.g.Outer), 1), max(fusion.Product(w.g.Inner), 1)
	groups := ceilDiv(rows, s.Rows) * s.Split
	each := ceilDiv(ceilDiv(length, s.Split), s.Lanes)
	load := hardware.Work{
		Bytes:   bytesOf(w.g.Reads()) + bytesOf(w.g.Writes()),
		Threads: groups * s.Lanes * s.Rows, UnderWay: 4 * min(each, maxTogether),
		Ops: float64(rows) * float64(length) * float64(w.g.Weight()+pointOps),
	}
	load.Sectors = load.Bytes
	if short := min(s.Lanes, length); s.Family == Rows && short < sectorElements {
		load.Sectors *= float64(sectorElements) / float64(short)
	}
	d := w.e.caps.Profile()
	time := load.Time(d)
	for lanes := s.Lanes; lanes > 1; lanes /= 2 {
		time += d.Barrier * d.Waves(groups, s.Lanes*s.Rows)
	}
	if s.Split > 1 {
		time += d.Launch + 2*4*float64(rows*s.Split)/d.Bandwidth()
	}
	return time
}

func (w *reduceWays) emit(s Schedule) []Launch { return scheduleReduce(w.e, w.g, s) }
