package quantize_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/quantize"
)

// The linear layer of a model gets a weight of 8 bits. ir.Eval stands for a program that runs the observer on typical inputs.
func Example() {
	model, err := ir.Build("model", func(b *ir.Builder) {
		b.Output("y", nn.Linear(b, b.Input("x", ir.F32, ir.Dims(1, 2)...), 2, nn.LinearOptions{NoBias: true}))
	})
	check(err)
	q, err := quantize.New(model, quantize.Options{})
	check(err)
	observer, err := q.Observer()
	check(err)
	values := map[string]*ir.Array{
		"x":              ir.Floats(ir.F32, []float64{-1, 2}, 1, 2),
		"linear0/weight": ir.Floats(ir.F32, []float64{1, 0.5, -0.25, 1}, 2, 2),
	}
	observed, err := ir.Eval(observer, values, ir.EvalOptions{})
	check(err)
	ranges := map[string][]float32{}
	for i, o := range observer.Outputs() {
		for _, x := range observed[i].F {
			ranges[o.Name] = append(ranges[o.Name], float32(x))
		}
	}
	check(q.Observe(ranges[quantize.Low], ranges[quantize.High]))
	rounded, weights, err := q.Graph(func(name string) (*ir.Array, error) { return values[name], nil })
	check(err)
	for name, w := range weights {
		fmt.Println(name, w.I)
		values[name] = w
	}
	out, err := ir.Eval(rounded, values, ir.EvalOptions{})
	check(err)
	fmt.Printf("%.2f instead of -1.5 and 1.5\n", out[0].F)
	// Output:
	// linear0/weight [127 64 -32 127]
	// [-1.50 1.50] instead of -1.5 and 1.5
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
