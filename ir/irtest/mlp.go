package irtest

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// MLP returns the graph of the mean cross-entropy, output "loss", of a
// multi-layer perceptron with ReLUs between layers of the given sizes: inputs
// "x", f32[batch,layers[0]], and "labels", i32[batch]; parameters w0, b0, w1 and
// on.
func MLP(batch int, layers ...int) (*ir.Graph, error) {
	return ir.Build("mlp", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(batch, layers[0])...)
		labels := b.Input("labels", ir.I32, ir.N(batch))
		for i, outputs := range layers[1:] {
			if i > 0 {
				x = ops.Relu(b, x)
			}
			w := b.Param("w"+strconv.Itoa(i), ir.F32, ir.Dims(layers[i], outputs)...)
			bias := b.Param("b"+strconv.Itoa(i), ir.F32, ir.N(outputs))
			x = ops.Linear(b, x, w, bias)
		}
		b.Output("loss", ops.CrossEntropyMean(b, x, labels))
	})
}
