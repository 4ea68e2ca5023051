package ir_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func ExampleParse() {
	g, err := ir.Parse(`graph "double" {
		%x = input "x" : f32[n]
		%y = add(%x, %x) : f32[n]
		output "y" = %y
	}`)
	if err != nil {
		panic(err)
	}
	bound, err := g.Bind(map[string]int{"n": 2})
	if err != nil {
		panic(err)
	}
	fmt.Println(bound.Outputs()[0].Value.Type())
	// Output: f32[2]
}

func ExampleGraph_String() {
	g, err := ir.Build("affine", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("batch"), ir.N(4))
		b.Label("scale")
		b.Output("y", ops.Mul(b, x, ops.ConstLike(b, x, 2.5)))
	})
	if err != nil {
		panic(err)
	}
	fmt.Print(g)
	// Output:
	// graph "affine" {
	//   %0 = input "x" : f32[batch,4]
	//   %1 = constant 2.5 : f32[] #"scale"
	//   %2 = broadcast_in_dim(%1) {shape=[batch,4] axes=[]} : f32[batch,4] #"scale"
	//   %3 = mul(%0, %2) : f32[batch,4] #"scale"
	//   output "y" = %3
	// }
}
