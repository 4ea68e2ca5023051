package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rowPart is a group of the body of a [persistent] loop.
type rowPart struct {
	g    *fusion.Group
	code *fusion.Code
	row  scalar.Expr // the coordinate that counts rows; nil where there is one row
	rest []scalar.Expr
	// points are how many there are in a row, each how many elements one goes through.
	points, each int
	// packed are the tensors in which what elements of sums load lies as the threads of
	// a workgroup read it, see pack.
	packed map[scalar.Expr]*fusion.Tensor
}

// newRowPart reads a group, or reports that it is of another kind than those which a
// thread computes point by point.
func newRowPart(g *fusion.Group, rows int) (*rowPart, bool) {
	switch g.Kind {
	case fusion.ContractKind:
		g = g.Reduction()
	case fusion.MapKind, fusion.ReduceKind:
	default:
		return nil, false
	}
	x := &rowPart{g: g, code: g.Code()}
	x.rest = x.code.Outer
	if rows > 1 {
		x.row, x.rest = x.code.Outer[0], x.code.Outer[1:]
	}
	x.points, x.each = sizeOf(x.rest), max(1, sizeOf(x.code.Inner))
	if len(x.code.Points) > 0 || sizeOf(x.code.Inner) == 0 {
		return nil, false
	}
	for _, s := range x.code.Rows {
		if s.Guarded || !isWordType(s.Tensor.DType) {
			return nil, false
		}
	}
	return x, true
}

// exprs returns all expressions of the part.
func (x *rowPart) exprs() []scalar.Expr {
	var out []scalar.Expr
	for _, s := range x.code.Stages {
		for _, b := range s.Lets {
			out = append(out, b.Value)
		}
		for _, r := range s.Reductions {
			out = append(out, r.Elements...)
			for _, b := range r.Results {
				out = append(out, b.Value)
			}
		}
	}
	for _, s := range x.code.Rows {
		out = append(out, s.Value)
	}
	return out
}

// inRows reports whether a part reads and writes rows of its own number alone of what
// the loop writes, and checks no index.
func (p *persistent) inRows(x *rowPart) bool {
	for _, e := range x.exprs() {
		checks := false
		scalar.Walk(e, func(n scalar.Expr) { checks = checks || n.Op == scalar.OpCheck })
		if checks {
			return false
		}
	}
	return x.row == nil || x.g.ByRows(func(t *fusion.Tensor) bool { return p.written[t.ID] != nil || p.kept[t.ID] != nil })
}

// part writes what a workgroup does of a part in a round: its threads take a point each.
func (p *persistent) part(x *rowPart, round, exists scalar.Expr) {
	threads := p.workgroup[0]
	p.loop("point", loop.LocalID(0, threads), loop.Int(x.points), threads, x.points-1, func(point scalar.Expr) {
		e := &rowPoint{persistent: p, part: x, point: point, bound: map[string]scalar.Expr{p.count: round}}
		if x.row != nil {
			e.bound[x.row.Name] = p.row
		}
		e.bind(x.rest, p.unflatten(point, sizesOf(x.rest)))
		for _, s := range x.code.Stages {
			for _, b := range s.Lets {
				e.bound[b.Var.Name] = p.let("v", e.expr(b.Value))
			}
			for _, r := range s.Reductions {
				e.reduce(r, x.code.Inner)
			}
		}
		e.store(x, exists)
	})
}

// rowPoint is a point of a part.
type rowPoint struct {
	*persistent
	bound          map[string]scalar.Expr // what the variables of the code stand for
	part           *rowPart
	point, element scalar.Expr // the numbers of the point and of the element of a sum
}

func (e *rowPoint) bind(vars, values []scalar.Expr) { bindAll(e.bound, vars, values) }

// expr returns an expression of the code in the kernel's variables: kept rows are
// workgroup memory.
func (e *rowPoint) expr(x scalar.Expr) scalar.Expr {
	return e.Simplify(scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		switch n.Op {
		case scalar.OpVar:
			v, ok := e.bound[n.Name]
			return v, ok
		case scalar.OpLoad:
			if k := e.kept[n.Ref]; k != nil {
				return scalar.LoadAt(k.slot, n.Type, e.place(k, n.Args[0])), true
			}
			if t := e.part.packed[n]; t != nil {
				at := scalar.Add(scalar.Mul(e.element, loop.Int(e.part.points)), e.point)
				return scalar.LoadAt(t.ID, n.Type, e.Simplify(at)), true
			}
		}
		return nil, false
	}))
}

// place returns where an element of a tensor lies in its kept row.
func (e *rowPoint) place(k *keptRows, at scalar.Expr) scalar.Expr {
	return e.Simplify(scalar.Sub(e.expr(at), scalar.Mul(e.row, loop.Int(k.length))))
}

// reduce writes the loop of a reduction at the point. Some elements are loaded before
// the first of them is waited for.
func (e *rowPoint) reduce(r fusion.Reduction, inner []scalar.Expr) {
	running := make([]scalar.Expr, len(r.Running))
	for i, a := range r.Accumulators {
		running[i] = e.variable("running", e.expr(a.Init))
	}
	n, at := sizeOf(inner), 8
	for n%at != 0 {
		at /= 2
	}
	e.loop("r", loop.Int(0), loop.Int(n), at, n-at, func(first scalar.Expr) {
		elements := make([][]scalar.Expr, at)
		for i := range elements {
			e.element = e.Simplify(scalar.Add(first, loop.Int(i)))
			e.bind(inner, e.unflatten(e.element, sizesOf(inner)))
			for _, x := range r.Elements {
				elements[i] = append(elements[i], e.let("element", e.expr(x)))
			}
		}
		for _, x := range elements {
			e.setAll(running, r.Combine(running, x))
		}
	})
	e.bind(r.Running, running)
	for _, b := range r.Results {
		e.bound[b.Var.Name] = e.let("v", e.expr(b.Value))
	}
}

// store writes the stores of the point.
func (e *rowPoint) store(x *rowPart, exists scalar.Expr) {
	values := make([]scalar.Expr, len(x.code.Rows))
	for i, s := range x.code.Rows {
		values[i] = e.expr(s.Value)
	}
	e.add(e.nameAll(values)...)
	for i, s := range x.code.Rows {
		if k := e.kept[s.Tensor.ID]; k != nil {
			e.put(k.slot, e.place(k, s.Offset), values[i])
			continue
		}
		e.when(exists, func() {
			e.add(&loop.Store{Array: s.Tensor.ID, At: e.expr(s.Offset), Value: values[i]})
		})
	}
}
