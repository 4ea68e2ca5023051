package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// LARS is momentum with a step size for each parameter, after You, Gitman and Ginsburg, Large Batch
// Training of Convolutional Networks (2017), as in optax.lars: with u = g + WeightDecay·p,
//
//	m ← Momentum·m + lr·Trust·u·|p|/|u|
//	p ← p − m
//
// where Trust times the quotient of the Euclidean norms is 1 if either norm is 0. A zero field means
// its default.
type LARS struct {
	Momentum    float64 // in [0, 1); 0.9 by default
	Trust       float64 // positive; 0.001 by default
	WeightDecay float64 // not negative; 0 for none
}

// Slots returns "m".
func (LARS) Slots() []string { return []string{"m"} }

// Begin checks the hyperparameters and returns the rule.
func (o LARS) Begin(b *ir.Builder, rate, _ ir.Value) Rule {
	o.Momentum, o.Trust = orDefault(o.Momentum, 0.9), orDefault(o.Trust, 0.001)
	check(b, "lars", hyper{"Momentum", o.Momentum, belowOne}, hyper{"Trust", o.Trust, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		u := l2Decay(b, p, g, o.WeightDecay)
		trust := trustRatio(b, p, u, o.Trust)
		m := ops.Add(b, scale(b, slots[0], o.Momentum), ops.Mul(b, u, ops.Mul(b, trust, ops.Convert(b, rate, p.DType()))))
		return ops.Sub(b, p, m), []ir.Value{m}
	}
}

// trustRatio returns by·|p|/|u|, or 1 if either norm is 0.
func trustRatio(b *ir.Builder, p, u ir.Value, by float64) ir.Value {
	size, long := ops.Norm(b, p, 2), ops.Norm(b, u, 2)
	zero := ops.ZerosLike(b, size)
	usable := ops.And(b, ops.Gt(b, size, zero), ops.Gt(b, long, zero))
	one := ops.OnesLike(b, size)
	ratio := ops.Div(b, size, ops.Select(b, usable, long, one))
	if by != 1 {
		ratio = scale(b, ratio, by)
	}
	return ops.Select(b, usable, ratio, one)
}

// Stiefel keeps matrices orthonormal: it descends on the Stiefel manifold with the Euclidean metric,
// after Absil, Mahony and Sepulchre, Optimization Algorithms on Matrix Manifolds (2008), chapter 4,
// with a retraction by the QR decomposition. For a matrix with at least as many rows as columns, and
// the projection P(x) = x − p·sym(pᵀx) on the tangent space at p,
//
//	m ← P(Momentum·m + P(g))
//	p ← the orthonormal factor Q of p − lr·m = Q·R, where R has a positive diagonal
//
// The rows of a wider matrix are orthonormal. The first step makes a matrix that is not orthonormal
// so. Parameters of other ranks are updated by Rest.
type Stiefel struct {
	Momentum float64 // in [0, 1); 0 for none
	Rest     AdamW
}

// SlotsFor returns "m" for a matrix, and the slots of Rest otherwise.
func (o Stiefel) SlotsFor(param ir.Type) []Slot {
	if len(param.Shape) == 2 {
		return []Slot{{"m", param.Shape}}
	}
	return slotsOf(o.Rest, param)
}

// Slots returns all names of SlotsFor.
func (o Stiefel) Slots() []string { return o.Rest.Slots() } // AdamW has an "m", too

// Begin checks the hyperparameters and returns the rule.
func (o Stiefel) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	check(b, "stiefel", hyper{"Momentum", o.Momentum, belowOne})
	rest := o.Rest.Begin(b, rate, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		if p.Rank() != 2 {
			return rest(b, p, g, slots)
		}
		m := slots[0]
		rows, known := p.Dim(0).Const()
		columns, also := p.Dim(1).Const()
		wide := known && also && rows < columns
		if wide {
			p, g, m = flipped(b, p), flipped(b, g), flipped(b, m)
		}
		m = tangent(b, p, ops.Add(b, scale(b, m, o.Momentum), tangent(b, p, g)))
		p = orthonormal(b, descend(b, p, m, rate))
		if wide {
			p, m = flipped(b, p), flipped(b, m)
		}
		return p, []ir.Value{m}
	}
}

// tangent projects x on the tangent space of the Stiefel manifold at p.
func tangent(b *ir.Builder, p, x ir.Value) ir.Value {
	inner := ops.MatMul(b, flipped(b, p), x)
	symmetric := scale(b, ops.Add(b, inner, flipped(b, inner)), 0.5)
	return ops.Sub(b, x, ops.MatMul(b, p, symmetric))
}

// orthonormal returns the orthonormal factor of x whose other factor has a positive diagonal.
func orthonormal(b *ir.Builder, x ir.Value) ir.Value {
	q, r := ops.QR(b, x, false)
	positive := ops.Ge(b, ops.Diagonal(b, r, 0), ops.Const(b, x.DType(), 0))
	return ops.Select(b, positive, q, ops.Neg(b, q))
}
