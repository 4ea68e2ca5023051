package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// fuseSiblings merges independent reductions over the same space that read a
// value in common, so that it is read once: the parts of a loss, or the sums of
// a norm's gradient. It reports whether it found any.
func (p *Program) fuseSiblings() bool {
	found := false
	for i := 0; i < len(p.groups); i++ {
		for j := i + 1; j < len(p.groups); j++ {
			a, b := p.groups[i], p.groups[j]
			if !p.siblings(a, b) || p.reaches(a, b) || p.reaches(b, a) {
				continue
			}
			m := join(ReduceKind, a.Outer, a.Inner, a.Members, b.Members)
			if p.tooManyTensors(m) {
				continue
			}
			p.replace(a, b, m)
			found = true
			i, j = slices.Index(p.groups, m), slices.Index(p.groups, m)
		}
	}
	return found
}

func (p *Program) siblings(a, b *Group) bool {
	if a.Kind != ReduceKind || b.Kind != ReduceKind || !slices.Equal(a.Outer, b.Outer) || !slices.Equal(a.Inner, b.Inner) {
		return false
	}
	read := p.readsOf(a)
	return rowsSuffice(a) && slices.ContainsFunc(p.readsOf(b), func(v ir.Value) bool { return slices.Contains(read, v) })
}

// fuseSideBySide puts independent maps into one kernel: all that nothing else
// waits for (the updates of an optimiser), and those that become ready
// together.
func (p *Program) fuseSideBySide() {
	levels := p.levels()
	for i := 0; i < len(p.groups); i++ {
		for j := i + 1; j < len(p.groups); j++ {
			a, b := p.groups[i], p.groups[j]
			if a.Kind != MapKind || b.Kind != MapKind || levels[a] != levels[b] {
				continue
			}
			m := &Group{Kind: MapKind, Parts: slices.Concat(a.parts(), b.parts())}
			if p.reaches(a, b) || p.reaches(b, a) || p.tooManyTensors(m) {
				continue
			}
			p.replace(a, b, m)
			levels[m] = levels[a]
			i, j = slices.Index(p.groups, m), slices.Index(p.groups, m)
		}
	}
}

// sink is the level of groups that no other group reads.
const sink = -1

// levels tells for each group how many groups it has to wait for in a row.
func (p *Program) levels() map[*Group]int {
	level := map[*Group]int{}
	read := map[*Group]bool{}
	for _, g := range p.groups {
		for _, q := range p.producers(g) {
			level[g] = max(level[g], level[q]+1)
			read[q] = true
		}
	}
	for _, g := range p.groups {
		if !read[g] {
			level[g] = sink
		}
	}
	return level
}

// reaches reports whether b has to wait for a.
func (p *Program) reaches(a, b *Group) bool {
	seen := map[*Group]bool{}
	var from func(g *Group) bool
	from = func(g *Group) bool {
		if g == a {
			return true
		}
		if seen[g] {
			return false
		}
		seen[g] = true
		return slices.ContainsFunc(p.before(g), from)
	}
	return from(b)
}

// before returns all groups that a group has to wait for directly.
func (p *Program) before(g *Group) []*Group { return append(p.producers(g), p.after[g]...) }

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

// findStates collects the states of the graph with their new values.
func (p *Program) findStates() {
	for _, o := range p.Graph.Outputs() {
		if port, ok := p.Graph.Port(o.Name); ok && o.State {
			p.pairs = append(p.pairs, newValue{port.Value, o.Value, o.Name})
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

// order turns the groups into items: producers first, checks before anything
// persistent is written, and otherwise as the graph has them.
func (p *Program) order() error {
	p.checksFirst()
	var order []*Group
	done := map[*Group]bool{}
	var visit func(g *Group)
	visit = func(g *Group) {
		if done[g] {
			return
		}
		done[g] = true
		for _, q := range p.before(g) {
			visit(q)
		}
		order = append(order, g)
	}
	for _, g := range p.groups {
		visit(g)
	}
	for _, g := range order {
		if g.Kind == LoopKind {
			items, err := p.loop(g)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, items...)
			continue
		}
		p.collectReads(g)
		p.Items = append(p.Items, g)
	}
	return nil
}

// checksFirst makes groups that write states wait for those that check indices,
// so that a bad index leaves the states as they were.
func (p *Program) checksFirst() {
	var checking []*Group
	for _, g := range p.groups {
		if p.checks(g) {
			checking = append(checking, g)
		}
	}
	for _, g := range p.groups {
		if !slices.ContainsFunc(g.Writes(), (*Tensor).Persistent) {
			continue
		}
		for _, c := range checking {
			if c != g && !p.reaches(g, c) {
				p.after[g] = append(p.after[g], c)
			}
		}
	}
}

func (p *Program) checks(g *Group) bool {
	for _, part := range g.parts() {
		for _, m := range part.Members {
			if p.spaceOf(m.Node).checks || slices.ContainsFunc(m.Node.Subgraphs(), hasChecks) {
				return true
			}
		}
	}
	return false
}

// Persistent reports whether the tensor keeps its value between runs.
func (t *Tensor) Persistent() bool { return t.Port != nil && t.Port.Kind != ir.InputPort }

// collectReads fills in the tensors a group loads.
func (p *Program) collectReads(g *Group) {
	add := func(t *Tensor) {
		if t != nil && !slices.Contains(g.reads, t) {
			g.reads = append(g.reads, t)
		}
	}
	for _, v := range p.readsOf(g) {
		add(p.tensors[v])
	}
	for _, part := range g.parts() {
		for _, c := range part.Copies {
			add(c.From)
		}
	}
}
