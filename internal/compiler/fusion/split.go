package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Policy answers what fusion has to know of a target to weigh a pass over memory that is
// saved against processors that stay idle. Beside says that neighbouring rows lie side by
// side in memory, see [Group.RowsAreContiguous].
type Policy interface {
	// Parts is over how many workgroups each row of a reduction is best cut, 1 for none.
	Parts(rows, length int, beside bool) int
	// Whole reports whether rows that are not cut fill the device.
	Whole(rows, length int) bool
	// Stages reports whether further stages may depend on whole rows.
	Stages(rows, length int, beside bool) bool
}

// RowParts returns over how many workgroups each row of a reduction is cut.
// Groups with several stages, or with results inside the rows, need whole rows.
// Fusion has to know it: the running values between the two kernels of a cut
// reduction take bindings of their own.
func (g *Group) RowParts() int {
	if !g.Splits() {
		return 1
	}
	return g.partition.options.Policy.Parts(Product(g.Outer), Product(g.Inner), g.RowsAreContiguous())
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
