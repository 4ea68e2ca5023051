package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// states are the states of a graph, or the carries of a loop body, with the decisions about
// updating them in place.
type states struct {
	pairs   []newValue
	oldOf   map[ir.Value]ir.Value // by new value
	aside   map[ir.Value]bool     // by old value: no group updates it in place
	inPlace map[ir.Value]bool     // by old value: a group updates it in place
}

// newValue is the value of a state after a run, or of a carry after a step.
type newValue struct {
	old, new ir.Value
	name     string
	next     *Tensor // tensor of a carry that is not updated in place
}

// find collects the states of a graph and their new values.
func (x *states) find(graph *ir.Graph) {
	for _, o := range graph.Outputs() {
		if port, ok := graph.Port(o.Name); ok && o.State {
			x.pairs = append(x.pairs, newValue{old: port.Value, new: o.Value, name: o.Name})
		}
	}
}

// index maps new values to old ones, except those that are stacked, which are written to their
// slices instead.
func (x *states) index(stacked []stackedOutput) {
	x.oldOf, x.aside = map[ir.Value]ir.Value{}, map[ir.Value]bool{}
	for _, s := range x.pairs {
		if _, twice := x.oldOf[s.new]; !twice {
			x.oldOf[s.new] = s.old
		}
	}
	for _, s := range stacked {
		delete(x.oldOf, s.v)
	}
}

// overwrite decides which states are updated in place: those where all checks and all
// other readers of the old value can run before the writer. It reports whether a group
// binds too many tensors because fusion assumed an update in place that is not possible.
// It then sets that state aside, and the groups must be formed again.
func (x *states) overwrite(groups *groupGraph) (again bool) {
	w := x.writers(groups)
	for round := 0; ; round++ {
		addDependencies(groups, w)
		stuck := cyclicWriters(groups, w)
		if len(stuck) == 0 {
			break
		}
		if round < maxRounds {
			stuck = stuck[len(stuck)-1:]
		}
		w = slices.DeleteFunc(w, func(s newValue) bool { return slices.Contains(stuck, s) })
	}
	x.inPlace = map[ir.Value]bool{}
	for _, s := range w {
		x.inPlace[s.old] = true
	}
	return x.overfull(groups)
}

// maxRounds is the number of rounds in which a single state of a cycle is taken out, to
// spare the others, before all are.
const maxRounds = 8

// writers returns the states that a group can update in place, judged by that group alone.
// In a group other than a map, several threads may read the element that one of them
// writes. Attention has no binding left for the status words, which say whether a state may
// be written, and an op's own kernels and routines ignore them.
func (x *states) writers(groups *groupGraph) []newValue {
	var out []newValue
	for _, s := range x.pairs {
		g := groups.of[s.new.Node()]
		switch {
		case g == nil || g.Kind == ControlKind || g.Kind == AttentionKind || g.Kind == RoutineKind || g.Kind == KernelsKind || x.aside[s.old] || x.oldOf[s.new] != s.old || g.checks():
		case scattersInPlace(g, s.old):
			out = append(out, s)
		case readsValue(g, s.old) && (g.Kind != MapKind || !readsOwnElement(g, s.old, s.new)):
		default:
			out = append(out, s)
		}
	}
	return out
}

// addDependencies makes groups that update states in place depend on all readers of the old values
// and on all checks.
func addDependencies(groups *groupGraph, writers []newValue) {
	readers := make(map[ir.Value][]*Group, len(writers)) // of the old values
	for _, s := range writers {
		readers[s.old] = nil
	}
	for _, g := range groups.list {
		for _, part := range g.HorizontalParts() {
			for _, u := range part.footprint.reads {
				if list, old := readers[u.v]; old {
					readers[u.v] = append(list, g)
				}
			}
		}
	}
	clear(groups.after)
	groups.gateChecks()
	for _, s := range writers {
		g := groups.of[s.new.Node()]
		for _, q := range readers[s.old] {
			if q != g {
				groups.wait(g, q)
			}
		}
		if groups.allChecked != nil && groups.partition.parent == nil {
			groups.wait(g, groups.allChecked)
		}
	}
}

// cyclicWriters returns the writers that are part of a dependency cycle.
func cyclicWriters(groups *groupGraph, writers []newValue) []newValue {
	circle := groups.cycles()
	return slices.DeleteFunc(slices.Clone(writers), func(s newValue) bool { return !circle[groups.of[s.new.Node()]] })
}

// overfull sets aside the states that are not updated in place, and reports whether a
// group then has more tensors than a kernel can bind.
func (x *states) overfull(groups *groupGraph) bool {
	found := false
	for _, s := range x.pairs {
		if x.inPlace[s.old] || x.aside[s.old] {
			continue
		}
		x.aside[s.old] = true
		if g := groups.of[s.new.Node()]; g != nil {
			for _, part := range g.HorizontalParts() {
				found = found || len(part.Members) > 1 && part.member(s.new) != nil && !part.binds()
			}
		}
	}
	return found
}

// updates reports whether a group computes the new value of a state from the old
// one. Such maps stay maps: they update in place, and horizontal fusion makes one
// kernel of a whole optimiser step.
func updates(g *Group) bool {
	return slices.ContainsFunc(g.footprint.keeps, func(k use) bool {
		old, ok := g.partition.states.oldOf[k.v]
		return ok && g.footprint.isRead(old)
	})
}

// readsValue reports whether a group, or a part of it, reads a stored value.
func readsValue(g *Group, v ir.Value) bool {
	return slices.ContainsFunc(g.HorizontalParts(), func(part *Group) bool { return part.footprint.isRead(v) })
}

// readsOwnElement reports whether g reads old only at the element of v that the same
// thread then writes.
func readsOwnElement(g *Group, old, v ir.Value) bool {
	for _, part := range g.HorizontalParts() {
		target := part.member(v)
		for _, m := range part.Members {
			s := g.partition.spaces.of(m.Node)
			for _, a := range s.reads {
				if s.valueOf(a) != old {
					continue
				}
				if target == nil {
					return false
				}
				for axis, e := range a.at {
					own, ok := s.axisOf(e)
					if target.Coord[axis] >= 0 && (!ok || m.coordOf(own) != target.Coord[axis]) {
						return false
					}
				}
			}
		}
	}
	return true
}
