package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// pack returns the launches that write, before the loop, what sums load in each step in
// the order in which the threads of a workgroup read it: neighbours have neighbouring
// points. It is done where they would read far apart, as of the weights in the product
// of a derivative, which are those of the way forward turned.
func (p *persistent) pack(caps loop.Caps) []Launch {
	var out []Launch
	p.all(func(x *rowPart) bool {
		x.packed = map[scalar.Expr]*fusion.Tensor{}
		for _, load := range p.scattered(x) {
			if x.packed[load] != nil {
				continue
			}
			t := p.l.Body.Scratch("packed", load.Type, x.each, x.points)
			x.packed[load] = t
			w := newWriter(p.l.Body, caps, mapThreads)
			w.threads(t.Len(), func(i scalar.Expr) {
				at := w.unflatten(i, t.Dims)
				bound := map[string]scalar.Expr{}
				bindAll(bound, x.code.Inner, w.unflatten(at[0], sizesOf(x.code.Inner)))
				bindAll(bound, x.rest, w.unflatten(at[1], sizesOf(x.rest)))
				w.save(t, at, scalar.LoadAt(load.Ref, load.Type, w.Simplify(replaced(load.Args[0], bound))))
			})
			out = append(out, w.launch("pack_"+x.g.Name()))
		}
		return true
	})
	return out
}

// scattered returns the loads of a part's sums that are alike in all steps and rows,
// and whose places are far apart for neighbouring points.
func (p *persistent) scattered(x *rowPart) []scalar.Expr {
	var out []scalar.Expr
	if len(x.rest) == 0 || x.each == 1 {
		return nil
	}
	last := x.rest[len(x.rest)-1]
	for _, s := range x.code.Stages {
		for _, r := range s.Reductions {
			for _, e := range r.Elements {
				scalar.Walk(e, func(n scalar.Expr) {
					if n.Op == scalar.OpLoad && p.written[n.Ref] == nil && p.kept[n.Ref] == nil && p.steady(x, n.Args[0]) && !besides(n.Args[0], last) {
						out = append(out, n)
					}
				})
			}
		}
	}
	return out
}

// steady reports whether an expression is the same in all steps and rows, in terms of
// the coordinates of a part.
func (p *persistent) steady(x *rowPart, e scalar.Expr) bool {
	known := map[string]bool{}
	for _, v := range append(append([]scalar.Expr{}, x.rest...), x.code.Inner...) {
		known[v.Name] = true
	}
	ok := true
	scalar.Walk(e, func(n scalar.Expr) {
		counter, number := loop.BuiltinOf(n.Name)
		outer := counter == loop.BuiltinCounter && number < p.l.Body.Depth()-1
		ok = ok && n.Op != scalar.OpLoad && (n.Op != scalar.OpVar || known[n.Name] || outer)
	})
	return ok
}

// besides reports whether the place that an expression tells is the same, or the next,
// for the next value of a variable.
func besides(at, v scalar.Expr) bool {
	if v.Op != scalar.OpVar || v.Hi == 0 {
		return true
	}
	s := scalar.NewSimplifier()
	here := scalar.NewVar(v.Name, ir.I32, 0, v.Hi-1)
	step := s.Simplify(scalar.Sub(
		replaced(at, map[string]scalar.Expr{v.Name: scalar.Add(here, loop.Int(1))}),
		replaced(at, map[string]scalar.Expr{v.Name: here}),
	))
	n, known := step.IntConst()
	return known && (n == 0 || n == 1)
}

// bindAll makes variables stand for values.
func bindAll(bound map[string]scalar.Expr, vars, values []scalar.Expr) {
	for i, v := range vars {
		if v.Op == scalar.OpVar {
			bound[v.Name] = values[i]
		}
	}
}
