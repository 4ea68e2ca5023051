package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// GlobalNorm returns the Euclidean norm of all elements of the given values together, of rank 0.
// The values have the same floating element type, which is that of the norm.
func GlobalNorm(b *ir.Builder, values []ir.Value) ir.Value {
	squares := make([]ir.Value, len(values))
	for i, v := range values {
		squares[i] = ops.Mul(b, v, v)
	}
	return ops.Sqrt(b, ops.SumAll(b, squares...))
}

// clipFactor returns the factor, at most 1, that limits the global norm of the gradients to limit.
// The 1e-6 is that of torch.nn.utils.clip_grad_norm_ and avoids a division by zero.
func clipFactor(b *ir.Builder, norm ir.Value, limit float64) ir.Value {
	d := norm.DType()
	f := ops.Div(b, ops.Const(b, d, limit), ops.Add(b, norm, ops.Const(b, d, 1e-6)))
	return ops.Min(b, f, ops.Const(b, d, 1))
}
