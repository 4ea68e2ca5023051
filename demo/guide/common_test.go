package guide_test

import (
	"log"
	"math"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// check ends an example at an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// must returns x unless there is an error.
func must[T any](x T, err error) T {
	check(err)
	return x
}

// model returns the scores of two classes for points [rows, 2].
func model(b *ir.Builder, x ir.Value) ir.Value {
	h := nn.Dropout(b, ops.Relu(b, nn.Linear(b, x, 32)), 0.1)
	return nn.Linear(b, h, 2)
}

// lossGraph is the training loss of the model for a batch of rows.
func lossGraph(rows int) *ir.Graph {
	return must(ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		x, labels := b.Input("x", ir.F32, ir.Dims(rows, 2)...), b.Input("labels", ir.I32, ir.N(rows))
		b.Output("loss", ops.CrossEntropyMean(b, model(b, x), labels))
	}))
}

// inferGraph returns the probabilities of the classes for a batch of rows.
func inferGraph(rows int) *ir.Graph {
	return must(ir.Build("infer", func(b *ir.Builder) {
		nn.Infer(b)
		x := b.Input("x", ir.F32, ir.Dims(rows, 2)...)
		b.Output("probabilities", ops.Softmax(b, model(b, x), 1))
	}))
}

// points are points on a spiral and whether they are within a circle.
func points(n int) rlx.Inputs {
	x, labels := make([]float32, 2*n), make([]int32, n)
	for i := range n {
		angle, radius := 2.4*float64(i), math.Sqrt(float64(i)/float64(n))*1.4
		x[2*i], x[2*i+1] = float32(radius*math.Cos(angle)), float32(radius*math.Sin(angle))
		if radius < 1 {
			labels[i] = 1
		}
	}
	return rlx.Inputs{"x": rlx.Float32s(x, n, 2), "labels": rlx.Int32s(labels)}
}
