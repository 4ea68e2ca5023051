package image_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestRefusals(t *testing.T) {
	x := func(b *ir.Builder) ir.Value { return b.Input("x", ir.F32, ir.Dims(2, 5, 4, 3)...) }
	grid := func(b *ir.Builder, d ir.DType, dims ...int) ir.Value { return b.Input("grid", d, ir.Dims(dims...)...) }
	functiontest.Refuse(t, []functiontest.Refusal{
		{"a grid of another type", func(b *ir.Builder) { image.GridSample(b, x(b), grid(b, ir.F16, 2, 3, 3, 2)) }, ir.ErrDType, "operand 1 is f16[2,3,3,2]: it must be f32 as operand 0 is"},
		{"a grid of another batch", func(b *ir.Builder) { image.GridSample(b, x(b), grid(b, ir.F32, 1, 3, 3, 2)) }, ir.ErrShape, "grid is f32[1,3,3,2]: it must be [2, positions..., 2]"},
		{"a grid of three coordinates", func(b *ir.Builder) { image.GridSample(b, x(b), grid(b, ir.F32, 2, 3, 3)) }, ir.ErrShape, "positions..., 2]"},
		{"an unknown mode", func(b *ir.Builder) {
			image.GridSample(b, x(b), grid(b, ir.F32, 2, 3, 2), image.GridOptions{Mode: "bilinear"})
		}, ir.ErrAttr, `Mode is "bilinear"`},
		{"two options", func(b *ir.Builder) {
			image.GridSample(b, x(b), grid(b, ir.F32, 2, 3, 2), image.GridOptions{}, image.GridOptions{})
		}, ir.ErrAttr, "2 option structs"},
		{"no image", func(b *ir.Builder) { image.GridSample(b, ir.Value{}, grid(b, ir.F32, 2, 3, 2)) }, ir.ErrGraph, "no operand given"},
		{"an image of a symbolic size", func(b *ir.Builder) {
			image.Resize(b, b.Input("x", ir.F32, ir.N(1), ir.Sym("n"), ir.N(1)), []int{3})
		}, ir.ErrSymbol, "axis 1 of x is n: it must be a number"},
		{"an empty image", func(b *ir.Builder) { image.Resize(b, b.Input("x", ir.F32, ir.Dims(1, 0, 1)...), []int{3}) }, ir.ErrShape, "axis 1 of x, f32[1,0,1], is empty"},
		{"an image of integers", func(b *ir.Builder) { image.Resize(b, b.Input("x", ir.I32, ir.Dims(1, 2, 1)...), []int{3}) }, ir.ErrDType, "must be of a float type"},
		{"sizes of another rank", func(b *ir.Builder) { image.Resize(b, x(b), []int{3}) }, ir.ErrAttr, "one for each of 2 spatial axes"},
		{"aligned corners with a wide filter", func(b *ir.Builder) {
			image.Resize(b, x(b), []int{3, 3}, image.ResizeOptions{Antialias: true, AlignCorners: true})
		}, ir.ErrAttr, "AlignCorners is set"},
		{"the floor of a line", func(b *ir.Builder) { image.Resize(b, x(b), []int{3, 3}, image.ResizeOptions{Floor: true}) }, ir.ErrAttr, "Floor is set"},
		{"a matrix of another size", func(b *ir.Builder) { image.AffineGrid(b, x(b), []int{3, 3}, false) }, ir.ErrShape, "theta is f32[2,5,4,3]: it must be [batch, 2, 3]"},
		{"padding of an empty axis", func(b *ir.Builder) {
			image.Pad(b, b.Input("x", ir.I32, ir.N(0)), []int{1}, []int{0}, image.Edge)
		}, ir.ErrShape, "it has no element to repeat"},
		{"negative padding", func(b *ir.Builder) {
			image.Pad(b, b.Input("x", ir.I32, ir.N(2)), []int{-1}, []int{0}, image.Edge)
		}, ir.ErrAttr, "none may be negative"},
		{"a window longer than the image", func(b *ir.Builder) { image.Unfold(b, x(b), []int{6, 1}) }, ir.ErrShape, "is longer than axis 1 of 5 elements"},
		{"no window", func(b *ir.Builder) { image.Unfold(b, x(b), nil) }, ir.ErrAttr, "window is empty"},
		{"patches of another number", func(b *ir.Builder) {
			image.Fold(b, b.Input("x", ir.F32, ir.Dims(1, 5, 4)...), []int{3, 3}, []int{2})
		}, ir.ErrShape, "it must be [batch, 4, channels·4]"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"resize": func(b *ir.Builder, x ir.Value) ir.Value { return image.Resize(b, x, []int{3, 5}) },
		"grid_sample": func(b *ir.Builder, x ir.Value) ir.Value {
			return image.GridSample(b, x, ops.Zeros(b, x.DType(), ir.Dims(1, 2, 2, 2)...))
		},
		"unfold": func(b *ir.Builder, x ir.Value) ir.Value { return image.Unfold(b, x, []int{2}) },
		"pad": func(b *ir.Builder, x ir.Value) ir.Value {
			return image.Pad(b, x, []int{0, 9, 0, 0}, make([]int, 4), image.Reflect)
		},
	}, 1, 4, 3, 2)
}
