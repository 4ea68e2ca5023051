package ops

import "github.com/rlx-go/rlx/ir"

// panel is the block of columns of one step of a blocked factorisation. The rows above its
// triangle are finished.
type panel struct {
	b     *ir.Builder
	first ir.Value // its first column, and its first unfinished row
	width int
	// live holds its rows from first on, padded with zero rows.
	live ir.Value
}

// panelWidth returns the width of a panel: the maximum that a kernel keeps in registers,
// up to matrixBlock.
func panelWidth(d ir.DType, rows int) int {
	width := matrixBlock
	for width > 8 && rows*width*d.Size() > 4*256*tileRegisters {
		width /= 2
	}
	return width
}

// roundUp returns n rounded up to a multiple of by.
func roundUp(n, by int) int { return (n + by - 1) / by * by }

// panelOf returns panel k of matrices whose sizes are multiples of width.
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

// back moves values for the rows of the live part, along an axis, to the matrix's row
// order.
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

// replace returns x with the panel from its first row on and with rest as the columns
// after it.
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
