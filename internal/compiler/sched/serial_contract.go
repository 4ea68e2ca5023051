package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A product for one thread. Both factors are packed into workgroup memory, in
// panels of as many rows or columns as registers hold, so that whatever computes
// or gathers them is paid once, and the innermost loop reads straight on.
const (
	panelRows    = 6 // with panelColumns: 12 vectors of sums, of 16 registers
	panelColumns = 8
	// packedDepth is about how much of a sum is packed at once: a panel of rows
	// and one of columns, 18 KiB, fit the first cache, of 32 KiB or more.
	packedDepth = 320
	// packedBytes is what packed columns take, half of a second cache of 1 MiB, and
	// sumBytes what sums take that wait for the rest of their depth: beyond it the third
	// cache does not hold them, and the whole depth is packed at once.
	packedBytes = 512 << 10
	sumBytes    = 8 << 20
)

// product is a contraction with how it is cut.
type product struct {
	*serial
	x       *fusion.Contract
	rows    []fusion.ElementStore
	m, n    int
	outer   []scalar.Expr // coordinates of the sum that are counted one by one
	inner   []scalar.Expr // and those that one loop counts
	depth   int           // of the sum that is packed at once
	blocks  int           // of that depth
	area    area          // of the result, that a workgroup has
	a, b, c int           // slots: a panel of rows, panels of columns, sums
	rest    int           // and what rounding leaves out of these
}

// contract writes a contraction, as a reduction where it is thin.
func (s *serial) contract(g *fusion.Group) {
	code := g.Code()
	x := code.Stages[0].Contract
	p := &product{serial: s, x: x, rows: code.Rows, m: fusion.Product(x.M), n: fusion.Product(x.N)}
	k := fusion.Product(x.K)
	if x.Sum.Type != ir.F32 || min(p.m, p.n) <= thinSide || k*fusion.Product(x.Batch) == 0 {
		s.reduce(g.Reduction(), productBlock)
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

func (p *product) write() {
	p.all(vars(p.x.BatchAt), func() {
		p.outermost(func(divided bool) {
			if !divided {
				p.part(interval{loop.Int(0), loop.Int(p.m)}, interval{loop.Int(0), loop.Int(p.n)})
				return
			}
			across := ceilDiv(p.n, p.area.n)
			group := p.linearGroup(ceilDiv(p.m, p.area.m) * across)
			row, column := p.Simplify(scalar.FloorDiv(group, loop.Int(across))), p.Simplify(scalar.Rem(group, loop.Int(across)))
			p.part(p.portion(row, p.m, p.area.m), p.portion(column, p.n, p.area.n))
		})
	})
}

// part writes some rows and columns of the result.
func (p *product) part(rows, columns interval) {
	p.count("n", columns.from, columns.to, p.area.columns, p.n-1, false, func(n scalar.Expr) {
		p.count("block", loop.Int(0), loop.Int(p.blocks), 1, p.blocks-1, false, func(block scalar.Expr) {
			p.packColumns(n, block)
			p.count("m", rows.from, rows.to, panelRows, p.m-1, false, func(m scalar.Expr) {
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
