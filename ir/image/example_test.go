package image_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// show prints the elements of a value that f computes from [1, 2, …] of a shape.
func show(f func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) {
	g, err := ir.Build("example", func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.F32, ir.Dims(dims...)...))) })
	if err != nil {
		log.Fatal(err)
	}
	x := ir.NewArray(ir.F32, dims...)
	for i := range x.F {
		x.F[i] = float64(i + 1)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %.4v\n", out[0].Dims, out[0].F)
}

func ExampleResize() {
	show(func(b *ir.Builder, x ir.Value) ir.Value {
		return image.Resize(b, x, []int{4}, image.ResizeOptions{Antialias: true})
	}, 1, 8, 1)
	// Output: [1 4 1] [1.714 3.5 5.5 7.286]
}

func ExampleGridSample() {
	// An image turned by a quarter.
	show(func(b *ir.Builder, x ir.Value) ir.Value {
		turn := ops.Literal(b, ir.Floats(ir.F32, []float64{0, -1, 0, 1, 0, 0}, 1, 2, 3))
		return image.GridSample(b, x, image.AffineGrid(b, turn, []int{2, 2}, false))
	}, 1, 2, 2, 1)
	// Output: [1 2 2 1] [2 4 1 3]
}

func ExamplePad() {
	show(func(b *ir.Builder, x ir.Value) ir.Value {
		return image.Pad(b, x, []int{4}, []int{2}, image.Symmetric)
	}, 3)
	// Output: [9] [3 3 2 1 1 2 3 3 2]
}

func ExampleUnfold() {
	show(func(b *ir.Builder, x ir.Value) ir.Value { return image.Unfold(b, x, []int{2}) }, 1, 2, 3, 1)
	// Output: [1 2 4] [1 2 4 5 2 3 5 6]
}
