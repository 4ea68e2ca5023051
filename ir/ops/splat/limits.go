package splat

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Limits leave out Gaussians that add little to an image. The zero value has the limits of Kerbl et
// al. but the least transmittance, which is 1e-4 there. Derivatives treat the omitted ones
// as constant.
type Limits struct {
	// MinAlpha is the least α of a Gaussian in a pixel; 0 is 1/255.
	MinAlpha float64
	// Radius is the distance from its centre, in standard deviations, beyond which a
	// Gaussian has α 0; 0 for none.
	Radius float64
	// MinTransmittance ends a pixel before the Gaussian behind which less would remain of
	// the light; 0 for no end.
	MinTransmittance float64
	// MaxSplats is the maximum number of Gaussians in a pixel, the nearest ones; 0 for
	// all.
	MaxSplats int
}

// check returns an error of kind [ir.ErrAttr] if a limit is out of range.
func (l Limits) check() error {
	if l.MinAlpha < 0 || l.MinAlpha >= 1 || l.Radius < 0 || l.MinTransmittance < 0 || l.MinTransmittance >= 1 || l.MaxSplats < 0 {
		return ir.Attrf("splat: limits %+v; none may be negative, and the least α and transmittance must be below 1", l)
	}
	return nil
}

func (l Limits) minAlpha() float64 {
	if l.MinAlpha > 0 {
		return l.MinAlpha
	}
	return visible
}

// inOrder are the Gaussians of a pixel from front to back, along one axis of arrays.
type inOrder struct {
	// through returns the product of 1 − α of those before.
	through func(alpha ir.Value) ir.Value
	// number returns the sum of the numbers of those before.
	number func(x ir.Value) ir.Value
}

// end sets α to 0 where a pixel has ended, and returns it with the transmittance before
// each Gaussian.
func (l Limits) end(b *ir.Builder, alpha ir.Value, order inOrder) (kept, before ir.Value) {
	zero, one := ops.ZerosLike(b, alpha), ops.OnesLike(b, alpha)
	if l.MaxSplats > 0 {
		seen := ops.Select(b, ops.Gt(b, alpha, zero), one, zero)
		alpha = ops.Select(b, ops.Lt(b, order.number(seen), ops.ConstLike(b, alpha, float64(l.MaxSplats))), alpha, zero)
	}
	before = order.through(alpha)
	if l.MinTransmittance > 0 {
		after := ops.Mul(b, before, ops.Sub(b, one, alpha))
		alpha = ops.Select(b, ops.Ge(b, after, ops.ConstLike(b, alpha, l.MinTransmittance)), alpha, zero)
		before = order.through(alpha)
	}
	return alpha, before
}
