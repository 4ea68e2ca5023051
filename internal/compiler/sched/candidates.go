package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/attention"
	"github.com/rlx-go/rlx/internal/compiler/sched/elementwise"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/indexed"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/internal/compiler/sched/scan"
	"github.com/rlx-go/rlx/internal/compiler/sched/serial"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// MaxCandidates is the maximum number of candidates of a group.
const MaxCandidates = 12

// Candidates returns between 1 and [MaxCandidates] schedules of a group: the default first,
// then the others by cost and, at equal cost, by text. They depend only on the group's
// canonical text and on the target. The errors are those of [Emit].
//
// The default comes from rules that know more than the cost model: those of contractions avoid
// workgroup memory where it gains little, since software GPUs take long to compile it.
func Candidates(g *fusion.Group, caps loop.Caps) (list []emit.Ranked, err error) {
	defer recovered(g, &err)
	w, err := spaceOf(g, caps)
	if err != nil {
		return nil, err
	}
	return ranked(w.Candidates()), nil
}

// ranked sorts all but the first and drops duplicates. An insertion sort: another instance of
// package slices' sort takes a page of wasm more.
func ranked(list []emit.Ranked) []emit.Ranked {
	out := list[:1:1]
	for _, r := range list[1:] {
		if slices.ContainsFunc(out, func(o emit.Ranked) bool { return o.Schedule == r.Schedule }) {
			continue
		}
		out = append(out, r)
		for i := len(out) - 1; i > 1 && out[i].Before(out[i-1]); i-- {
			out[i-1], out[i] = out[i], out[i-1]
		}
	}
	return out[:min(len(out), MaxCandidates)]
}

// Emit returns the launches of a group by a schedule, in order. It depends on nothing else, and
// adds tensors to the partition for what passes between launches. The error is of kind
// [ir.ErrUnsupported] for a schedule that the group cannot have, for a group of kind
// ControlKind, and for one of kind KernelsKind where the target has no kernels; of kind
// [ir.ErrDef] where the kernels of an op do not fit it. A compiler bug is returned as an error
// that names the group, or found by [loop.Check], which the caller runs before printing or
// running a kernel.
func Emit(g *fusion.Group, s emit.Schedule, caps loop.Caps) (launches []emit.Launch, err error) {
	defer recovered(g, &err)
	w, err := spaceOf(g, caps)
	if err != nil {
		return nil, err
	}
	return emitBy(w, g, s)
}

func emitBy(w emit.Space, g *fusion.Group, s emit.Schedule) ([]emit.Launch, error) {
	if !w.Fits(s) {
		return nil, ir.Errorf(ir.ErrUnsupported, "%s cannot be scheduled by %q", g.Name(), s)
	}
	return uncontracted(g, w.Emit(s)), nil
}

// uncontracted marks the kernels of a group that finds the largest or smallest of computed values: the derivative compares
// these with it for equality, in another kernel, and must find the same bits. That kernel is marked when it is emitted.
func uncontracted(g *fusion.Group, launches []emit.Launch) []emit.Launch {
	extreme := func(m *fusion.Member) bool {
		switch m.Node.Op() {
		case ops.OpReduceMax, ops.OpReduceMin, ops.OpScatterMax, ops.OpScatterMin:
			return true
		}
		return false
	}
	if emit.WithMma && slices.ContainsFunc(g.Members, extreme) {
		for _, l := range launches {
			if l.Kernel != nil {
				l.Kernel.Uncontracted = true
			}
		}
	}
	return launches
}

// recovered turns a panic in the lowering of a group into an error.
func recovered(g *fusion.Group, err *error) {
	if r := recover(); r != nil {
		*err = format.Errorf("sched: cannot schedule %s: %v", g.Name(), r)
	}
}

// spaceOf returns the schedule space of a group.
func spaceOf(g *fusion.Group, caps loop.Caps) (emit.Space, error) {
	switch {
	case g.Kind == fusion.ControlKind:
		return nil, ir.Errorf(ir.ErrUnsupported, "a %s group has no kernel of its own", g.Kind)
	case g.Kind == fusion.KernelsKind || g.Kind == fusion.RoutineKind:
		launches, err := ownKernels(g, caps)
		return sole(func() []emit.Launch { return launches }), err
	case caps.Invocations == 1 && g.Kind != fusion.SortKind:
		return sole(func() []emit.Launch { return serial.Emit(g, caps) }), nil
	case len(g.Parts) > 0:
		return sole(func() []emit.Launch { return emit.PartsLaunch(elementwise.Parts(g, caps)) }), nil
	}
	e := emit.New(g.Partition(), caps)
	e.Long = g.Long()
	switch g.Kind {
	case fusion.ReduceKind:
		return reduce.NewSpace(e, g), nil
	case fusion.ContractKind:
		return matmul.NewSpace(e, g), nil
	case fusion.PrefixKind:
		return scan.NewSpace(e, g), nil
	case fusion.SortKind:
		return indexed.NewSortSpace(g, caps), nil
	case fusion.TotalKind:
		return sole(func() []emit.Launch { return reduce.Total(e, g) }), nil
	case fusion.AttentionKind:
		return attention.NewSpace(e, g), nil
	case fusion.ScatterKind:
		return sole(func() []emit.Launch { return indexed.Scatter(g, caps) }), nil
	}
	return elementwise.NewSpace(e, g), nil
}

// sole is a schedule space with one schedule.
type sole func() []emit.Launch

// Rule returns the default schedule, see [emit.Space].
func (f sole) Rule() emit.Schedule { return emit.Schedule{} }

// Candidates returns the schedules worth measuring, see [emit.Space].
func (f sole) Candidates() []emit.Ranked { return []emit.Ranked{{}} }

// Fits reports whether the group can be lowered by a schedule.
func (f sole) Fits(s emit.Schedule) bool { return s == emit.Schedule{} }

// Emit returns the launches of a schedule that fits.
func (f sole) Emit(emit.Schedule) []emit.Launch { return f() }
