package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Kernels of one thread that have much to do are divided into several workgroups,
// which engines with threads run side by side.
const (
	// mostShares is into how many: pages are given few processors.
	mostShares = 8
	// shareMultiple is of how many turns a share of a loop over lanes is: whole
	// vectors, and whole lines of the cache.
	shareMultiple = 16
)

// division is how a kernel is divided: along what is outermost in it, if that is
// one thing.
type division struct {
	shares  int // 1: it is not divided
	depth   int // of the loops that are being written
	regions int // what was outermost so far
	begin   int // where the last of them stands in the body
	end     int
}

// outermost writes, with f, something that may be divided if it is not inside of
// something else; f is told whether it is to be.
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

// interval is some of the turns of a loop.
type interval struct{ from, to scalar.Expr }

// share returns what of [0, n) is the workgroup's: multiples of step.
func (s *serial) share(n, step int) interval {
	size := wholeSteps(ceilDiv(n, s.shares), step)
	return s.portion(s.linearGroup(ceilDiv(n, size)), n, size)
}

// portion returns one of the portions of a size that [0, n) is cut into.
func (s *serial) portion(i scalar.Expr, n, size int) interval {
	if size >= n {
		return interval{loop.Int(0), loop.Int(n)}
	}
	from := s.let("from", scalar.Mul(i, loop.Int(size)))
	return interval{from, s.let("to", scalar.Min(loop.Int(n), scalar.Add(from, loop.Int(size))))}
}

// worthyShares returns into how many workgroups it is worth dividing what was
// written, 1 where that cannot be.
func (s *serial) worthyShares() int {
	isLet := func(x loop.Stmt) bool { _, ok := x.(*loop.Let); return ok }
	outside := slices.Concat(s.body[:s.begin], s.body[s.end:])
	if s.caps.ShareOps == 0 || s.regions != 1 || slices.ContainsFunc(outside, func(x loop.Stmt) bool { return !isLet(x) }) || hasChecks(s.body) {
		return 1
	}
	return int(max(1, min(mostShares, operations(s.body)/float64(s.caps.ShareOps))))
}

// hasChecks reports whether statements check indices: what they say of the first
// that is bad are several words.
func hasChecks(body []loop.Stmt) bool {
	found := false
	check := func(x scalar.Expr) bool { return x.Op == scalar.OpCheck }
	loop.Walk(body, func(s loop.Stmt) { found = found || loop.AnyNode(s, check) })
	return found
}

// operations estimates how many statements take.
func operations(body []loop.Stmt) float64 {
	n := 0.
	for _, s := range body {
		loop.EachExpr(s, func(e scalar.Expr) { n += float64(scalar.Count(e)) })
		switch s := s.(type) {
		case *loop.For:
			n += turns(s) * operations(s.Body)
		case *loop.If:
			n += operations(s.Then) + operations(s.Else)
		}
	}
	return n
}

// turns is how many turns a loop has at most.
func turns(s *loop.For) float64 {
	lo, _, _ := scalar.Range(s.Start)
	_, hi, _ := scalar.Range(s.End)
	step, _ := s.Step.IntConst()
	return float64(hi-lo) / float64(max(step, 1))
}
