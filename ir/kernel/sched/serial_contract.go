package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A product for one thread. Both factors are packed into workgroup memory, in
// panels of as many rows or columns as registers hold, so that whatever computes
// or gathers them is paid once, and the innermost loop reads straight on.
const (
	panelRows    = 6 // with panelColumns: 12 vectors of sums, of 16 registers
	panelColumns = 8
	// sharedPanels is how many panels of rows a workgroup has at least: each packs
	// all columns for itself.
	sharedPanels = 24
	// packedDepth is about how much of a sum is packed at once: a panel of rows
	// and one of columns fit the first cache.
	packedDepth = 384
	// packedBytes is what packed columns take, which fit the second cache, and
	// sumBytes what sums take that wait for the rest of their depth.
	packedBytes = 512 << 10
	sumBytes    = 8 << 20
)

// product is a contraction with how it is cut.
type product struct {
	*serial
	x       *group.Contract
	rows    []group.ElementStore
	m, n    int
	outer   []scalar.Expr // coordinates of the sum that are counted one by one
	inner   []scalar.Expr // and those that one loop counts
	depth   int           // of the sum that is packed at once
	blocks  int           // of that depth
	columns int           // packed at once, a multiple of panelColumns
	a, b, c int           // slots: a panel of rows, panels of columns, sums
}

// contract writes a contraction, as a reduction where it is thin.
func (s *serial) contract(g *group.Group) {
	code := g.Code()
	x := code.Stages[0].Contract
	p := &product{serial: s, x: x, rows: code.Rows, m: group.Product(x.M), n: group.Product(x.N)}
	k := group.Product(x.K)
	if x.Sum.Type != ir.F32 || min(p.m, p.n) <= thinSide || k*group.Product(x.Batch) == 0 {
		s.reduce(g.Reduction())
		return
	}
	for i, v := range code.Outer {
		if v.Op == scalar.OpVar {
			p.bindOuter(v, x.Outer[i])
		}
	}
	s.split(x.KAt, []scalar.Expr{x.A, x.B}, func(outer, inner []scalar.Expr) { p.outer, p.inner = outer, inner })
	p.cut()
	p.write()
}

// bindOuter makes stores see a coordinate of the result as what it is of the
// spaces.
func (p *product) bindOuter(v, space scalar.Expr) {
	for i := range p.rows {
		bound := map[string]scalar.Expr{v.Name: space}
		p.rows[i].Offset, p.rows[i].Value = replaced(p.rows[i].Offset, bound), replaced(p.rows[i].Value, bound)
	}
}

// cut decides how much is packed at once.
func (p *product) cut() {
	steps, each := sizeOf(p.outer), sizeOf(p.inner)
	if len(p.outer) == 0 {
		steps, each = each, 1
	}
	at := max(1, packedDepth/each)
	p.blocks = ceilDiv(steps, at)
	if p.blocks > 1 && 4*p.m*panelColumns > sumBytes {
		p.blocks = 1
	}
	at = ceilDiv(steps, p.blocks)
	p.depth = at * each
	p.columns = min(p.n, max(1, packedBytes/(4*p.depth)))
	if p.blocks > 1 {
		p.columns = min(p.columns, sumBytes/(4*p.sumRows()))
	}
	p.columns = ceilDiv(p.columns, panelColumns) * panelColumns
	p.a = p.shared("rows", ir.F32, 1, panelRows*p.depth)
	p.b = p.shared("columns", ir.F32, 1, p.columns*p.depth)
	p.c = p.shared("sums", ir.F32, 1, p.sumRows()*p.columns)
}

// sumRows is how many rows of sums are kept: those of a panel, or all of them
// where their depth comes in blocks.
func (p *product) sumRows() int {
	if p.blocks == 1 {
		return panelRows
	}
	return ceilDiv(p.m, panelRows) * panelRows
}

func (p *product) write() {
	p.all(vars(p.x.BatchAt), func() {
		p.outermost(func(divided bool) {
			from, to := scalar.Expr(loop.Int(0)), scalar.Expr(loop.Int(p.m))
			if divided {
				from, to = p.share(p.m, panelRows, sharedPanels)
			}
			p.rowsOf(from, to)
		})
	})
}

// rowsOf writes some rows of the result.
func (p *product) rowsOf(from, to scalar.Expr) {
	p.count("n", loop.Int(0), loop.Int(p.n), p.columns, p.n-1, false, func(n scalar.Expr) {
		p.count("block", loop.Int(0), loop.Int(p.blocks), 1, p.blocks-1, false, func(block scalar.Expr) {
			p.packColumns(n, block)
			p.count("m", from, to, panelRows, p.m-1, false, func(m scalar.Expr) {
				p.packRows(m, block)
				p.panels(m, n, block)
				p.when(scalar.Eq(block, loop.Int(p.blocks-1)), func() { p.finish(m, n) })
			})
		})
	})
}

// vars returns the variables among coordinates.
func vars(at ir.Index) []scalar.Expr {
	var out []scalar.Expr
	for _, x := range at {
		if x.Op == scalar.OpVar {
			out = append(out, x)
		}
	}
	return out
}

// steps writes a loop over the depth of a block and binds the coordinates of the
// sum there; f is given the place in the block.
func (p *product) steps(block scalar.Expr, f func(k scalar.Expr)) {
	if len(p.outer) == 0 {
		n := sizeOf(p.inner)
		p.part(block, n, func(k, at scalar.Expr) {
			p.bind(p.inner, p.coordinates(at, p.inner))
			f(k)
		})
		return
	}
	each := sizeOf(p.inner)
	p.part(block, sizeOf(p.outer), func(step, at scalar.Expr) {
		p.bind(p.outer, p.coordinates(at, p.outer))
		p.count("k", loop.Int(0), loop.Int(each), 1, each-1, false, func(k scalar.Expr) {
			p.bind(p.inner, p.coordinates(k, p.inner))
			f(p.Simplify(scalar.Add(scalar.Mul(step, loop.Int(each)), k)))
		})
	})
}

// part writes a loop over what a block has of n steps, with the place in the
// block and in the whole.
func (p *product) part(block scalar.Expr, n int, f func(k, at scalar.Expr)) {
	size := ceilDiv(n, p.blocks)
	first := p.let("first", scalar.Mul(block, loop.Int(size)))
	end := p.let("size", scalar.Min(loop.Int(size), scalar.Sub(loop.Int(n), first)))
	p.count("k", loop.Int(0), end, 1, size-1, false, func(k scalar.Expr) {
		at := scalar.Add(first, k)
		if p.blocks*size > n {
			at = scalar.Min(at, loop.Int(n-1)) // what the range of first does not say
		}
		f(k, p.Simplify(at))
	})
}

// depthOf returns how much of the depth a block has.
func (p *product) depthOf(block scalar.Expr) scalar.Expr {
	k := group.Product(p.x.K)
	rest := scalar.Sub(loop.Int(k), scalar.Mul(block, loop.Int(p.depth)))
	return p.let("depth", scalar.Min(loop.Int(p.depth), rest))
}

// packColumns packs the columns from n on, panel by panel: those of one step of
// the sum side by side.
func (p *product) packColumns(n, block scalar.Expr) {
	pack := func(panel scalar.Expr, whole bool) {
		first := p.let("column", scalar.Add(n, scalar.Mul(panel, loop.Int(panelColumns))))
		p.steps(block, func(k scalar.Expr) {
			p.lanes(panelColumns, func(l scalar.Expr) {
				at := scalar.Add(first, l)
				if !whole {
					at = scalar.Min(at, loop.Int(p.n-1))
				}
				p.bind(p.x.NAt, p.coordinates(p.Simplify(at), p.x.NAt))
				to := scalar.Mul(scalar.Add(scalar.Mul(panel, loop.Int(p.depth)), k), loop.Int(panelColumns))
				p.put(p.b, scalar.Add(to, l), p.expr(p.x.B))
			})
		})
	}
	whole := p.let("whole", scalar.FloorDiv(scalar.Min(loop.Int(p.columns), scalar.Sub(loop.Int(p.n), n)), loop.Int(panelColumns)))
	most := p.columns / panelColumns
	p.count("panel", loop.Int(0), whole, 1, most-1, false, func(panel scalar.Expr) { pack(panel, true) })
	if p.n%panelColumns != 0 {
		p.when(scalar.Lt(whole, loop.Int(most)), func() { pack(whole, false) })
	}
}

// packRows packs a panel of rows from m on.
func (p *product) packRows(m, block scalar.Expr) {
	rows := make([]ir.Index, panelRows)
	for i := range rows {
		at := scalar.Add(m, loop.Int(i))
		if p.m%panelRows != 0 {
			at = scalar.Min(at, loop.Int(p.m-1))
		}
		rows[i] = p.coordinates(p.let("row", at), p.x.MAt)
		for axis, x := range rows[i] {
			rows[i][axis] = p.let("at", x)
		}
	}
	p.steps(block, func(k scalar.Expr) {
		for i, at := range rows {
			p.bind(p.x.MAt, at)
			p.put(p.a, scalar.Add(scalar.Mul(k, loop.Int(panelRows)), loop.Int(i)), p.expr(p.x.A))
		}
	})
}

// sumAt is the place of the sum of a row of the panel from m on.
func (p *product) sumAt(m scalar.Expr, row, column scalar.Expr) scalar.Expr {
	if p.blocks > 1 {
		row = scalar.Add(m, row)
	}
	return scalar.Add(scalar.Mul(row, loop.Int(p.columns)), column)
}

// panels multiplies the packed rows with each panel of columns.
func (p *product) panels(m, n, block scalar.Expr) {
	panels := scalar.FloorDiv(scalar.Add(scalar.Min(loop.Int(p.columns), scalar.Sub(loop.Int(p.n), n)), loop.Int(panelColumns-1)), loop.Int(panelColumns))
	most := p.columns / panelColumns
	depth := p.depthOf(block)
	p.count("panel", loop.Int(0), p.let("panels", panels), 1, most-1, false, func(panel scalar.Expr) {
		acc := p.shared(p.name("acc"), ir.F32, 1, panelRows*panelColumns)
		row := p.shared(p.name("row"), ir.F32, 1, panelColumns)
		at := func(i int, l scalar.Expr) scalar.Expr { return scalar.Add(l, loop.Int(i*panelColumns)) }
		for i := range panelRows {
			p.lanes(panelColumns, func(l scalar.Expr) { p.put(acc, at(i, l), scalar.ConstF(ir.F32, 0)) })
		}
		p.count("k", loop.Int(0), depth, 1, p.depth-1, false, func(k scalar.Expr) {
			from := scalar.Mul(scalar.Add(scalar.Mul(panel, loop.Int(p.depth)), k), loop.Int(panelColumns))
			p.lanes(panelColumns, func(l scalar.Expr) {
				p.put(row, l, scalar.LoadAt(p.b, ir.F32, p.Simplify(scalar.Add(from, l))))
			})
			for i := range panelRows {
				a := scalar.LoadAt(p.a, ir.F32, p.Simplify(scalar.Add(scalar.Mul(k, loop.Int(panelRows)), loop.Int(i))))
				p.lanes(panelColumns, func(l scalar.Expr) {
					b, sum := scalar.LoadAt(row, ir.F32, l), scalar.LoadAt(acc, ir.F32, at(i, l))
					p.put(acc, at(i, l), scalar.Add(sum, scalar.Mul(a, b)))
				})
			}
		})
		p.keep(m, panel, block, func(i int, l scalar.Expr) scalar.Expr { return scalar.LoadAt(acc, ir.F32, at(i, l)) })
	})
}

// keep stores the sums of a panel, or adds them to those of the blocks before.
func (p *product) keep(m, panel, block scalar.Expr, sum func(i int, l scalar.Expr) scalar.Expr) {
	for i := range panelRows {
		p.lanes(panelColumns, func(l scalar.Expr) {
			at := p.Simplify(p.sumAt(m, loop.Int(i), scalar.Add(scalar.Mul(panel, loop.Int(panelColumns)), l)))
			x := sum(i, l)
			if p.blocks > 1 {
				before := scalar.Select(scalar.Eq(block, loop.Int(0)), scalar.ConstF(ir.F32, 0), scalar.LoadAt(p.c, ir.F32, at))
				x = scalar.Add(before, x)
			}
			p.put(p.c, at, x)
		})
	}
}

// finish computes and stores what follows the sums of a panel of rows.
func (p *product) finish(m, n scalar.Expr) {
	rows := p.let("rows", scalar.Min(loop.Int(panelRows), scalar.Sub(loop.Int(p.m), m)))
	columns := p.let("columns", scalar.Min(loop.Int(p.columns), scalar.Sub(loop.Int(p.n), n)))
	p.count("i", loop.Int(0), rows, 1, panelRows-1, false, func(i scalar.Expr) {
		row := p.coordinates(p.let("row", scalar.Add(m, i)), p.x.MAt)
		p.bind(p.x.MAt, row)
		p.count("j", loop.Int(0), columns, 1, p.columns-1, true, func(j scalar.Expr) {
			p.bind(p.x.NAt, p.coordinates(p.Simplify(scalar.Add(n, j)), p.x.NAt))
			sum := scalar.LoadAt(p.c, ir.F32, p.Simplify(p.sumAt(m, i, j)))
			p.bound[p.x.Sum.Name] = sum
			p.storeAll(p.rows)
		})
	})
}
