package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// findStates collects the states of the graph with their new values.
func (p *Program) findStates() {
	for _, o := range p.Graph.Outputs() {
		if port, ok := p.Graph.Port(o.Name); ok && o.State {
			p.pairs = append(p.pairs, newValue{port.Value, o.Value, o.Name})
		}
	}
}

// placeStates decides for each state where its new value is written. In place
// is best, and possible where every other group that reads the old value can
// come first. Otherwise the new value has a tensor of its own and is copied at
// the end, see copyBack.
func (p *Program) placeStates() {
	var computed []newValue
	var aside []Copy
	for _, s := range p.pairs {
		switch {
		case s.old == s.new:
		case p.groupOf[s.new.Node()] != nil:
			computed = append(computed, s)
		default:
			// A literal, an input or another state, which may have been
			// overwritten by the time of the copy: set it aside first.
			next := p.newTensor(s.name+"_next", s.new.Type())
			aside = append(aside, p.copyOf(s.new, next))
			p.Pairs = append(p.Pairs, Pair{p.tensors[s.old], next})
		}
	}
	p.addCopies(aside)
	for _, s := range computed {
		old, g := p.tensors[s.old], p.groupOf[s.new.Node()]
		switch {
		case p.tensors[s.new] == nil && p.inPlace(g, s.old, s.new):
			p.tensors[s.new] = old
			p.Pairs = append(p.Pairs, Pair{old, old})
		case p.tensors[s.new] == nil:
			p.tensors[s.new] = p.newTensor(s.name+"_next", s.new.Type())
			fallthrough
		default:
			p.Pairs = append(p.Pairs, Pair{old, p.tensors[s.new]})
		}
	}
}

// placeStacked lets the groups of a loop's body write what is kept of each step
// where it is kept. A value that no group computes, or that is kept twice, is
// copied.
func (p *Program) placeStacked() {
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

// copyBack adds groups that write the states that were not written in place,
// behind everything else.
func (p *Program) copyBack() {
	var copies []Copy
	for _, pair := range p.Pairs {
		if pair.Old != pair.New {
			copies = append(copies, Copy{From: pair.New, To: pair.Old})
		}
	}
	before := slices.Clone(p.groups)
	for _, g := range p.addCopies(copies) {
		p.after[g] = before
	}
}

// inPlace reports whether the group g may write the new value v of a state over
// the old one, and if so makes all others that read the old value come first. A
// group other than a map may have several threads read what one of them writes.
// What is checked after g would be too late to leave the old value there.
func (p *Program) inPlace(g *Group, old, v ir.Value) bool {
	if g.Kind == LoopKind || p.checks(g) || g.Kind != MapKind && p.readsValue(g, old) {
		return false
	}
	var readers []*Group
	for _, q := range p.groups {
		switch {
		case p.checks(q) && p.reaches(g, q):
			return false
		case !p.readsValue(q, old):
		case q == g && !p.readsOwnElement(g, old, v), q != g && p.reaches(g, q):
			return false
		case q != g:
			readers = append(readers, q)
		}
	}
	p.after[g] = append(p.after[g], readers...)
	return true
}

func (p *Program) readsValue(g *Group, v ir.Value) bool {
	for _, part := range g.parts() {
		for _, c := range part.Copies {
			if c.From == p.tensors[v] {
				return true
			}
		}
	}
	return slices.Contains(p.readsOf(g), v)
}

// readsOwnElement reports whether every read of old in g is of the very element
// that the same thread then writes of v.
func (p *Program) readsOwnElement(g *Group, old, v ir.Value) bool {
	for _, part := range g.parts() {
		target := part.member(v)
		for _, m := range part.Members {
			s := p.spaceOf(m.Node)
			for _, a := range s.reads {
				if a.v != old {
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
