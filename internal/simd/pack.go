package simd

import (
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// packB packs n columns of b in panels of a wide tile's columns, row by row, padded with
// zeros.
func (p *multiplication[T]) packB(b Matrix[T], n int) {
	width := 2 * p.lanes
	for j := 0; j < n; j += width {
		packPanel(p.s, p.s.b[j*p.k:], b.From(0, j), p.k, min(width, n-j), width)
	}
}

// packA packs rows of a in panels of the highest tile's rows, column by column.
func (p *multiplication[T]) packA(a Matrix[T], rows int) Matrix[T] {
	height := p.wide[0].rows
	for i := 0; i < rows; i += height {
		packPanel(p.s, p.s.a[i*p.k:], a.From(i, 0).Transposed(), p.k, min(height, rows-i), height)
	}
	return Matrix[T]{Data: p.s.a, Row: 1, Col: height, packed: p.k}
}

// copyRuns copies rows of k elements of a, whose tables have long contiguous runs of columns.
func (s *Space[T]) copyRuns(a Matrix[T], rows, k int) Matrix[T] {
	to := Matrix[T]{Data: s.a, Row: k + skew, Col: 1}
	for l := 0; l < k; {
		from, n := int(a.ColAt[l]), 1
		for l+n < k && a.ColAt[l+n] == a.ColAt[l+n-1]+1 {
			n++
		}
		for i, at := range a.RowAt[:rows] {
			copy(to.Data[i*to.Row+l:][:n], a.Data[int(at)+from:])
		}
		l += n
	}
	return to
}

// straight returns a part of a matrix with tables as a strided one; false where its columns
// are not contiguous or its rows not equally spaced.
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

// copyA copies rows of a with a stride that does not alias.
func (p *multiplication[T]) copyA(a Matrix[T], rows int) Matrix[T] {
	to := Matrix[T]{Data: p.s.a, Row: p.k + skew, Col: 1}
	for i := range rows {
		copy(to.Data[i*to.Row:][:p.k], a.Data[i*a.Row:])
	}
	return to
}

// tile returns a from row i on; packed panels have height rows.
func (m Matrix[T]) tile(i, height int) Matrix[T] {
	if m.packed > 0 {
		m.Data = m.Data[i/height*height*m.packed+i%height:]
		return m
	}
	return m.From(i, 0)
}

// Transposed returns the transposed matrix, in place.
func (m Matrix[T]) Transposed() Matrix[T] {
	m.Row, m.Col, m.RowAt, m.ColAt = m.Col, m.Row, m.ColAt, m.RowAt
	return m
}

// packPanel packs k rows of n elements, padded with zeros to width.
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
		switch n { // copies of a constant size are much faster
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

// piece is a run of lanes of a vector that are contiguous in memory.
type piece struct {
	at   int       // byte offset of lane 0, were it part of the run
	bits uint64    // the lanes, as a mask register
	mask [8]uint32 // the lanes, as a vector mask of AVX2
}

// pieceArguments are the arguments of the kernel that fills a vector of each row from a list of
// pieces; n is the number of rows.
type pieceArguments struct {
	to     *float32
	toRow  int
	from   *float32
	rowAt  *int32
	pieces *piece
	count  int
}

// pieceKernel is the kernel that fills vectors from pieces; without code there is none.
type pieceKernel struct {
	code  *asm.Code
	entry unsafe.Pointer
	lanes int
}

var pieceKernels = cache[pieceKernel]{generate: newPieceKernel, plain: func() *pieceKernel { return &pieceKernel{} }}

func newPieceKernel(level Level) (k *pieceKernel, err error) {
	l, k := &library{}, &pieceKernel{lanes: level.vectorBytes() / 4}
	l.add(&k.entry, pieceCode(level))
	k.code, err = l.load()
	return k, err
}

func (k *pieceKernel) fill(rows int, to []float32, toRow int, from []float32, rowAt []int32, pieces []piece) {
	var x pieceArguments
	x.to, x.toRow, x.from, x.rowAt, x.pieces, x.count = &to[0], toRow, &from[0], &rowAt[0], &pieces[0], len(pieces)
	asm.Call(k.entry, unsafe.Pointer(&x), rows)
}

// minPieceLen is the least average length of a run for which vectors are filled piece by
// piece.
const minPieceLen = 3

// minRunLen is the least average length of a run of columns for which rows are copied run by
// run.
const minRunLen = 16

// packPieces packs k rows of n elements, padded with zeros to width, of a matrix with tables
// whose columns, or else rows, form contiguous runs. It returns false where the runs are too
// short. It may write a vector beyond the last row, for which the space has room.
func packPieces[T Float](s *Space[T], to []T, from Matrix[T], k, n, width int) bool {
	kernel := pieceKernels.get()
	out, ok := any(to).([]float32)
	if !ok || kernel.code == nil {
		return false
	}
	data := any(from.Data).([]float32)
	byColumn, byRow := Runs(from.ColAt[:n]), Runs(from.RowAt[:k])
	if min(byColumn*minPieceLen/n, byRow*minPieceLen/k) > 0 {
		return false
	}
	list, lanes := s.pieces[:], kernel.lanes
	if byColumn*k <= byRow*n {
		for j := 0; j < width; j += lanes {
			count := cutPieces(list, from.ColAt[min(j, n):min(j+lanes, n)])
			kernel.fill(k, out[j:], width, data, from.RowAt, list[:count])
		}
		return true
	}
	transposed := (*[maxColumns * 16]float32)(unsafe.Pointer(&s.transposed))
	for l := 0; l < k; l += lanes {
		rows := min(lanes, k-l)
		count := cutPieces(list, from.RowAt[l:l+rows])
		kernel.fill(n, transposed[:], lanes, data, from.ColAt, list[:count])
		Transpose(out[l*width:], width, transposed[:], lanes, n, rows)
	}
	for l := 0; n < width && l < k; l++ {
		clear(out[l*width+n : l*width+width])
	}
	return true
}

// ReadsGathered reports whether left factors with tables are read in place.
func ReadsGathered() bool { return kernelsOf[float32]().wide[0].code[gathered] != nil }

// ReadsTabled reports whether right factors with tables can be read in place.
func ReadsTabled() bool { return kernelsOf[float32]().wide[0].code[tabled] != nil }

// Runs returns the number of contiguous runs of offsets.
func Runs(at []int32) int {
	count := 1
	for i := 1; i < len(at); i++ {
		if at[i] != at[i-1]+1 {
			count++
		}
	}
	return count
}

// hasLongRuns reports whether offsets form contiguous runs long enough to be copied run by run.
func hasLongRuns(at []int32) bool { return Runs(at)*minRunLen <= len(at) }

// cutPieces stores the pieces of a vector whose lanes have the given offsets, and returns
// their number, at least one.
func cutPieces(list []piece, at []int32) int {
	list[0] = piece{}
	count := 0
	for i := 0; i < len(at); {
		end := i + 1
		for end < len(at) && at[end] == at[end-1]+1 {
			end++
		}
		p := piece{at: (int(at[i]) - i) * int(unsafe.Sizeof(float32(0))), bits: 1<<end - 1<<i}
		for lane := i; lane < min(end, len(p.mask)); lane++ {
			p.mask[lane] = ^uint32(0)
		}
		list[count] = p
		count++
		i = end
	}
	return max(count, 1)
}

// Costs of a row of a tile and of packing, in the time of a vector in a row of a wide tile: a narrow tile
// reads as many elements of a for half of the columns.
const (
	narrowRow  = 1.35
	packVector = 8
)

// readsInPlace reports whether b, which has tables, can be read in place by m rows of a, and costs less than
// to pack it: its columns form contiguous runs that fill tiles well, as the windows of a convolution do along a
// row of the image, or there are too few rows to repay packing.
func (p *multiplication[T]) readsInPlace(b Matrix[T], m, n int) bool {
	p.rowAt = nil
	if b.RowAt == nil || p.wide[0].code[tabled] == nil {
		return false
	}
	computed, last := 0., int32(0)
	for j := 0; j < n; {
		count := p.runLen(b.ColAt[j:n])
		j += count
		last = max(last, b.ColAt[j-1])
		if count > p.lanes {
			computed += 2
		} else {
			computed += narrowRow
		}
	}
	width, rows := 2*p.lanes, b.RowAt[:p.k]
	panels := (n + width - 1) / width
	// Tiles read whole vectors, which must end within the memory of b.
	if float64(m)*computed > float64(2*panels*(m+packVector)) || int(last)+int(slices.Max(rows))+width > len(b.Data) {
		return false
	}
	p.rowAt = rows
	return true
}

// runLen returns the length of the first contiguous run, at most a wide tile's columns.
func (p *multiplication[T]) runLen(at []int32) int {
	n := 1
	for n < min(len(at), 2*p.lanes) && at[n] == at[n-1]+1 {
		n++
	}
	return n
}

// multiplyRuns computes n columns with those of b read in place, run by run.
func (p *multiplication[T]) multiplyRuns(m, n int, a, b Matrix[T], c []T) {
	for i := 0; i < m; i += blockM {
		rows, c := min(blockM, m-i), c[i*p.cRow:]
		block := p.block(a.From(i, 0), rows, n)
		for j := 0; j < n; {
			count := p.runLen(b.ColAt[j:n])
			p.panel(rows, count, block, b.Data[b.ColAt[j]:], 0, c[j:])
			j += count
		}
	}
}

// packGathered packs element by element through the tables.
func packGathered[T Float](to []T, from Matrix[T], k, n, width int) {
	columns := from.ColAt[:n]
	for l, base := range from.RowAt[:k] {
		row, data := to[l*width:l*width+width], from.Data[base:]
		for j, at := range columns {
			row[j] = data[at]
		}
		clear(row[n:])
	}
}
