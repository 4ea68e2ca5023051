package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// steps writes a loop over the depth of a block and binds the coordinates of the
// sum there; f is given the place in the block.
func (p *product) steps(block scalar.Expr, f func(k scalar.Expr)) {
	if len(p.outer) == 0 {
		n := sizeOf(p.inner)
		p.blockSteps(block, n, func(k, at scalar.Expr) {
			p.bind(p.inner, p.coordinates(at, p.inner))
			f(k)
		})
		return
	}
	each := sizeOf(p.inner)
	p.blockSteps(block, sizeOf(p.outer), func(step, at scalar.Expr) {
		p.bind(p.outer, p.coordinates(at, p.outer))
		p.count("k", loop.Int(0), loop.Int(each), 1, each-1, false, func(k scalar.Expr) {
			p.bind(p.inner, p.coordinates(k, p.inner))
			f(p.Simplify(scalar.Add(scalar.Mul(step, loop.Int(each)), k)))
		})
	})
}

// blockSteps writes a loop over what a block has of n steps, with the place in the
// block and in the whole.
func (p *product) blockSteps(block scalar.Expr, n int, f func(k, at scalar.Expr)) {
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
	k := fusion.Product(p.x.K)
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
	whole := p.let("whole", scalar.FloorDiv(scalar.Min(loop.Int(p.area.columns), scalar.Sub(loop.Int(p.n), n)), loop.Int(panelColumns)))
	most := p.area.columns / panelColumns
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
