package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// GlobalNorm returns the Euclidean norm, of rank 0, of all elements of the
// given values together. They have one floating element type.
func GlobalNorm(b *ir.Builder, values []ir.Value) ir.Value {
	squares := make([]ir.Value, len(values))
	for i, v := range values {
		squares[i] = ops.Mul(b, v, v)
	}
	return ops.Sqrt(b, ops.SumAll(b, squares...))
}

// clipFactor is what gradients of a global norm are multiplied by so that it
// becomes no more than limit. The 1e-6 is that of
// torch.nn.utils.clip_grad_norm_ and keeps a norm of zero from dividing.
func clipFactor(b *ir.Builder, norm ir.Value, limit float64) ir.Value {
	d := norm.DType()
	f := ops.Div(b, ops.Const(b, d, limit), ops.Add(b, norm, ops.Const(b, d, 1e-6)))
	return ops.Min(b, f, ops.Const(b, d, 1))
}
