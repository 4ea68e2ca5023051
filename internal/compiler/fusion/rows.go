package fusion

// ByRows reports whether each row of what a group stores, the elements at one place
// along axis 0, needs of the tensors that in tells only the rows of the same number:
// coordinate 0 of the group counts them. Tensors are asked for by the one that holds
// their memory.
func (g *Group) ByRows(in func(t *Tensor) bool) bool {
	rows := g.Outer[0]
	for _, m := range g.Members {
		for _, t := range m.Store {
			if t != nil && (len(t.Dims) == 0 || t.Dims[0] != rows || m.Coord[0] != 0) {
				return false
			}
		}
		s := g.partition.spaceOf(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			t := g.partition.tensors[v]
			if g.member(v) != nil || t == nil || !in(t.Root()) {
				continue
			}
			if len(a.at) == 0 || len(t.Dims) == 0 || t.Dims[0] != rows {
				return false
			}
			if own, ok := s.axisOf(a.at[0]); !ok || m.coordOf(own) != 0 {
				return false
			}
		}
	}
	for _, c := range g.Copies {
		if len(c.To.Dims) == 0 || c.To.Dims[0] != rows {
			return false
		}
	}
	return true
}
