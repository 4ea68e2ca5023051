package kernel

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendForward writes the kernel of attention: each workgroup has a block of
// queries and goes once through the keys that they see, with the greatest score
// and the sum of exponentials of each query so far.
func attendForward(e *emitter, g *Group, s ir.Attend) Launch {
	m := g.Members[0]
	a := attendQueries(e, m, s, pickAttendTile(2, s.Width))
	zero, none := scalar.ConstF(ir.F32, 0), scalar.ConstF(ir.F32, math.Inf(-1))
	greatest, total := a.vars("greatest", none), a.vars("total", zero)
	out := a.zeros("out", 4*a.t.vectors(s.Width))
	a.columnBlocks(integer(0), integer(a.cols.blocks()), true, func() {
		scores := a.zeros("score", a.cols.block/a.t.across)
		a.product(scores, a.q(), a.k())
		a.eachRow(scores, true, func(_ int, x []element) []scalar.Expr {
			values := make([]scalar.Expr, len(x))
			for c := range x {
				values[c] = scalar.Select(x[c].seen, x[c].score, none)
			}
			return values
		})
		a.rescale(scores, out, greatest, total)
		a.accumulate(out, scores, a.v())
	})
	sums := a.vars("sum", zero)
	a.meet(sums, variables32(total), true, scalar.Add)
	if t := m.Store[0]; t != nil {
		a.storeSums(t, a.queryHead, s.Width, func(i, c int) scalar.Expr {
			l := scalar.FreeVar(sums[i], ir.F32)
			empty := scalar.Eq(l, zero)
			return scalar.Select(empty, zero, scalar.Div(out.at(i, c), scalar.Select(empty, scalar.ConstF(ir.F32, 1), l)))
		})
	}
	if t := m.Store[1]; t != nil {
		a.storeRows(t, a.queryHead, func(i int) scalar.Expr {
			l := scalar.FreeVar(sums[i], ir.F32)
			lse := scalar.Add(finiteOrZero(scalar.FreeVar(greatest[i], ir.F32)), scalar.Log(l))
			return scalar.Select(scalar.Eq(l, zero), none, lse)
		})
	}
	return a.finish(g.Name(), a.body)
}

// attendQueries starts a kernel whose workgroups have a block of queries each,
// those that see most keys first.
func attendQueries(e *emitter, m *Member, s ir.Attend, t attendTile) *attender {
	blocks := ceilDiv(s.Queries, t.rows())
	a, group := newAttender(e, m, s, t, product(s.Heads)*blocks)
	a.sides(s.Queries, s.Keys)
	block := scalar.Mod(group, integer(blocks))
	if s.Causal {
		block = scalar.Sub(integer(blocks-1), block)
	}
	a.move(&a.rows, block)
	a.atHead(scalar.FloorDiv(group, integer(blocks)))
	return a
}

// rescale replaces the scores of a block by their exponentials, adds these to
// the total, and takes total and sums to the greatest score that there is now.
func (a *attender) rescale(scores, out fragment, greatest, total []string) {
	local := make([]scalar.Expr, 4)
	for i := range local {
		local[i] = scores.at(i, 0)
		for c := 1; c < scores.columns; c++ {
			local[i] = scalar.Max(local[i], scores.at(i, c))
		}
	}
	next := make([]string, 4)
	for i := range next {
		next[i] = a.name("next")
		a.body = append(a.body, &Var{next[i], scalar.FreeVar(greatest[i], ir.F32)})
	}
	a.meet(next, local, true, scalar.Max)
	for i := range next {
		top, factor := a.name("top"), a.name("factor")
		a.body = append(a.body,
			&Let{top, finiteOrZero(scalar.FreeVar(next[i], ir.F32))},
			&Let{factor, scalar.Exp(scalar.Sub(scalar.FreeVar(greatest[i], ir.F32), scalar.FreeVar(top, ir.F32)))},
			&Assign{greatest[i], scalar.FreeVar(next[i], ir.F32)},
		)
		by := scalar.FreeVar(factor, ir.F32)
		l := scalar.Mul(scalar.FreeVar(total[i], ir.F32), by)
		for c := range scores.columns {
			weight := scalar.Exp(scalar.Sub(scores.at(i, c), scalar.FreeVar(top, ir.F32)))
			a.body = append(a.body, &Assign{scores.register(i, c), weight})
			l = scalar.Add(l, scores.at(i, c))
		}
		a.body = append(a.body, &Assign{total[i], l})
		for c := range out.columns {
			a.body = append(a.body, &Assign{out.register(i, c), scalar.Mul(out.at(i, c), by)})
		}
	}
}

// element is what becomes of a product of a query and a key.
type element struct {
	score scalar.Expr
	seen  scalar.Expr // false where the query must not see the key
	slope scalar.Expr // the derivative of the score by the product
}

// eachRow replaces the products of a fragment, row by row, by what f makes of
// them. Values beyond the columns go into the fragments more, if there are any.
func (a *attender) eachRow(products fragment, rowsAreQueries bool, f func(i int, x []element) []scalar.Expr, more ...fragment) {
	row := a.let("row", a.row(0), a.rows.blocks()*a.rows.block-4)
	col := a.let("column", a.column(0), a.cols.blocks()*a.cols.block-1)
	for i := range 4 {
		x := make([]element, products.columns)
		for c := range x {
			query, key := scalar.Add(row, integer(i)), scalar.Add(col, integer(c/4*a.t.piece()+c%4))
			queries, keys := &a.rows, &a.cols
			if !rowsAreQueries {
				query, key, queries, keys = key, query, keys, queries
			}
			x[c] = a.element(products.at(i, c), queries, query, keys, key)
		}
		values := f(i, x)[:len(x)*(1+len(more))]
		a.body = append(a.body, a.nameAll(values)...)
		for n, to := range append([]fragment{products}, more...) {
			for c := range x {
				a.body = append(a.body, &Assign{to.register(i, c), values[n*len(x)+c]})
			}
		}
	}
}

func (a *attender) element(x scalar.Expr, queries *attendSide, query scalar.Expr, keys *attendSide, key scalar.Expr) element {
	scale := scalar.ConstF(ir.F32, a.Scale)
	e := element{score: scalar.Mul(x, scale), slope: scale}
	if a.Softcap != 0 {
		t := scalar.Tanh(scalar.Mul(e.score, scalar.ConstF(ir.F32, 1/a.Softcap)))
		e.score = scalar.Mul(t, scalar.ConstF(ir.F32, a.Softcap))
		e.slope = scalar.Mul(scale, scalar.Sub(scalar.ConstF(ir.F32, 1), scalar.Mul(t, t)))
	}
	row, rowExists := queries.inside(query)
	col, colExists := keys.inside(key)
	e.seen = scalar.And(rowExists, colExists)
	if a.Causal {
		e.seen = scalar.And(e.seen, scalar.Ge(scalar.Add(query, integer(a.Keys-a.Queries)), key))
	}
	if a.Mask >= 0 {
		mask := a.read(a.Mask, a.maskAt(row, col))
		if mask.Type == ir.Bool {
			e.seen = scalar.And(e.seen, mask)
		} else {
			e.score = scalar.Add(e.score, scalar.Convert(mask, ir.F32))
		}
	}
	e.seen = a.Simplify(e.seen)
	return e
}

// maskAt returns the place in the mask for a score of the head at hand.
func (a *attender) maskAt(row, col scalar.Expr) ir.Index {
	dims, _ := a.m.Node.Input(a.Mask).Shape().Ints()
	all := append(append(ir.Index{}, a.queryHead...), row, col)
	at := all[len(all)-len(dims):]
	for i, d := range dims {
		if d == 1 {
			at[i] = integer(0)
		}
	}
	return at
}

// variables32 returns variables of f32.
func variables32(names []string) []scalar.Expr {
	out := make([]scalar.Expr, len(names))
	for i, name := range names {
		out[i] = scalar.FreeVar(name, ir.F32)
	}
	return out
}
