package irtest

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// steps are what a random graph grows by. Those that are listed more than once
// are taken more often.
var steps = []func(r *generator){
	unary, unary, binary, binary, binary, withNeutral, withLiteral,
	choose, integer, compare,
	reshape, transpose, broadcast, slice, pad, concatenate, reverse,
	reduce, reduce, normalise, product, gather, scatter,
}

func init() {
	steps = append(steps, branch, loop, while) // they take steps themselves
}

func unary(r *generator) {
	x := r.float()
	b := r.b
	switch r.IntN(12) {
	case 0:
		r.keep(ops.Neg(b, x.Value), x.most)
	case 1:
		r.keep(ops.Abs(b, x.Value), x.most)
	case 2:
		r.keep(ops.Tanh(b, x.Value), 1)
	case 3:
		r.keep(ops.Sin(b, x.Value), 1)
	case 4:
		r.keep(ops.Sigmoid(b, x.Value), 1)
	case 5:
		r.keep(ops.Exp(b, ops.Neg(b, ops.Abs(b, x.Value))), 1)
	case 6:
		r.keep(ops.Log1p(b, ops.Abs(b, x.Value)), math.Log1p(x.most))
	case 7:
		r.keep(ops.Mul(b, x.Value, x.Value), x.most*x.most)
	case 8:
		r.keep(ops.Relu(b, x.Value), x.most)
	case 9:
		r.keep(ops.Gelu(b, x.Value), x.most)
	case 10:
		r.keep(ops.StopGradient(b, x.Value), x.most)
	case 11:
		r.keep(ops.Rsqrt(b, ops.Add(b, ops.Mul(b, x.Value, x.Value), ops.ConstLike(b, x.Value, 1))), 1)
	}
}

// partner returns a value that can be broadcast together with x.
func (r *generator) partner(x ir.Value) bounded {
	for range 8 {
		y := r.float()
		if s, err := ops.BroadcastShapes(x.Shape(), y.Shape()); err == nil && fits(s) {
			return y
		}
	}
	return bounded{x, r.boundOf(x)}
}

func (r *generator) boundOf(x ir.Value) float64 {
	for _, v := range r.floats {
		if v.Value == x {
			return v.most
		}
	}
	return maxBound
}

func fits(s ir.Shape) bool {
	n, ok := s.Size().Const()
	return ok && n <= maxElements
}

func binary(r *generator) {
	x := r.float()
	y := r.partner(x.Value)
	b := r.b
	switch r.IntN(7) {
	case 0:
		r.keep(ops.Add(b, x.Value, y.Value), x.most+y.most)
	case 1:
		r.keep(ops.Sub(b, x.Value, y.Value), x.most+y.most)
	case 2:
		r.keep(ops.Mul(b, x.Value, y.Value), x.most*y.most)
	case 3:
		r.keep(ops.MulZero(b, x.Value, y.Value), x.most*y.most)
	case 4:
		r.keep(ops.Max(b, x.Value, y.Value), max(x.most, y.most))
	case 5:
		r.keep(ops.Min(b, x.Value, y.Value), max(x.most, y.most))
	case 6:
		r.keep(ops.Div(b, x.Value, ops.Add(b, ops.Abs(b, y.Value), ops.ConstLike(b, y.Value, 0.5))), 2*x.most)
	}
}

// withNeutral adds what algebra may take away, or must not.
func withNeutral(r *generator) {
	x := r.float()
	b := r.b
	number := func(v float64) ir.Value { return ops.ConstLike(b, x.Value, v) }
	switch r.IntN(10) {
	case 0:
		r.keep(ops.Add(b, x.Value, number(0)), x.most)
	case 1:
		r.keep(ops.Mul(b, number(1), x.Value), x.most)
	case 2:
		r.keep(ops.Sub(b, x.Value, number(0)), x.most)
	case 3:
		r.keep(ops.Sub(b, number(0), x.Value), x.most)
	case 4:
		r.keep(ops.Mul(b, x.Value, number(0)), 0)
	case 5:
		r.keep(ops.Neg(b, ops.Neg(b, x.Value)), x.most)
	case 6:
		r.keep(ops.Mul(b, x.Value, number(-1)), x.most)
	case 7:
		r.keep(ops.Div(b, x.Value, number(4)), x.most)
	case 8:
		r.keep(ops.MulZero(b, number(2), x.Value), 2*x.most)
	case 9:
		r.keep(ops.Pow(b, x.Value, number(2)), x.most*x.most)
	}
}

// withLiteral adds a literal that folding can work on.
func withLiteral(r *generator) {
	a := r.array(ir.F32)
	y := ops.Sin(r.b, ops.Literal(r.b, a))
	r.keep(y, 1)
	if x := r.partner(y); r.chance(50) {
		r.keep(ops.Mul(r.b, x.Value, y), x.most)
	}
}

// choose takes its condition from whole numbers or inputs: one computed from
// floats could go either way.
func choose(r *generator) {
	x := r.float()
	y := r.partner(x.Value)
	shape, err := ops.BroadcastShapes(x.Shape(), y.Shape())
	if err != nil {
		return
	}
	p := pickOne(r, r.bools)
	if s, err := ops.BroadcastShapes(p.Shape(), shape); err != nil || !s.Equal(shape) {
		p = ops.Lt(r.b, r.someIota(shape), ops.Const(r.b, ir.I32, 2))
	}
	if r.chance(30) {
		p = ops.Not(r.b, p)
	}
	r.bools = append(r.bools, p)
	r.keep(ops.Select(r.b, p, x.Value, y.Value), max(x.most, y.most))
}

// someIota counts along an axis of a shape; of rank 0 it is a literal.
func (r *generator) someIota(shape ir.Shape) ir.Value {
	if len(shape) == 0 {
		return ops.Const(r.b, ir.I32, float64(r.IntN(4)))
	}
	return ops.Iota(r.b, ir.I32, r.IntN(len(shape)), shape...)
}

func integer(r *generator) {
	i := pickOne(r, r.ints)
	b := r.b
	number := func(v int) ir.Value { return ops.ConstLike(b, i, float64(v)) }
	switch r.IntN(7) {
	case 0:
		r.keepInt(ops.Add(b, i, number(r.IntN(3))))
	case 1:
		r.keepInt(ops.Rem(b, ops.Mul(b, i, i), number(1+r.IntN(7))))
	case 2:
		r.keepInt(ops.And(b, i, number(pickOne(r, []int{-1, 0, 3}))))
	case 3:
		r.keepInt(ops.Xor(b, ops.Not(b, i), number(5)))
	case 4:
		r.keepInt(ops.Convert(b, ops.Convert(b, i, ir.F32), ir.I32))
	case 5:
		r.keepInt(ops.Div(b, i, number(r.IntN(4)-1)))
	case 6:
		r.keep(ops.Convert(b, ops.Rem(b, i, number(5)), ir.F32), 4)
	}
}

func compare(r *generator) {
	i := pickOne(r, r.ints)
	j := ops.ConstLike(r.b, i, float64(r.IntN(4)))
	if r.chance(30) {
		j = i
	}
	f := pickOne(r, []func(b *ir.Builder, x, y ir.Value) ir.Value{ops.Eq, ops.Ne, ops.Lt, ops.Le, ops.Gt, ops.Ge})
	r.bools = append(r.bools, f(r.b, i, j))
}

// someAxes returns one axis or more, or nil for a value without axes.
func (r *generator) someAxes(v ir.Value) []int {
	if v.Rank() == 0 {
		return nil
	}
	axes := r.Perm(v.Rank())[:1+r.IntN(v.Rank())]
	slices.Sort(axes)
	return axes
}

func reduce(r *generator) {
	x := r.float()
	axes := r.someAxes(x.Value)
	n := 1
	for _, a := range axes {
		d, _ := x.Dim(a).Const()
		n *= d
	}
	if n == 0 || axes == nil {
		return // the extremum of nothing is infinite
	}
	switch r.IntN(5) {
	case 0, 1:
		r.keep(ops.ReduceSum(r.b, x.Value, axes...), x.most*float64(n))
	case 2:
		r.keep(ops.ReduceMax(r.b, x.Value, axes...), x.most)
	case 3:
		r.keep(ops.ReduceMin(r.b, x.Value, axes...), x.most)
	case 4:
		r.keep(ops.Mean(r.b, x.Value, axes...), x.most)
	}
}

// normalise is for ops along one axis.
func normalise(r *generator) {
	x := r.float()
	if x.Rank() == 0 {
		return
	}
	axis := r.IntN(x.Rank())
	n, _ := x.Dim(axis).Const()
	switch {
	case n == 0:
	case r.chance(40):
		r.keep(ops.Softmax(r.b, x.Value, axis), 1)
	case r.chance(50):
		r.keep(ops.LogSoftmax(r.b, x.Value, axis), 2*x.most+math.Log(float64(n)))
	case r.chance(30):
		a := ops.CumSumAttrs{Axis: axis, Reverse: r.chance(50)}
		r.keep(ops.LinearRecurrence(r.b, ops.Tanh(r.b, x.Value), x.Value, a), x.most*float64(n))
	default:
		r.keep(ops.CumSum(r.b, x.Value, ops.CumSumAttrs{Axis: axis, Reverse: r.chance(50), Exclusive: r.chance(30)}), x.most*float64(n))
	}
}

// product contracts two values along axes of one size.
func product(r *generator) {
	x, y := r.float(), r.float()
	for _, i := range r.Perm(x.Rank()) {
		for _, j := range r.Perm(y.Rank()) {
			if x.Dim(i) != y.Dim(j) {
				continue
			}
			n, _ := x.Dim(i).Const()
			rest := slices.Concat(slices.Delete(x.Shape().Clone(), i, i+1), slices.Delete(y.Shape().Clone(), j, j+1))
			if fits(rest) {
				a := ops.DotAttrs{LhsContract: []int{i}, RhsContract: []int{j}}
				r.keep(ops.DotGeneral(r.b, x.Value, y.Value, a), x.most*y.most*float64(n))
			}
			return
		}
	}
}

func gather(r *generator) {
	x, i := r.float(), pickOne(r, r.ints)
	if x.Rank() == 0 {
		return
	}
	axis := r.IntN(x.Rank())
	if fits(slices.Concat(slices.Delete(x.Shape().Clone(), axis, axis+1), i.Shape())) {
		outside := pickOne(r, []string{ops.OutsideFill, ops.OutsideClip})
		r.keep(ops.Take(r.b, x.Value, i, axis, outside), x.most)
	}
}

func scatter(r *generator) {
	x, i := r.float(), pickOne(r, r.ints)
	if x.Rank() == 0 {
		return
	}
	shape := slices.Concat(i.Shape(), x.Shape()[1:])
	n, _ := i.Shape().Size().Const()
	if !fits(shape) || n == 0 {
		return
	}
	a := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Outside: ops.OutsideDrop}}
	updates := ops.Convert(r.b, ops.Rem(r.b, r.someIota(shape), ops.Const(r.b, ir.I32, 3)), ir.F32)
	r.keep(ops.ScatterAdd(r.b, x.Value, ops.ExpandDims(r.b, i, -1), updates, a), x.most+2*float64(n))
}

// maxDepth bounds how deep graphs lie in each other.
const maxDepth = 2

// inside returns a generator for a subgraph that may use the given values.
func (r *generator) inside(b *ir.Builder, floats []ir.Value, most []float64) *generator {
	in := &generator{Rand: r.Rand, b: b, depth: r.depth + 1}
	for i, v := range floats {
		in.floats = append(in.floats, bounded{v, most[i]})
	}
	in.ints = []ir.Value{ops.Iota(b, ir.I32, 0, ir.N(3))}
	in.bools = []ir.Value{ops.Const(b, ir.Bool, float64(r.IntN(2)))}
	return in
}

// some returns two float values and their bounds.
func (r *generator) some() (values []ir.Value, most []float64) {
	for range 2 {
		v := r.float()
		values, most = append(values, v.Value), append(most, v.most)
	}
	return values, most
}

func branch(r *generator) {
	if r.depth == maxDepth {
		return
	}
	operands, most := r.some()
	p := pickOne(r, r.bools)
	for p.Rank() > 0 {
		if p.Dim(0).Is(0) {
			return
		}
		p = ops.Reshape(r.b, ops.SliceAxis(r.b, p, 0, ir.N(0), ir.N(1)), p.Shape()[1:]...)
	}
	body := func(b *ir.Builder, in []ir.Value) []ir.Value {
		g := r.inside(b, in, most)
		g.grow(3)
		return []ir.Value{ops.Tanh(b, g.ofType(in[0])), g.ofType(in[1])}
	}
	out := ops.Cond(r.b, p, operands, body, body)
	r.keep(out[0], 1)
	if r.chance(50) {
		r.keep(out[1], maxBound)
	}
}

// loop has constants, carries of which one may stay as it is, slices, and
// values of which not all are used.
func loop(r *generator) {
	x := r.float()
	if r.depth == maxDepth || x.Rank() == 0 {
		return
	}
	consts, constMost := r.some()
	carries, _ := r.some()
	for i, c := range carries {
		carries[i] = ops.Tanh(r.b, c)
	}
	next, ys := ops.Scan(r.b, ops.Loop{
		Consts: consts, Carries: carries, Xs: []ir.Value{x.Value}, Reverse: r.chance(50),
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			g := r.inside(b, slices.Concat(consts, carries, xs), append(slices.Clone(constMost), 1, 1, x.most))
			g.grow(3)
			next = []ir.Value{ops.Tanh(b, g.ofType(carries[0])), carries[1]}
			if r.chance(50) {
				next[1] = ops.Tanh(b, g.ofType(carries[1]))
			}
			return next, []ir.Value{g.ofType(carries[0]), ops.Tanh(b, xs[0])}
		},
	})
	r.keep(next[0], 1)
	if r.chance(50) {
		r.keep(next[1], 1)
	}
	if r.chance(50) {
		r.keep(ys[r.IntN(2)], maxBound)
	}
}

// while counts a few steps, a number of them that the graph knows or a value
// decides, with a bound that may come before.
func while(r *generator) {
	if r.depth == maxDepth {
		return
	}
	consts, constMost := r.some()
	carries, _ := r.some()
	for i, c := range carries {
		carries[i] = ops.Tanh(r.b, c)
	}
	last := float64(r.IntN(4))
	out := ops.WhileLoop(r.b, ops.While{
		Consts: consts, Carries: append(slices.Clone(carries), ops.Zeros(r.b, ir.I32)), MaxSteps: 1 + r.IntN(4),
		Cond: func(b *ir.Builder, _, carries []ir.Value) ir.Value {
			return ops.Lt(b, carries[len(carries)-1], ops.Const(b, ir.I32, last))
		},
		Body: func(b *ir.Builder, consts, carries []ir.Value) []ir.Value {
			values, step := carries[:len(carries)-1], carries[len(carries)-1]
			most := slices.Clone(constMost)
			for range values {
				most = append(most, 1)
			}
			g := r.inside(b, slices.Concat(consts, values), most)
			g.grow(3)
			var next []ir.Value
			for _, c := range values {
				next = append(next, ops.Tanh(b, g.ofType(c)))
			}
			return append(next, ops.Add(b, step, ops.OnesLike(b, step)))
		},
	})
	r.keep(out[0], 1)
	if r.chance(50) {
		r.keep(out[1], 1)
	}
}
