package serial

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// compensatedScatter is an f32 scatter-add in which rows may get more than fusion.SumBlockLen
// updates: their rounding errors are kept.
type compensatedScatter struct {
	*serial
	x *fusion.Scatter
	r *fusion.RowScatter
	// places numbers the rows with many updates, from 1 on, and is 0 for others; rests holds
	// their rounding errors, row by row.
	places, errors *fusion.Tensor
}

// compensated returns a scatter with the memory for rows with many updates, nil where there are
// none.
func (s *serial) compensated(x *fusion.Scatter, r *fusion.RowScatter) *compensatedScatter {
	if x.Mode != ir.ScatterAdd || x.Out.DType != ir.F32 || r.Positions <= fusion.SumBlockLen {
		return nil
	}
	maxRows := r.Positions / (fusion.SumBlockLen + 1)
	return &compensatedScatter{s, x, r, s.e.Partition.Scratch("places", ir.I32, r.Rows), s.e.Partition.Scratch("rests", ir.F32, maxRows, r.Window)}
}

func (o *compensatedScatter) write() {
	o.find()
	o.eachUpdate(o.x, func(row, w scalar.Expr) {
		place := o.e.Let("place", o.e.Load(o.places, ir.Index{row}))
		o.e.Choose(scalar.Gt(place, loop.Int(0)), func() {
			o.collapsed([]scalar.Expr{w}, true, func() { o.addRow(place, row, o.expr(w)) })
		}, func() {
			o.collapsed([]scalar.Expr{w}, true, func() { o.update(o.x, o.r, row, o.expr(w)) })
		})
	})
	o.eachOften(func(place, row, w scalar.Expr) {
		at := o.r.At(o.e.Simplifier, row, w)
		o.e.Save(o.x.Out, at, scalar.Compensated(o.e.Load(o.x.Out, at), o.e.Load(o.errors, o.errorAt(place, w))))
	})
}

// find numbers the rows with many updates.
func (o *compensatedScatter) find() {
	rows := func(f func(row scalar.Expr)) {
		o.count("row", upTo(o.r.Rows), f)
	}
	rows(func(row scalar.Expr) { o.e.Save(o.places, ir.Index{row}, loop.Int(0)) })
	o.eachUpdate(o.x, func(row, _ scalar.Expr) {
		o.e.Save(o.places, ir.Index{row}, scalar.Add(o.e.Load(o.places, ir.Index{row}), loop.Int(1)))
	})
	last := o.e.Var("last", loop.Int(0))
	rows(func(row scalar.Expr) {
		often := o.e.Let("often", scalar.Gt(o.e.Load(o.places, ir.Index{row}), loop.Int(fusion.SumBlockLen)))
		o.e.Set(last, scalar.Select(often, scalar.Add(last, loop.Int(1)), last))
		o.e.Save(o.places, ir.Index{row}, scalar.Select(often, last, loop.Int(0)))
	})
	o.eachOften(func(place, _, w scalar.Expr) { o.e.Save(o.errors, o.errorAt(place, w), scalar.Const(ir.F32, 0)) })
}

// eachOften writes loops over the rows with many updates and their elements.
func (o *compensatedScatter) eachOften(f func(place, row, w scalar.Expr)) {
	o.count("row", upTo(o.r.Rows), func(row scalar.Expr) {
		place := o.e.Let("place", o.e.Load(o.places, ir.Index{row}))
		o.e.When(scalar.Gt(place, loop.Int(0)), func() {
			o.count("w", upTo(o.r.Window).overLanes(), func(w scalar.Expr) { f(place, row, w) })
		})
	})
}

// errorAt is the index of an element's rounding error.
func (o *compensatedScatter) errorAt(place, w scalar.Expr) ir.Index {
	bound := scalar.Max(scalar.Sub(place, loop.Int(1)), loop.Int(0))
	return ir.Index{scalar.Min(bound, loop.Int(o.errors.Dims[0]-1)), w}
}

// addRow adds an element of an update to a row with compensation.
func (o *compensatedScatter) addRow(place, row, w scalar.Expr) {
	at, rest := o.r.At(o.e.Simplifier, row, w), o.errorAt(place, w)
	next, left := scalar.TwoSum(o.e.Load(o.x.Out, at), o.expr(o.x.Update.Value))
	values := []scalar.Expr{next, scalar.Add(o.e.Load(o.errors, rest), left)}
	o.e.Add(o.e.NameAll(values)...)
	o.e.Save(o.x.Out, at, values[0])
	o.e.Save(o.errors, rest, values[1])
}

// scatter copies the operand, unless it is in place, then combines the updates into it in
// order.
func (s *serial) scatter(g *fusion.Group) {
	x, r := g.Scatter(), fusion.RowScatterOf(g)
	if !x.InPlace {
		begin := x.Store(g, x.Operand.Value)
		s.nest(x.Operand.At, storedBy([]fusion.ElementStore{begin}), func() { s.storeAll([]fusion.ElementStore{begin}) })
	}
	if fusion.Product(x.Update.Dims) == 0 {
		return
	}
	if o := s.compensated(x, r); o != nil {
		o.write()
		return
	}
	s.eachUpdate(x, func(row, w scalar.Expr) {
		s.collapsed([]scalar.Expr{w}, true, func() { s.update(x, r, row, s.expr(w)) })
	})
}

// eachUpdate writes a loop over the positions with a row in range; f is given the row and the
// variable of the update's elements.
func (s *serial) eachUpdate(x *fusion.Scatter, f func(row, w scalar.Expr)) {
	position, w := x.Update.At[0], x.Update.At[1]
	s.loops([]scalar.Expr{position}, func() {
		row := s.e.Let("row", s.expr(scalar.SubstituteVars(x.Row.Value, map[string]scalar.Expr{x.Row.At[0].Name: position})))
		s.e.When(scalar.Ge(row, loop.Int(0)), func() { f(row, w) })
	})
}

// update combines one element of an update into a row.
func (s *serial) update(x *fusion.Scatter, r *fusion.RowScatter, row, w scalar.Expr) {
	at := r.At(s.e.Simplifier, row, w)
	old, update := s.e.Load(x.Out, at), s.expr(x.Update.Value)
	s.e.Add(s.e.Store(x.Out, at, x.Mode.Combine(old, update))...)
}
