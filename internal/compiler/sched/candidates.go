package sched

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// Ranked is a schedule with the time that it is expected to take.
type Ranked struct {
	Schedule
	Cost float64 // nanoseconds
}

// MaxCandidates is how many schedules are compared for a group at most.
const MaxCandidates = 12

// ways are the schedules that a group may have, and what it becomes by each.
type ways interface {
	// rule is the schedule that is taken where nobody has measured.
	rule() Schedule
	// candidates returns schedules with their costs, the rule's first.
	candidates() []Ranked
	// fits reports whether the group may have a schedule of one of its families.
	fits(s Schedule) bool
	// emit returns the launches of a schedule that fits.
	emit(s Schedule) []Launch
}

// Candidates returns the schedules that are worth comparing for a group, at least one
// and at most [MaxCandidates]: first the one that is taken where nobody has measured,
// then the others by cost and, where that is the same, by their text. They depend on
// the group's canonical text and on the target alone. The error is that of [Emit].
//
// What comes first is told by rules, which know more than costs do: those of products
// keep away from workgroup memory where that gains little, since GPUs made of software
// take long to compile it.
func Candidates(g *fusion.Group, caps loop.Caps) (list []Ranked, err error) {
	defer recovered(g, &err)
	w, err := waysOf(g, caps)
	if err != nil {
		return nil, err
	}
	return ranked(w.candidates()), nil
}

// ranked sorts all but the first, each once. There are few, and each comes to its place
// among those before it: another type to sort by package slices takes a page longer to load.
func ranked(list []Ranked) []Ranked {
	out := list[:1:1]
	for _, r := range list[1:] {
		if slices.ContainsFunc(out, func(o Ranked) bool { return o.Schedule == r.Schedule }) {
			continue
		}
		out = append(out, r)
		for i := len(out) - 1; i > 1 && out[i].before(out[i-1]); i-- {
			out[i-1], out[i] = out[i], out[i-1]
		}
	}
	return out[:min(len(out), MaxCandidates)]
}

// before reports whether a schedule is better than another, or as good with a lesser text.
func (r Ranked) before(o Ranked) bool {
	return cmp.Or(cmp.Compare(r.Cost, o.Cost), cmp.Compare(r.String(), o.String())) < 0
}

// Emit returns the launches of a group by a schedule, in order. It depends on nothing
// else, and adds tensors to the partition for what goes from one launch to the next. The
// error is of kind [ir.ErrUnsupported] for a schedule that the group cannot have, for a
// group of kind ControlKind, which has no kernels of its own, or where the target has none
// for one of kind KernelsKind; it is of kind [ir.ErrDef] where the kernels that an op
// brings do not fit it. A compiler bug comes back as an error that names the group, or is
// found by [loop.Check], which whoever prints or runs a kernel has to call.
func Emit(g *fusion.Group, s Schedule, caps loop.Caps) (launches []Launch, err error) {
	defer recovered(g, &err)
	w, err := waysOf(g, caps)
	if err != nil {
		return nil, err
	}
	return emitBy(w, g, s)
}

func emitBy(w ways, g *fusion.Group, s Schedule) ([]Launch, error) {
	if !w.fits(s) {
		return nil, ir.Errorf(ir.ErrUnsupported, "%s cannot be scheduled by %q", g.Name(), s)
	}
	return w.emit(s), nil
}

// recovered makes an error of a panic in the work on a group.
func recovered(g *fusion.Group, err *error) {
	if r := recover(); r != nil {
		*err = format.Errorf("sched: cannot schedule %s: %v", g.Name(), r)
	}
}

// waysOf finds the ways of a group.
func waysOf(g *fusion.Group, caps loop.Caps) (ways, error) {
	switch {
	case g.Kind == fusion.ControlKind:
		return nil, ir.Errorf(ir.ErrUnsupported, "a %s group has no kernel of its own", g.Kind)
	case g.Kind == fusion.KernelsKind:
		launches, err := scheduleKernels(g, caps)
		return sole(func() []Launch { return launches }), err
	case caps.Invocations == 1 && g.Kind != fusion.SortKind:
		return sole(func() []Launch { return scheduleSerial(g, caps) }), nil
	case len(g.Parts) > 0:
		return sole(func() []Launch { return bundle(mapParts(g, caps)) }), nil
	}
	e := newEmitter(g.Partition(), caps)
	e.long = g.Long()
	switch g.Kind {
	case fusion.ReduceKind:
		return &reduceWays{e, g}, nil
	case fusion.ContractKind:
		return newContractWays(e, g), nil
	case fusion.PrefixKind:
		return newPrefixWays(e, g), nil
	case fusion.SortKind:
		return newSortWays(g, caps), nil
	case fusion.TotalKind:
		return sole(func() []Launch { return scheduleTotal(e, g) }), nil
	case fusion.AttendKind:
		return sole(func() []Launch { return scheduleAttend(e, g) }), nil
	case fusion.ScatterKind:
		return sole(func() []Launch { return scheduleScatter(g, caps) }), nil
	}
	return newMapWays(e, g), nil
}

// sole is a group that becomes kernels in one way.
type sole func() []Launch

func (f sole) rule() Schedule         { return Schedule{} }
func (f sole) candidates() []Ranked   { return []Ranked{{}} }
func (f sole) fits(s Schedule) bool   { return s == Schedule{} }
func (f sole) emit(Schedule) []Launch { return f() }

// sectorElements is how many elements of 4 bytes a sector of memory has.
const sectorElements = hardware.SectorBytes / 4

// pointOps is what a thread does for an element besides computing it: to find where it
// lies, to load and to store it.
const pointOps = 10

// bytesOf is what tensors take in memory.
func bytesOf(tensors []*fusion.Tensor) float64 {
	n := 0.0
	for _, t := range tensors {
		n += float64(t.Bytes())
	}
	return n
}
