package group

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Bounds of cutting rows: a dispatch that reduces should have wantedReductions
// workgroups, since it does little else than wait for memory: eight on each of a
// large device's 132 processors. Each has at least splitLength inner points.
const (
	wantedReductions = 1024
	splitLength      = 1024
)

// RowParts returns over how many workgroups each row of a reduction is cut.
// Groups with several stages, or with results inside the rows, need whole rows.
// Fusion has to know it: the running values between the two kernels of a cut
// reduction take bindings of their own.
func (g *Group) RowParts() int {
	if !g.Splits() {
		return 1
	}
	rows, length := Product(g.Outer), Product(g.Inner)
	if g.RowsAreContiguous() {
		rows = (rows + 31) / 32
	}
	return max(1, min(wantedReductions/max(rows, 1), length/splitLength))
}

// keeps reports whether some result of a node is needed outside of the group.
func (g *Group) keeps(n *ir.Node) bool {
	return slices.ContainsFunc(g.touch.keeps, func(k use) bool { return k.v.Node() == n })
}

// Splits reports whether rows of a reduction can be cut over workgroups at all.
func (g *Group) Splits() bool {
	levels := g.Levels()
	for _, m := range g.Members {
		inside := !m.Reduced && m.Pointwise(len(g.Outer))
		if m.Reduced && levels[m] > 0 || inside && (levels[m] > 0 || g.keeps(m.Node)) {
			return false
		}
	}
	return true
}

// OverParts returns the group that computes g from the running values that parts
// of its rows have come to.
func (g *Group) OverParts(parts int) *Group {
	return &Group{Kind: ReduceKind, Outer: g.Outer, Inner: []int{parts}, Members: g.Members, program: g.program}
}
