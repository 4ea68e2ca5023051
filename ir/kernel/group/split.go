package group

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Bounds of cutting rows: a dispatch that reduces should have wantedReductions
// workgroups, since it does little else than wait for memory: eight on each of a
// large device's 132 processors. Each has at least splitLength inner points. Rows that
// are read side by side have so few workgroups that each may have less, where many can:
// the sums of 384 columns of 16,384 elements took 14.7 µs in 64 parts on an H200 in WebGPU,
// and 19.3 in 16. Other rows are cut from leastParts parts on: a workgroup goes through
// 4,096 elements in less time than a second launch takes.
const (
	wantedReductions = 1024
	splitLength      = 1024
	splitBeside      = 256
	leastParts       = 8
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
	if !g.RowsAreContiguous() {
		if length < leastParts*splitLength {
			return 1
		}
		return max(1, min(wantedReductions/max(rows, 1), length/splitLength))
	}
	if length < splitLength {
		return 1
	}
	return max(1, min(wantedReductions/((rows+31)/32), length/splitBeside))
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
	return &Group{Kind: ReduceKind, Outer: g.Outer, Inner: []int{parts}, Members: g.Members, partition: g.partition}
}
