package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendForward writes the kernel of attention: each workgroup has a block of
// queries and goes once through the keys that they see, with the greatest score
// and the sum of exponentials of each query so far.
func attendForward(e *emitter, g *group.Group, s ir.Attend) Launch {
	m := g.Members[0]
	t := pickAttendTile(s.Width)
	if s.Mask < 0 && s.Softcap == 0 && t.vectors(s.Width) <= attendVectors/2 {
		t.groups = 2 // otherwise there is more to write for each score, or for each sum
	}
	a := attendQueries(e, m, s, t)
	zero, none := scalar.ConstF(ir.F32, 0), scalar.FreeVar("none", ir.F32)
	a.body = append(a.body, &loop.Let{Name: none.Name, Value: scalar.ConstF(ir.F32, math.Inf(-1))})
	queries := a.rowQueries(nil)
	greatest, total := a.vars("greatest", none), a.vars("total", zero)
	out := a.zeros("o", 4*a.t.vectors(s.Width))
	a.columnBlocks(loop.Int(0), loop.Int(a.cols.blocks()), func() {
		scores := a.zeros("s", a.cols.block/a.t.across)
		a.product(scores, a.q(), a.k())
		a.eachScore(scores, queries, func(_, _ int, x element) scalar.Expr { return scalar.Select(x.seen, x.score, none) })
		a.rescale(scores, out, greatest, total)
		a.accumulate(out, scores, a.v())
	})
	names := a.vars("sum", zero)
	a.meet(names, floats(total), true, scalar.Add)
	sums := floats(names)
	if t := m.Store[0]; t != nil {
		divisors := make([]string, 4) // where no key is seen the sums are 0 too
		for i := range divisors {
			divisors[i] = a.name("divisor")
			a.body = append(a.body, &loop.Let{Name: divisors[i], Value: scalar.Select(scalar.Eq(sums[i], zero), scalar.ConstF(ir.F32, 1), sums[i])})
		}
		a.storeSums(t, a.queryHead, s.Width, func(i, c int) scalar.Expr {
			return scalar.Div(out.at(i, c), scalar.FreeVar(divisors[i], ir.F32))
		})
	}
	if t := m.Store[1]; t != nil {
		a.storeRows(t, a.queryHead, func(i int) scalar.Expr {
			lse := scalar.Add(finiteOrZero(scalar.FreeVar(greatest[i], ir.F32)), scalar.Log(sums[i]))
			return scalar.Select(scalar.Eq(sums[i], zero), none, lse)
		})
	}
	return a.finish(g.Name(), a.body)
}

// attendQueries starts a kernel whose workgroups have a block of queries each,
// those that see most keys first.
func attendQueries(e *emitter, m *group.Member, s ir.Attend, t attendTile) *attender {
	blocks := ceilDiv(s.Queries, t.rows())
	a, workgroup := newAttender(e, m, s, t, group.Product(s.Heads)*blocks)
	a.sides(true)
	block := scalar.Mod(workgroup, loop.Int(blocks))
	if s.Causal {
		block = scalar.Sub(loop.Int(blocks-1), block)
	}
	a.move(&a.rows, block)
	a.atHead(scalar.FloorDiv(workgroup, loop.Int(blocks)))
	return a
}

// rescale replaces the scores of a block by their exponentials, adds these to
// the total, and takes total and sums to the greatest score that there is now.
func (a *attender) rescale(scores, out fragment, greatest, total []string) {
	local := make([]scalar.Expr, 4)
	for i := range local {
		local[i] = scores.at(i, 0)
		for c := 1; c < scores.columns; c++ {
			local[i] = greater(local[i], scores.at(i, c))
		}
	}
	next := make([]string, 4)
	for i := range next {
		next[i] = a.name("next")
		a.body = append(a.body, &loop.Var{Name: next[i], Init: scalar.FreeVar(greatest[i], ir.F32)})
	}
	a.meet(next, local, true, greater)
	for i := range next {
		top, factor := a.name("top"), a.name("factor")
		a.body = append(a.body,
			&loop.Let{Name: top, Value: finiteOrZero(scalar.FreeVar(next[i], ir.F32))},
			&loop.Let{Name: factor, Value: scalar.Exp(scalar.Sub(scalar.FreeVar(greatest[i], ir.F32), scalar.FreeVar(top, ir.F32)))},
			&loop.Assign{Name: greatest[i], Value: scalar.FreeVar(next[i], ir.F32)},
		)
		by := scalar.FreeVar(factor, ir.F32)
		a.body = append(a.body, &loop.Assign{Name: total[i], Value: scalar.Mul(scalar.FreeVar(total[i], ir.F32), by)})
		for c := range scores.columns {
			weight := scalar.Exp(scalar.Sub(scores.at(i, c), scalar.FreeVar(top, ir.F32)))
			a.body = append(a.body,
				&loop.Assign{Name: scores.register(i, c), Value: weight},
				&loop.Assign{Name: total[i], Value: scalar.Add(scalar.FreeVar(total[i], ir.F32), scores.at(i, c))})
		}
		for c := range out.columns {
			a.body = append(a.body, &loop.Assign{Name: out.register(i, c), Value: scalar.Mul(out.at(i, c), by)})
		}
	}
}

// greater returns the greater of two scores. What it makes of NaN is no matter:
// the exponential of such a score is NaN whatever is subtracted from it.
func greater(a, b scalar.Expr) scalar.Expr { return scalar.Select(scalar.Lt(a, b), b, a) }

// query is what the scores of a query have in common.
type query struct {
	limit      scalar.Expr // the query sees the keys before it
	lse, delta scalar.Expr // the columns of stats, for cotangents
}

// limit names the key that is the first that a query does not see.
func (a *attender) limit(s *attendSide, at scalar.Expr) scalar.Expr {
	limit := loop.Int(a.Keys)
	if a.Causal {
		limit = scalar.Min(scalar.Max(scalar.Add(at, loop.Int(a.Keys-a.Queries+1)), loop.Int(0)), limit)
	}
	if _, ok := s.inside(at); ok.Op != scalar.OpConst {
		limit = scalar.Select(ok, limit, loop.Int(0))
	}
	if limit.Op == scalar.OpConst {
		return limit
	}
	return a.let("limit", limit)
}

// element is what becomes of a product of a query and a key.
type element struct {
	score scalar.Expr
	seen  scalar.Expr // false where the query must not see the key
	// capped is what the soft cap multiplies, of which the derivative of the score
	// by the product is a function; nil without one.
	capped scalar.Expr
}

// slope is the derivative of a score by the product that it is made of.
func (a *attender) slope(capped scalar.Expr) scalar.Expr {
	scale := scalar.ConstF(ir.F32, a.Scale)
	if capped == nil {
		return scale
	}
	return scalar.Mul(scale, scalar.Sub(scalar.ConstF(ir.F32, 1), scalar.Mul(capped, capped)))
}

// eachScore replaces the products of a fragment by what f makes of them. There
// is a query for each row or for each column.
func (a *attender) eachScore(products fragment, queries []query, f func(i, c int, x element) scalar.Expr) {
	rows, rowsInMask := a.positions("row", &a.rows, 4, a.row)
	cols, colsInMask := a.positions("column", &a.cols, products.columns, a.column)
	for i := range rows {
		for c := range cols {
			of, key, query, masked := i, cols[c], rowsInMask[i], colsInMask[c]
			if !a.byQuery {
				of, key, query, masked = c, rows[i], masked, query
			}
			x := a.element(products.at(i, c), key, queries[of].limit, a.maskAt(query, masked))
			a.body = append(a.body, &loop.Assign{Name: products.register(i, c), Value: f(i, c, x)})
		}
	}
}

// positions names the positions of a thread along a side, and those in a mask,
// which has none beyond the last query and key.
func (a *attender) positions(prefix string, s *attendSide, n int, position func(i int) scalar.Expr) (at, inMask []scalar.Expr) {
	for i := range n {
		pos := a.let(prefix, position(i))
		at, inMask = append(at, pos), append(inMask, pos)
		if inside, _ := s.inside(pos); a.Mask >= 0 && inside != pos {
			inMask[i] = a.let("masked", inside)
		}
	}
	return at, inMask
}

// element takes a product x with the key at a position through scale, cap and mask.
func (a *attender) element(x, key, limit scalar.Expr, maskAt ir.Index) element {
	e := element{score: scalar.Mul(x, scalar.ConstF(ir.F32, a.Scale)), seen: a.Simplify(scalar.Lt(key, limit))}
	if a.Softcap != 0 {
		t := a.name("t")
		a.body = append(a.body, &loop.Let{Name: t, Value: scalar.Tanh(scalar.Mul(e.score, scalar.ConstF(ir.F32, 1/a.Softcap)))})
		e.capped = scalar.FreeVar(t, ir.F32)
		e.score = scalar.Mul(e.capped, scalar.ConstF(ir.F32, a.Softcap))
	}
	if a.Mask < 0 {
		return e
	}
	mask := a.read(a.Mask, maskAt)
	if mask.Type == ir.Bool {
		e.seen = scalar.And(e.seen, mask)
	} else {
		e.score = scalar.Add(e.score, scalar.Convert(mask, ir.F32))
	}
	return e
}

// maskAt returns the place in the mask for a score of the head at hand.
func (a *attender) maskAt(row, col scalar.Expr) ir.Index {
	if a.Mask < 0 {
		return nil
	}
	dims, _ := a.m.Node.Input(a.Mask).Shape().Ints()
	all := slices.Concat(a.queryHead, ir.Index{row, col})
	at := all[len(all)-len(dims):]
	for i, d := range dims {
		if d == 1 {
			at[i] = loop.Int(0)
		}
	}
	return at
}

// floats returns variables of f32.
func floats(names []string) []scalar.Expr {
	out := make([]scalar.Expr, len(names))
	for i, name := range names {
		out[i] = scalar.FreeVar(name, ir.F32)
	}
	return out
}
