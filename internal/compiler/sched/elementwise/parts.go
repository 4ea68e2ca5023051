package elementwise

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Work computes the elements of a map.
type Work struct {
	Group *fusion.Group // the map
	Words *fusion.Words // nil: all literals are in the kernel
}

// A thread of horizontally fused maps computes up to MaxPerThread elements, to share the search
// for its part, as long as FullGroups workgroups remain to hide the latency of the search:
// twice the resident workgroups of an H200, eight on each of 132 multiprocessors.
const (
	MaxPerThread = 4
	FullGroups   = 2048
)

// Name returns the kernel's name.
func (m Work) Name() string { return m.Group.Name() + "_parts" }

// IsMap reports whether the work is an element-wise map.
func (m Work) IsMap() bool { return true }

// Share returns the maximum number of elements per workgroup.
func (m Work) Share() int { return MaxPerThread * emit.GroupThreads }

// Write writes the work of a workgroup.
func (m Work) Write(w *emit.Emitter, s emit.Segment) {
	first := w.Let("first", scalar.Add(scalar.Mul(scalar.Mul(s.Workgroup, s.PerThread), loop.Int(emit.GroupThreads)), loop.LocalID(0, emit.GroupThreads)))
	w.Loop("item", loop.Int(0), s.PerThread, 1, MaxPerThread-1, func(item scalar.Expr) {
		name := w.Name("i")
		w.Add(&loop.Let{Name: name, Value: scalar.Add(first, scalar.Mul(item, loop.Int(emit.GroupThreads)))})
		i := scalar.NewVar(name, ir.I32, 0, loop.MaxElements-1)
		w.When(scalar.Lt(scalar.FreeVar(name, ir.I32), s.Length), func() {
			m.Words.Read(func() { w.Add(mapElements(w, m.Group, w.Unflatten(i, m.Group.Outer))...) })
		})
	})
}

// Updates reports whether a group is a map that only stores states. It is lowered as a part,
// even by itself, so that maps like it of other lengths share its kernel.
func Updates(g *fusion.Group) bool {
	return g.Kind == fusion.MapKind && !slices.ContainsFunc(g.Writes(), func(t *fusion.Tensor) bool { return !t.Root().Persistent() })
}

// Parts returns the parts of horizontally fused maps, with all literals in their kernels.
func Parts(g *fusion.Group, caps loop.Caps) []emit.Part {
	var out []emit.Part
	for _, part := range g.HorizontalParts() {
		if n := fusion.Product(part.Outer); n > 0 {
			out = append(out, emit.NewPart(Work{Group: part}, n, g.Partition(), caps))
		}
	}
	return out
}

// Fuse returns the launch of one part, or of several maps fused horizontally, each with its
// own range of workgroups. tuned returns the tuned schedule of a map, or false for the default.
func Fuse(parts []emit.Part, caps loop.Caps, tuned func(g *fusion.Group) (emit.Schedule, bool)) emit.Launch {
	m, ok := parts[0].Work.(Work)
	if !ok {
		return parts[0].OwnLaunch(caps)
	}
	groups, e := make([]*fusion.Group, len(parts)), emit.New(parts[0].Partition, caps)
	for i, part := range parts {
		groups[i] = part.Work.(Work).Group
		e.Long = e.Long || groups[i].Long()
	}
	if len(parts) == 1 {
		w := NewSpace(e, m.Group)
		s := w.Rule()
		if best, ok := tuned(m.Group); ok && w.Fits(best) {
			s = best
		}
		return w.Emit(s)[0]
	}
	if l, ok := vectorizedMaps(e, m.Group.Name(), groups); ok {
		return l
	}
	return scalarMaps(e, m.Group.Name(), groups)[0]
}
