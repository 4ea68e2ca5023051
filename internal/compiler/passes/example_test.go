package passes_test

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func ExampleRun() {
	g, err := ir.Build("model", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("n"))
		twice := ops.Add(b, ops.ConstLike(b, x, 1), ops.ConstLike(b, x, 1))
		b.Output("y", ops.Mul(b, ops.Neg(b, ops.Neg(b, x)), twice))
	})
	if err != nil {
		panic(err)
	}
	g, err = passes.Run(g, passes.Options{
		Trace: func(pass string, before, after *ir.Graph) {
			fmt.Println(pass, len(before.Nodes()), "to", len(after.Nodes()))
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Print(g)
	// Output:
	// simplify 9 to 8
	// fold 8 to 9
	// cse 9 to 7
	// dce 7 to 4
	// graph "model" {
	//   %0 = input "x" : f32[n]
	//   %1 = constant 2 : f32[]
	//   %2 = broadcast_in_dim(%1) {shape=[n] axes=[]} : f32[n]
	//   %3 = mul(%0, %2) : f32[n]
	//   output "y" = %3
	// }
}
