package fusion

import (
	"slices"
)

// reuseBuffers lets row-wise reduce groups store a pointwise result in the buffer of a
// value they read that is dead afterwards, such as the gradient of a language model's
// logits, the largest live value. Threads read an element in the stages of a row and then overwrite
// it. Threads beyond the last row or element, which read the last one, do so before a barrier.
//
// The stored result must depend on the element it overwrites. Otherwise the store does not
// wait for the load: five kernels that stored a sum in the buffer of another operand, ready
// before that was read, took 450 µs each on an H200 for 113 MB, instead of about 40.
//
// It needs a target that does not distinguish read-only from writable bindings: WebGPU
// would bind the value for writing in every kernel that reads it. [Options.TensorCores]
// stands for that here.
func reuseBuffers(p *Partition) {
	if !withTensorCores || !p.options.TensorCores || p.parent != nil {
		return
	}
	last := lastReads(p)
	for i, item := range p.Items {
		g, ok := item.(*Group)
		if !ok || g.Kind != ReduceKind || g.Rows().Parts() > 1 {
			continue
		}
		for _, m := range g.Members {
			for result, t := range m.Store {
				if t == nil || !isTemp(p, t) || !m.Pointwise(len(g.Outer)) {
					continue
				}
				old := slices.IndexFunc(g.loads, func(s *Tensor) bool {
					return last[s] == i && isTemp(p, s) && s.DType == t.DType && slices.Equal(s.Dims, t.Dims) && s.Layout == nil &&
						dependsOn(g, m, s) && readsInPlace(g, m, s) && !readsWindow(g, s)
				})
				if old >= 0 {
					s := g.loads[old]
					reuseBuffer(p, m, result, s)
					last[s] = max(last[s], last[t]) // what read t reads s
				}
			}
		}
	}
}

// lastReads returns the index of the last item that reads each tensor. Outputs and the
// operands of loops and branches live to the end.
func lastReads(p *Partition) map[*Tensor]int {
	last := map[*Tensor]int{}
	for i, item := range p.Items {
		if _, ok := item.(*Group); !ok {
			i = len(p.Items)
		}
		for _, t := range item.Reads() {
			t = t.viewed()
			last[t] = max(last[t], i)
		}
	}
	for _, t := range p.Outputs {
		last[t] = len(p.Items)
	}
	return last
}

// isTemp reports whether a tensor only carries a value between groups.
func isTemp(p *Partition, t *Tensor) bool {
	if t.Port != nil || t.Constant != nil || t.Outer != nil || slices.Contains(p.Outputs, t) {
		return false
	}
	return !slices.ContainsFunc(p.Items, func(item Item) bool {
		_, group := item.(*Group)
		return !group && (slices.Contains(item.Reads(), t) || slices.Contains(item.Writes(), t))
	})
}

// dependsOn reports whether a member computes its elements from those of a tensor, directly
// or through other members.
func dependsOn(g *Group, m *Member, t *Tensor) bool {
	s := g.partition.spaces.of(m.Node)
	return slices.ContainsFunc(s.reads, func(a access) bool {
		v := s.valueOf(a)
		if m := g.member(v); m != nil {
			return !m.Reduced && dependsOn(g, m, t)
		}
		return g.partition.tensors[v] == t
	})
}

// readsInPlace reports whether a group reads a tensor only at the element that the member
// stores at the same point.
func readsInPlace(g *Group, stores *Member, t *Tensor) bool {
	for _, m := range g.Members {
		s := g.partition.spaces.of(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			if g.partition.tensors[v] != t {
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

// readsWindow reports whether a group reads a tensor that lies in another one.
func readsWindow(g *Group, t *Tensor) bool {
	return slices.ContainsFunc(g.loads, func(s *Tensor) bool { return s != t && s.viewed() == t })
}

// reuseBuffer stores a result of a member in the buffer of old.
func reuseBuffer(p *Partition, m *Member, result int, old *Tensor) {
	gone := m.Store[result]
	m.Store[result] = old
	p.tensors[m.Node.Result(result)] = old
	p.Tensors = slices.DeleteFunc(p.Tensors, func(t *Tensor) bool { return t == gone })
	for i, pair := range p.Pairs {
		if pair.New == gone {
			p.Pairs[i].New = old
		}
	}
	for _, item := range p.Items {
		if g, ok := item.(*Group); ok {
			readInstead(g, gone, old)
			for _, part := range g.Parts {
				readInstead(part, gone, old)
			}
		}
	}
}

// readInstead replaces a tensor that a group reads, or copies to a state.
func readInstead(g *Group, gone, by *Tensor) {
	for i, t := range g.loads {
		if t == gone {
			g.loads[i] = by
		}
	}
	for i, c := range g.Copies {
		if c.From == gone {
			g.Copies[i].From = by
		}
	}
}
