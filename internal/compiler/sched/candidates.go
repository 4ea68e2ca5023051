package sched

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Ranked is a schedule with its estimated time.
type Ranked struct {
	Schedule
	Cost float64 // nanoseconds
}

// MaxCandidates is the maximum number of candidates of a group.
const MaxCandidates = 12

// scheduleSpace is the schedule space of a group, and its lowering by each schedule.
type scheduleSpace interface {
	// rule returns the default schedule, used where nothing was measured.
	rule() Schedule
	// candidates returns schedules with their costs, the default first.
	candidates() []Ranked
	// fits reports whether the group can be lowered by a schedule.
	fits(s Schedule) bool
	// emit returns the launches of a schedule that fits.
	emit(s Schedule) []Launch
}

// Candidates returns between 1 and [MaxCandidates] schedules of a group: the default first,
// then the others by cost and, at equal cost, by text. They depend only on the group's
// canonical text and on the target. The errors are those of [Emit].
//
// The default comes from rules that know more than the cost model: those of contractions avoid
// workgroup memory where it gains little, since software GPUs take long to compile it.
func Candidates(g *fusion.Group, caps loop.Caps) (list []Ranked, err error) {
	defer recovered(g, &err)
	w, err := spaceOf(g, caps)
	if err != nil {
		return nil, err
	}
	return ranked(w.candidates()), nil
}

// ranked sorts all but the first and drops duplicates. An insertion sort: another instance of
// package slices' sort takes a page of wasm more.
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

// before orders schedules by cost, then by text.
func (r Ranked) before(o Ranked) bool {
	return cmp.Or(cmp.Compare(r.Cost, o.Cost), cmp.Compare(r.String(), o.String())) < 0
}

// Emit returns the launches of a group by a schedule, in order. It depends on nothing else, and
// adds tensors to the partition for what passes between launches. The error is of kind
// [ir.ErrUnsupported] for a schedule that the group cannot have, for a group of kind
// ControlKind, and for one of kind KernelsKind where the target has no kernels; of kind
// [ir.ErrDef] where the kernels of an op do not fit it. A compiler bug is returned as an error
// that names the group, or found by [loop.Check], which the caller runs before printing or
// running a kernel.
func Emit(g *fusion.Group, s Schedule, caps loop.Caps) (launches []Launch, err error) {
	defer recovered(g, &err)
	w, err := spaceOf(g, caps)
	if err != nil {
		return nil, err
	}
	return emitBy(w, g, s)
}

func emitBy(w scheduleSpace, g *fusion.Group, s Schedule) ([]Launch, error) {
	if !w.fits(s) {
		return nil, ir.Errorf(ir.ErrUnsupported, "%s cannot be scheduled by %q", g.Name(), s)
	}
	return w.emit(s), nil
}

// recovered turns a panic in the lowering of a group into an error.
func recovered(g *fusion.Group, err *error) {
	if r := recover(); r != nil {
		*err = format.Errorf("sched: cannot schedule %s: %v", g.Name(), r)
	}
}

// spaceOf returns the schedule space of a group.
func spaceOf(g *fusion.Group, caps loop.Caps) (scheduleSpace, error) {
	switch {
	case g.Kind == fusion.ControlKind:
		return nil, ir.Errorf(ir.ErrUnsupported, "a %s group has no kernel of its own", g.Kind)
	case g.Kind == fusion.KernelsKind:
		launches, err := scheduleKernels(g, caps)
		return sole(func() []Launch { return launches }), err
	case caps.Invocations == 1 && g.Kind != fusion.SortKind:
		return sole(func() []Launch { return scheduleSerial(g, caps) }), nil
	case len(g.Parts) > 0:
		return sole(func() []Launch { return partsLaunch(mapParts(g, caps)) }), nil
	}
	e := newEmitter(g.Partition(), caps)
	e.long = g.Long()
	switch g.Kind {
	case fusion.ReduceKind:
		return newReduceSpace(e, g), nil
	case fusion.ContractKind:
		return newContractCandidates(e, g), nil
	case fusion.PrefixKind:
		return newScanSpace(e, g), nil
	case fusion.SortKind:
		return newSortSpace(g, caps), nil
	case fusion.TotalKind:
		return sole(func() []Launch { return scheduleTotal(e, g) }), nil
	case fusion.AttentionKind:
		return sole(func() []Launch { return scheduleAttend(e, g) }), nil
	case fusion.ScatterKind:
		return sole(func() []Launch { return scheduleScatter(g, caps) }), nil
	}
	return newMapSpace(e, g), nil
}

// sole is a schedule space with one schedule.
type sole func() []Launch

func (f sole) rule() Schedule         { return Schedule{} }
func (f sole) candidates() []Ranked   { return []Ranked{{}} }
func (f sole) fits(s Schedule) bool   { return s == Schedule{} }
func (f sole) emit(Schedule) []Launch { return f() }
