//go:build cgo && (darwin || linux)

package metal

import (
	"math"
	"time"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The rates are half of those of the slowest GPU that there is a target for, the M1's of 7
// cores (68 GB/s; 7·128 multiply-adds at 1.278 GHz): it has a display to serve, and kernels
// reach no more. None was measured on a Mac. Caches are not counted, so that what rereads
// its operands is estimated too long rather than too short.
const (
	bytesPerSecond      = 68e9 / 2
	operationsPerSecond = 7 * 128 * 1.278e9 / 2
	// threadsAtOnce is how many threads the cores hold at least.
	threadsAtOnce = 7 * 1024
	// What one thread waits for: an operation on the one before it, and memory, of which
	// several loads are under way at a time.
	secondsPerOperation = 3e-9
	secondsPerLoad      = 100e-9
	// secondsPerDispatch is what a dispatch takes that does nothing.
	secondsPerDispatch = 10e-6
)

// work is what one thread of a kernel does at most.
type work struct {
	threads                  int // of a workgroup
	bytes, loads, operations float64
}

// workOf estimates the work of a thread: loops run as often as their bounds allow, of two
// branches the longer one counts.
func workOf(k *loop.Kernel) work {
	c := counter{k: k, ranges: scalar.NewSimplifier(), lets: map[string]scalar.Expr{}, longest: 1}
	for _, a := range k.Arrays {
		c.longest = max(c.longest, float64(a.Len))
	}
	w := c.body(k.Body)
	w.threads = k.Threads()
	return w
}

// of returns how long a dispatch of some workgroups takes.
func (w work) of(groups [3]int) time.Duration {
	threads := float64(groups[0]) * float64(groups[1]) * float64(groups[2]) * float64(w.threads)
	waves := math.Ceil(threads / threadsAtOnce)
	seconds := secondsPerDispatch + max(
		threads*w.bytes/bytesPerSecond,
		threads*w.operations/operationsPerSecond,
		waves*(w.loads*secondsPerLoad+w.operations*secondsPerOperation))
	return time.Duration(min(seconds*1e9, math.MaxInt64/4))
}

// copyTime is how long a copy takes.
func copyTime(bytes int) time.Duration {
	return time.Duration((secondsPerDispatch + 2*float64(bytes)/bytesPerSecond) * 1e9)
}

// counter adds up the work of statements.
type counter struct {
	k       *loop.Kernel
	ranges  *scalar.Simplifier
	lets    map[string]scalar.Expr // integers by their names
	longest float64                // array of the kernel: what a loop goes over whose bounds are read from memory
}

func (c *counter) body(list []loop.Stmt) (sum work) {
	for _, s := range list {
		switch s := s.(type) {
		case *loop.Let:
			if s.Value.Type.IsInteger() {
				c.lets[s.Name] = c.spelled(s.Value)
			}
		case *loop.For:
			sum = sum.plus(c.body(s.Body).plus(work{operations: 2}, 1), c.turns(s))
		case *loop.If:
			sum = sum.plus(c.body(s.Then).most(c.body(s.Else)), 1)
		}
		sum = sum.plus(c.own(s), 1)
	}
	return sum
}

// plus adds some work, n times.
func (w work) plus(o work, n float64) work {
	return work{bytes: w.bytes + n*o.bytes, loads: w.loads + n*o.loads, operations: w.operations + n*o.operations}
}

// most returns the more of each.
func (w work) most(o work) work {
	return work{bytes: max(w.bytes, o.bytes), loads: max(w.loads, o.loads), operations: max(w.operations, o.operations)}
}

// turns returns how often a loop runs at most.
func (c *counter) turns(s *loop.For) float64 {
	from := c.spelled(s.Start)
	step, _, known := c.ranges.Range(c.spelled(s.Step))
	if span := c.span(from, c.spelled(s.End)); known && step > 0 && span < math.MaxInt32 {
		return math.Ceil(span / float64(step))
	}
	return c.longest
}

// span returns how far an end lies behind a start at most, infinity where nothing is known.
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

// spelled writes values out in place of the names that they have, to see what is known of
// them.
func (c *counter) spelled(e scalar.Expr) scalar.Expr {
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		value, named := c.lets[n.Name]
		return value, named && n.Op == scalar.OpVar
	})
}

// fragmentOperations is what a product of two fragments is of the 32 threads that hold them.
const fragmentOperations = loop.FragmentSize * loop.FragmentSize * loop.FragmentSize / 32

// own returns the work of a statement without those in it.
func (c *counter) own(s loop.Stmt) (w work) {
	w.operations = 1
	if _, ok := s.(*loop.FragmentMulAdd); ok {
		w.operations = fragmentOperations
	}
	loop.Arrays(s, func(array *int) { c.touch(&w, *array) })
	seen := map[scalar.Expr]bool{}
	loop.EachExpr(s, func(e scalar.Expr) { c.expr(&w, e, seen) })
	return w
}

// touch counts one access of an array.
func (c *counter) touch(w *work, array int) {
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
		c.touch(w, e.Ref)
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
