package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// sumAt is the place of the sum of a row of the panel from m on.
func (p *product) sumAt(m scalar.Expr, row, column scalar.Expr) scalar.Expr {
	if p.blocks > 1 {
		row = scalar.Add(m, row)
	}
	return scalar.Add(scalar.Mul(row, loop.Int(p.area.columns)), column)
}

// panels multiplies the packed rows with each panel of columns.
func (p *product) panels(m, n, block scalar.Expr) {
	panels := scalar.FloorDiv(scalar.Add(scalar.Min(loop.Int(p.area.columns), scalar.Sub(loop.Int(p.n), n)), loop.Int(panelColumns-1)), loop.Int(panelColumns))
	most := p.area.columns / panelColumns
	depth := p.depthOf(block)
	p.count("panel", loop.Int(0), p.let("panels", panels), 1, most-1, false, func(panel scalar.Expr) {
		acc := p.shared(p.name("acc"), ir.F32, 1, panelRows*panelColumns)
		row := p.shared(p.name("row"), ir.F32, 1, panelColumns)
		at := func(i int, l scalar.Expr) scalar.Expr { return scalar.Add(l, loop.Int(i*panelColumns)) }
		for i := range panelRows {
			p.lanes(panelColumns, func(l scalar.Expr) { p.put(acc, at(i, l), scalar.ConstF(ir.F32, 0)) })
		}
		first := p.let("first", scalar.Mul(panel, loop.Int(p.depth*panelColumns)))
		p.count("k", loop.Int(0), depth, 1, p.depth-1, false, func(k scalar.Expr) {
			from := scalar.Add(first, scalar.Mul(k, loop.Int(panelColumns)))
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
	each := func(store func(at, x scalar.Expr)) {
		for i := range panelRows {
			p.lanes(panelColumns, func(l scalar.Expr) {
				store(p.Simplify(p.sumAt(m, loop.Int(i), scalar.Add(scalar.Mul(panel, loop.Int(panelColumns)), l))), sum(i, l))
			})
		}
	}
	first := func() {
		each(func(at, x scalar.Expr) {
			p.put(p.c, at, x)
			if p.carries() {
				p.put(p.rest, at, scalar.Const(ir.F32, 0))
			}
		})
	}
	if p.blocks == 1 {
		first()
		return
	}
	p.choose(scalar.Eq(block, loop.Int(0)), first, func() { each(p.addBlock) })
}

// addBlock adds what a block came to.
func (p *product) addBlock(at, x scalar.Expr) {
	before := scalar.LoadAt(p.c, ir.F32, at)
	if !p.carries() {
		p.put(p.c, at, scalar.Add(before, x))
		return
	}
	next, left := scalar.TwoSum(before, x)
	values := []scalar.Expr{next, scalar.Add(scalar.LoadAt(p.rest, ir.F32, at), left)}
	p.add(p.nameAll(values)...)
	p.put(p.c, at, values[0])
	p.put(p.rest, at, values[1])
}

// finish computes and stores what follows the sums of a panel of rows.
func (p *product) finish(m, n scalar.Expr) {
	rows := p.let("rows", scalar.Min(loop.Int(panelRows), scalar.Sub(loop.Int(p.m), m)))
	columns := p.let("columns", scalar.Min(loop.Int(p.area.columns), scalar.Sub(loop.Int(p.n), n)))
	p.count("i", loop.Int(0), rows, 1, panelRows-1, false, func(i scalar.Expr) {
		row := p.coordinates(p.let("row", scalar.Add(m, i)), p.x.MAt)
		p.bind(p.x.MAt, row)
		p.count("j", loop.Int(0), columns, 1, p.area.columns-1, true, func(j scalar.Expr) {
			p.bind(p.x.NAt, p.coordinates(p.Simplify(scalar.Add(n, j)), p.x.NAt))
			at := p.Simplify(p.sumAt(m, i, j))
			sum := scalar.LoadAt(p.c, ir.F32, at)
			if p.carries() {
				sum = scalar.Compensated(sum, scalar.LoadAt(p.rest, ir.F32, at))
			}
			p.bound[p.x.Sum.Name] = sum
			p.storeAll(p.rows)
		})
	})
}
