package irtest

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// steps are the steps of a random graph. Repeated ones are more frequent.
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
		if !r.derivable {
			r.keep(ops.StopGradient(b, x.Value), x.most)
		}
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

// withNeutral adds operations that algebraic simplification may remove, or must not.
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

// withLiteral adds a literal for constant folding.
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
