package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/scalar"
)

// copyStep copies rows of a tensor, which are contiguous in the destination, and in the source contiguous, as in
// a transpose of outer axes or a part of a concatenation, the same element, reversed, or steps apart.
type copyStep struct {
	from, to     *buffer
	fromAt, toAt int
	row, step    int   // elements of a row, and the distance of two of them in the source, at most maxCopyStep
	dims         []int // of the other axes
	fromBy, toBy []int // strides of the other axes
	rows, chunk  int
	cost         float64
}

// minCopy is the minimum number of elements of a row that is copied as a whole, shortCopy the number
// below which they are copied one by one.
const minCopy, shortCopy = 2, 8

// maxCopyStep is the greatest distance of elements of a row in the source. Those of longer ones share no cache line.
const maxCopyStep = 8

// newCopy returns a step for code that is nothing but a copy of rows; nil for any other.
func newCopy(code *fusion.Code, dims []int, buffers map[int]*buffer) *copyStep {
	if len(code.Stages)+len(code.Points) > 0 || len(code.Rows) != 1 || code.Rows[0].Guarded || len(dims) == 0 {
		return nil
	}
	store := code.Rows[0]
	if store.Value.Op != scalar.OpLoad {
		return nil
	}
	s := &copyStep{from: buffers[store.Value.Ref], to: buffers[store.Tensor.ID], rows: 1}
	if s.from == nil || s.to == nil || s.from.dtype != s.to.dtype {
		return nil
	}
	from, to := affineOf(store.Value.Args[0]), affineOf(store.Offset)
	s.fromAt, s.toAt = from.constant, to.constant
	known := 0
	for i, v := range code.Outer {
		a, b := from.coef(v.Name), to.coef(v.Name)
		if b <= 0 {
			return nil
		}
		if known++; a != 0 {
			known++
		}
		if -1 <= a && a <= maxCopyStep && b == 1 && s.row == 0 {
			s.row, s.step = dims[i], a
			continue
		}
		s.dims, s.fromBy, s.toBy = append(s.dims, dims[i]), append(s.fromBy, a), append(s.toBy, b)
		s.rows *= dims[i]
	}
	s.runAlongLong()
	if len(dims) == 1 && !s.cutRow() {
		return nil
	}
	apart := s.step != 1 || s.row < shortCopy
	if apart && s.to.dtype.Size() > 8 || s.row < minCopy || known != len(from.terms)+len(to.terms) {
		return nil
	}
	s.chunk, s.cost = max(1, 16384/s.row), s.estimate()
	return s
}

// estimate returns the nanoseconds of one worker.
func (s *copyStep) estimate() float64 {
	perRow, perElement := 6., 0.04
	switch {
	case s.repeats():
		perRow, perElement = 0.3, 0.2
	case s.row < shortCopy:
		perRow, perElement = 1, 0.6
	case s.step == 0:
		perRow, perElement = 20, 0.06
	case s.step > 2 || s.step == 2 && s.to.dtype.Size() != 4:
		perElement = 0.4
	}
	return float64(s.rows) * (perRow + perElement*float64(s.row))
}

// repeats reports whether rows are elements, one after the other, each repeated.
func (s *copyStep) repeats() bool {
	last := len(s.dims) - 1
	return s.step == 0 && s.row < shortCopy && last >= 0 && s.fromBy[last] == 1 && s.toBy[last] == s.row
}

// runAlongLong makes a long axis the last one where that is short, the innermost of those: each run along the last
// axis costs a division by the sizes of all axes, and one along an outer axis visits a page for each row. Where none is
// long, it is the longest.
func (s *copyStep) runAlongLong() {
	const long = 8
	last := len(s.dims) - 1
	if last < 1 {
		return
	}
	i := last
	for k := last; k >= 0 && s.dims[i] < long; k-- {
		if s.dims[k] > s.dims[i] {
			i = k
		}
	}
	for _, list := range [][]int{s.dims, s.fromBy, s.toBy} {
		list[i], list[last] = list[last], list[i]
	}
}

// cutRow divides the elements of a single row among several; false where memory has them in order, as those of a
// nest.
func (s *copyStep) cutRow() bool {
	const least = 1024
	if s.step == 1 || s.row == 0 {
		return false
	}
	rows := 1
	for s.row%2 == 0 && s.row > 2*least {
		s.row, rows = s.row/2, rows*2
	}
	s.dims, s.fromBy, s.toBy, s.rows = []int{rows}, []int{s.row * s.step}, []int{s.row}, rows
	return true
}

func (s *copyStep) run(r *runner) { r.job.runCosting(s.cost, s, (s.rows+s.chunk-1)/s.chunk) }

// do copies the rows of a chunk: runs of them along the last axis, each of which starts at the places of
// the other axes.
func (s *copyStep) do(_, chunk int) {
	first := chunk * s.chunk
	last := len(s.dims) - 1
	for end := min(first+s.chunk, s.rows); first < end; {
		from, to, rest := s.fromAt, s.toAt, first
		for i := last; i >= 0; i-- {
			at := rest % s.dims[i]
			rest /= s.dims[i]
			from, to = from+at*s.fromBy[i], to+at*s.toBy[i]
		}
		n := min(end-first, s.dims[last]-first%s.dims[last])
		s.copyRows(from, to, n)
		first += n
	}
}

// copyRows copies n rows along the last axis.
func (s *copyStep) copyRows(from, to, n int) {
	if s.step == 1 && s.row >= shortCopy {
		s.copyRuns(from, to, n)
		return
	}
	switch s.to.dtype.Size() {
	case 1:
		copyApart(s, view[uint8](s.to), view[uint8](s.from), from, to, n)
	case 2:
		copyApart(s, view[uint16](s.to), view[uint16](s.from), from, to, n)
	case 4:
		copyApart(s, view[uint32](s.to), view[uint32](s.from), from, to, n)
	case 8:
		copyApart(s, view[uint64](s.to), view[uint64](s.from), from, to, n)
	}
}

// copyRuns is copyRows for contiguous rows.
func (s *copyStep) copyRuns(from, to, n int) {
	size, last := s.to.dtype.Size(), len(s.dims)-1
	bytes, fromBy, toBy := s.row*size, s.fromBy[last]*size, s.toBy[last]*size
	at, dest := from*size, s.to.data[to*size:]
	for i := range n {
		copy(dest[i*toBy:][:bytes], s.from.data[at:][:bytes])
		at += fromBy
	}
}

// moved is a type of elements that copies move without conversion, by their size.
type moved interface {
	uint8 | uint16 | uint32 | uint64
}

// copyApart is copyRows for rows that are short, or whose elements are not adjacent in the source.
func copyApart[T moved](s *copyStep, dest, source []T, from, to, n int) {
	last := len(s.dims) - 1
	fromBy, toBy := s.fromBy[last], s.toBy[last]
	switch {
	case s.repeats():
		repeatEach(dest[to:to+n*s.row], source[from:from+n], s.row)
		return
	case s.row < shortCopy:
		copyShort(s, dest, source, from, to, n)
		return
	}
	span := (s.row - 1) * s.step
	for range n {
		row, read := dest[to:to+s.row], source[from+min(span, 0):from+max(span, 0)+1]
		switch s.step {
		case -1:
			simd.Reverse(row, read)
		case 0:
			fill(row, read[0])
		case 2:
			simd.Evens(row, read)
		default:
			pickSteps(row, read, s.step)
		}
		from, to = from+fromBy, to+toBy
	}
}

// repeatEach writes each element of from a number of times.
func repeatEach[T moved](to, from []T, times int) {
	if times == 2 {
		simd.Join(to, from, from)
		return
	}
	for _, x := range from {
		out := to[:times]
		for k := range out {
			out[k] = x
		}
		to = to[times:]
	}
}

// pickSteps copies elements that are a positive distance apart, four at a time.
func pickSteps[T moved](to, from []T, step int) {
	at := 0
	for ; len(to) >= 4; to = to[4:] {
		four := from[at:][:3*step+1]
		to[0], to[1], to[2], to[3] = four[0], four[step], four[2*step], four[3*step]
		at += 4 * step
	}
	for i := range to {
		to[i] = from[at]
		at += step
	}
}

// copyShort is copyRows for rows so short that a call for each costs more than they do.
func copyShort[T moved](s *copyStep, dest, source []T, from, to, n int) {
	last := len(s.dims) - 1
	row, step, fromBy, toBy := s.row, s.step, s.fromBy[last], s.toBy[last]
	if row == 3 && step == 1 { // pixels
		for range n {
			*(*[3]T)(dest[to:]) = [3]T(source[from:])
			from, to = from+fromBy, to+toBy
		}
		return
	}
	least := min(0, (row-1)*step)
	span := max((row-1)*step, 0) - least + 1
	for range n {
		in, out := source[from+least:][:span], dest[to:][:row]
		at := -least
		for k := range out {
			out[k] = in[at]
			at += step
		}
		from, to = from+fromBy, to+toBy
	}
}
