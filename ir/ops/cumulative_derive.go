package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// before returns the exclusive scan.
func before(b *ir.Builder, n *ir.Node, in, out []ir.Value) ir.Value {
	a := *cumAttrs(n)
	if a.Exclusive {
		return out[0]
	}
	a.Exclusive = true
	return cumulated(b, n.Op(), in[0], a)
}

// jvpCumProd differentiates y = x·before: the tangent is x·before' + before·x', a linear
// recurrence.
func jvpCumProd(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	return []ir.Value{LinearRecurrence(b, in[0], scale(b, t[0], before(b, n, in, out)), *cumAttrs(n))}
}

// jvpCumExtremum differentiates y = max(before, x).
func jvpCumExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	x, y := in[0], before(b, n, in, out)
	if n.Op() == OpCumMin {
		x, y = Neg(b, x), Neg(b, y)
	}
	byX := share(b, x, y)
	return []ir.Value{LinearRecurrence(b, Sub(b, OnesLike(b, byX), byX), scale(b, t[0], byX), *cumAttrs(n))}
}

// jvpCumLogSumExp differentiates y = log(exp before + exp x); where y is -Inf the tangent
// is 0.
func jvpCumLogSumExp(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	a := *cumAttrs(n)
	a.Exclusive = false
	rest, all := before(b, n, in, out), out[0]
	if cumAttrs(n).Exclusive {
		all = cumulated(b, n.Op(), in[0], a)
	}
	nothing := Eq(b, all, ConstLike(b, all, math.Inf(-1)))
	part := func(x ir.Value) ir.Value { return Select(b, nothing, ZerosLike(b, all), Exp(b, Sub(b, x, all))) }
	return []ir.Value{LinearRecurrence(b, part(rest), scale(b, t[0], part(in[0])), *cumAttrs(n))}
}
