package simd

import (
	"slices"
	"unsafe"
)

// piece is a stretch of lanes of a vector that lie side by side in memory.
type piece struct {
	at   int       // bytes from the element at 0 to where lane 0 would be
	bits uint64    // the lanes, as a mask register has them
	mask [8]uint32 // and as AVX2 has them
}

// minPieceLen is how many elements must lie side by side on average for vectors
// to be filled piece by piece.
const minPieceLen = 3

// minRunLen is how many elements of a row must lie side by side on average
// for rows to be copied stretch by stretch.
const minRunLen = 16

// packPieces copies k rows of n elements, and zeros up to width, of a matrix with
// tables, whose neighbouring columns, or else rows, often lie side by side in
// memory. It reports false where that is not worth while. It may write as many
// elements after the last row as a vector has, where there is room in the space.
func packPieces[T Float](s *Space[T], to []T, from Matrix[T], k, n, width int) bool {
	fill, lanes := piecewise()
	out, ok := any(to).([]float32)
	if !ok || fill == nil {
		return false
	}
	data := any(from.Data).([]float32)
	byColumn, byRow := Runs(from.ColAt[:n]), Runs(from.RowAt[:k])
	if min(byColumn*minPieceLen/n, byRow*minPieceLen/k) > 0 {
		return false
	}
	list := &s.pieces
	if byColumn*k <= byRow*n {
		for j := 0; j < width; j += lanes {
			count := cut(list[:], from.ColAt[min(j, n):min(j+lanes, n)])
			fill(k, &out[j], width, &data[0], &from.RowAt[0], &list[0], count)
		}
		return true
	}
	turned := (*[maxColumns * 16]float32)(unsafe.Pointer(&s.turned))
	for l := 0; l < k; l += lanes {
		rows := min(lanes, k-l)
		count := cut(list[:], from.RowAt[l:l+rows])
		fill(n, &turned[0], lanes, &data[0], &from.ColAt[0], &list[0], count)
		Transpose(out[l*width:], width, turned[:], lanes, n, rows)
	}
	for l := 0; n < width && l < k; l++ {
		clear(out[l*width+n : l*width+width])
	}
	return true
}

// ReadsGathered reports whether left factors with tables are read where they lie.
func ReadsGathered() bool { return kernelsOf[float32]().wide[0].gathered != nil }

// Runs returns in how many stretches places lie side by side.
func Runs(at []int32) int {
	count := 1
	for i := 1; i < len(at); i++ {
		if at[i] != at[i-1]+1 {
			count++
		}
	}
	return count
}

// cut returns the pieces of a vector whose lanes are at the given places, at least
// one.
func cut(list []piece, at []int32) int {
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

// readsInPlace reports whether the columns of b, which has tables, lie side by side
// in stretches that fill tiles well enough to be read where they are, as the
// windows of a convolution do along a row of the image.
func (p *multiplication[T]) readsInPlace(b Matrix[T], n int) bool {
	p.rowAt = nil
	if b.RowAt == nil || p.wide[0].tabled == nil {
		return false
	}
	computed, last := 0, int32(0)
	for j := 0; j < n; {
		count := p.runLen(b.ColAt[j:n])
		j += count
		last = max(last, b.ColAt[j-1])
		computed += p.lanes
		if count > p.lanes {
			computed += p.lanes
		}
	}
	rows := b.RowAt[:p.k]
	// Tiles read whole vectors, which must end within the memory of b.
	if 4*n < 3*computed || int(last)+int(slices.Max(rows))+2*p.lanes > len(b.Data) {
		return false
	}
	p.rowAt = rows
	return true
}

// runLen returns how many columns lie side by side, a wide tile's at most.
func (p *multiplication[T]) runLen(at []int32) int {
	n := 1
	for n < min(len(at), 2*p.lanes) && at[n] == at[n-1]+1 {
		n++
	}
	return n
}

// multiplyRuns computes n columns with those of b read in place.
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

// packGathered copies the elements that the tables name one by one.
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
