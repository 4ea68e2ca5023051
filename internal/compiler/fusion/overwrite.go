package fusion

import (
	"slices"
)

// overwriteTemps lets groups of rows leave what they make of each element of a value
// in that value's place, where nothing reads it later: the gradient of the scores of a
// language model, for one, which is as large as all else that is alive with it. A
// thread reads an element in the stages of a row, whose threads wait for each other in
// between, and then writes it.
//
// What is stored has to be made of the element that it overwrites. Else the store need not
// wait for what was read, and follows it while that is under way: five kernels that left a
// sum where another operand of theirs lay, ready before it was read, took 450 µs each on an
// H200 for 113 MB, when their like take 40.
//
// It is done where memory is of no one kind: WebGPU would have to bind the value for
// writing in every kernel that reads it, which [Options.TensorCores] stands for here
// too.
func (p *Partition) overwriteTemps() {
	if !withTensorCores || !p.options.TensorCores || p.parent != nil {
		return
	}
	last := p.lastReads()
	for i, item := range p.Items {
		g, ok := item.(*Group)
		if !ok || g.Kind != ReduceKind || g.RowParts() > 1 {
			continue
		}
		for _, m := range g.Members {
			for result, t := range m.Store {
				if t == nil || !p.isTemp(t) || !m.Pointwise(len(g.Outer)) {
					continue
				}
				old := slices.IndexFunc(g.loads, func(s *Tensor) bool {
					return last[s] == i && p.isTemp(s) && s.DType == t.DType && slices.Equal(s.Dims, t.Dims) &&
						p.makesOf(g, m, s) && p.readsInPlace(g, m, s)
				})
				if old >= 0 {
					p.takePlace(m, result, g.loads[old])
					last = p.lastReads()
				}
			}
		}
	}
}

// lastReads returns for each tensor the last item that reads it. What the host reads,
// and what loops and choices hold, is read for ever.
func (p *Partition) lastReads() map[*Tensor]int {
	last := map[*Tensor]int{}
	for i, item := range p.Items {
		if _, ok := item.(*Group); !ok {
			i = len(p.Items)
		}
		for _, t := range item.Reads() {
			last[t] = max(last[t], i)
		}
	}
	for _, t := range p.Outputs {
		last[t] = len(p.Items)
	}
	return last
}

// isTemp reports whether a tensor is a value between groups.
func (p *Partition) isTemp(t *Tensor) bool {
	if t.Port != nil || t.Constant != nil || t.Outer != nil || slices.Contains(p.Outputs, t) {
		return false
	}
	return !slices.ContainsFunc(p.Items, func(item Item) bool {
		_, group := item.(*Group)
		return !group && (slices.Contains(item.Reads(), t) || slices.Contains(item.Writes(), t))
	})
}

// makesOf reports whether a member of a group makes its elements of those of a tensor,
// itself or by way of other members.
func (p *Partition) makesOf(g *Group, m *Member, t *Tensor) bool {
	s := p.spaceOf(m.Node)
	return slices.ContainsFunc(s.reads, func(a access) bool {
		v := s.valueOf(a)
		if m := g.member(v); m != nil {
			return !m.Reduced && p.makesOf(g, m, t)
		}
		return p.tensors[v] == t
	})
}

// readsInPlace reports whether a group reads a tensor only at the element that a
// member of it stores at the same point.
func (p *Partition) readsInPlace(g *Group, stores *Member, t *Tensor) bool {
	for _, m := range g.Members {
		s := p.spaceOf(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			if p.tensors[v] != t {
				continue
			}
			for axis, e := range a.at {
				if v.Dim(axis).Is(1) {
					continue
				}
				own, ok := s.axisOf(e)
				if !ok || m.coordOf(own) != stores.Coord[axis] {
					return false
				}
			}
		}
	}
	return len(g.Copies) == 0
}

// takePlace makes a result of a member lie where old does.
func (p *Partition) takePlace(m *Member, result int, old *Tensor) {
	gone := m.Store[result]
	m.Store[result] = old
	p.tensors[m.Node.Result(result)] = old
	p.Tensors = slices.DeleteFunc(p.Tensors, func(t *Tensor) bool { return t == gone })
	for _, item := range p.Items {
		if g, ok := item.(*Group); ok {
			for i, t := range g.loads {
				if t == gone {
					g.loads[i] = old
				}
			}
		}
	}
}
