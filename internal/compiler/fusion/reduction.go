package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Reduction returns the reduction that a member of a [ReduceKind] group is, or is
// computed as.
func (m *Member) Reduction() *ir.ReduceLowering {
	switch l := m.Node.Def().Lower.(type) {
	case *ir.ReduceLowering:
		return l
	case *ir.ScatterLowering:
		return scatterOf(m.Node).asReduction()
	}
	return ContractionOf(m.Node, scalar.NewSimplifier()).asReduction()
}

// Finish returns the results of a reduction at a position from its running
// values.
func (m *Member) Finish(at ir.Index, acc []scalar.Expr, load ir.Load) []scalar.Expr {
	if _, ok := m.Node.Def().Lower.(*ir.ScatterLowering); ok {
		return []scalar.Expr{scatterOf(m.Node).finish(at, acc, load)}
	}
	if f := m.Reduction().Finish; f != nil {
		return f(m.Node, at, acc)
	}
	return acc
}

// Levels tells for each member after how many stages it can be computed.
func (g *Group) Levels() map[*Member]int {
	levels := map[*Member]int{}
	for _, m := range g.Members {
		s := g.partition.spaceOf(m.Node)
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

// lowDigit returns the coordinate whose last digit a position is: neighbours along it
// are neighbours of the position, but for where the digit begins again.
func lowDigit(e scalar.Expr) scalar.Expr {
	for e.Op == scalar.OpMod || e.Op == scalar.OpRem {
		if n, ok := e.Args[1].IntConst(); !ok || n < leastDigit {
			break
		}
		e = e.Args[0]
	}
	return e
}

// leastDigit is how long a stretch of neighbours has to be to count: two sectors of memory
// in f32, or one of 16-bit elements.
const leastDigit = 16

// RowsAreContiguous reports whether most of what the reductions load lies side
// by side along the outer coordinates, as in a sum over the first axis. What the
// group computes itself is not loaded: by the mean of a group norm the rows that
// it is of would lie side by side.
func (g *Group) RowsAreContiguous() bool {
	votes := 0
	for _, m := range g.Members {
		s := g.partition.spaceOf(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			if g.member(v) != nil {
				continue
			}
			size, _ := v.Shape().Size().Const()
			for axis := len(a.at) - 1; axis >= 0; axis-- {
				if v.Dim(axis).Is(1) {
					continue
				}
				if own, ok := s.axisOf(lowDigit(a.at[axis])); ok && m.coordOf(own) >= 0 {
					if m.coordOf(own) < len(g.Outer) {
						votes += size
					} else {
						votes -= size
					}
				}
				break
			}
		}
	}
	return votes > 0
}
