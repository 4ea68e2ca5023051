package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scanLanes is the number of lines from which a nest scans faster, a line to a lane, unless lines
// are contiguous: lanes then are far apart. With fewer it
// interprets its code for each element: one line of 100,000 takes 20 times as long (AMD EPYC with
// AVX-512, BenchmarkCumSum).
const scanLanes = 16

// scanLines compiles a running sum of f32 over few or contiguous lines: a nest writes the terms, vectorised
// along the lines, a loop adds them up, and a nest computes the results.
func (c *compiler) scanLines(g *fusion.Group, x *fusion.Prefix) error {
	terms, err := c.materialize(g.Name()+" terms", fusion.Elements{Dims: x.Dims, At: x.At, Value: x.Terms[0]})
	if err != nil {
		return err
	}
	c.add(&lineScan{sums: terms, length: x.Dims[x.Axis], stride: product(x.Dims[x.Axis+1:]), reverse: x.Reverse, exclusive: x.Exclusive})
	code := &fusion.Code{Rows: x.Stores}
	replaceVars(code, map[string]scalar.Expr{
		x.Running[0].Name: scalar.LoadAt(resultID, ir.F32, scalar.Simplify(linear(x.Dims, x.At))),
		x.Running[1].Name: scalar.Const(ir.F32, 0),
	})
	var dims []int
	code.Outer, dims = coordinates(x.At, x.Dims)
	return c.nest(g.Name(), code, dims, nil, map[int]*buffer{resultID: terms})
}

// lineScan replaces the elements of each line by their running sums. Elements of a line are
// stride apart; the array is row-major.
type lineScan struct {
	sums               *buffer
	length, stride     int
	reverse, exclusive bool
}

func (s *lineScan) run(r *runner) {
	if s.sums.elems > 0 {
		r.job.run(s, (s.lines()+s.perChunk()-1)/s.perChunk())
	}
}

func (s *lineScan) lines() int { return s.sums.elems / s.length }

// perChunk returns the number of lines of a chunk.
func (s *lineScan) perChunk() int {
	const elems = 8192 // which take as long as waking another core
	return max(1, elems/s.length)
}

// do scans the lines of a chunk.
func (s *lineScan) do(_, chunk int) {
	first := chunk * s.perChunk()
	for line := first; line < min(first+s.perChunk(), s.lines()); line++ {
		s.line(line)
	}
}

func (s *lineScan) line(line int) {
	all := view[float32](s.sums)
	at, step := line/s.stride*s.stride*s.length+line%s.stride, s.stride
	if s.reverse {
		at, step = at+(s.length-1)*step, -step
	}
	var sum, rest float32
	for range s.length {
		term := all[at]
		if s.exclusive {
			all[at] = withRest(sum, rest)
		}
		// TwoSum, as scalar.TwoSum writes it.
		next := sum + term
		part := next - sum
		rest += (sum - (next - part)) + (term - part)
		sum = next
		if !s.exclusive {
			all[at] = withRest(sum, rest)
		}
		at += step
	}
}

// withRest is [scalar.Compensated] of numbers.
func withRest(sum, rest float32) float32 {
	if rest == rest {
		return sum + rest
	}
	return sum
}
