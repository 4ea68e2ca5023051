package autodiff_test

import (
	"fmt"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func ExampleValueAndGrad() {
	g, err := ir.Build("square", func(b *ir.Builder) {
		w := b.Param("w", ir.F32, ir.N(3))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, w, w)))
	})
	if err != nil {
		panic(err)
	}
	d, err := autodiff.ValueAndGrad(g, "loss")
	if err != nil {
		panic(err)
	}
	in := map[string]*ir.Array{"w": ir.Floats(ir.F32, []float64{1, 2, 3})}
	out, err := ir.Eval(d, in, ir.EvalOptions{})
	if err != nil {
		panic(err)
	}
	for i, o := range d.Outputs() {
		fmt.Println(o.Name, out[i].F)
	}
	// Output:
	// loss [14]
	// grad/w [2 4 6]
}

func ExampleVmap() {
	g, err := ir.Build("dot", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.N(2)), b.Param("w", ir.F32, ir.N(2))
		b.Output("y", ops.ReduceSum(b, ops.Mul(b, x, w)))
	})
	if err != nil {
		panic(err)
	}
	batched, err := autodiff.Vmap(g, ir.Sym("batch"), autodiff.VmapOptions{In: map[string]int{"x": 0}})
	if err != nil {
		panic(err)
	}
	x, _ := batched.Port("x")
	y, _ := batched.Output("y")
	fmt.Println(x.Value.Type(), "to", y.Value.Type())
	// Output: f32[batch,2] to f32[batch]
}
