package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// split replaces coordinates, the outer or the inner ones, that offsets divide by a constant with
// their quotients and remainders, two coordinates for one: offsets become affine, and contiguous
// accesses are recognised as such. It returns the new sizes.
func split(c *fusion.Code, space *[]scalar.Expr, dims []int) []int {
	for i := 0; i < len(*space); i++ {
		if by := divisorOf(c, (*space)[i].Name, dims[i]); by > 0 {
			dims = splitAxis(c, space, dims, i, by)
		}
	}
	return dims
}

// splitAxis replaces a coordinate with its quotient and remainder by a divisor of its size.
func splitAxis(c *fusion.Code, space *[]scalar.Expr, dims []int, axis, by int) []int {
	v, size := (*space)[axis], dims[axis]
	high := scalar.NewVar(v.Name+"h", v.Type, 0, int64(size/by-1))
	low := scalar.NewVar(v.Name+"l", v.Type, 0, int64(by-1))
	whole := scalar.Add(scalar.Mul(high, loop.Int(by)), low)
	replaceVar(c, v.Name, whole)
	vars, dims := slices.Clone(*space), slices.Clone(dims)
	vars[axis], dims[axis] = high, size/by
	*space = slices.Insert(vars, axis+1, low)
	return slices.Insert(dims, axis+1, by)
}

// replaceVar replaces a coordinate by a value.
func replaceVar(c *fusion.Code, name string, value scalar.Expr) {
	s, values := scalar.NewSimplifier(), map[string]scalar.Expr{name: value}
	replace := func(e scalar.Expr) scalar.Expr { return s.Simplify(scalar.SubstituteVars(e, values)) }
	rewriteExprs(c, replace, replace)
}

// divisorOf returns the largest proper divisor of a coordinate's size that offsets divide the
// coordinate by, 0 where there is none: of its remainder the smaller ones are divisors, too.
func divisorOf(c *fusion.Code, name string, size int) int {
	by := 0
	walkOffsets(c, func(offset scalar.Expr) {
		scalar.Walk(offset, func(x scalar.Expr) {
			if !isDivision(x.Op) || x.Args[0].Op != scalar.OpVar || x.Args[0].Name != name {
				return
			}
			if d, ok := x.Args[1].IntConst(); ok && d > 1 && int(d) < size && size%int(d) == 0 {
				by = max(by, int(d))
			}
		})
	})
	return by
}

// isDivision reports whether an operation on a coordinate, which is not negative, returns its quotient or its
// remainder.
func isDivision(o scalar.Op) bool {
	switch o {
	case scalar.OpFloorDiv, scalar.OpMod, scalar.OpDiv, scalar.OpRem:
		return true
	}
	return false
}

// nearestLast returns code whose last outer coordinate is one along which all loads and stores that depend on
// it visit neighbours, as in pools of planes whose graph has the channels last; nil where it is already, or
// where there is none.
func nearestLast(c *fusion.Code, outer []int) (*fusion.Code, []int) {
	near, apart := map[string]int{}, map[string]bool{}
	walkOffsets(c, func(offset scalar.Expr) {
		for _, v := range c.Outer {
			switch step, ok := stepAlong(offset, v.Name); {
			case step == 1 && ok:
				near[v.Name]++
			case step != 0 || !ok:
				apart[v.Name] = true
			}
		}
	})
	best := len(c.Outer) - 1
	if best < 1 || near[c.Outer[best].Name] > 0 {
		return nil, nil
	}
	for i, v := range c.Outer {
		if !apart[v.Name] && near[v.Name] > 0 && outer[i] > 1 {
			moved, dims := cloneOf(c), slices.Clone(outer)
			moved.Outer = append(slices.Delete(moved.Outer, i, i+1), v)
			return moved, append(slices.Delete(dims, i, i+1), outer[i])
		}
	}
	return nil, nil
}

// stepAlong returns by how much an offset grows along a coordinate, where its conditions hold; false where
// that is not constant.
func stepAlong(offset scalar.Expr, name string) (step int, ok bool) {
	return affineOf(offset).step(name)
}

// step is [stepAlong] of a sum.
func (a affine) step(name string) (step int, ok bool) {
	isCoordinate := func(e scalar.Expr) bool { return e.Op == scalar.OpVar && e.Name == name }
	for _, t := range a.terms {
		switch {
		case isBounded(t.of):
			inside, ok := stepAlong(t.of.Args[0], name)
			if !ok {
				return 0, false
			}
			step += t.coef * inside
		case t.of.Op == scalar.OpSelect:
			inside, ok := stepAlong(t.of.Args[1], name)
			if !ok {
				return 0, false
			}
			step += t.coef * inside
		case isCoordinate(t.of):
			step += t.coef
		case scalar.Any(t.of, isCoordinate):
			return 0, false
		}
	}
	return step, true
}

// isBounded reports whether an expression is another one with a constant bound, as places in the parts of a concatenation
// are.
func isBounded(e scalar.Expr) bool {
	if e.Op != scalar.OpMax && e.Op != scalar.OpMin {
		return false
	}
	_, ok := e.Args[1].IntConst()
	return ok
}

// coalesce merges neighbouring coordinates wherever every load and store visits them in the
// same order without a gap, so that blocks are as long as possible.
func coalesce(c *fusion.Code, outer, inner []int) (outerDims, innerDims []int) {
	c.Outer, outer = coalesceSpace(c, c.Outer, outer)
	c.Inner, inner = coalesceSpace(c, c.Inner, inner)
	return outer, inner
}

func coalesceSpace(c *fusion.Code, vars []scalar.Expr, dims []int) ([]scalar.Expr, []int) {
	vars, dims = slices.Clone(vars), slices.Clone(dims)
	for i := len(vars) - 2; i >= 0; i-- {
		if vars[i].Type != vars[i+1].Type || dims[i] > loop.MaxElements/max(dims[i+1], 1) {
			continue // both and the merged coordinate must have one type
		}
		p := pair{a: vars[i].Name, b: vars[i+1].Name, size: dims[i+1], seen: map[scalar.Expr]bool{}}
		separate := false
		rewriteExprs(c, func(e scalar.Expr) scalar.Expr {
			separate = separate || !p.mergeable(e)
			return e
		}, func(offset scalar.Expr) scalar.Expr {
			separate = separate || !p.offset(offset)
			return offset
		})
		if separate {
			continue
		}
		merged := scalar.NewVar(vars[i].Name+vars[i+1].Name, vars[i].Type, 0, int64(max(dims[i]*dims[i+1]-1, 0)))
		replace := func(e scalar.Expr) scalar.Expr {
			return scalar.Substitute(e, func(x scalar.Expr) (scalar.Expr, bool) {
				switch {
				case x.Op != scalar.OpVar:
				case x.Name == p.a:
					return scalar.ConstI(x.Type, 0), true
				case x.Name == p.b:
					return merged, true
				}
				return nil, false
			})
		}
		rewriteExprs(c, replace, replace)
		vars[i], dims[i] = merged, dims[i]*dims[i+1]
		vars, dims = slices.Delete(vars, i+1, i+2), slices.Delete(dims, i+1, i+2)
	}
	return vars, dims
}

// pair is two neighbouring coordinates.
type pair struct {
	a, b string
	size int // of b
	seen map[scalar.Expr]bool
}

// offset reports whether an offset visits b and then a without a gap.
func (p *pair) offset(e scalar.Expr) bool {
	sum := affineOf(e)
	if sum.coef(p.a) != sum.coef(p.b)*p.size {
		return false
	}
	return !slices.ContainsFunc(sum.terms, func(t affineTerm) bool { return t.of.Op != scalar.OpVar && !p.mergeable(t.of) })
}

// mergeable reports whether an expression uses the two coordinates in the offsets of loads
// only.
func (p *pair) mergeable(e scalar.Expr) bool {
	if known, ok := p.seen[e]; ok {
		return known
	}
	ok := true
	switch e.Op {
	case scalar.OpVar:
		ok = e.Name != p.a && e.Name != p.b
	case scalar.OpLoad:
		ok = p.offset(e.Args[0])
	default:
		for _, a := range e.Args {
			ok = ok && p.mergeable(a)
		}
	}
	p.seen[e] = ok
	return ok
}

// walkOffsets calls visit with the offset of every load and store of the code.
func walkOffsets(c *fusion.Code, visit func(offset scalar.Expr)) {
	rewriteExprs(c, func(e scalar.Expr) scalar.Expr {
		scalar.Walk(e, func(x scalar.Expr) {
			if x.Op == scalar.OpLoad {
				visit(x.Args[0])
			}
		})
		return e
	}, func(offset scalar.Expr) scalar.Expr {
		visit(offset)
		return offset
	})
}

// walkValues calls visit with every node of the code's expressions except the offsets of stores.
func walkValues(c *fusion.Code, visit func(x scalar.Expr)) {
	rewriteExprs(c, func(e scalar.Expr) scalar.Expr {
		scalar.Walk(e, visit)
		return e
	}, unchanged)
}

// walkToLoads calls visit with every node of e that was not seen, but for the offsets of loads.
func walkToLoads(e scalar.Expr, seen map[scalar.Expr]bool, visit func(e scalar.Expr)) {
	if seen[e] {
		return
	}
	seen[e] = true
	visit(e)
	if isLoad(e) {
		return
	}
	for _, a := range e.Args {
		walkToLoads(a, seen, visit)
	}
}

// unchanged is a rewrite that changes nothing.
func unchanged(e scalar.Expr) scalar.Expr { return e }

// replaceLoads replaces loads in the values of code by others.
func replaceLoads(c *fusion.Code, loads, by []scalar.Expr) {
	rewriteExprs(c, func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(x scalar.Expr) (scalar.Expr, bool) {
			if i := indexOf(loads, x); i >= 0 {
				return by[i], true
			}
			return x, false
		})
	}, unchanged)
}

// rewriteExprs replaces every expression of the code that may use coordinates by expr of it,
// and every offset of a store by offset of it.
func rewriteExprs(c *fusion.Code, expr, offset func(scalar.Expr) scalar.Expr) {
	bindings := func(list []scalar.Local) {
		for i := range list {
			list[i].Value = expr(list[i].Value)
		}
	}
	for _, s := range c.Stages {
		bindings(s.Lets)
		for _, r := range s.Reductions {
			for i, e := range r.Elements {
				r.Elements[i] = expr(e)
			}
			bindings(r.Results)
		}
	}
	for _, stores := range [][]fusion.ElementStore{c.Rows, c.Points} {
		for i := range stores {
			stores[i].Value, stores[i].Offset = expr(stores[i].Value), offset(stores[i].Offset)
		}
	}
}
