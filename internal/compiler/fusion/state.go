package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// findStates collects the states of the graph and their new values.
func (p *Partition) findStates() {
	for _, o := range p.Graph.Outputs() {
		if port, ok := p.Graph.Port(o.Name); ok && o.State {
			p.pairs = append(p.pairs, newValue{old: port.Value, new: o.Value, name: o.Name})
		}
	}
}

// indexStates maps new values to old ones.
func (p *Partition) indexStates() {
	p.oldOf, p.aside = map[ir.Value]ir.Value{}, map[ir.Value]bool{}
	for _, s := range p.pairs {
		if _, twice := p.oldOf[s.new]; !twice {
			p.oldOf[s.new] = s.old
		}
	}
	for _, s := range p.stacked {
		delete(p.oldOf, s.v) // written to its slice instead
	}
}

// overwriteStates decides which states are updated in place: those where all checks and
// all other readers of the old value can run before the writer. It reports whether a group
// binds too many tensors because fusion assumed an update in place that is not possible.
// It then sets that state aside, and the groups must be formed again.
func (p *Partition) overwriteStates() (again bool) {
	w := p.writers()
	for round := 0; ; round++ {
		p.addDependencies(w)
		stuck := p.cyclicWriters(w)
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

// maxRounds is the number of rounds in which a single state of a cycle is taken out, to
// spare the others, before all are.
const maxRounds = 8

// writers returns the states that a group can update in place, judged by that group alone.
// In a group other than a map, several threads may read the element that one of them
// writes. Attention has no binding left for the status words, which say whether a state may
// be written, and an op's own kernels and routines ignore them.
func (p *Partition) writers() []newValue {
	var out []newValue
	for _, s := range p.pairs {
		g := p.groupOf[s.new.Node()]
		switch {
		case g == nil || g.Kind == ControlKind || g.Kind == AttentionKind || g.Kind == RoutineKind || g.Kind == KernelsKind || p.aside[s.old] || p.oldOf[s.new] != s.old || p.checks(g):
		case p.scattersInPlace(g, s.old):
			out = append(out, s)
		case p.readsValue(g, s.old) && (g.Kind != MapKind || !p.readsOwnElement(g, s.old, s.new)):
		default:
			out = append(out, s)
		}
	}
	return out
}

// addDependencies makes groups that update states in place depend on all readers of the old values
// and on all checks.
func (p *Partition) addDependencies(writers []newValue) {
	readers := make(map[ir.Value][]*Group, len(writers)) // of the old values
	for _, s := range writers {
		readers[s.old] = nil
	}
	for _, g := range p.groups {
		for _, part := range g.HorizontalParts() {
			for _, u := range part.footprint.reads {
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

// cyclicWriters returns the writers that are part of a dependency cycle.
func (p *Partition) cyclicWriters(writers []newValue) []newValue {
	circle := p.cycles()
	return slices.DeleteFunc(slices.Clone(writers), func(s newValue) bool { return !circle[p.groupOf[s.new.Node()]] })
}

// cycles returns the groups on dependency cycles, by Tarjan's algorithm for strongly
// connected components.
func (p *Partition) cycles() map[*Group]bool {
	if len(p.after) == 0 {
		return nil // groups come after their producers
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
		for _, q := range p.dependencies(g) {
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

// overfull sets aside the states that are not updated in place, and reports whether a
// group then has more tensors than a kernel can bind.
func (p *Partition) overfull() bool {
	found := false
	for _, s := range p.pairs {
		if p.inPlace[s.old] || p.aside[s.old] {
			continue
		}
		p.aside[s.old] = true
		if g := p.groupOf[s.new.Node()]; g != nil {
			for _, part := range g.HorizontalParts() {
				found = found || len(part.Members) > 1 && part.member(s.new) != nil && !p.binds(part)
			}
		}
	}
	return found
}

// readsValue reports whether a group reads a stored value.
func (p *Partition) readsValue(g *Group, v ir.Value) bool {
	return slices.ContainsFunc(g.HorizontalParts(), func(part *Group) bool { return part.reads(v) })
}

// readsOwnElement reports whether g reads old only at the element of v that the same
// thread then writes.
func (p *Partition) readsOwnElement(g *Group, old, v ir.Value) bool {
	for _, part := range g.HorizontalParts() {
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

// placeStates assigns a tensor to the new value of each state: that of the old value, or
// one of its own that copyBack copies at the end. The new value of a carry is stored where
// the next step reads the old one.
func (p *Partition) placeStates() {
	var aside []Copy
	for _, s := range p.pairs {
		if s.old == s.new || p.groupOf[s.new.Node()] != nil {
			continue
		}
		// A literal, an input or another state, which may be overwritten before
		// copyBack: copy it first.
		next := p.nextOf(s)
		aside = append(aside, p.copyOf(s.new, next))
		p.Pairs = append(p.Pairs, Pair{p.tensors[s.old], next})
	}
	p.addCopies(aside)
	for _, s := range p.pairs {
		if s.old == s.new || p.groupOf[s.new.Node()] == nil {
			continue
		}
		old := p.tensors[s.old]
		if p.inPlace[s.old] {
			p.tensors[s.new] = old
		} else if p.tensors[s.new] == nil {
			p.tensors[s.new] = p.nextOf(s)
		}
		p.Pairs = append(p.Pairs, Pair{old, p.tensors[s.new]})
	}
	p.copyFirst()
}

// nextOf returns the tensor of a new value that is not written in place.
func (p *Partition) nextOf(s newValue) *Tensor {
	if s.next != nil {
		return s.next
	}
	return p.newTensor(s.name+"_next", s.new.Type())
}

// copyFirst makes groups that update states in place depend on the copies of the old values.
func (p *Partition) copyFirst() {
	writer := map[*Tensor]*Group{}
	for _, s := range p.pairs {
		if p.inPlace[s.old] {
			writer[p.tensors[s.old]] = p.groupOf[s.new.Node()]
		}
	}
	for _, g := range p.groups {
		for _, part := range g.HorizontalParts() {
			for _, c := range part.Copies {
				if w := writer[c.From]; w != nil {
					p.after[w] = append(p.after[w], g)
				}
			}
		}
	}
}

// placeStacked makes the groups of a loop body write stacked outputs directly to their
// slices. A value that no group computes, or that is stacked twice, is copied.
func (p *Partition) placeStacked() {
	for _, s := range p.stacked {
		switch {
		case p.groupOf[s.v.Node()] == nil:
			p.addCopies([]Copy{p.copyOf(s.v, s.t)})
		case p.tensors[s.v] == nil:
			p.tensors[s.v] = s.t
		default:
			for _, g := range p.addCopies([]Copy{{From: p.tensors[s.v], To: s.t}}) {
				p.after[g] = append(p.after[g], p.groupOf[s.v.Node()])
			}
		}
	}
}

// copyBack adds the copies of the states that are not updated in place, after everything
// else. The carries of a scan are double-buffered instead, see [Loop].
func (p *Partition) copyBack() {
	if p.doubleBuffered {
		return
	}
	var copies []Copy
	for _, pair := range p.Pairs {
		if pair.Old != pair.New {
			copies = append(copies, Copy{From: pair.New, To: pair.Old})
		}
	}
	if len(copies) == 0 {
		return
	}
	gate := p.gate(slices.Clone(p.groups))
	for _, g := range p.addCopies(copies) {
		p.after[g] = append(p.after[g], gate)
	}
}

// copyOutputs adds copies for plain outputs that no group computes, such as an
// input passed through.
func (p *Partition) copyOutputs() {
	var copies []Copy
	p.Outputs = make([]*Tensor, len(p.Graph.Outputs()))
	for i, o := range p.Graph.Outputs() {
		if !o.State && p.groupOf[o.Value.Node()] == nil {
			p.Outputs[i] = p.newTensor(o.Name, o.Value.Type())
			copies = append(copies, p.copyOf(o.Value, p.Outputs[i]))
		}
	}
	p.addCopies(copies)
}

// copyOf returns the copy of a value that no group computes.
func (p *Partition) copyOf(v ir.Value, to *Tensor) Copy {
	return Copy{From: p.whole(v), Literal: p.decided.literals[v], To: to}
}

// addCopies adds groups that copy values and returns them.
func (p *Partition) addCopies(copies []Copy) []*Group {
	groups := p.copyGroups(copies)
	p.groups = append(p.groups, groups...)
	return groups
}

// copyGroups fuses copies horizontally into groups.
func (p *Partition) copyGroups(copies []Copy) []*Group {
	var out []*Group
	for _, c := range copies {
		part := &Group{Kind: MapKind, Outer: squeeze(c.To.Dims), Copies: []Copy{c}, partition: p}
		if last := len(out) - 1; last < 0 || len(out[last].Parts) == maxParts {
			out = append(out, &Group{Kind: MapKind, partition: p})
		}
		last := out[len(out)-1]
		last.Parts = append(last.Parts, part)
	}
	return out
}
