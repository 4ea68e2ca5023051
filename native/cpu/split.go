package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// split makes two coordinates of an outer one that offsets take quotients and
// remainders of, as those of merged axes are: both then stand in sums, and lanes
// that lie side by side are seen to.
func split(c *fusion.Code, outer []int) []int {
	for i := 0; i < len(c.Outer); i++ {
		v, size := c.Outer[i], outer[i]
		by := divisorOf(c, v.Name, size)
		if by == 0 {
			continue
		}
		high := scalar.NewVar(v.Name+"h", v.Type, 0, int64(size/by-1))
		low := scalar.NewVar(v.Name+"l", v.Type, 0, int64(by-1))
		whole := scalar.Add(scalar.Mul(high, loop.Int(by)), low)
		s := scalar.NewSimplifier()
		replace := func(e scalar.Expr) scalar.Expr {
			return s.Simplify(scalar.Substitute(e, func(x scalar.Expr) (scalar.Expr, bool) {
				return whole, x.Op == scalar.OpVar && x.Name == v.Name
			}))
		}
		eachExpr(c, replace, replace)
		c.Outer, outer = slices.Clone(c.Outer), slices.Clone(outer)
		c.Outer[i], outer[i] = high, size/by
		c.Outer, outer = slices.Insert(c.Outer, i+1, low), slices.Insert(outer, i+1, by)
	}
	return outer
}

// divisorOf returns a number, less than the size of a coordinate and a divisor of
// it, that offsets divide the coordinate by; 0 where there is none.
func divisorOf(c *fusion.Code, name string, size int) int {
	by := 0
	look := func(e scalar.Expr) scalar.Expr {
		scalar.Walk(e, func(x scalar.Expr) {
			if x.Op != scalar.OpFloorDiv && x.Op != scalar.OpMod || x.Args[0].Op != scalar.OpVar || x.Args[0].Name != name {
				return
			}
			if d, ok := x.Args[1].IntConst(); ok && d > 1 && int(d) < size && size%int(d) == 0 {
				by = int(d)
			}
		})
		return e
	}
	eachExpr(c, func(e scalar.Expr) scalar.Expr {
		scalar.Walk(e, func(x scalar.Expr) {
			if x.Op == scalar.OpLoad {
				look(x.Args[0])
			}
		})
		return e
	}, look)
	return by
}
