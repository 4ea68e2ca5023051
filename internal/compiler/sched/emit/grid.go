package emit

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Grid is the threads that run a kernel. LinearGroup or BoundedGroup sets the number of
// workgroups, once.
type Grid struct {
	Workgroup [3]int // threads of a workgroup
	Groups    [3]int // workgroups of the grid
	Long      bool   // workgroup numbers, and integers computed from them, are I64
	maxGroups int    // along an axis of the grid
}

// LinearGroup sets a grid of at least n workgroups and returns the linear workgroup ID. An axis
// of a dispatch is bounded, so IDs of n and more may occur and must do nothing.
func (g *Grid) LinearGroup(n int) scalar.Expr {
	n = max(n, 1)
	cols, rows := n, 1
	if n > g.maxGroups {
		rows = CeilDiv(n, g.maxGroups)
		cols = CeilDiv(n, rows)
	}
	g.Groups = [3]int{cols, rows, 1}
	x, y := loop.GroupID(0, cols), loop.GroupID(1, rows)
	if g.Long {
		x, y = loop.Long(x), loop.Long(y)
	}
	return scalar.Add(x, scalar.Mul(y, loop.Int(cols)))
}

// BoundedGroup is LinearGroup for kernels whose barriers need all threads: the ID is clamped
// below n, and exists is false for workgroups past the end, which must store nothing.
func (g *Grid) BoundedGroup(n int) (workgroup, exists scalar.Expr) {
	workgroup = g.LinearGroup(n)
	if !g.Overshoots() {
		return workgroup, scalar.ConstBool(true)
	}
	return scalar.Min(workgroup, loop.Int(n-1)), scalar.Lt(workgroup, loop.Int(n))
}

// Overshoots reports whether the grid may have more workgroups than asked for.
func (g *Grid) Overshoots() bool { return g.Groups[1] > 1 }

// Position returns a variable with the range of n elements.
func (g *Grid) Position(name string, n int) scalar.Expr {
	t := ir.I32
	if g.Long {
		t = ir.I64
	}
	return scalar.NewVar(name, t, 0, int64(n-1))
}
