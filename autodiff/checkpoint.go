package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Checkpoint adds the results of f and lets reverse mode keep nothing of it but
// the operands: on the way back f is computed again. A chain of layers, each
// under a Checkpoint, needs the memory of one layer and of what passes between
// them; so does a loop whose step is under one, and a loop of loops whose inner
// ones are. f sees no values but those it is given, so that parameters are operands
// too. A [Policy] does it for graphs that are there already.
func Checkpoint(b *ir.Builder, operands []ir.Value, f func(b *ir.Builder, in []ir.Value) []ir.Value) []ir.Value {
	if !b.Require("checkpoint", "function", f != nil) {
		return make([]ir.Value, 1)
	}
	g := b.Subgraph("checkpoint", func(b *ir.Builder) { declareOutputs(b, f(b, declare(b, "in", typesOf(operands)))) })
	if b.Err() != nil {
		return make([]ir.Value, 1)
	}
	return ops.Checkpoint(b, g, 0, operands...)
}
