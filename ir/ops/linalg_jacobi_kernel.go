package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxJacobi is the maximum number of rows in a workgroup: each pair has at least four threads.
const maxJacobi = 128

// maxJacobiThreads is the maximum number of threads for a pair of rows.
const maxJacobiThreads = 16

// jacobiKernels rotates the rows of each matrix in one workgroup, in place in the result.
// After a sweep without a significant rotation the remaining sweeps are skipped.
func jacobiKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	a := n.Attrs().(*JacobiAttrs)
	rows, cols := matrixDims(n.Input(0))
	elements := elementsOf(n.Input(0).Type())
	if elements == 0 || rows < 2 || rows > maxJacobi || caps.Invocations < 2*maxJacobi {
		return nil
	}
	f := &jacobiWriter{rows: rows, cols: cols, length: a.Length, pairs: (rows + 1) / 2, team: maxJacobiThreads}
	for f.team*f.pairs > 2*maxJacobi {
		f.team /= 2
	}
	f.tiles = newTiles("rotate", n.Input(0).DType(), f.pairs, f.team, elements/(rows*cols), 1, caps)
	f.x, f.y = f.operand(n, 0), f.result(n, 0)
	f.moved = f.shared("moved", ir.I32, f.pairs)
	for i := range f.sums {
		f.sums[i] = f.shared("sums", f.d, f.pairs*f.team)
	}
	f.copy()
	first := f.Let("first", scalar.Eq(f.j, loop.Int(0)))
	f.When(first, func() { f.Store(f.moved, f.i, loop.Int(1)) })
	f.Times("sweep", a.sweeps(rows), func(scalar.Expr) { f.sweep(first) })
	return f.algorithm()
}

// jacobiWriter writes the kernel. Row i of the thread grid rotates a pair of rows.
type jacobiWriter struct {
	*tiles
	rows, cols, length, pairs, team int
	x, y, moved                     int    // arrays; moved flags the pairs rotated in a sweep
	sums                            [3]int // a thread's partial sums: squares of either row, and products
}

func (f *jacobiWriter) copy() {
	f.When(f.exists, func() {
		across := f.pairs * f.team
		f.Loop("at", scalar.Add(times(f.i, f.team), f.j), loop.Int(f.rows*f.cols), across, f.rows*f.cols-1, func(at scalar.Expr) {
			at = scalar.Add(times(f.matrix, f.rows*f.cols), at)
			f.Store(f.y, at, f.get(f.x, at))
		})
	})
}

// sweep pairs every two rows once; first is true in the threads that set the flags.
func (f *jacobiWriter) sweep(first scalar.Expr) {
	f.Barrier()
	active := f.Var("active", scalar.ConstBool(false))
	f.Times("g", f.pairs, func(g scalar.Expr) {
		f.Set(active, scalar.Or(active, scalar.Eq(scalar.LoadAt(f.moved, ir.I32, g), loop.Int(1))))
	})
	f.Barrier()
	f.When(first, func() { f.Store(f.moved, f.i, loop.Int(0)) })
	others := 2*f.pairs - 1
	f.Times("k", others, func(k scalar.Expr) {
		// the last row stays while the others rotate
		one := f.Let("one", rest(scalar.Add(k, f.i), others))
		other := rest(scalar.Sub(plus(k, others), f.i), others)
		other = f.Let("other", scalar.Select(scalar.Eq(f.i, loop.Int(0)), loop.Int(others), other))
		lo, hi := f.Let("lo", scalar.Min(one, other)), f.Let("hi", scalar.Max(one, other))
		rotates := f.Let("rotates", scalar.And(scalar.And(active, f.exists), scalar.Lt(hi, loop.Int(f.rows))))
		hi = f.Let("near", scalar.Min(hi, loop.Int(f.rows-1)))
		f.When(rotates, func() { f.multiply(lo, hi) })
		f.Barrier()
		f.When(rotates, func() { f.rotate(lo, hi, first) })
		f.Barrier()
	})
}

// each iterates over the thread's elements of two rows.
func (f *jacobiWriter) each(lo, hi scalar.Expr, length int, do func(atLo, atHi, lo, hi scalar.Expr)) {
	atLo, atHi := f.Let("at", f.place(lo, loop.Int(0), f.rows, f.cols)), f.Let("at", f.place(hi, loop.Int(0), f.rows, f.cols))
	f.Loop("e", f.j, loop.Int(length), f.team, max(length-1, 0), func(e scalar.Expr) {
		lo, hi := scalar.Add(atLo, e), scalar.Add(atHi, e)
		do(lo, hi, f.Let("lo", f.get(f.y, lo)), f.Let("hi", f.get(f.y, hi)))
	})
}

func (f *jacobiWriter) multiply(lo, hi scalar.Expr) {
	var sums [3]scalar.Expr
	for i := range sums {
		sums[i] = f.Var("sum", f.number(0))
	}
	f.each(lo, hi, f.length, func(_, _, lo, hi scalar.Expr) {
		for i, product := range []scalar.Expr{scalar.Mul(lo, lo), scalar.Mul(hi, hi), scalar.Mul(lo, hi)} {
			f.Set(sums[i], scalar.Add(sums[i], product))
		}
	})
	for i, sum := range sums {
		f.Store(f.sums[i], scalar.Add(times(f.i, f.team), f.j), sum)
	}
}

// rotate rotates two rows by the smaller of the angles that make them orthogonal.
func (f *jacobiWriter) rotate(lo, hi, first scalar.Expr) {
	var sums [3]scalar.Expr
	for i := range sums {
		sums[i] = f.Var("sum", f.number(0))
	}
	f.Times("g", f.team, func(g scalar.Expr) {
		for i := range sums {
			f.Set(sums[i], scalar.Add(sums[i], f.get(f.sums[i], scalar.Add(times(f.i, f.team), g))))
		}
	})
	one := f.number(1)
	size := f.Let("size", scalar.Mul(scalar.Mul(scalar.Sqrt(sums[0]), scalar.Sqrt(sums[1])), f.number(f.d.Epsilon())))
	across := f.Let("across", scalar.Abs(sums[2]))
	f.When(scalar.Gt(across, size), func() {
		zeta := f.Let("zeta", scalar.Div(scalar.Sub(sums[1], sums[0]), scalar.Add(sums[2], sums[2])))
		root := func(x scalar.Expr) scalar.Expr { return scalar.Sqrt(scalar.Add(scalar.Mul(x, x), one)) }
		tan := f.Let("tan", scalar.Div(one, scalar.Add(scalar.Abs(zeta), root(zeta))))
		tan = f.Let("tan", scalar.Select(scalar.Lt(zeta, f.number(0)), scalar.Neg(tan), tan))
		cos := f.Let("cos", scalar.Div(one, root(tan)))
		sin := f.Let("sin", scalar.Mul(tan, cos))
		f.each(lo, hi, f.cols, func(atLo, atHi, lo, hi scalar.Expr) {
			f.Store(f.y, atLo, scalar.Sub(scalar.Mul(cos, lo), scalar.Mul(sin, hi)))
			f.Store(f.y, atHi, scalar.Add(scalar.Mul(cos, hi), scalar.Mul(sin, lo)))
		})
		f.When(scalar.And(first, scalar.Gt(across, scalar.Mul(size, f.number(8)))), func() { f.Store(f.moved, f.i, loop.Int(1)) })
	})
}
