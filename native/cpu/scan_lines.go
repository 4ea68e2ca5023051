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

// lineTerm returns what each point of a running sum adds, or what one of another op combines, and the value that its
// stores read; nil for other scans.
func lineTerm(x *fusion.Prefix) (term, result scalar.Expr) {
	if len(x.Terms) == 1 {
		return x.Terms[0], scalar.Compensated(x.Running[0], x.Running[1])
	}
	if len(x.Combined) != 1 || !combinesLines(x.Combined[0].Op, x.Combined[0].Type) {
		return nil, nil
	}
	running := isOneOf(x.Running)
	for i, a := range x.Combined[0].Args {
		if other := x.Combined[0].Args[1-i]; running(a) && !scalar.Any(other, running) {
			return other, a
		}
	}
	return nil, nil
}

// combinesLines reports whether there is a loop over a line for an op of a type. Sums of f32 are compensated, see
// [fusion.Prefix].
func combinesLines(op scalar.Op, d ir.DType) bool {
	switch op {
	case scalar.OpAdd:
		return d == ir.F64 || d == ir.I32 || d == ir.U32 || d == ir.I64 || d == ir.U64
	case scalar.OpMul, scalar.OpMax, scalar.OpMin:
		return d == ir.F32 || d == ir.F64 || d == ir.I32 || d == ir.I64
	}
	return false
}

// scanLines compiles a scan over few or contiguous lines: a loop combines the terms, which a nest writes
// unless they are in memory, and a nest computes the stored values unless they are the running ones.
func (c *compiler) scanLines(g *fusion.Group, x *fusion.Prefix, term, result scalar.Expr) error {
	terms, err := c.operand(g.Name()+" terms", fusion.Elements{Dims: x.Dims, At: x.At, Value: term}, nil)
	if err != nil {
		return err
	}
	place := scalar.Simplify(linear(x.Dims, x.At))
	load := scalar.LoadAt(resultID, term.Type, place)
	code := &fusion.Code{Rows: x.Stores}
	replace := func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) { return load, scalar.Equal(n, result) })
	}
	rewriteExprs(code, replace, replace)
	s := &lineScan{op: scalar.OpAdd, from: terms, length: x.Dims[x.Axis], stride: product(x.Dims[x.Axis+1:]), reverse: x.Reverse, exclusive: x.Exclusive}
	if len(x.Terms) == 0 {
		s.op = x.Combined[0].Op
		if s.init, err = constantValue(x.Accumulators[0].Init); err != nil {
			return err
		}
	}
	if len(code.Rows) == 1 {
		if s.to = resultBuffer(c.buffers, fusion.Elements{Dims: x.Dims, At: x.At}, code.Rows[0], load); s.to != nil {
			c.add(s)
			return nil
		}
	}
	s.to = c.scratch(term.Type, terms.elems)
	c.add(s)
	var dims []int
	code.Outer, dims = coordinates(x.At, x.Dims)
	return c.nest(g.Name(), code, dims, nil, map[int]*buffer{resultID: s.to})
}

// lineScan writes the running sums of the elements of each line, or their running products or extremes from an initial
// value on. Elements of a line are stride apart; the arrays are row-major.
type lineScan struct {
	op                 scalar.Op
	init               scalar.Value // of ops other than sums
	from, to           *buffer
	length, stride     int
	reverse, exclusive bool
}

func (s *lineScan) run(r *runner) {
	if s.to.elems > 0 {
		r.job.run(s, (s.lines()+s.perChunk()-1)/s.perChunk())
	}
}

func (s *lineScan) lines() int { return s.to.elems / s.length }

// perChunk returns the number of lines of a chunk.
func (s *lineScan) perChunk() int {
	const elems = 8192 // which take as long as waking another core
	return max(1, elems/s.length)
}

// do scans the lines of a chunk. Sums of f32 are f64 until they are stored: their errors do not add up.
func (s *lineScan) do(_, chunk int) {
	first := chunk * s.perChunk()
	for line := first; line < min(first+s.perChunk(), s.lines()); line++ {
		switch s.to.dtype {
		case ir.F32:
			scanLine[float32, float64](s, line, float32(s.init.F))
		case ir.F64:
			scanLine[float64, float64](s, line, s.init.F)
		case ir.I64, ir.U64:
			scanLine[int64, int64](s, line, s.init.I)
		default:
			scanLine[int32, int32](s, line, int32(s.init.I))
		}
	}
}

// scanLine scans a line, with sums of type S.
func scanLine[T, S float32 | float64 | int32 | int64](s *lineScan, line int, init T) {
	at, step := line/s.stride*s.stride*s.length+line%s.stride, s.stride
	if s.reverse {
		at, step = at+(s.length-1)*step, -step
	}
	if s.op == scalar.OpAdd {
		sumLine[T, S](s, at, step)
		return
	}
	combineLine(s, at, step, init)
}

// combineLine writes the running products or extremes of a line from an element on, of those step apart. An extreme is NaN
// from the first NaN on.
func combineLine[T float32 | float64 | int32 | int64](s *lineScan, at, step int, running T) {
	from, to := view[T](s.from), view[T](s.to)
	if step == 1 && !s.exclusive {
		combineRow(s.op, to[at:at+s.length], from[at:at+s.length], running)
		return
	}
	for range s.length {
		x := from[at]
		if s.exclusive {
			to[at] = running
		}
		switch s.op {
		case scalar.OpMul:
			running *= x
		case scalar.OpMax:
			if x > running || x != x {
				running = x
			}
		case scalar.OpMin:
			if x < running || x != x {
				running = x
			}
		}
		if !s.exclusive {
			to[at] = running
		}
		at += step
	}
}

// combineRow is combineLine for contiguous elements.
func combineRow[T float32 | float64 | int32 | int64](op scalar.Op, to, from []T, running T) {
	to = to[:len(from)]
	switch op {
	case scalar.OpMul:
		for i, x := range from {
			running *= x
			to[i] = running
		}
	case scalar.OpMax:
		for i, x := range from {
			if x > running || x != x {
				running = x
			}
			to[i] = running
		}
	case scalar.OpMin:
		for i, x := range from {
			if x < running || x != x {
				running = x
			}
			to[i] = running
		}
	}
}

// sumLine writes the running sums, of type S, of a line from an element on, of those step apart.
func sumLine[T, S float32 | float64 | int32 | int64](s *lineScan, at, step int) {
	from, to := view[T](s.from), view[T](s.to)
	if step == 1 && !s.exclusive {
		sumRow[T, S](to[at:at+s.length], from[at:at+s.length])
		return
	}
	var sum S
	for range s.length {
		term := S(from[at])
		if s.exclusive {
			to[at] = T(sum)
		}
		sum += term
		if !s.exclusive {
			to[at] = T(sum)
		}
		at += step
	}
}

// sumRow scans contiguous elements. Four at a time are added up before the sum of those before, for which each
// addition waits; sums of f64 are not, as theirs might overflow.
func sumRow[T, S float32 | float64 | int32 | int64](to, from []T) {
	var sum S
	var t T
	_, double := any(t).(float64)
	for len(from) >= 4 && !double {
		x, y := (*[4]T)(from), (*[4]T)(to)
		a, c := S(x[0]), S(x[2])
		ab, cd := a+S(x[1]), c+S(x[3])
		y[0], y[1], y[2], sum = T(sum+a), T(sum+ab), T(sum+(ab+c)), sum+(ab+cd)
		y[3] = T(sum)
		from, to = from[4:], to[4:]
	}
	for i, x := range from {
		sum += S(x)
		to[i] = T(sum)
	}
}
