package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// copyStep copies rows of a tensor, which are contiguous in the source and in the destination, as
// a transpose of outer axes or a part of a concatenation does.
type copyStep struct {
	from, to     *buffer
	fromAt, toAt int
	row          int   // elements of a row
	dims         []int // of the other axes
	fromBy, toBy []int // strides of the other axes
	rows, chunk  int
	cost         float64
}

// minCopy is the least number of elements of a row that is worth a copy of its own, shortCopy the number
// below which elements of 32 bits are copied one by one.
const minCopy, shortCopy = 2, 8

// newCopy returns a step for code that is nothing but a copy of rows; nil for any other.
func newCopy(code *fusion.Code, dims []int, buffers map[int]*buffer) *copyStep {
	if len(code.Stages)+len(code.Points) > 0 || len(code.Rows) != 1 || code.Rows[0].Guarded || len(dims) < 2 {
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
		if a < 0 || b <= 0 {
			return nil
		}
		known += min(a, 1) + 1
		if a == 1 && b == 1 && s.row == 0 {
			s.row = dims[i]
			continue
		}
		s.dims, s.fromBy, s.toBy = append(s.dims, dims[i]), append(s.fromBy, a), append(s.toBy, b)
		s.rows *= dims[i]
	}
	if s.row < minCopy || s.row < shortCopy && s.to.dtype.Size() != 4 || known != len(from.terms)+len(to.terms) {
		return nil
	}
	perRow, perElement := 6., 0.04 // nanoseconds
	if s.row < shortCopy {
		perRow, perElement = 1, 0.6
	}
	s.chunk, s.cost = max(1, 16384/s.row), float64(s.rows)*(perRow+perElement*float64(s.row))
	return s
}

func (s *copyStep) run(r *runner) {
	if chunks := (s.rows + s.chunk - 1) / s.chunk; s.cost >= 2*chunkCost {
		r.job.run(s, chunks)
	} else {
		for i := range chunks {
			s.do(0, i)
		}
	}
}

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
	size, last := s.to.dtype.Size(), len(s.dims)-1
	if s.row < shortCopy {
		s.copyShort(view[uint32](s.from)[from:], view[uint32](s.to)[to:], n)
		return
	}
	bytes, fromBy, toBy := s.row*size, s.fromBy[last]*size, s.toBy[last]*size
	source, dest := s.from.data[from*size:], s.to.data[to*size:]
	at := 0
	for i := range n {
		copy(dest[i*toBy:][:bytes], source[at:][:bytes])
		at += fromBy
	}
}

// copyShort is copyRows for few elements.
func (s *copyStep) copyShort(from, to []uint32, n int) {
	last := len(s.dims) - 1
	fromBy, toBy := s.fromBy[last], s.toBy[last]
	for i := range n {
		source, dest := from[i*fromBy:][:s.row], to[i*toBy:][:s.row]
		for k := range dest {
			dest[k] = source[k]
		}
	}
}
