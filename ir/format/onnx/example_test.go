package onnx_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// A model's graph can be differentiated by its weights.
func Example() {
	data := model(13, graphOf(
		[]field{node("MatMul", []string{"x", "w"}, []string{"h"}), node("Relu", []string{"h"}, []string{"y"})},
		[]field{tensorOf("w", onnx.Float, []int{2, 2}, floatBytes(1, -1, 0.5, 2))},
		[]field{info("x", onnx.Float, "batch", 2)}, []field{info("y", onnx.Float, "batch", 2)},
	))
	m, err := onnx.Decode(data)
	if err != nil {
		log.Fatal(err)
	}
	imported, err := m.Import(onnx.Options{Sizes: map[string]int{"batch": 1}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(imported.Graph)
	fmt.Println(imported.Weights[0].Name, imported.Weights[0].Type)

	gradient, err := autodiff.VJP(imported.Graph, "w")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(gradient.Outputs()) > 0)

	out, err := ir.Eval(imported.Graph, map[string]*ir.Array{
		"x": ir.Floats(ir.F32, []float64{2, 4}, 1, 2),
		"w": ir.Floats(ir.F32, []float64{1, -1, 0.5, 2}, 2, 2),
	}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out[0].F)
	// Output:
	// graph "g" {
	//   %0 = input "x" : f32[1,2]
	//   %1 = param "w" : f32[2,2]
	//   %2 = dot_general(%0, %1) {lhs_contract=[1] rhs_contract=[0] lhs_batch=[] rhs_batch=[]} : f32[1,2] #"h"
	//   %3 = relu(%2) : f32[1,2] #"y"
	//   output "y" = %3
	// }
	// w f32[2,2]
	// true
	// [4 6]
}
