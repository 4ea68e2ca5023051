package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
)

// What packing an element takes, for each of the two factors: those of rows are
// stored one by one.
const (
	packRow    = 3
	packColumn = 1
)

// cut decides how much is packed at once.
func (p *product) cut() {
	steps, each := sizeOf(p.outer), sizeOf(p.inner)
	if len(p.outer) == 0 {
		steps, each = each, 1
	}
	p.blocks = evenBlocks(steps, max(1, packedDepth/each))
	if p.blocks > 1 && p.sumSize()*p.m*panelColumns > sumBytes {
		p.blocks = 1
	}
	p.depth = ceilDiv(steps, p.blocks) * each
	most, shares := max(1, packedBytes/(4*p.depth)), p.shares
	if p.blocks > 1 {
		most = min(most, sumBytes/(p.sumSize()*p.sumRows()))
	}
	if len(vars(p.x.BatchAt)) > 0 {
		shares = 1 // products are divided, not one of them
	}
	p.area = areaOf(p.m, p.n, shares, most)
	p.a = p.shared("rows", ir.F32, 1, panelRows*p.depth)
	p.b = p.shared("columns", ir.F32, 1, p.area.columns*p.depth)
	p.c = p.shared("sums", ir.F32, 1, p.sumRows()*p.area.columns)
	if p.carries() {
		p.rest = p.shared("rests", ir.F32, 1, p.sumRows()*p.area.columns)
	}
}

// carries reports whether a sum is of so many blocks that what rounding leaves out of it
// is kept beside it.
func (p *product) carries() bool { return p.blocks > fusion.SumBlock/2 }

// sumSize is what a sum takes.
func (p *product) sumSize() int {
	if p.carries() {
		return 8
	}
	return 4
}

// evenBlocks returns into how many blocks of at most some steps a number of them is
// cut: of the same size, where it does not take many more blocks, since places in
// uneven ones have to be bounded.
func evenBlocks(steps, most int) int {
	n := ceilDiv(steps, most)
	for even := n; even <= n+n/2; even++ {
		if steps%even == 0 {
			return even
		}
	}
	return n
}

// wholeSteps returns n as a multiple of step.
func wholeSteps(n, step int) int { return ceilDiv(n, step) * step }

// sumRows is how many rows of sums are kept: those of a panel, or all of them
// where their depth comes in blocks.
func (p *product) sumRows() int {
	if p.blocks == 1 {
		return panelRows
	}
	return ceilDiv(p.m, panelRows) * panelRows
}

// area is how many rows and columns of a product's result a workgroup has, and how
// many columns of these it packs at once.
type area struct{ m, n, columns int }

// areaOf divides a result of m × n among workgroups so that packing takes least, as
// each packs all of its rows and columns for itself, at most some columns at once.
func areaOf(m, n, shares, most int) area {
	best, least := area{}, 0
	for across := 1; across <= shares; across++ {
		if shares%across != 0 {
			continue
		}
		x := area{m: min(m, wholeSteps(ceilDiv(m, shares/across), panelRows)), n: ceilDiv(n, across)}
		x.columns = wholeSteps(ceilDiv(x.n, ceilDiv(x.n, most)), panelColumns)
		x.n = min(n, wholeSteps(x.n, x.columns))
		cost := packRow*m*ceilDiv(n, x.n) + packColumn*n*ceilDiv(m, x.m)
		if least == 0 || cost < least {
			best, least = x, cost
		}
	}
	return best
}
