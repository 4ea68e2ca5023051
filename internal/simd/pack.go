package simd

// packB copies n columns of b into panels as wide as a wide tile, each row by
// row; what a panel lacks of columns is zero.
func (p *multiplication[T]) packB(b Matrix[T], n int) {
	width := 2 * p.lanes
	for j := 0; j < n; j += width {
		packPanel(p.s, p.s.b[j*p.k:], b.From(0, j), p.k, min(width, n-j), width)
	}
}

// packA copies rows of a into panels as high as the highest tile, each column by
// column.
func (p *multiplication[T]) packA(a Matrix[T], rows int) Matrix[T] {
	height := p.wide[0].rows
	for i := 0; i < rows; i += height {
		packPanel(p.s, p.s.a[i*p.k:], a.From(i, 0).Transposed(), p.k, min(height, rows-i), height)
	}
	return Matrix[T]{Data: p.s.a, Row: 1, Col: height, packed: p.k}
}

// copyRuns copies rows of a, which has tables and long stretches of columns
// that lie side by side.
func (p *multiplication[T]) copyRuns(a Matrix[T], rows int) Matrix[T] {
	to := Matrix[T]{Data: p.s.a, Row: p.k + skew, Col: 1}
	for l := 0; l < p.k; {
		from, n := int(a.ColAt[l]), 1
		for l+n < p.k && a.ColAt[l+n] == a.ColAt[l+n-1]+1 {
			n++
		}
		for i, at := range a.RowAt[:rows] {
			copy(to.Data[i*to.Row+l:][:n], a.Data[int(at)+from:])
		}
		l += n
	}
	return to
}

// straight returns a part of a matrix with tables as one without, where its
// columns lie side by side and its rows equally far apart.
func (m Matrix[T]) straight(rows, cols int) (Matrix[T], bool) {
	if Runs(m.ColAt[:cols]) > 1 {
		return m, false
	}
	step := cols
	if rows > 1 {
		step = int(m.RowAt[1] - m.RowAt[0])
	}
	for i := 2; i < rows; i++ {
		if int(m.RowAt[i]-m.RowAt[i-1]) != step {
			return m, false
		}
	}
	return Matrix[T]{Data: m.Data[m.RowAt[0]+m.ColAt[0]:], Row: step, Col: 1}, step >= 0
}

// copyA copies rows of a.
func (p *multiplication[T]) copyA(a Matrix[T], rows int) Matrix[T] {
	to := Matrix[T]{Data: p.s.a, Row: p.k + skew, Col: 1}
	for i := range rows {
		copy(to.Data[i*to.Row:][:p.k], a.Data[i*a.Row:])
	}
	return to
}

// tile returns a from row i on, where panels have so many rows.
func (m Matrix[T]) tile(i, height int) Matrix[T] {
	if m.packed > 0 {
		m.Data = m.Data[i/height*height*m.packed+i%height:]
		return m
	}
	return m.From(i, 0)
}

// Transposed returns the transposed matrix.
func (m Matrix[T]) Transposed() Matrix[T] {
	m.Row, m.Col, m.RowAt, m.ColAt = m.Col, m.Row, m.ColAt, m.RowAt
	return m
}

// packPanel copies k rows of n elements, and zeros up to width.
func packPanel[T Float](s *Space[T], to []T, from Matrix[T], k, n, width int) {
	switch {
	case from.RowAt != nil:
		if !packPieces(s, to, from, k, n, width) {
			packGathered(to, from, k, n, width)
		}
	case from.Col == 1:
		packRows(to, from, k, n, width)
	case from.Row == 1:
		Transpose(to, width, from.Data, from.Col, n, k)
		for l := 0; n < width && l < k; l++ {
			clear(to[l*width+n : l*width+width])
		}
	default:
		for l := range k {
			row, at := to[l*width:l*width+width], l*from.Row
			for j := range row[:n] {
				row[j] = from.Data[at]
				at += from.Col
			}
			clear(row[n:])
		}
	}
}

func packRows[T Float](to []T, from Matrix[T], k, n, width int) {
	for l := range k {
		row, in := to[l*width:l*width+width], from.Data[l*from.Row:][:n]
		switch n { // sizes that are known are copied much faster
		case maxColumns:
			*(*[maxColumns]T)(row) = [maxColumns]T(in)
		case maxColumns / 2:
			*(*[maxColumns / 2]T)(row) = [maxColumns / 2]T(in)
			clear(row[n:])
		default:
			copy(row, in)
			clear(row[n:])
		}
	}
}
