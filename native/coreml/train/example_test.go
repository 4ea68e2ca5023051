package train_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlx-go/rlx/internal/coreml/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml/train"
)

// A program opens Core ML by coreml.Open, which needs macOS or iOS; this one runs the models by software.
func Example() {
	loss, err := ir.Build("line", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.N(4)), b.Input("y", ir.F32, ir.N(4))
		line := ops.Add(b, ops.Mul(b, x, b.Param("slope", ir.F32)), b.Param("offset", ir.F32))
		b.Output("loss", ops.Mean(b, ops.Square(b, ops.Sub(b, line, y))))
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := train.New(&software.Runtime{}, loss, nil, train.Options{Rate: 0.05})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	batch := map[string]native.Tensor{"x": native.Float32s([]float32{0, 1, 2, 3}), "y": native.Float32s([]float32{1, 3, 5, 7})}
	var last train.Report
	for range 400 {
		if last, err = s.Step(context.Background(), batch); err != nil {
			log.Fatal(err)
		}
	}
	slope, _ := s.Param("slope")
	values, err := slope.Float32s()
	fmt.Printf("%d steps, slope %.2f, %v, loss below 1e-4: %v, %v\n", s.Steps(), values[0], last.Path, last.Loss < 1e-4, err)
	// Output: 400 steps, slope 2.00, gradient, loss below 1e-4: true, <nil>
}
