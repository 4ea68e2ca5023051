package special

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// dual is a value with its derivatives by some parameters, all of one type. Loops carry them: to
// differentiate a loop would keep the values of every step.
type dual struct {
	v ir.Value
	d []ir.Value
}

// constant returns a value that is the same for all parameters.
func constant(b *ir.Builder, v ir.Value, parameters int) dual {
	d := make([]ir.Value, parameters)
	for i := range d {
		d[i] = number(b, v, 0)
	}
	return dual{v, d}
}

// parameter returns the value of a parameter, the one of number i.
func parameter(b *ir.Builder, v ir.Value, i, parameters int) dual {
	x := constant(b, v, parameters)
	if i < parameters {
		x.d[i] = number(b, v, 1)
	}
	return x
}

// zip applies f to the derivatives of both.
func zip(x, y dual, f func(dx, dy ir.Value) ir.Value) []ir.Value {
	out := make([]ir.Value, len(x.d))
	for i := range out {
		out[i] = f(x.d[i], y.d[i])
	}
	return out
}

func (x dual) plus(b *ir.Builder, y dual) dual {
	return dual{ops.Add(b, x.v, y.v), zip(x, y, func(dx, dy ir.Value) ir.Value { return ops.Add(b, dx, dy) })}
}

func (x dual) times(b *ir.Builder, y dual) dual {
	return dual{ops.Mul(b, x.v, y.v), zip(x, y, func(dx, dy ir.Value) ir.Value {
		return ops.Add(b, ops.Mul(b, dx, y.v), ops.Mul(b, x.v, dy))
	})}
}

func (x dual) over(b *ir.Builder, y dual) dual {
	z := ops.Div(b, x.v, y.v)
	return dual{z, zip(x, y, func(dx, dy ir.Value) ir.Value { return ops.Div(b, ops.Sub(b, dx, ops.Mul(b, z, dy)), y.v) })}
}

// shifted returns x + by.
func (x dual) shifted(b *ir.Builder, by ir.Value) dual { return dual{ops.Add(b, x.v, by), x.d} }

// scaled returns x·by.
func (x dual) scaled(b *ir.Builder, by ir.Value) dual {
	return dual{ops.Mul(b, x.v, by), zip(x, x, func(dx, _ ir.Value) ir.Value { return ops.Mul(b, dx, by) })}
}

// flat returns the values of duals, the derivatives of each after its value.
func flat(of ...dual) (out []ir.Value) {
	for _, x := range of {
		out = append(append(out, x.v), x.d...)
	}
	return out
}

// unflat is the inverse of flat.
func unflat(values []ir.Value, parameters int) (out []dual) {
	for part := range slices.Chunk(values, parameters+1) {
		out = append(out, dual{part[0], part[1:]})
	}
	return out
}

// moves reports where the step from old to x changes it, or a derivative, by more than the precision.
func moves(b *ir.Builder, old, x dual) ir.Value {
	eps := x.v.DType().Epsilon()
	size := ops.Abs(b, x.v)
	changed := func(old, x, size ir.Value) ir.Value {
		return ops.Gt(b, ops.Abs(b, ops.Sub(b, x, old)), scale(b, size, eps))
	}
	any := changed(old.v, x.v, size)
	for i := range x.d {
		any = ops.Or(b, any, changed(old.d[i], x.d[i], ops.Add(b, ops.Abs(b, x.d[i]), size)))
	}
	return any
}

// steps bounds the number of steps of a loop. A series of x near its parameter a needs 9·√a in f64.
const steps = 2000

// converge repeats next, which gets the number of the step, from 1, until the first value of the state does
// not move, and returns that. Consts are operands of next.
func converge(b *ir.Builder, consts, state []dual, next func(b *ir.Builder, consts, state []dual, k ir.Value) []dual) dual {
	n, own := len(state[0].d), len(state)
	first := ops.Const(b, state[0].v.DType(), 1)
	out := ops.WhileLoop(b, ops.While{
		Consts: flat(consts...), Carries: append([]ir.Value{first, ops.Const(b, ir.Bool, 1)}, flat(state...)...), MaxSteps: steps,
		Cond: func(_ *ir.Builder, _, c []ir.Value) ir.Value { return c[1] },
		Body: func(b *ir.Builder, fixed, c []ir.Value) []ir.Value {
			old := unflat(c[2:], n)
			now := next(b, unflat(fixed, n), old, c[0])
			open := ops.Any(b, moves(b, old[0], now[0]))
			return append([]ir.Value{plus(b, c[0], 1), open}, flat(now...)...)
		},
	})
	if b.Err() != nil {
		return constant(b, state[0].v, n)
	}
	return unflat(out[2:], n)[:own][0]
}

// fraction is the state of Lentz's method for a continued fraction, by Thompson and Barnett, Coulomb and
// Bessel Functions of Complex Arguments and Order (1986).
type fraction struct{ h, c, d dual }

// step adds the partial quotient x/y.
func (f fraction) step(b *ir.Builder, x, y dual) fraction {
	one := constant(b, number(b, f.h.v, 1), len(f.h.d))
	d := one.over(b, y.plus(b, x.times(b, f.d)))
	c := y.plus(b, x.over(b, f.c))
	return fraction{f.h.times(b, c.times(b, d)), c, d}
}

func (f fraction) state() []dual { return []dual{f.h, f.c, f.d} }
