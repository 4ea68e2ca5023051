package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Checkpoint adds f applied to the operands and returns its results. Reverse mode stores only the
// operands as residuals and recomputes f in the backward pass (gradient checkpointing,
// jax.checkpoint). A chain of layers, each under a Checkpoint, needs memory for the operands of all
// layers and the intermediate values of one; the same holds for a loop whose body is under one. f
// must use no values except its arguments, so parameters must be operands. To checkpoint an
// existing graph, use a [Policy].
func Checkpoint(b *ir.Builder, operands []ir.Value, f func(b *ir.Builder, in []ir.Value) []ir.Value) []ir.Value {
	if !b.Require("checkpoint", "function", f != nil) {
		return make([]ir.Value, 1)
	}
	g := b.Subgraph("checkpoint", func(b *ir.Builder) { declareOutputs(b, f(b, declare(b, "in", ir.TypesOf(operands)))) })
	if b.Err() != nil {
		return make([]ir.Value, 1)
	}
	return ops.Checkpoint(b, g, 0, operands...)
}
