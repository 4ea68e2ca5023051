package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Reduction returns the lowering of a member of a [ReduceKind] group as a reduction.
func (m *Member) Reduction() *ir.ReduceLowering {
	switch l := m.Node.Def().Lower.(type) {
	case *ir.ReduceLowering:
		return l
	case *ir.ScatterLowering:
		return scatterOf(m.Node).asReduction()
	}
	return ContractionOf(m.Node, scalar.NewSimplifier()).asReduction()
}

// Finish returns the results of a reduction at a position from its accumulators.
func (m *Member) Finish(at ir.Index, acc []scalar.Expr, load ir.Load) []scalar.Expr {
	if _, ok := m.Node.Def().Lower.(*ir.ScatterLowering); ok {
		return []scalar.Expr{scatterOf(m.Node).finish(at, acc, load)}
	}
	if f := m.Reduction().Finish; f != nil {
		return f(m.Node, at, acc)
	}
	return acc
}

// Levels returns for each member the number of stages that must come before it.
func (g *Group) Levels() map[*Member]int {
	levels := map[*Member]int{}
	for _, m := range g.Members {
		s := g.partition.spaces.of(m.Node)
		for _, a := range s.reads {
			q := g.member(s.valueOf(a))
			if q == nil || q == m {
				continue
			}
			l := levels[q]
			if q.Reduced {
				l++
			}
			levels[m] = max(levels[m], l)
		}
	}
	return levels
}

// lowDigit returns the coordinate whose lowest digit a position is, e for e mod n and, in a slice, for e + n. Operands
// of a concatenation are read at positions with a bound, min(e, n). The positions of adjacent coordinates are
// adjacent, except where the digit wraps around and beyond the bound.
func lowDigit(e scalar.Expr) scalar.Expr {
	for len(e.Args) == 2 {
		n, ok := e.Args[1].IntConst()
		switch e.Op {
		case scalar.OpMod, scalar.OpRem:
			ok = n >= minDigit
		case scalar.OpAdd, scalar.OpSub, scalar.OpMin, scalar.OpMax:
		default:
			return e
		}
		if !ok {
			return e
		}
		e = e.Args[0]
	}
	return e
}

// minDigit is the run of adjacent positions that counts as contiguous: two memory sectors
// of f32, or one of 16-bit elements.
const minDigit = 16

// Rows are a group by rows: the points of its outer coordinates, in a reduction each with all inner ones.
type Rows struct{ *Group }

// Rows returns the rows of a group.
func (g *Group) Rows() Rows { return Rows{g} }

// AreContiguous reports whether the loads of the reductions are mostly contiguous
// along the outer coordinates, as in a sum over the first axis. Values that the group
// computes itself do not count, because they are not loaded, nor do values that are loaded once for a row.
// Where products use tensor cores, each value counts once, as members of a row in registers share its
// loads, and so do stored elements.
func (r Rows) AreContiguous() bool {
	votes := 0
	var counted []ir.Value
	for _, m := range r.Members {
		if !m.Reduced && !m.Pointwise(len(r.Outer)) {
			continue
		}
		if withTensorCores {
			votes += votesOfStores(r.Group, m) + votesOfDigits(r.Group, m, &counted)
		}
		s := r.partition.spaces.of(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			if r.member(v) != nil || withTensorCores && slices.Contains(counted, v) {
				continue
			}
			size, _ := v.Shape().Size().Const()
			for axis := len(a.at) - 1; axis >= 0; axis-- {
				if v.Dim(axis).Is(1) || withTensorCores && !isInnermost(r.partition, v, axis) {
					continue
				}
				if own := stepOf(r.Group, m, s.nodeSpace, a.at[axis]); own >= 0 {
					if own < len(r.Outer) {
						votes += size
					} else {
						votes -= size / r.sharing(m, s.nodeSpace, v, a.at)
					}
					if withTensorCores && r.partition.options.TensorCores {
						counted = append(counted, v)
					}
				}
				break
			}
		}
	}
	return votes > 0
}

// sharing returns how many adjacent rows read the same elements of v at the given positions: those along the last outer
// coordinate, if no position depends on it.
func (r Rows) sharing(m *Member, s *nodeSpace, v ir.Value, at []scalar.Expr) int {
	last := len(r.Outer) - 1
	for last >= 0 && r.Outer[last] == 1 {
		last--
	}
	if !withTensorCores || !r.partition.options.TensorCores || last < 0 {
		return 1
	}
	for axis, e := range at {
		if step := stepOf(r.Group, m, s, e); !v.Dim(axis).Is(1) && (step < 0 || step == last) {
			return 1
		}
	}
	return r.Outer[last]
}

// stepOf returns the coordinate of a group whose steps are those of a member's position, −1 for none. In a window it is the
// longer one of the two that the position is the sum of.
func stepOf(g *Group, m *Member, s *nodeSpace, e scalar.Expr) int {
	e = lowDigit(e)
	if e.Op == scalar.OpSelect { // in the padding of a window
		e = lowDigit(e.Args[1])
	}
	if e.Op == scalar.OpAdd {
		x, y := stepOf(g, m, s, e.Args[0]), stepOf(g, m, s, e.Args[1])
		switch {
		case min(x, y) < 0:
			return -1
		case g.Rows().extent(y) > g.Rows().extent(x):
			return y
		}
		return x
	}
	if own, ok := s.axisOf(e); ok {
		return m.coordOf(own)
	}
	return -1
}

// extent returns the number of values of a coordinate.
func (r Rows) extent(coord int) int {
	if coord < len(r.Outer) {
		return r.Outer[coord]
	}
	return r.Inner[coord-len(r.Outer)]
}

// votesOfStores returns the elements that a member stores contiguously along the outer coordinates, negative for the inner
// ones.
func votesOfStores(g *Group, m *Member) int {
	if !withTensorCores || !g.partition.options.TensorCores || m.Reduced || !g.footprint.isKept(m.Node) {
		return 0
	}
	v := m.Node.Result(0)
	for axis, coord := range slices.Backward(m.Coord) {
		switch {
		case v.Dim(axis).Is(1):
		case coord < len(g.Outer):
			return sizeOf(v.Type())
		default:
			return -sizeOf(v.Type())
		}
	}
	return 0
}

// isInnermost reports whether an axis may be that of adjacent elements in memory.
func isInnermost(p *Partition, v ir.Value, axis int) bool {
	t := p.tensors[v]
	return t == nil || t.Layout == nil || t.Layout.Strides[axis] == 1
}

// Policy is the target's cost model for what is fused and what is computed again. It weighs a saved pass over
// memory against idle processors and operations. contiguous says that adjacent rows are contiguous in memory,
// see [Rows.AreContiguous].
type Policy interface {
	// RowSplits returns the number of workgroups to split each row of a reduction over.
	RowSplits(rows, length int, contiguous bool) int
	// FillsDevice reports whether unsplit rows fill the device.
	FillsDevice(rows, length int) bool
	// AllowsStages reports whether further stages may depend on whole rows.
	AllowsStages(rows, length int, contiguous bool) bool
	// RepeatsRow reports whether each of some rows of a reduction may also compute the reduction of a row that
	// all of them read, instead of a kernel before.
	RepeatsRow(rows, length int) bool
	// Traffic returns what is computed, loaded or launched again to save memory traffic.
	Traffic() hardware.Traffic
}

// Parts returns the number of workgroups that each row of a reduction is split over.
// Groups with several stages, or with results inside the rows, need whole rows. Fusion
// asks because the partial results of a split reduction take bindings.
func (r Rows) Parts() int {
	if !r.CanSplit() {
		return 1
	}
	return r.partition.options.Policy.RowSplits(Product(r.Outer), Product(r.Inner), r.AreContiguous())
}

// CanSplit reports whether the rows of a reduction can be split over workgroups.
func (r Rows) CanSplit() bool {
	levels := r.Levels()
	for _, m := range r.Members {
		inside := !m.Reduced && m.Pointwise(len(r.Outer))
		if m.Reduced && levels[m] > 0 || inside && (levels[m] > 0 || r.footprint.isKept(m.Node)) {
			return false
		}
	}
	return true
}

// Combine returns the second step of a split reduction: the group that computes g from
// the partial results of the parts.
func (r Rows) Combine(parts int) *Group {
	return &Group{Kind: ReduceKind, Outer: r.Outer, Inner: []int{parts}, Members: r.Members, partition: r.partition}
}

// AreIndependent reports whether the group works row by row: row i (index along axis 0) of what it
// stores depends only on row i of the tensors for which in returns true. Coordinate 0 of
// the group counts the rows; in is called with root tensors.
func (r Rows) AreIndependent(in func(t *Tensor) bool) bool {
	rows := r.Outer[0]
	for _, m := range r.Members {
		for _, t := range m.Store {
			if t != nil && (len(t.Dims) == 0 || t.Dims[0] != rows || m.Coord[0] != 0) {
				return false
			}
		}
		s := r.partition.spaces.of(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			t := r.partition.tensors[v]
			if r.member(v) != nil || t == nil || !in(t.Root()) {
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
	for _, c := range r.Copies {
		if len(c.To.Dims) == 0 || c.To.Dims[0] != rows {
			return false
		}
	}
	return true
}
