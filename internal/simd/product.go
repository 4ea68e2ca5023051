package simd

// Float is an element type of products.
type Float interface{ float32 | float64 }

// Matrix is a matrix in memory: element (i, j) is Data[i·Row + j·Col], or Data[RowAt[i] +
// ColAt[j]] where there are tables of offsets.
type Matrix[T Float] struct {
	Data         []T
	Row, Col     int
	RowAt, ColAt []int32
	packed       int // if not 0, the matrix is packed in row panels of this depth k
}

// From returns the submatrix that starts at element (i, j).
func (m Matrix[T]) From(i, j int) Matrix[T] {
	if m.RowAt != nil {
		m.RowAt, m.ColAt = m.RowAt[i:], m.ColAt[j:]
		return m
	}
	m.Data = m.Data[i*m.Row+j*m.Col:]
	return m
}

// tile is a micro-kernel: it computes the tile at c of a product, of the rows and columns it
// is written for and depth k. The columns of b are contiguous. With add it accumulates into c.
// Kernels with masked stores write only the first last columns of each row's last vector. Each
// element is a sum in the order of k, each step rounded once, whichever kernel computes it.
type tile[T Float] func(k int, a *T, aRow, aCol int, b *T, bRow int, c *T, cRow, last int, add bool)

// kernel is a tile with its number of rows. The tabled kernel finds the rows of b through a
// table of offsets, the gathered one the rows and columns of a; they are nil where there are
// none.
type kernel[T Float] struct {
	rows     int
	tile     tile[T]
	tabled   func(k int, a *T, aRow, aCol int, b *T, bRow *int32, c *T, cRow, last int, add bool)
	gathered func(k int, a *T, aRow, aCol *int32, b *T, bRow int, c *T, cRow, last int, add bool)
}

// kernels are the kernels of a level for one type, those with more rows first.
type kernels[T Float] struct {
	lanes      int         // columns of a narrow tile; a wide one has twice as many
	maskedTail bool        // kernels mask the stores of their last vectors
	wide       []kernel[T] // the last has one row
	narrow     []kernel[T] // with as many rows as those of wide
	row        tile[T]     // one row of rowColumns columns
	// dots computes the dot products of four rows with x, of k elements, a multiple of
	// dotLanes; sums receives the partial sums of dotLanes lanes, row by row.
	dots       func(k int, a *T, aRow int, x, sums *T)
	rowColumns int
	dotLanes   int
}

// Cache blocking: a panel of b with maxStep rows fits the first-level cache, blockM rows of a
// and blockN columns of b the second-level cache.
const (
	maxStep = 320
	blockM  = 240
	blockN  = 768
)

// maxChain is the maximum number of steps of k that accumulate into one sum. A longer product
// is split along k, in blocks of keptM rows and blockN columns.
const (
	maxChain = 32
	keptM    = 4 * blockM
)

// Rows whose stride is a multiple of aliases elements fall in the same cache sets. They are
// copied with a stride of skew elements more where at least minCopyColumns columns reuse them.
const (
	aliases        = 256
	skew           = 16
	minCopyColumns = 256
)

// The size of the largest tile.
const (
	maxColumns = 32
	maxRows    = 12
)

// Space is the scratch memory of one product at a time.
type Space[T Float] struct {
	a, b []T
	c    []T // partial sums of a product split along k
	edge [maxRows * maxColumns]T
	sums [4 * maxLanes]T
	// For factors with tables: the pieces of a vector, and vectors to be transposed.
	pieces     [16]piece
	transposed [maxColumns * 16]T
}

// stepLen returns the length of the steps into which k is divided, equal ones, as a short step
// has the same overhead as a long one.
func stepLen(k int) int {
	steps := (k + maxStep - 1) / maxStep
	return (k + steps - 1) / steps
}

// Grow makes room for products of the given size.
func (s *Space[T]) Grow(m, n, k int) {
	if k > maxChain*stepLen(max(k, 1)) {
		if need := min(m, keptM) * min(n, blockN); len(s.c) < need {
			s.c = make([]T, need)
		}
	}
	k, m, n = stepLen(max(k, 1)), min(m, blockM), min(n, blockN)
	if need := (k + skew) * (m + maxRows); len(s.a) < need {
		s.a = make([]T, need)
	}
	if need := k * (n + maxColumns); len(s.b) < need {
		s.b = make([]T, need)
	}
}

// Product computes c = a·b for a of m×k and b of k×n elements; the rows of c are cRow apart.
// The value of an element does not depend on the size of the product, so that it may be
// computed in tiles. The space must have room, see [Space.Grow].
func Product[T Float](s *Space[T], m, n, k int, a, b Matrix[T], c []T, cRow int) {
	if k == 0 {
		for i := range m {
			clear(c[i*cRow : i*cRow+n])
		}
		return
	}
	if chain := maxChain * stepLen(k); k > chain {
		splitK(s, m, n, k, chain, a, b, c, cRow)
		return
	}
	accumulateSteps(s, m, n, k, stepLen(k), a, b, c, cRow)
}

// splitK computes a product of many steps as partial products along k, which it adds up.
func splitK[T Float](s *Space[T], m, n, k, chain int, a, b Matrix[T], c []T, cRow int) {
	for i := 0; i < m; i += keptM {
		for j := 0; j < n; j += blockN {
			rows, columns := min(keptM, m-i), min(blockN, n-j)
			to := c[i*cRow+j:]
			for l := 0; l < k; l += chain {
				a, b, depth := a.From(i, l), b.From(l, j), min(chain, k-l)
				if l == 0 {
					accumulateSteps(s, rows, columns, depth, stepLen(k), a, b, to, cRow)
					continue
				}
				accumulateSteps(s, rows, columns, depth, stepLen(k), a, b, s.c, columns)
				for r := range rows {
					row := to[r*cRow:][:columns]
					for x, part := range s.c[r*columns:][:columns] {
						row[x] += part
					}
				}
			}
		}
	}
}

// accumulateSteps computes a product step by step along k and accumulates into c.
func accumulateSteps[T Float](s *Space[T], m, n, k, step int, a, b Matrix[T], c []T, cRow int) {
	p := multiplication[T]{kernels: kernelsOf[T](), s: s, cRow: cRow}
	for l := 0; l < k; l += step {
		p.k, p.add = min(step, k-l), l > 0
		a, b := a.From(0, l), b.From(l, 0)
		if p.readsInPlace(b, n) {
			p.multiplyRuns(m, n, a, b, c)
			continue
		}
		for j := 0; j < n; j += blockN {
			p.columns(m, min(blockN, n-j), a, b.From(0, j), c[j:])
		}
	}
}

// multiplication is the state of one step of a product, of depth k.
type multiplication[T Float] struct {
	*kernels[T]
	s    *Space[T]
	k    int
	cRow int
	add  bool
	// rowAt are the offsets of the rows of b where it is read in place.
	rowAt []int32
}

// columns computes n columns. It packs those of b in panels unless a has too few rows to repay
// it.
func (p *multiplication[T]) columns(m, n int, a, b Matrix[T], c []T) {
	width := 2 * p.lanes
	if few := p.wide[0].rows; b.Col == 1 && a.RowAt == nil && (m <= few || m <= 8*few && a.Col == 1) {
		if m == 1 {
			for ; n >= p.rowColumns; n -= p.rowColumns {
				p.row(p.k, &a.Data[0], 0, a.Col, &b.Data[0], b.Row, &c[0], 0, p.lanes, p.add)
				b, c = b.skipColumns(p.rowColumns), c[p.rowColumns:]
			}
		}
		for ; n >= width; n -= width {
			p.panel(m, width, a, b.Data, b.Row, c)
			b, c = b.skipColumns(width), c[min(width, len(c)):]
		}
	}
	if n == 0 {
		return
	}
	p.packB(b, n)
	for i := 0; i < m; i += blockM {
		rows, c := min(blockM, m-i), c[i*p.cRow:]
		block := p.block(a.From(i, 0), rows, n)
		for d := 0; d < n; d += width {
			p.panel(rows, min(width, n-d), block, p.s.b[d*p.k:], width, c[d:])
		}
	}
}

// block returns rows of a in a layout that tiles read fast: in place, copied or packed.
func (p *multiplication[T]) block(a Matrix[T], rows, n int) Matrix[T] {
	if a.RowAt != nil {
		straight, ok := a.straight(rows, p.k)
		switch {
		case ok:
			a = straight
		case n < minCopyColumns && p.rowAt == nil && p.wide[0].gathered != nil:
			return a
		case Runs(a.ColAt[:p.k])*minRunLen <= p.k:
			return p.copyRuns(a, rows)
		}
	}
	switch {
	case a.Col != 1:
		return p.packA(a, rows)
	case n >= minCopyColumns && a.Row%aliases == 0:
		return p.copyA(a, rows)
	}
	return a
}

// skipColumns returns the matrix without its first columns, of which there may be none left.
func (m Matrix[T]) skipColumns(columns int) Matrix[T] {
	m.Data = m.Data[min(columns*m.Col, len(m.Data)):]
	return m
}

// panel computes the n columns of one panel of b, at most those of a wide tile.
func (p *multiplication[T]) panel(m, n int, a Matrix[T], b []T, bRow int, c []T) {
	width, list := p.lanes, p.narrow
	if n > width {
		width, list = 2*width, p.wide
	}
	next := 0
	for i := 0; i < m; {
		for list[next].rows > m-i {
			next++
		}
		k := &list[next]
		from := a.tile(i, p.wide[0].rows)
		if n == width || p.maskedTail {
			p.tile(k, from, b, bRow, &c[i*p.cRow], p.cRow, n-width+p.lanes)
		} else {
			p.edge(k, from, b, bRow, n, width, c[i*p.cRow:])
		}
		i += k.rows
	}
}

func (p *multiplication[T]) tile(k *kernel[T], a Matrix[T], b []T, bRow int, c *T, cRow, last int) {
	switch {
	case p.rowAt != nil:
		k.tabled(p.k, &a.Data[0], a.Row, a.Col, &b[0], &p.rowAt[0], c, cRow, last, p.add)
	case a.RowAt != nil:
		k.gathered(p.k, &a.Data[0], &a.RowAt[0], &a.ColAt[0], &b[0], bRow, c, cRow, last, p.add)
	default:
		k.tile(p.k, &a.Data[0], a.Row, a.Col, &b[0], bRow, c, cRow, last, p.add)
	}
}

// edge computes a tile that is wider than c in scratch memory, and copies its n columns.
func (p *multiplication[T]) edge(k *kernel[T], a Matrix[T], b []T, bRow, n, width int, c []T) {
	scratch := p.s.edge[:]
	for r := 0; p.add && r < k.rows; r++ {
		copy(scratch[r*width:], c[r*p.cRow:][:n])
	}
	p.tile(k, a, b, bRow, &scratch[0], width, p.lanes)
	for r := range k.rows {
		copy(c[r*p.cRow:][:n], scratch[r*width:])
	}
}
