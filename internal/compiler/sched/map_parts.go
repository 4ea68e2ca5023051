package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mapWork computes the elements of a map.
type mapWork struct {
	g     *fusion.Group
	words *fusion.Words // nil: all literals are in the kernel
}

// A thread of horizontally fused maps computes up to maxPerThread elements, to share the search
// for its part, as long as fullGroups workgroups remain to hide the latency of the search:
// twice the resident workgroups of an H200, eight on each of 132 multiprocessors.
const (
	maxPerThread = 4
	fullGroups   = 2048
)

func (m mapWork) name() string { return m.g.Name() + "_parts" }

func (m mapWork) isMap() bool { return true }

func (m mapWork) share() int { return maxPerThread * mapThreads }

func (m mapWork) write(w *emitter, s segment) {
	first := w.let("first", scalar.Add(scalar.Mul(scalar.Mul(s.workgroup, s.perThread), loop.Int(mapThreads)), loop.LocalID(0, mapThreads)))
	w.loop("turn", loop.Int(0), s.perThread, 1, maxPerThread-1, func(turn scalar.Expr) {
		name := w.name("i")
		w.add(&loop.Let{Name: name, Value: scalar.Add(first, scalar.Mul(turn, loop.Int(mapThreads)))})
		i := scalar.NewVar(name, ir.I32, 0, loop.MaxElements-1)
		w.when(scalar.Lt(scalar.FreeVar(name, ir.I32), s.length), func() {
			m.words.Read(func() { w.add(w.mapElements(m.g, w.unflatten(i, m.g.Outer))...) })
		})
	})
}

// updates reports whether a group is a map that only stores states. It is lowered as a part,
// even by itself, so that maps like it of other lengths share its kernel.
func updates(g *fusion.Group) bool {
	return g.Kind == fusion.MapKind && !slices.ContainsFunc(g.Writes(), func(t *fusion.Tensor) bool { return !t.Root().Persistent() })
}

// mapParts returns the parts of horizontally fused maps, with all literals in their kernels.
func mapParts(g *fusion.Group, caps loop.Caps) []Part {
	var out []Part
	for _, part := range g.HorizontalParts() {
		if n := fusion.Product(part.Outer); n > 0 {
			out = append(out, newPart(mapWork{g: part}, n, g.Partition(), caps))
		}
	}
	return out
}

// fuseMaps returns the launch of one part, or of several maps fused horizontally, each with its
// own range of workgroups. tuned returns the tuned schedule of a map, or false for the default.
func fuseMaps(parts []Part, caps loop.Caps, tuned func(g *fusion.Group) (Schedule, bool)) Launch {
	m, ok := parts[0].work.(mapWork)
	if !ok {
		return parts[0].ownLaunch(caps)
	}
	groups, e := make([]*fusion.Group, len(parts)), newEmitter(parts[0].p, caps)
	for i, part := range parts {
		groups[i] = part.work.(mapWork).g
		e.long = e.long || groups[i].Long()
	}
	if len(parts) == 1 {
		w := newMapSpace(e, m.g)
		s := w.rule()
		if best, ok := tuned(m.g); ok && w.fits(best) {
			s = best
		}
		return w.emit(s)[0]
	}
	if l, ok := vectorizedMaps(e, m.g.Name(), groups); ok {
		return l
	}
	return scheduleMaps(e, m.g.Name(), groups)[0]
}
