package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// loopOver writes a loop over the inner points of a thread, a few of which are
// written out in each turn so that the loads of one need not wait for those of the
// other, and a second loop over those that are left at the end of a long row.
func (r *rowEmitter) loopOver(f func(c *chunk)) {
	turns, to := r.together(), r.to
	if r.each > 1 { // of whole rows
		to = loop.Int(r.length / r.each)
	}
	if withMma && turns == 1 && r.hasRest() {
		whole := maxTogether * r.shape.lanes
		whole *= r.length / r.each / whole
		r.turns(f, maxTogether, scalar.Add(r.from, r.lane), loop.Int(whole))
		r.turns(f, 1, scalar.Add(loop.Int(whole), r.lane), to)
		return
	}
	r.turns(f, turns, scalar.Add(r.from, r.lane), to)
}

// turns writes a loop from a thread's point on, so many of which are written out. A point
// is a vector where the rows go by such.
func (r *rowEmitter) turns(f func(c *chunk), turns int, from, to scalar.Expr) {
	n, lanes := fusion.Product(r.g.Inner)/r.each, r.shape.lanes
	name, inner := r.name("r"), r.name("u")
	each := &loop.For{Var: name, Start: from, End: to, Step: loop.Int(turns * lanes), Rolled: r.rolled()}
	at := scalar.NewVar(name, each.Type(), 0, int64(n-1-(turns-1)*lanes))
	if turns > 1 {
		at = scalar.Add(at, scalar.Mul(scalar.NewVar(inner, ir.I32, 0, int64(turns-1)), loop.Int(lanes)))
	}
	outer := r.body
	r.body = nil
	for j := range r.each {
		element := at
		if r.each > 1 {
			element = scalar.Add(scalar.Mul(at, loop.Int(r.each)), loop.Int(j))
		}
		f(&chunk{-1, r.unflatten(element, r.g.Inner), scalar.ConstBool(true)})
	}
	body := r.body
	var before []loop.Stmt
	if withMma && r.caps.Dialect == dtype.CUDA {
		before, body = r.checkedBefore(body, name, inner)
	}
	if turns > 1 {
		body = []loop.Stmt{&loop.For{Var: inner, Start: loop.Int(0), End: loop.Int(turns), Step: loop.Int(1), Unroll: true, Body: body}}
	}
	each.Body = body
	r.body = append(append(outer, before...), each)
}

// checkedBefore takes what belongs to a row and is checked out of the turns of a loop over
// its points, where it is read from memory that the kernel does not write. Compilers
// leave a check in its place, and move no load across it.
func (r *rowEmitter) checkedBefore(body []loop.Stmt, changing ...string) (before, rest []loop.Stmt) {
	loop.Walk(body, func(s loop.Stmt) { changing = append(append(changing, loop.Defines(s)...), loop.Assigns(s)...) })
	named := map[string]scalar.Expr{}
	take := func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpCheck || !r.steady(n, changing) {
			return nil, false
		}
		key := scalar.Key(n)
		if named[key] == nil {
			name := r.name("checked")
			named[key] = scalar.FreeVar(name, n.Type)
			if lo, hi, ok := scalar.Range(n); ok {
				named[key] = scalar.NewVar(name, n.Type, lo, hi)
			}
			before = append(before, &loop.Let{Name: name, Value: n})
		}
		return named[key], true
	}
	for _, s := range body {
		if _, branch := s.(*loop.If); !branch {
			s = loop.MapExprs([]loop.Stmt{s}, func(x scalar.Expr) scalar.Expr { return scalar.Substitute(x, take) })[0]
		}
		rest = append(rest, s)
	}
	return before, rest
}

// steady reports whether an expression is the same in every turn of a loop that changes
// some variables.
func (r *rowEmitter) steady(x scalar.Expr, changing []string) bool {
	same := true
	scalar.Walk(x, func(n scalar.Expr) {
		switch n.Op {
		case scalar.OpVar:
			same = same && !slices.Contains(changing, n.Name)
		case scalar.OpLoad:
			same = same && !writes(r.emitter, r.g, n.Ref)
		}
	})
	return same
}

// maxTogether is how many inner points of a thread are written out in a turn of a
// loop over them, so that as many loads are under way.
const maxTogether = 4

// longRow is how many turns with points written out make up for code that is there twice.
const longRow = 8

// hasRest reports whether rows are so long that points are written out though they do not
// come out even. In WGSL and MSL, where nobody has measured it, they are not.
func (r *rowEmitter) hasRest() bool {
	from, known := r.from.IntConst()
	return r.caps.Dialect == dtype.CUDA && known && from == 0 && r.length == fusion.Product(r.g.Inner) &&
		r.length >= longRow*maxTogether*r.each*r.shape.lanes && (maxTogether+1)*r.each*r.g.Weight() <= maxWrittenOut
}

// rolledTerms is from how many terms on the loop of a thread by itself is not to be written
// out, where the whole takes less than a launch anyway: Mesa's driver for processors writes
// out up to 32 turns, and what compiling takes there grows with the square of the loads. On
// lavapipe a product of 24 terms takes 1.2 s of processor time in 6 turns of 4 terms that
// are written out, and 0.15 s in a loop.
const rolledTerms = 12

// rolled reports whether a loop over the points of a thread is to stay one.
func (r *rowEmitter) rolled() bool {
	return r.shape.lanes == 1 && r.length > rolledTerms && float64(r.length)*float64(fusion.Product(r.g.Outer)) <= smallProduct
}

// together returns how many points are written out in each turn: as many as come
// out even for every thread of every workgroup.
func (r *rowEmitter) together() int {
	most := maxTogether
	if r.shape.rowsFirst {
		most = r.columnTurns(r.g)
	}
	for t := most; t > 1; t /= 2 {
		if r.length%(t*r.each*r.shape.lanes) == 0 && t*r.each*r.g.Weight() <= maxWrittenOut {
			return t
		}
	}
	return 1
}
