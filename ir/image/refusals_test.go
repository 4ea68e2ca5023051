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
		{Name: "a grid of another type", Build: func(b *ir.Builder) { image.GridSample(b, x(b), grid(b, ir.F16, 2, 3, 3, 2)) }, Kind: ir.ErrDType, Text: "operand 1 is f16[2,3,3,2]: it must be f32 as operand 0 is"},
		{Name: "a grid of another batch", Build: func(b *ir.Builder) { image.GridSample(b, x(b), grid(b, ir.F32, 1, 3, 3, 2)) }, Kind: ir.ErrShape, Text: "grid is f32[1,3,3,2]: it must be [2, positions..., 2]"},
		{Name: "a grid of three coordinates", Build: func(b *ir.Builder) { image.GridSample(b, x(b), grid(b, ir.F32, 2, 3, 3)) }, Kind: ir.ErrShape, Text: "positions..., 2]"},
		{Name: "an unknown mode", Build: func(b *ir.Builder) {
			image.GridSample(b, x(b), grid(b, ir.F32, 2, 3, 2), image.GridOptions{Mode: "bilinear"})
		}, Kind: ir.ErrAttr, Text: `Mode is "bilinear"`},
		{Name: "two options", Build: func(b *ir.Builder) {
			image.GridSample(b, x(b), grid(b, ir.F32, 2, 3, 2), image.GridOptions{}, image.GridOptions{})
		}, Kind: ir.ErrAttr, Text: "2 option structs"},
		{Name: "no image", Build: func(b *ir.Builder) { image.GridSample(b, ir.Value{}, grid(b, ir.F32, 2, 3, 2)) }, Kind: ir.ErrGraph, Text: "no operand given"},
		{Name: "an image of a symbolic size", Build: func(b *ir.Builder) {
			image.Resize(b, b.Input("x", ir.F32, ir.N(1), ir.Sym("n"), ir.N(1)), []int{3})
		}, Kind: ir.ErrSymbol, Text: "axis 1 of x is n: it must be a number"},
		{Name: "an empty image", Build: func(b *ir.Builder) { image.Resize(b, b.Input("x", ir.F32, ir.Dims(1, 0, 1)...), []int{3}) }, Kind: ir.ErrShape, Text: "axis 1 of x, f32[1,0,1], is empty"},
		{Name: "an image of integers", Build: func(b *ir.Builder) { image.Resize(b, b.Input("x", ir.I32, ir.Dims(1, 2, 1)...), []int{3}) }, Kind: ir.ErrDType, Text: "must be of a float type"},
		{Name: "sizes of another rank", Build: func(b *ir.Builder) { image.Resize(b, x(b), []int{3}) }, Kind: ir.ErrAttr, Text: "one for each of 2 spatial axes"},
		{Name: "aligned corners with a wide filter", Build: func(b *ir.Builder) {
			image.Resize(b, x(b), []int{3, 3}, image.ResizeOptions{Antialias: true, AlignCorners: true})
		}, Kind: ir.ErrAttr, Text: "AlignCorners is set"},
		{Name: "the floor of a line", Build: func(b *ir.Builder) { image.Resize(b, x(b), []int{3, 3}, image.ResizeOptions{Floor: true}) }, Kind: ir.ErrAttr, Text: "Floor is set"},
		{Name: "a matrix of another size", Build: func(b *ir.Builder) { image.AffineGrid(b, x(b), []int{3, 3}, false) }, Kind: ir.ErrShape, Text: "theta is f32[2,5,4,3]: it must be [batch, 2, 3]"},
		{Name: "padding of an empty axis", Build: func(b *ir.Builder) {
			image.Pad(b, b.Input("x", ir.I32, ir.N(0)), []int{1}, []int{0}, image.Edge)
		}, Kind: ir.ErrShape, Text: "it has no element to repeat"},
		{Name: "negative padding", Build: func(b *ir.Builder) {
			image.Pad(b, b.Input("x", ir.I32, ir.N(2)), []int{-1}, []int{0}, image.Edge)
		}, Kind: ir.ErrAttr, Text: "none may be negative"},
		{Name: "a window longer than the image", Build: func(b *ir.Builder) { image.Unfold(b, x(b), []int{6, 1}) }, Kind: ir.ErrShape, Text: "is longer than axis 1 of 5 elements"},
		{Name: "no window", Build: func(b *ir.Builder) { image.Unfold(b, x(b), nil) }, Kind: ir.ErrAttr, Text: "window is empty"},
		{Name: "patches of another number", Build: func(b *ir.Builder) {
			image.Fold(b, b.Input("x", ir.F32, ir.Dims(1, 5, 4)...), []int{3, 3}, []int{2})
		}, Kind: ir.ErrShape, Text: "it must be [batch, 4, channels·4]"},
	})
}

func TestNarrowFloatsKeepTheirType(t *testing.T) {
	functiontest.Keep(t, map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"resize": func(b *ir.Builder, x ir.Value) ir.Value { return image.Resize(b, x, []int{3, 5}) },
		"grid_sample": func(b *ir.Builder, x ir.Value) ir.Value {
			return image.GridSample(b, x, ops.Zeros(b, x.DType(), ir.Dims(1, 2, 2, 2)...))
		},
		"grid_sample of affine_grid": func(b *ir.Builder, x ir.Value) ir.Value {
			return image.GridSample(b, x, image.AffineGrid(b, ops.Zeros(b, x.DType(), ir.Dims(1, 2, 3)...), []int{2, 2}, false))
		},
		"unfold": func(b *ir.Builder, x ir.Value) ir.Value { return image.Unfold(b, x, []int{2}) },
		"pad": func(b *ir.Builder, x ir.Value) ir.Value {
			return image.Pad(b, x, []int{0, 9, 0, 0}, make([]int, 4), image.Reflect)
		},
	}, 1, 4, 3, 2)
}
