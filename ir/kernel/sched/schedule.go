package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

// Schedule returns the kernels of a group, in order. It may add tensors to the
// program for what goes from one of them to the next. The error is of kind
// [ir.ErrUnsupported] for a group of kind ControlKind, which has no kernels of
// its own, or where the target has none for one of kind KernelsKind; it is of kind
// [ir.ErrDef] where the kernels that an op brings do not fit it. A compiler bug comes back as an error that names the group, or is found
// by [loop.Check], which whoever prints or runs a kernel has to call.
func Schedule(g *group.Group, caps loop.Caps) (launches []Launch, err error) {
	defer recovered(g, &err)
	if g.Kind == group.ControlKind {
		return nil, ir.Errorf(ir.ErrUnsupported, "a %s group has no kernel of its own", g.Kind)
	}
	if g.Kind == group.KernelsKind {
		return scheduleKernels(g, caps)
	}
	if inParts(g, caps) {
		return bundle(mapParts(g, caps, literalsInside)), nil
	}
	return schedule(newEmitter(g.Program(), caps), g), nil
}

// inParts reports whether a group becomes kernels only when its tensors have places.
func inParts(g *group.Group, caps loop.Caps) bool {
	return caps.Invocations > 1 && (len(g.Parts) > 0 || updates(g))
}

// recovered makes an error of a panic in the work on a group.
func recovered(g *group.Group, err *error) {
	if r := recover(); r != nil {
		*err = format.Errorf("sched: cannot schedule %s: %v", g.Name(), r)
	}
}

func schedule(e *emitter, g *group.Group) []Launch {
	if e.caps.Invocations == 1 && g.Kind != group.SortKind {
		return scheduleSerial(g, e.caps)
	}
	switch g.Kind {
	case group.ReduceKind:
		return scheduleReduce(e, g)
	case group.ContractKind:
		return scheduleContract(e, g)
	case group.PrefixKind:
		return schedulePrefix(e, g)
	case group.TotalKind:
		return scheduleTotal(e, g)
	case group.AttendKind:
		return scheduleAttend(e, g)
	case group.ScatterKind:
		return scheduleScatter(g, e.caps)
	case group.SortKind:
		return scheduleSort(g, e.p, e.caps)
	}
	return scheduleMaps(e, g.Name(), []*group.Group{g})
}
