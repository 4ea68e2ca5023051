package splat_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops/splat"
)

// A wide red Gaussian, half opaque, behind a green one, in the only pixel of an image: the green one
// has α = 0.5, and the red one half of what remains.
func ExampleRender() {
	g, err := ir.Build("render", func(b *ir.Builder) {
		flat := splat.Flat{
			Means: b.Input("means", ir.F32, ir.Dims(2, 2)...), Covariances: b.Input("covariances", ir.F32, ir.Dims(2, 2, 2)...),
			Depths: b.Input("depths", ir.F32, ir.N(2)), Opacities: b.Input("opacities", ir.F32, ir.N(2)), Colors: b.Input("colors", ir.F32, ir.Dims(2, 3)...),
		}
		b.Output("image", splat.Render(b, flat, splat.Image{Height: 1, Width: 1, Near: 0.1}))
	})
	if err != nil {
		log.Fatal(err)
	}
	floats := func(x []float64, dims ...int) *ir.Array { return ir.Floats(ir.F32, x, dims...) }
	out, err := ir.Eval(g, map[string]*ir.Array{
		"means": floats([]float64{0.5, 0.5, 0.5, 0.5}, 2, 2), "covariances": floats([]float64{9, 0, 0, 9, 9, 0, 0, 9}, 2, 2, 2),
		"depths": floats([]float64{5, 2}), "opacities": floats([]float64{0.5, 0.5}), "colors": floats([]float64{1, 0, 0, 0, 1, 0}, 2, 3),
	}, ir.EvalOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out[0].Dims, out[0].F)
	// Output: [1 1 3] [0.25 0.5 0]
}
