package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// prefix writes a running combination, of some lines at once where they lie side
// by side.
func (s *serial) prefix(x *fusion.Prefix) {
	var lines []scalar.Expr
	for axis, at := range x.At {
		if axis != x.Axis {
			lines = append(lines, at)
		}
	}
	last := len(x.Dims) - 1
	var write func(i int)
	write = func(i int) {
		if i < len(lines) {
			s.flat(lines[i:i+1], i == len(lines)-1 && x.Axis != last, func() { write(i + 1) })
			return
		}
		s.line(x)
	}
	write(0)
}

// line writes the running combination along one line.
func (s *serial) line(x *fusion.Prefix) {
	init := make([]scalar.Expr, len(x.Accumulators))
	for i, a := range x.Accumulators {
		init[i] = a.Init
	}
	running := s.vars("running", init)
	s.bind(x.Running, running)
	n := x.Dims[x.Axis]
	s.count("i", loop.Int(0), loop.Int(n), 1, n-1, false, func(i scalar.Expr) {
		if x.Reverse {
			i = scalar.Sub(loop.Int(n-1), i)
		}
		s.bind(x.At[x.Axis:x.Axis+1], []scalar.Expr{s.Simplify(i)})
		if x.Exclusive {
			s.storeAll(x.Stores)
		}
		s.setAll(running, s.exprs(x.Combined))
		if !x.Exclusive {
			s.storeAll(x.Stores)
		}
	})
}

// scatter writes the operand, unless it lies where the result does, and then
// combines the updates into it in their order.
func (s *serial) scatter(g *fusion.Group) {
	x, r := g.Scatter(), fusion.RowScatterOf(g)
	if !x.InPlace {
		begin := x.Store(g, x.Operand.Value)
		s.over(x.Operand.At, storedBy([]fusion.ElementStore{begin}), func() { s.storeAll([]fusion.ElementStore{begin}) })
	}
	if fusion.Product(x.Update.Dims) == 0 {
		return
	}
	if o := s.oftenUpdated(x, r); o != nil {
		o.write()
		return
	}
	s.eachUpdate(x, func(row, w scalar.Expr) {
		s.flat([]scalar.Expr{w}, true, func() { s.update(x, r, row, s.expr(w)) })
	})
}

// eachUpdate writes a loop over the positions that have a row, which f is told with the
// variable of the elements of an update.
func (s *serial) eachUpdate(x *fusion.Scatter, f func(row, w scalar.Expr)) {
	position, w := x.Update.At[0], x.Update.At[1]
	s.all([]scalar.Expr{position}, func() {
		row := s.let("row", s.expr(replaced(x.Row.Value, map[string]scalar.Expr{x.Row.At[0].Name: position})))
		s.when(scalar.Ge(row, loop.Int(0)), func() { f(row, w) })
	})
}

// update combines one element of an update into a row.
func (s *serial) update(x *fusion.Scatter, r *fusion.RowScatter, row, w scalar.Expr) {
	at := r.At(s.Simplifier, row, w)
	old, update := s.load(x.Out, at), s.expr(x.Update.Value)
	s.add(s.store(x.Out, at, x.Mode.Combine(old, update))...)
}
