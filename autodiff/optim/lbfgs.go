package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// LBFGS is the quasi-Newton method with limited memory of Liu and Nocedal, On the Limited Memory BFGS
// Method for Large Scale Optimization (1989), with a fixed step, as in torch.optim.LBFGS with max_iter
// 1 and no line search, which needs further evaluations of the loss:
//
//	p ← p − r·H·g
//
// where r is the learning rate, at the first step no more than that divided by |g|₁. H approximates
// the inverse of the Hessian by the last Pairs moves and changes of the gradient of positive
// curvature, by the two-loop recursion. Batches must be large or the same at every step, since
// gradients of different losses are compared otherwise. A zero field means its default.
type LBFGS struct {
	Pairs int // positive; 10 by default
}

// LBFGS' slots: the last move and gradient, and pairs of moves and changes of the gradient, oldest
// first, with the reciprocals of their products. These and the scale of H are the same for all
// parameters.
const (
	moveSlot = iota
	gradientSlot
	movesSlot
	changesSlot
	reciprocalsSlot
	hessianSlot
)

// SlotsFor returns "move" and "g" of the parameter's shape, "moves" and "changes" of that shape with
// Pairs as a further first axis, "rho" of Pairs elements, and "h" of rank 0.
func (o LBFGS) SlotsFor(param ir.Type) []Slot {
	pairs := ir.N(o.pairs())
	several := append(ir.Shape{pairs}, param.Shape...)
	return []Slot{{"move", param.Shape}, {"g", param.Shape}, {"moves", several}, {"changes", several}, {"rho", ir.Shape{pairs}}, {"h", nil}}
}

// Slots returns all names of SlotsFor.
func (LBFGS) Slots() []string { return []string{"move", "g", "moves", "changes", "rho", "h"} }

// pairs returns the number of pairs, at least 1.
func (o LBFGS) pairs() int {
	if o.Pairs == 0 {
		return 10
	}
	return max(o.Pairs, 1)
}

// Begin checks the hyperparameters and returns the rule.
func (o LBFGS) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	return o.BeginGroup(b, rate, count).alone()
}

// BeginGroup checks the hyperparameters and returns the rule.
func (o LBFGS) BeginGroup(b *ir.Builder, rate, count ir.Value) GroupRule {
	check(b, "lbfgs", hyper{"Pairs", float64(o.Pairs), notNegative})
	begins := ops.Eq(b, count, ops.OnesLike(b, count))
	return func(b *ir.Builder, params []Trained) []Trained {
		p, g, slots := split(params)
		m := newMemory(b, count.DType(), o.pairs(), g, slots)
		along := m.inverse(b, g)
		long := ops.SumAll(b, each(len(g), func(i int) ir.Value { return ops.Convert(b, ops.Abs(b, g[i]), count.DType()) })...)
		one := ops.OnesLike(b, long)
		size := ops.Mul(b, rate, ops.Select(b, begins, ops.Div(b, one, ops.Max(b, one, long)), one))
		updated := make([]Trained, len(p))
		for i := range p {
			move, t := ops.Neg(b, timesScalar(b, along[i], size)), p[i].DType()
			now := []ir.Value{move, g[i], m.moves[i], m.changes[i], ops.Convert(b, m.reciprocals, t), ops.Convert(b, m.scale, t)}
			updated[i] = Trained{ops.Add(b, p[i], move), g[i], now}
		}
		return updated
	}
}

// memory are the pairs of [LBFGS].
type memory struct {
	wide               ir.DType // of inner products
	pairs              int
	moves, changes     []ir.Value // by parameter, all pairs
	reciprocals, scale ir.Value
}

// newMemory returns the pairs with that of the last step, if its curvature is positive.
func newMemory(b *ir.Builder, wide ir.DType, pairs int, g []ir.Value, slots [][]ir.Value) *memory {
	move := each(len(g), func(i int) ir.Value { return slots[i][moveSlot] })
	change := each(len(g), func(i int) ir.Value { return ops.Sub(b, g[i], slots[i][gradientSlot]) })
	curvature := dot(b, wide, move, change)
	one := ops.OnesLike(b, curvature)
	usable := ops.Gt(b, curvature, ops.ConstLike(b, curvature, 1e-10))
	safe := ops.Select(b, usable, curvature, one)
	m := &memory{wide: wide, pairs: pairs}
	remember := func(list, last ir.Value) ir.Value {
		return ops.Select(b, usable, ops.Concatenate(b, 0, ops.SliceAxis(b, list, 0, ir.N(1), ir.N(pairs-1)), ops.ExpandDims(b, last, 0)), list)
	}
	for i := range g {
		m.moves = append(m.moves, remember(slots[i][movesSlot], move[i]))
		m.changes = append(m.changes, remember(slots[i][changesSlot], change[i]))
	}
	m.reciprocals = remember(ops.Convert(b, slots[0][reciprocalsSlot], wide), ops.Div(b, one, safe))
	old := ops.Convert(b, slots[0][hessianSlot], wide)
	old = ops.Select(b, ops.Eq(b, old, ops.ZerosLike(b, old)), one, old) // it starts as 0
	square := ops.Max(b, dot(b, wide, change, change), ops.ConstLike(b, one, math.SmallestNonzeroFloat32))
	m.scale = ops.Select(b, usable, ops.Div(b, safe, square), old)
	return m
}

// inverse returns H·g. The reciprocal of a pair that is missing is 0, so that it has no effect.
func (m *memory) inverse(b *ir.Builder, g []ir.Value) []ir.Value {
	pair := func(lists []ir.Value, k int) []ir.Value {
		return each(len(lists), func(i int) ir.Value { return row(b, lists[i], k) })
	}
	add := func(x, y []ir.Value, by ir.Value) []ir.Value {
		return each(len(x), func(i int) ir.Value { return ops.Add(b, x[i], timesScalar(b, y[i], by)) })
	}
	weights := make([]ir.Value, m.pairs)
	for k := m.pairs - 1; k >= 0; k-- {
		weights[k] = ops.Mul(b, row(b, m.reciprocals, k), dot(b, m.wide, pair(m.moves, k), g))
		g = add(g, pair(m.changes, k), ops.Neg(b, weights[k]))
	}
	g = each(len(g), func(i int) ir.Value { return timesScalar(b, g[i], m.scale) })
	for k := range m.pairs {
		back := ops.Mul(b, row(b, m.reciprocals, k), dot(b, m.wide, pair(m.changes, k), g))
		g = add(g, pair(m.moves, k), ops.Sub(b, weights[k], back))
	}
	return g
}

// row returns element k of the first axis.
func row(b *ir.Builder, x ir.Value, k int) ir.Value {
	return ops.Squeeze(b, ops.SliceAxis(b, x, 0, ir.N(k), ir.N(1)), 0)
}
