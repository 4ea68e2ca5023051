package fusion

import "slices"

// placeStates gives the new value of each state its place: that of the old one,
// or a tensor of its own that is copied at the end, see copyBack. The new value of
// a carry is where the next step looks for the old one.
func (p *Partition) placeStates() {
	var aside []Copy
	for _, s := range p.pairs {
		if s.old == s.new || p.groupOf[s.new.Node()] != nil {
			continue
		}
		// A literal, an input or another state, which may have been overwritten
		// by the time of the copy: set it aside first.
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

// copyFirst makes groups that overwrite states wait for the copies of their old
// values.
func (p *Partition) copyFirst() {
	writer := map[*Tensor]*Group{}
	for _, s := range p.pairs {
		if p.inPlace[s.old] {
			writer[p.tensors[s.old]] = p.groupOf[s.new.Node()]
		}
	}
	for _, g := range p.groups {
		for _, part := range g.SideBySide() {
			for _, c := range part.Copies {
				if w := writer[c.From]; w != nil {
					p.after[w] = append(p.after[w], g)
				}
			}
		}
	}
}

// placeStacked lets the groups of a loop's body write what is kept of each step
// where it is kept. A value that no group computes, or that is kept twice, is
// copied.
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

// copyBack adds groups that write the states that were not written in place,
// behind everything else. Carries of a scan change places instead, see [Loop].
func (p *Partition) copyBack() {
	if p.turns {
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
