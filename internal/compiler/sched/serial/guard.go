package serial

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// lanes writes a loop over a constant number of lanes. Values that are loaded under conditions, as
// those of a padded tensor, are loaded without them where these hold in all lanes: the loads are
// then contiguous. f may be called twice, as names are unique.
func (s *serial) lanes(width int, f func(l scalar.Expr)) {
	write := func() { s.count("l", upTo(width).overLanes(), f) }
	write()
	last := len(s.e.Body) - 1
	each := s.e.Body[last].(*loop.For)
	guards := guardsOfLoop(each)
	if len(guards) == 0 {
		return
	}
	hold := scalar.ConstBool(true)
	for _, g := range guards {
		for _, lane := range []int{0, width - 1} { // and so in those between
			hold = scalar.And(hold, scalar.SubstituteVars(g, map[string]scalar.Expr{each.Var: loop.Int(lane)}))
		}
	}
	s.e.Body = s.e.Body[:last]
	s.e.Choose(hold, func() {
		write()
		inside := s.e.Body[0].(*loop.For)
		guards := guardsOfLoop(inside)
		inside.Body = loop.MapExprs(inside.Body, func(e scalar.Expr) scalar.Expr { return scalar.Assume(e, guards...) })
	}, func() { s.e.Add(each) })
}

// guardsOfLoop returns the conditions of loads in a loop that compare linear functions of its variable.
func guardsOfLoop(each *loop.For) (guards []scalar.Expr) {
	loop.Walk(each.Body, func(st loop.Stmt) {
		loop.EachExpr(st, func(e scalar.Expr) {
			for _, g := range guardsOf(e) {
				if comparesLinear(g, each.Var) {
					guards = append(guards, g)
				}
			}
		})
	})
	return guards
}

// guardsOf returns the conditions of loads in an expression.
func guardsOf(e scalar.Expr) (guards []scalar.Expr) {
	scalar.Walk(e, func(n scalar.Expr) {
		if n.Op == scalar.OpSelect && scalar.Any(n.Args[1], isLoad) && !scalar.Any(n.Args[0], isLoad) {
			guards = append(guards, n.Args[0])
		}
	})
	return guards
}

func isLoad(e scalar.Expr) bool { return e.Op == scalar.OpLoad }

// comparesLinear reports whether a condition changes with a variable and compares linear functions of it.
func comparesLinear(cond scalar.Expr, name string) bool {
	changes := false
	for _, c := range scalar.Conjuncts(cond) {
		if c.Op < scalar.OpLt || c.Op > scalar.OpGe || !c.Args[0].Type.IsInteger() {
			return false
		}
		step, linear := StepOf(scalar.Sub(c.Args[0], c.Args[1]), name)
		if !linear {
			return false
		}
		changes = changes || step != 0
	}
	return changes
}

// StepOf returns how much an integer grows when a variable grows by 1; constant reports whether that
// is always the same.
func StepOf(e scalar.Expr, name string) (step int64, constant bool) {
	next := scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpVar || n.Name != name {
			return nil, false
		}
		return scalar.Add(n, scalar.ConstI(n.Type, 1)), true
	})
	return scalar.Simplify(scalar.Sub(next, e)).IntConst()
}
