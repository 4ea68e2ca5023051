package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// findStates collects the states of the graph with their new values.
func (p *Partition) findStates() {
	for _, o := range p.Graph.Outputs() {
		if port, ok := p.Graph.Port(o.Name); ok && o.State {
			p.pairs = append(p.pairs, newValue{old: port.Value, new: o.Value, name: o.Name})
		}
	}
}

// indexStates notes the old values of new ones.
func (p *Partition) indexStates() {
	p.oldOf, p.aside = map[ir.Value]ir.Value{}, map[ir.Value]bool{}
	for _, s := range p.pairs {
		if _, twice := p.oldOf[s.new]; !twice {
			p.oldOf[s.new] = s.old
		}
	}
	for _, s := range p.stacked {
		delete(p.oldOf, s.v) // it is written where the loop keeps it
	}
}

// overwriteStates decides which states have their new value written in place,
// which is possible where every other group that reads the old value, and every
// check, can come first. It reports whether a group cannot be bound for want of
// a state that fusion took to be written in place. That state is set aside then,
// for groups to be made once more.
func (p *Partition) overwriteStates() (again bool) {
	w := p.writers()
	for round := 0; ; round++ {
		p.wait(w)
		stuck := p.circular(w)
		if len(stuck) == 0 {
			break
		}
		if round < maxRounds {
			stuck = stuck[len(stuck)-1:]
		}
		w = slices.DeleteFunc(w, func(s newValue) bool { return slices.Contains(stuck, s) })
	}
	p.inPlace = map[ir.Value]bool{}
	for _, s := range w {
		p.inPlace[s.old] = true
	}
	return p.overfull()
}

// maxRounds is how often one of several states that wait for each other is
// taken out alone, to spare the others, before all of them are.
const maxRounds = 8

// writers returns the states that a group can overwrite as far as the group
// itself is concerned. A group other than a map may have several threads read
// what one of them writes. Attention binds so much that it has no room for the
// status words, which tell whether a state may be written, and kernels of an op's
// own do not ask them.
func (p *Partition) writers() []newValue {
	var out []newValue
	for _, s := range p.pairs {
		g := p.groupOf[s.new.Node()]
		switch {
		case g == nil || g.Kind == ControlKind || g.Kind == AttendKind || g.Kind == RoutineKind || g.Kind == KernelsKind || p.aside[s.old] || p.oldOf[s.new] != s.old || p.checks(g):
		case p.scattersInPlace(g, s.old):
			out = append(out, s)
		case p.readsValue(g, s.old) && (g.Kind != MapKind || !p.readsOwnElement(g, s.old, s.new)):
		default:
			out = append(out, s)
		}
	}
	return out
}

// wait makes groups that overwrite states come after all that read the old
// values, and after all checks.
func (p *Partition) wait(writers []newValue) {
	readers := make(map[ir.Value][]*Group, len(writers)) // of the old values
	for _, s := range writers {
		readers[s.old] = nil
	}
	for _, g := range p.groups {
		for _, part := range g.SideBySide() {
			for _, u := range part.touch.reads {
				if list, old := readers[u.v]; old {
					readers[u.v] = append(list, g)
				}
			}
		}
	}
	clear(p.after)
	p.allChecked = p.gateOfChecks()
	for _, s := range writers {
		g := p.groupOf[s.new.Node()]
		for _, q := range readers[s.old] {
			if q != g {
				p.after[g] = append(p.after[g], q)
			}
		}
		if p.allChecked != nil && p.parent == nil {
			p.after[g] = append(p.after[g], p.allChecked)
		}
	}
}

// circular returns the writers that stand in a circle of waiting groups.
func (p *Partition) circular(writers []newValue) []newValue {
	circle := p.circles()
	return slices.DeleteFunc(slices.Clone(writers), func(s newValue) bool { return !circle[p.groupOf[s.new.Node()]] })
}

// circles returns the groups that wait for themselves, by Tarjan's algorithm for
// strongly connected components.
func (p *Partition) circles() map[*Group]bool {
	if len(p.after) == 0 {
		return nil // groups stand behind those that they read
	}
	out := map[*Group]bool{}
	index, low := map[*Group]int{}, map[*Group]int{}
	onStack := map[*Group]bool{}
	var stack []*Group
	var visit func(g *Group)
	visit = func(g *Group) {
		index[g] = len(index) + 1
		low[g] = index[g]
		stack, onStack[g] = append(stack, g), true
		for _, q := range p.before(g) {
			if index[q] == 0 {
				visit(q)
				low[g] = min(low[g], low[q])
			} else if onStack[q] {
				low[g] = min(low[g], index[q])
			}
		}
		if low[g] != index[g] {
			return
		}
		first := slices.Index(stack, g)
		for _, q := range stack[first:] {
			onStack[q] = false
			if len(stack)-first > 1 {
				out[q] = true
			}
		}
		stack = stack[:first]
	}
	for _, g := range p.groups {
		if index[g] == 0 {
			visit(g)
		}
	}
	return out
}

// overfull sets aside the states that are not overwritten, and reports whether
// that leaves groups with more tensors than a kernel binds.
func (p *Partition) overfull() bool {
	found := false
	for _, s := range p.pairs {
		if p.inPlace[s.old] || p.aside[s.old] {
			continue
		}
		p.aside[s.old] = true
		if g := p.groupOf[s.new.Node()]; g != nil {
			for _, part := range g.SideBySide() {
				found = found || len(part.Members) > 1 && part.member(s.new) != nil && !p.binds(part)
			}
		}
	}
	return found
}

// readsValue reports whether a group reads a stored value.
func (p *Partition) readsValue(g *Group, v ir.Value) bool {
	return slices.ContainsFunc(g.SideBySide(), func(part *Group) bool { return part.reads(v) })
}

// readsOwnElement reports whether every read of old in g is of the very element
// that the same thread then writes of v.
func (p *Partition) readsOwnElement(g *Group, old, v ir.Value) bool {
	for _, part := range g.SideBySide() {
		target := part.member(v)
		for _, m := range part.Members {
			s := p.spaceOf(m.Node)
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
