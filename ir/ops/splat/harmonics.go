package splat

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Harmonics returns the colors [n, channels] of n Gaussians seen along directions [n, 3] of
// any length but 0, from coefficients [n, k, channels] of real spherical harmonics: the
// sum of the first k of Y₀₀, Y₁₋₁, Y₁₀, Y₁₁, Y₂₋₂, … times theirs, plus a half, at least 0
// (Kerbl et al.). k is 1, 4, 9 or 16, for degrees 0 to 3. bands limits the degrees to
// those below it; 0 is all.
//
// Another number of coefficients is an error of kind [ir.ErrShape], a negative bands of
// kind [ir.ErrAttr].
func Harmonics(b *ir.Builder, coefficients, directions ir.Value, bands int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	count := 0
	if coefficients.Rank() == 3 {
		count, _ = coefficients.Dim(1).Const()
	}
	degrees := map[int]int{1: 1, 4: 2, 9: 3, 16: 4}[count]
	if degrees == 0 {
		b.Fail(ir.Shapef("splat: coefficients are %s; there must be 1, 4, 9 or 16 along axis 1 of 3", coefficients.Type()))
		return ir.Value{}
	}
	if bands < 0 {
		b.Fail(ir.Attrf("splat: %d bands of harmonics; there must be 0 or more", bands))
		return ir.Value{}
	}
	if bands > 0 {
		degrees = min(degrees, bands)
	}
	d := ops.Div(b, directions, ops.ExpandDims(b, ops.Norm(b, directions, 2, 1), 1))
	basis := ops.Stack(b, 1, harmonics(b, column(b, d, 0), column(b, d, 1), column(b, d, 2), degrees)...)
	used := ops.SliceAxis(b, coefficients, 1, ir.N(0), ir.N(degrees*degrees))
	sum := ops.ReduceSum(b, ops.Mul(b, used, ops.ExpandDims(b, basis, 2)), 1)
	return ops.Max(b, ops.Add(b, sum, ops.ConstLike(b, sum, 0.5)), ops.ZerosLike(b, sum))
}

// harmonics returns the real spherical harmonics of degrees below the given number at unit
// vectors, with the phase of Condon and Shortley.
func harmonics(b *ir.Builder, x, y, z ir.Value, degrees int) []ir.Value {
	mul := func(c float64, factors ...ir.Value) ir.Value {
		p := ops.ConstLike(b, x, c)
		for _, f := range factors {
			p = ops.Mul(b, p, f)
		}
		return p
	}
	xx, yy, zz := ops.Mul(b, x, x), ops.Mul(b, y, y), ops.Mul(b, z, z)
	sum := func(a, c, d float64) ir.Value { return ops.Add(b, ops.Add(b, mul(a, xx), mul(c, yy)), mul(d, zz)) }
	root := func(numerator, denominator float64) float64 { return math.Sqrt(numerator / denominator / math.Pi) }
	out := []ir.Value{mul(root(1, 4))}
	if degrees > 1 {
		out = append(out, mul(-root(3, 4), y), mul(root(3, 4), z), mul(-root(3, 4), x))
	}
	if degrees > 2 {
		out = append(out, mul(root(15, 4), x, y), mul(-root(15, 4), y, z), mul(root(5, 16), sum(-1, -1, 2)), mul(-root(15, 4), x, z), mul(root(15, 16), sum(1, -1, 0)))
	}
	if degrees > 3 {
		out = append(out,
			mul(-root(35, 32), y, sum(3, -1, 0)), mul(root(105, 4), x, y, z), mul(-root(21, 32), y, sum(-1, -1, 4)),
			mul(root(7, 16), z, sum(-3, -3, 2)),
			mul(-root(21, 32), x, sum(-1, -1, 4)), mul(root(105, 16), z, sum(1, -1, 0)), mul(-root(35, 32), x, sum(1, -3, 0)))
	}
	return out
}
