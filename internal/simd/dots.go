package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// dotChain is the number of products that a lane accumulates before its sum is compensated.
const dotChain = 256

// Dots computes c[i] = Σ a[i][l]·x[l] for m contiguous rows of k elements, aRow apart. A
// sum does not depend on the rows computed with it.
func Dots[T Float](s *Space[T], m, k int, a []T, aRow int, x, c []T) {
	d := kernelsOf[T]()
	full := k - k%d.dotLanes
	count, stride := 4, aRow
	if m < count { // the kernel computes one row four times
		count, stride = 1, 0
	}
	for done := 0; done < m; done += count {
		i := min(done, m-count)
		var sums [4]CompensatedSum[T]
		for l := 0; l < full; l += dotChain * d.dotLanes {
			d.fourDots(min(dotChain*d.dotLanes, full-l), &a[i*aRow+l], stride, &x[l], &s.sums[0])
			for r := range count {
				sums[r].Add(pairwise(s.sums[r*d.dotLanes:][:d.dotLanes]))
			}
		}
		for r := range count {
			sum, row := sums[r].Sum+sums[r].Err, a[(i+r)*aRow:][:k]
			for l := full; l < k; l++ {
				sum += row[l] * x[l]
			}
			c[i+r] = sum
		}
	}
}

// dotRows is the maximum number of rows that [GatheredDots] copies before it multiplies them: they stay in the first-level
// cache.
const dotRows = 16

// GatheredDots computes c[i] = Σ a[i][l]·x[l][0] for m rows of k elements of a matrix with tables, whose columns form contiguous
// runs, as the windows of a convolution do. It copies some rows at a time for [Dots]: a product with one column would move
// each element into a vector of its own. It returns false for shorter runs and for rows that the space has no room for.
func GatheredDots[T Float](s *Space[T], m, k int, a, x Matrix[T], c []T) bool {
	rows := min(dotRows, len(s.a)/(k+skew))
	if rows < 4 || k > len(s.b) || s.Pairs || a.RowAt == nil || !hasLongRuns(a.ColAt[:k]) {
		return false
	}
	for l := range k {
		at := l * x.Row
		if x.RowAt != nil {
			at = int(x.RowAt[l] + x.ColAt[0])
		}
		s.b[l] = x.Data[at]
	}
	for i := 0; i < m; i += rows {
		count := min(rows, m-i)
		copied := s.copyRuns(a.From(i, 0), count, k)
		Dots(s, count, k, copied.Data, copied.Row, s.b, c[i:])
	}
	return true
}

// dotsArguments are the arguments of code for fourDots; n is k.
type dotsArguments struct {
	a    unsafe.Pointer
	aRow int
	x    unsafe.Pointer
	sums unsafe.Pointer
}

// fourDots computes the dot products of four rows with x, of k elements, a multiple of dotLanes.
// It stores the partial sums of dotLanes lanes, row by row.
func (d *kernels[T]) fourDots(k int, a *T, aRow int, x, sums *T) {
	if d.dots == nil {
		plainDots(k, a, aRow, x, sums)
		return
	}
	var t dotsArguments
	t.a, t.aRow, t.x, t.sums = unsafe.Pointer(a), aRow, unsafe.Pointer(x), unsafe.Pointer(sums)
	asm.Call(d.dots, unsafe.Pointer(&t), k)
}

// maxLanes is the maximum number of lanes of partial sums.
const maxLanes = 32

// pairwise sums lanes in a tree.
func pairwise[T Float](lanes []T) T {
	for n := len(lanes) / 2; n > 0; n /= 2 {
		for i := range n {
			lanes[i] += lanes[n+i]
		}
	}
	return lanes[0]
}

// CompensatedSum is a sum and its accumulated rounding error, which is added at the end:
// Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
type CompensatedSum[T Float] struct{ Sum, Err T }

// Add adds a term. A sum that is not finite has no error.
func (t *CompensatedSum[T]) Add(x T) {
	sum := t.Sum + x
	part := sum - t.Sum
	if left := (t.Sum - (sum - part)) + (x - part); left-left == 0 {
		t.Err += left
	}
	t.Sum = sum
}
