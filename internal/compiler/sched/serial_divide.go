package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Long kernels of one thread are divided into several workgroups, which engines with threads
// run in parallel.
const (
	// maxShares is the maximum number of workgroups: web pages get few processors.
	maxShares = 8
	// shareMultiple is the granularity of a share of a loop over lanes: whole vectors, and
	// whole cache lines.
	shareMultiple = 16
)

// division is the division of a kernel: along its outermost loop, if there is only one.
type division struct {
	shares  int // 1: not divided
	depth   int // nesting depth of the loops being written
	regions int // outermost regions so far
	begin   int // the last region's first statement
	end     int
}

// outermost writes, by f, a region that may be divided if it is not nested in another; divided
// reports whether it is.
func (s *serial) outermost(f func(divided bool)) {
	if s.depth == 0 {
		s.regions++
		s.begin = len(s.body)
		defer func() { s.end = len(s.body) }()
	}
	s.depth++
	f(s.depth == 1 && s.shares > 1)
	s.depth--
}

// interval is a range of iterations.
type interval struct{ from, to scalar.Expr }

// share returns the workgroup's part of [0, n), in multiples of step.
func (s *serial) share(n, step int) interval {
	size := roundUp(ceilDiv(n, s.shares), step)
	return s.portion(s.linearGroup(ceilDiv(n, size)), n, size)
}

// portion returns part i of [0, n), split into parts of a size.
func (s *serial) portion(i scalar.Expr, n, size int) interval {
	if size >= n {
		return interval{loop.Int(0), loop.Int(n)}
	}
	from := s.let("from", scalar.Mul(i, loop.Int(size)))
	return interval{from, s.let("to", scalar.Min(loop.Int(n), scalar.Add(from, loop.Int(size))))}
}

// chooseShares returns the number of workgroups that pays for what was written, 1 where it
// cannot be divided.
func (s *serial) chooseShares() int {
	isLet := func(x loop.Stmt) bool { _, ok := x.(*loop.Let); return ok }
	outside := slices.Concat(s.body[:s.begin], s.body[s.end:])
	if s.caps.ShareOps == 0 || s.regions != 1 || slices.ContainsFunc(outside, func(x loop.Stmt) bool { return !isLet(x) }) || hasChecks(s.body) {
		return 1
	}
	return int(max(1, min(maxShares, operations(s.body)/float64(s.caps.ShareOps))))
}

// hasChecks reports whether statements check indices: the report of the first bad index takes
// several words.
func hasChecks(body []loop.Stmt) bool {
	found := false
	check := func(x scalar.Expr) bool { return x.Op == scalar.OpCheck }
	loop.Walk(body, func(s loop.Stmt) { found = found || loop.AnyNode(s, check) })
	return found
}

// operations estimates the cost of statements in operations.
func operations(body []loop.Stmt) float64 {
	n := 0.
	for _, s := range body {
		loop.EachExpr(s, func(e scalar.Expr) { n += float64(scalar.Count(e)) })
		switch s := s.(type) {
		case *loop.For:
			n += tripCount(s) * operations(s.Body)
		case *loop.If:
			n += operations(s.Then) + operations(s.Else)
		}
	}
	return n
}

// tripCount returns the maximum number of iterations of a loop.
func tripCount(s *loop.For) float64 {
	lo, _, _ := scalar.Range(s.Start)
	_, hi, _ := scalar.Range(s.End)
	step, _ := s.Step.IntConst()
	return float64(hi-lo) / float64(max(step, 1))
}
