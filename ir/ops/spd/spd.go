// Package spd implements the Riemannian geometry of symmetric positive definite matrices. The
// metric is affine-invariant, ⟨v, w⟩ at p = tr(p⁻¹·v·p⁻¹·w): p ↦ a·p·aᵀ is an isometry for every
// invertible a (Pennec, Fillard and Ayache, A Riemannian Framework for Tensor Computing; Bhatia,
// Positive Definite Matrices, chapter 6).
//
// Matrices are the last two axes of f32 or f64 values; the leading axes are batch axes,
// which are broadcast. Points must be symmetric positive definite and tangent vectors
// symmetric. All functions are composites of ops, with derivatives of every order, also at
// repeated eigenvalues. Errors are those of the ops.
package spd

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Log returns the logarithmic map: the tangent vector at p of the geodesic that reaches q
// at time 1, √p·log(√p⁻¹·q·√p⁻¹)·√p.
func Log(b *ir.Builder, p, q ir.Value) ir.Value {
	root, inverse := roots(b, p)
	return between(b, root, ops.SPDLogm(b, between(b, inverse, q)))
}

// Exp returns the exponential map: the point at time 1 of the geodesic from p with tangent
// vector v, √p·exp(√p⁻¹·v·√p⁻¹)·√p.
func Exp(b *ir.Builder, p, v ir.Value) ir.Value {
	root, inverse := roots(b, p)
	return between(b, root, ops.Expm(b, between(b, inverse, v)))
}

// SquaredDistance returns the squared geodesic distance of p and q, in the batch shape: Σ
// log²λ over the eigenvalues λ of p⁻¹·q. It is smooth everywhere.
func SquaredDistance(b *ir.Builder, p, q ir.Value) ir.Value {
	_, inverse := roots(b, p)
	l := ops.SPDLogm(b, between(b, inverse, q))
	return ops.ReduceSum(b, ops.Mul(b, l, l), -2, -1)
}

// Distance returns the geodesic distance of p and q. Its derivative at p = q is infinite,
// as that of a square root.
func Distance(b *ir.Builder, p, q ir.Value) ir.Value { return ops.Sqrt(b, SquaredDistance(b, p, q)) }

// Transport returns the parallel transport of the tangent vector v at p along the geodesic
// to q: e·v·eᵀ with e = √(q·p⁻¹).
func Transport(b *ir.Builder, p, q, v ir.Value) ir.Value {
	root, inverse := roots(b, p)
	e := ops.MatMul(b, ops.MatMul(b, root, ops.SPDSqrtm(b, between(b, inverse, q))), inverse)
	return symmetric(b, ops.MatMul(b, ops.MatMul(b, e, v), transposed(b, e)))
}

// MeanStep returns a gradient step from mean, [d, d], towards the Fréchet mean of points,
// [n, d, d], which minimises the sum of squared distances: along the mean of the tangent
// vectors to them, times rate, usually 1. weights, [n], are optional (the zero Value for
// equal ones) and should sum to 1.
func MeanStep(b *ir.Builder, mean, points, weights ir.Value, rate float64) ir.Value {
	v := Log(b, mean, points)
	if weights.Valid() {
		v = ops.ReduceSum(b, ops.Mul(b, v, ops.ExpandDims(b, weights, 1, 2)), 0)
	} else {
		v = ops.Mean(b, v, 0)
	}
	return Exp(b, mean, ops.Mul(b, v, ops.ConstLike(b, v, rate)))
}

// roots returns √p and its inverse.
func roots(b *ir.Builder, p ir.Value) (root, inverse ir.Value) {
	root = ops.SPDSqrtm(b, p)
	return root, symmetric(b, ops.Inv(b, root))
}

// between returns a·x·a for symmetric a and x, exactly symmetric.
func between(b *ir.Builder, a, x ir.Value) ir.Value {
	return symmetric(b, ops.MatMul(b, ops.MatMul(b, a, x), a))
}

func symmetric(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Mul(b, ops.Add(b, x, transposed(b, x)), ops.ConstLike(b, x, 0.5))
}

// transposed swaps the last two axes.
func transposed(b *ir.Builder, x ir.Value) ir.Value { return ops.MoveAxis(b, x, -1, -2) }
