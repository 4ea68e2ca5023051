package ops

import "github.com/rlx-go/rlx/ir"

// panel is some neighbouring columns of matrices, those that a step of a factorisation
// by panels is for. The rows above the panel's triangle are done.
type panel struct {
	b     *ir.Builder
	first ir.Value // the number of its first column, and of its first row that is not done
	width int
	// live are its elements from row first on, and zeros below them.
	live ir.Value
}

// panelWidth is how many columns a panel of matrices of some rows has: as many as a
// kernel keeps in registers where it can, up to matrixBlock.
func panelWidth(d ir.DType, rows int) int {
	width := matrixBlock
	for width > 8 && rows*width*d.Size() > 4*256*tileRegisters {
		width /= 2
	}
	return width
}

// roundUp returns the least multiple of by that is not below n.
func roundUp(n, by int) int { return (n + by - 1) / by * by }

// panelOf returns panel k of matrices whose sizes are multiples of the width.
func panelOf(b *ir.Builder, x, k ir.Value, width int) panel {
	rows, cols := matrixDims(x)
	p := panel{b: b, first: Mul(b, k, int32Like(b, k, width)), width: width}
	columns := element(b, splitAxis(b, x, x.Rank()-1, ir.N(cols/width)), k, x.Rank()-1)
	i := steps(b, rows)
	from := Rem(b, Add(b, i, p.first), int32Like(b, i, rows))
	columns = Take(b, columns, from, -2, OutsideClip)
	row, _ := places(b, columns)
	p.live = orZero(b, Lt(b, row, Sub(b, int32Like(b, p.first, rows), p.first)), columns)
	return p
}

// back returns what is found for the rows of the live part, along an axis, in the
// order of the matrix's rows.
func (p panel) back(x ir.Value, axis int) ir.Value {
	b := p.b
	if b.Err() != nil {
		return x
	}
	rows, _ := x.Dim(axis).Const()
	i := steps(b, rows)
	from := Rem(b, Add(b, i, Sub(b, int32Like(b, p.first, rows), p.first)), int32Like(b, i, rows))
	return Take(b, x, from, axis, OutsideClip)
}

// replace returns matrices x with the panel from its first row on in the place of the
// columns that it is of, and with rest in the place of those after it.
func (p panel) replace(x, panel, rest ir.Value) ir.Value {
	b := p.b
	if b.Err() != nil {
		return x
	}
	_, cols := matrixDims(x)
	own := Sub(b, steps(b, cols), p.first)
	panel = Take(b, panel, own, -1, OutsideClip)
	i, j := places(b, x)
	live := And(b, Ge(b, i, p.first), Ge(b, j, p.first))
	after := Ge(b, j, Add(b, p.first, int32Like(b, p.first, p.width)))
	return Select(b, live, Select(b, after, rest, panel), x)
}
