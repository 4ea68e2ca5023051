package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

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

// kernel is a micro-kernel with its number of rows: it computes a tile of a product, of the rows
// and columns it is written for and depth k. The columns of b are contiguous. Kernels with
// masked stores write only the first last columns of each row's last vector. Each element is a
// sum in the order of k, each step rounded once, whichever kernel computes it.
type kernel[T Float] struct {
	rows int
	// code is machine code by addressing of the factors, with arguments tileArguments and n = k;
	// nil if there is none.
	code [gathered + 1]unsafe.Pointer
	// plain is the kernel in Go for strided factors, used where there is no code.
	plain func(k int, a Matrix[T], b []T, bRow int, c *T, cRow int, add bool)
}

// reading is how a kernel addresses the elements of its factors.
type reading uint8

const (
	strided  reading = iota // both by strides
	tabled                  // rows of b by a table of offsets
	gathered                // rows and columns of a by tables of offsets
)

// tileArguments are the arguments of a micro-kernel. Strides count elements.
type tileArguments struct {
	a              unsafe.Pointer
	aRow, aCol     int
	aRowAt, aColAt *int32 // of gathered, instead of strides
	b              unsafe.Pointer
	bRow           int
	bRowAt         *int32 // of tabled, instead of the stride
	c              unsafe.Pointer
	cRow, last     int
	mask           unsafe.Pointer // ones for the last columns of a vector, and zeros
	add            int            // if not 0, it accumulates into c
	saved          uintptr        // room for a register
}

// Cache blocking: a panel of b with maxStep rows fits the first-level cache, blockM rows of a
// and blockN columns of b the second-level cache.
const (
	maxStep = 320
	blockM  = 240
	blockN  = 768
)

// A product of more than minChain steps of k is the sum of parts along k, at most maxParts of them, in blocks of keptM
// rows and blockN columns. Chains of additions stay short by it, and workers can share a product with few results.
const (
	minChain = 4
	maxParts = 32
	keptM    = 4 * blockM
)

// partLen returns the length of the parts along k, whole steps, of which a product is the sum in their order.
func partLen(k int) int {
	step := stepLen(k)
	steps := (k + step - 1) / step
	parts := min(max(steps/minChain, 1), maxParts)
	return (steps + parts - 1) / parts * step
}

// Parts returns the number of parts along k of which a product is the sum, see [ProductPart].
func Parts(k int) int {
	if k == 0 {
		return 1
	}
	part := partLen(k)
	return (k + part - 1) / part
}

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
	// Pairs means that the elements of both factors are the bits of two numbers of bf16, the first in the lower
	// half, and that a product is the sum of the two products of a pair, each added in f32. k counts
	// pairs. Subnormal numbers count as 0. See [MultipliesPairs].
	Pairs bool
	a, b  []T
	c     []T // partial sums of a product split along k
	edge  [maxRows * maxColumns]T
	sums  [4 * maxLanes]T
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

// Size is the size of a product: of M×K and K×N elements.
type Size struct{ M, N, K int }

// Grow makes room for products of a size.
func (s *Space[T]) Grow(z Size) {
	m, n, k := z.M, z.N, z.K
	if Parts(k) > 1 {
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

// Product computes c = a·b; the rows of c are cRow apart. An
// element does not depend on the size of the product, so that it may be computed in tiles. The
// space must have room, see [Space.Grow].
func Product[T Float](s *Space[T], z Size, a, b Matrix[T], c []T, cRow int) {
	if z.K == 0 {
		for i := range z.M {
			clear(c[i*cRow : i*cRow+z.N])
		}
		return
	}
	if z.K <= maxStep && z.M*z.N > 0 && multiplySmall(s, z, &a, &b, c, cRow) {
		return
	}
	if Parts(z.K) > 1 {
		splitK(s, z, a, b, c, cRow)
		return
	}
	p := multiplication[T]{kernels: kernelsFor(s, z.N), s: s, cRow: cRow}
	p.steps(z, stepLen(z.K), a, b, c)
}

// ProductPart computes part i of [Parts] of a product along k, with the arguments of [Product]. The product is the sum of its
// parts in order, see [AddTo], to the last bit.
func ProductPart[T Float](s *Space[T], z Size, i int, a, b Matrix[T], c []T, cRow int) {
	if z.M*z.N == 0 {
		return
	}
	part, p := partLen(z.K), multiplication[T]{kernels: kernelsFor(s, z.N), s: s, cRow: cRow}
	from, step := i*part, stepLen(z.K)
	z.K = min(part, z.K-from)
	p.steps(z, step, a.From(0, from), b.From(from, 0), c)
}

// AddTo adds the numbers of a part to those of a sum, which is as long.
func AddTo[T Float](sum, part []T) {
	part = part[:len(sum)]
	for ; len(sum) >= 8; sum, part = sum[8:], part[8:] {
		s, p := (*[8]T)(sum), (*[8]T)(part)
		s[0], s[1], s[2], s[3] = s[0]+p[0], s[1]+p[1], s[2]+p[2], s[3]+p[3]
		s[4], s[5], s[6], s[7] = s[4]+p[4], s[5]+p[5], s[6]+p[6], s[7]+p[7]
	}
	for i := range sum {
		sum[i] += part[i]
	}
}

// multiplySmall computes a product of one panel, whose factors are read in place; it returns false for others.
func multiplySmall[T Float](s *Space[T], z Size, a, b *Matrix[T], c []T, cRow int) bool {
	x := s.kernels()
	width := 2 * x.lanes
	if z.N > width || z.M > x.wide[0].rows || b.Col != 1 || a.RowAt != nil || b.RowAt != nil || (z.K-1)*b.Row+width > len(b.Data) {
		return false
	}
	p := multiplication[T]{kernels: x, s: s, k: z.K, cRow: cRow}
	p.panel(z.M, z.N, *a, b.Data, b.Row, c)
	return true
}

// Accumulate adds a·b to c, with the arguments of [Product]. An element is one chain of sums along k, so
// that k should be short.
func Accumulate[T Float](s *Space[T], z Size, a, b Matrix[T], c []T, cRow int) {
	if z.M*z.N*z.K > 0 {
		p := multiplication[T]{kernels: kernelsFor(s, z.N), s: s, cRow: cRow, adds: true}
		p.steps(z, stepLen(z.K), a, b, c)
	}
}

// splitK computes a product as the sum of its parts along k.
func splitK[T Float](s *Space[T], z Size, a, b Matrix[T], c []T, cRow int) {
	for i := 0; i < z.M; i += keptM {
		for j := 0; j < z.N; j += blockN {
			to, block := c[i*cRow+j:], Size{min(keptM, z.M-i), min(blockN, z.N-j), z.K}
			a, b := a.From(i, 0), b.From(0, j)
			ProductPart(s, block, 0, a, b, to, cRow)
			for part := 1; part < Parts(z.K); part++ {
				ProductPart(s, block, part, a, b, s.c, block.N)
				for r := range block.M {
					AddTo(to[r*cRow:][:block.N], s.c[r*block.N:][:block.N])
				}
			}
		}
	}
}

// steps computes a product step by step along k in c.
func (p *multiplication[T]) steps(z Size, step int, a, b Matrix[T], c []T) {
	m, n := z.M, z.N
	for l := 0; l < z.K; l += step {
		p.k, p.add = min(step, z.K-l), p.adds || l > 0
		a, b := a.From(0, l), b.From(l, 0)
		// A single panel of b costs less to pack than all of a, whose tables need b in a panel.
		panel := a.RowAt != nil && n <= 2*p.lanes
		if p.rowAt = nil; !panel && p.readsInPlace(b, m, n) {
			p.multiplyRuns(m, n, a, b, c)
			continue
		}
		for j := 0; j < n; j += blockN {
			p.columns(m, min(blockN, n-j), a, b.From(0, j), c[j:])
		}
	}
}

// multiplication is a product, and the state of its current step, of depth k.
type multiplication[T Float] struct {
	*kernels[T]
	s    *Space[T]
	k    int
	cRow int
	adds bool // the product is added to c
	add  bool // the step is
	// rowAt are the offsets of the rows of b where it is read in place.
	rowAt []int32
}

// inPlaceRows is the maximum number of rows of a strided matrix a that read the columns of b in place: packing both takes up to
// half as long as so few products, as measured on Zen 4 with both levels.
const inPlaceRows = 192

// columns computes n columns. It packs those of b in panels unless a has too few rows to repay
// it.
func (p *multiplication[T]) columns(m, n int, a, b Matrix[T], c []T) {
	width := 2 * p.lanes
	if few := p.wide[0].rows; b.Col == 1 && a.RowAt == nil && (m <= few || m <= inPlaceRows && (a.Col == 1 || a.Row == 1)) {
		if m == 1 {
			for ; n >= p.rowColumns; n -= p.rowColumns {
				p.tile(&p.row, a, b.Data, b.Row, &c[0], 0, p.lanes)
				b, c = b.skipColumns(p.rowColumns), c[p.rowColumns:]
			}
		}
		for ; n >= width; n -= width {
			p.panel(m, width, a, b.Data, b.Row, c)
			b, c = b.skipColumns(width), c[min(width, len(c)):]
		}
		if n > 0 && (p.k-1)*b.Row+width <= len(b.Data) { // the columns behind these are read, too, for nothing
			p.panel(m, n, a, b.Data, b.Row, c)
			return
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
		case n < minCopyColumns && p.rowAt == nil && p.wide[0].code[gathered] != nil:
			return a
		case hasLongRuns(a.ColAt[:p.k]):
			return p.s.copyRuns(a, rows, p.k)
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

// skipColumns returns the matrix without its first columns, perhaps empty.
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

// tile computes a tile at c. If the kernel masks its stores, it writes only the first columns of
// the last vector, last of them.
func (p *multiplication[T]) tile(k *kernel[T], a Matrix[T], b []T, bRow int, c *T, cRow, last int) {
	if k.plain != nil {
		k.plain(p.k, a, b, bRow, c, cRow, p.add)
		return
	}
	var t tileArguments
	t.a, t.aRow, t.aCol = unsafe.Pointer(&a.Data[0]), a.Row, a.Col
	t.b, t.bRow = unsafe.Pointer(&b[0]), bRow
	t.c, t.cRow, t.last, t.mask = unsafe.Pointer(c), cRow, last, laneMask[T](last)
	if p.add {
		t.add = 1
	}
	reads := strided
	switch {
	case p.rowAt != nil:
		reads, t.bRowAt = tabled, &p.rowAt[0]
	case a.RowAt != nil:
		reads, t.aRowAt, t.aColAt = gathered, &a.RowAt[0], &a.ColAt[0]
	}
	asm.Call(k.code[reads], unsafe.Pointer(&t), p.k)
}

// laneMasks is a vector of ones followed by one of zeros.
var laneMasks = func() (m [2 * maxVector]byte) {
	for i := range maxVector {
		m[i] = 0xff
	}
	return m
}()

// maxVector is the size of the largest vector in bytes.
const maxVector = 64

// laneMask returns a vector of ones in the first last lanes.
func laneMask[T Float](last int) unsafe.Pointer {
	return unsafe.Pointer(&laneMasks[maxVector-last*int(unsafe.Sizeof(T(0)))])
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
