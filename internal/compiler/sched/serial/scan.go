package serial

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scanner writes a scan along the lines of an axis.
type scanner struct {
	*serial
	x *fusion.Prefix
}

// write writes the scan, vectorised across lines where they are adjacent.
func (s *scanner) write() {
	x := s.x
	var lines []scalar.Expr
	for axis, at := range x.At {
		if axis != x.Axis {
			lines = append(lines, at)
		}
	}
	lanes := len(lines) > 0 && x.Axis != len(x.Dims)-1
	var writeAxis func(i int)
	writeAxis = func(i int) {
		if i < len(lines) {
			s.collapsed(lines[i:i+1], i == len(lines)-1 && lanes, func() { writeAxis(i + 1) })
			return
		}
		s.line(lanes)
	}
	writeAxis(0)
}

// line writes the scan of one line, or of one in each lane: additions of different lines do not wait
// for each other.
func (s *scanner) line(lanes bool) {
	x := s.x
	init := make([]scalar.Expr, len(x.Accumulators))
	for i, a := range x.Accumulators {
		init[i] = a.Init
	}
	running := s.e.Vars("running", init)
	n := x.Dims[x.Axis]
	if x.Terms != nil && !lanes && n > fusion.SumBlockLen {
		s.blockedLine(running)
		return
	}
	s.bind(x.Running, running)
	s.linePoints(loop.Int(0), n, func() { s.e.SetAll(running, s.exprs(x.Combined)) })
}

// linePoints writes the points of a line from the given one on; step adds a point to the running values.
func (s *scanner) linePoints(from scalar.Expr, count int, step func()) {
	x := s.x
	last := x.Dims[x.Axis] - 1
	s.count("i", upTo(count), func(i scalar.Expr) {
		i = scalar.Add(from, i)
		if x.Reverse {
			i = scalar.Sub(loop.Int(last), i)
		}
		s.bind(x.At[x.Axis:x.Axis+1], []scalar.Expr{s.e.Simplify(i)})
		if x.Exclusive {
			s.storeAll(x.Stores)
		}
		step()
		if !x.Exclusive {
			s.storeAll(x.Stores)
		}
	})
}

// blockedLine writes the running sum of a line by blocks of [fusion.SumBlockLen]: a point is the
// sum of all blocks before plus the sum within its block. Only the former is compensated, so a point
// costs two additions, of which one depends on the point before.
func (s *scanner) blockedLine(running []scalar.Expr) {
	x := s.x
	n, sums := x.Dims[x.Axis], running[:len(x.Terms)]
	rests := running[len(x.Terms):]
	zeros := make([]scalar.Expr, len(sums))
	for i := range zeros {
		zeros[i] = scalar.Const(ir.F32, 0)
	}
	within := s.e.Vars("within", zeros)
	block := func(first scalar.Expr, count int) {
		s.e.SetAll(within, zeros)
		point := make([]scalar.Expr, len(sums))
		for i := range sums {
			before := s.e.Let("before", scalar.Compensated(sums[i], rests[i]))
			point[i] = scalar.Add(before, within[i])
		}
		s.bind(x.Running, append(point, zeros...))
		s.linePoints(first, count, func() {
			for i, v := range within {
				s.e.Set(v, scalar.Add(v, s.expr(x.Terms[i])))
			}
		})
		for i := range sums {
			sum, rest := scalar.TwoSum(sums[i], within[i])
			s.e.SetAll([]scalar.Expr{sums[i], rests[i]}, []scalar.Expr{sum, scalar.Add(rests[i], rest)})
		}
	}
	whole := n / fusion.SumBlockLen
	s.count("block", upTo(whole), func(i scalar.Expr) {
		block(scalar.Mul(i, loop.Int(fusion.SumBlockLen)), fusion.SumBlockLen)
	})
	if rest := n % fusion.SumBlockLen; rest > 0 {
		block(loop.Int(whole*fusion.SumBlockLen), rest)
	}
}
