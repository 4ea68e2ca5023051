//go:build cgo && (darwin || linux)

package metal

import (
	"math"
	"time"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The rates are half of those of the slowest supported GPU, the M1 with 7 cores (68 GB/s;
// 7·128 multiply-adds at 1.278 GHz), since it also serves the display. None was measured on
// a Mac. Caches are ignored, so estimates err on the long side.
const (
	bytesPerSecond      = 68e9 / 2
	operationsPerSecond = 7 * 128 * 1.278e9 / 2
	// residentThreads is a lower bound of the threads resident on the cores.
	residentThreads = 7 * 1024
	// Latencies of a thread: a dependent operation, and memory with several loads in
	// flight.
	secondsPerOperation = 3e-9
	secondsPerLoad      = 100e-9
	// secondsPerDispatch is the time of an empty dispatch.
	secondsPerDispatch = 10e-6
)

// work is an upper bound of the work of one thread.
type work struct {
	threads                  int // of a workgroup
	bytes, loads, operations float64
}

// workOf estimates the work of a thread: loops count their maximal iterations, branches
// their longer side.
func workOf(k *loop.Kernel) work {
	c := counter{k: k, ranges: scalar.NewSimplifier(), lets: map[string]scalar.Expr{}, longest: 1}
	for _, a := range k.Arrays {
		c.longest = max(c.longest, float64(a.Len))
	}
	w := c.body(k.Body)
	w.threads = k.Threads()
	return w
}

// of returns the time of a dispatch.
func (w work) of(groups [3]int) time.Duration {
	threads := float64(groups[0]) * float64(groups[1]) * float64(groups[2]) * float64(w.threads)
	waves := math.Ceil(threads / residentThreads)
	seconds := secondsPerDispatch + max(
		threads*w.bytes/bytesPerSecond,
		threads*w.operations/operationsPerSecond,
		waves*(w.loads*secondsPerLoad+w.operations*secondsPerOperation))
	return time.Duration(min(seconds*1e9, math.MaxInt64/4))
}

// copyTime returns the time of a copy.
func copyTime(bytes int) time.Duration {
	return time.Duration((secondsPerDispatch + 2*float64(bytes)/bytesPerSecond) * 1e9)
}

// counter sums the work of statements.
type counter struct {
	k       *loop.Kernel
	ranges  *scalar.Simplifier
	lets    map[string]scalar.Expr // integers by their names
	longest float64                // array of the kernel, the bound of loops whose bounds are loaded from memory
}

func (c *counter) body(list []loop.Stmt) (sum work) {
	for _, s := range list {
		switch s := s.(type) {
		case *loop.Let:
			if s.Value.Type.IsInteger() {
				c.lets[s.Name] = c.inline(s.Value)
			}
		case *loop.For:
			sum = sum.plus(c.body(s.Body).plus(work{operations: 2}, 1), c.iterations(s))
		case *loop.If:
			sum = sum.plus(c.body(s.Then).max(c.body(s.Else)), 1)
		}
		sum = sum.plus(c.own(s), 1)
	}
	return sum
}

// plus adds some work, n times.
func (w work) plus(o work, n float64) work {
	return work{bytes: w.bytes + n*o.bytes, loads: w.loads + n*o.loads, operations: w.operations + n*o.operations}
}

// max returns the componentwise maximum.
func (w work) max(o work) work {
	return work{bytes: max(w.bytes, o.bytes), loads: max(w.loads, o.loads), operations: max(w.operations, o.operations)}
}

// iterations returns the maximal trip count of a loop.
func (c *counter) iterations(s *loop.For) float64 {
	from := c.inline(s.Start)
	step, _, known := c.ranges.Range(c.inline(s.Step))
	if span := c.span(from, c.inline(s.End)); known && step > 0 && span < math.MaxInt32 {
		return math.Ceil(span / float64(step))
	}
	return c.longest
}

// span returns an upper bound of to − from, or infinity.
func (c *counter) span(from, to scalar.Expr) float64 {
	if to.Op == scalar.OpMin {
		return min(c.span(from, to.Args[0]), c.span(from, to.Args[1]))
	}
	if from.Type != to.Type {
		return math.Inf(1)
	}
	_, hi, known := c.ranges.Range(scalar.Sub(to, from))
	if !known {
		return math.Inf(1)
	}
	return float64(max(hi, 0))
}

// inline substitutes values for their names, to simplify bounds.
func (c *counter) inline(e scalar.Expr) scalar.Expr {
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		value, named := c.lets[n.Name]
		return value, named && n.Op == scalar.OpVar
	})
}

// fragmentOperations is the work per thread of a product of two fragments held by 32
// threads.
const fragmentOperations = loop.FragmentSize * loop.FragmentSize * loop.FragmentSize / 32

// own returns the work of a statement without its nested statements.
func (c *counter) own(s loop.Stmt) (w work) {
	w.operations = 1
	if _, ok := s.(*loop.FragmentMulAdd); ok {
		w.operations = fragmentOperations
	}
	loop.Arrays(s, func(array *int) { c.access(&w, *array) })
	seen := map[scalar.Expr]bool{}
	loop.EachExpr(s, func(e scalar.Expr) { c.expr(&w, e, seen) })
	return w
}

// access counts one access to an array.
func (c *counter) access(w *work, array int) {
	a := &c.k.Arrays[array]
	w.operations++
	if a.Space == loop.Storage {
		w.bytes += float64(loop.DeviceSize(a.DType) * a.Width)
		w.loads++
	}
}

// expr counts the nodes of an expression that were not seen before.
func (c *counter) expr(w *work, e scalar.Expr, seen map[scalar.Expr]bool) {
	if seen[e] {
		return
	}
	seen[e] = true
	switch {
	case e.Op == scalar.OpLoad:
		c.access(w, e.Ref)
	case e.Op == scalar.OpConst || e.Op == scalar.OpVar || e.Op == scalar.OpArg:
	case e.Op >= scalar.OpExp && e.Op <= scalar.OpErfc || e.Op == scalar.OpPow:
		w.operations += 40 // they are written as polynomials
	case e.Op == scalar.OpDiv || e.Op == scalar.OpRem || e.Op == scalar.OpFloorDiv || e.Op == scalar.OpMod:
		w.operations += 20
	default:
		w.operations++
	}
	for _, a := range e.Args {
		c.expr(w, a, seen)
	}
}
