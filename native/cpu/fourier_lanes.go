package cpu

import "github.com/rlx-go/rlx/internal/simd"

// The bounds of transforms whose lanes are rows: their length, so that two arrays of both parts for a vector of
// rows stay in the second-level cache, and the numbers of each array, so that shorter ones stay in the first.
const (
	maxLanesLength = 2048
	lanesNumbers   = 2048
)

// inLanes reports whether transforms are computed for several rows at once, one to a lane.
func inLanes(length, rows, width int) bool { return length <= maxLanesLength && rows >= width }

// lanesFourier transforms the rows of an array, several at once: they are transposed, so that a vector has the
// numbers of as many rows at one place, and no lane is lost.
type lanesFourier[T simd.Float] struct {
	*fourierStep[T]
	rows int
	t    *columnTransform[T] // its columns are rows of the array
}

// newLanesFourier compiles the passes for the operands of s.
func newLanesFourier[T simd.Float](c *compiler, s *fourierStep[T], code fourierKernel, width int) *lanesFourier[T] {
	x := &lanesFourier[T]{fourierStep: s, rows: s.in[0].elems / s.length}
	columns := min(roundUp(x.rows, width), max(width, roundUp(lanesNumbers/s.length, width)))
	x.t = newColumnTransform[T](c, code, s.length, columns, width, false)
	return x
}

func (x *lanesFourier[T]) chunks() int { return (x.rows + x.t.columns - 1) / x.t.columns }

func (x *lanesFourier[T]) run(r *runner) { r.job.run(x, x.chunks()) }

// do transforms the rows of a chunk.
func (x *lanesFourier[T]) do(worker, chunk int) {
	n, lanes, first := x.length, x.t.stride, chunk*x.t.columns
	count, size := min(x.t.columns, x.rows-first), x.length*x.t.stride
	memory := view[T](x.work)[worker*4*size:][:4*size]
	a, b := complexArray[T]{memory[:size], memory[size : 2*size]}, complexArray[T]{memory[2*size : 3*size], memory[3*size:]}
	in := a
	for i := range in {
		if i >= len(x.in) {
			in[i] = nil
			continue
		}
		simd.Transpose(in[i], lanes, view[T](x.in[i])[first*n:], n, count, n)
	}
	result, _ := x.t.transform(worker, in, b, a)
	for i, to := range x.out {
		simd.Transpose(view[T](to)[first*n:], n, result[i], lanes, n, count)
	}
}
