package image_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
)

// functions are those of the cases of ir/irtest/cases/functions.json: PyTorch's, NumPy's and Pillow's.
func functions() map[string]functiontest.Function {
	all := map[string]functiontest.Function{
		"grid_sample 3d":       one("x", "grid", sample(image.GridOptions{})),
		"grid_sample infinite": one("x", "grid", sample(image.GridOptions{AlignCorners: true})),
		"affine_grid":          affine([]int{3, 4}, false),
		"affine_grid align":    affine([]int{3, 4}, true),
		"affine_grid 3d":       affine([]int{2, 3, 2}, false),

		"resize linear":              resize([]int{7, 3}, image.ResizeOptions{}),
		"resize linear align":        resize([]int{7, 3}, image.ResizeOptions{AlignCorners: true}),
		"resize linear antialias":    resize([]int{3, 4}, image.ResizeOptions{Antialias: true}),
		"resize linear antialias up": resize([]int{5, 2}, image.ResizeOptions{Antialias: true}),
		"resize cubic":               resize([]int{7, 3}, image.ResizeOptions{Mode: image.Cubic}),
		"resize cubic antialias":     resize([]int{3, 12}, image.ResizeOptions{Mode: image.Cubic, Antialias: true}),
		"resize nearest":             resize([]int{7, 3}, image.ResizeOptions{Mode: image.Nearest}),
		"resize nearest floor":       resize([]int{7, 3}, image.ResizeOptions{Mode: image.Nearest, Floor: true}),
		"resize one axis":            resize([]int{8}, image.ResizeOptions{}),
		"resize three axes":          resize([]int{3, 2, 4}, image.ResizeOptions{}),
		"resize lanczos":             resize([]int{3, 12}, image.ResizeOptions{Mode: image.Lanczos, Antialias: true}),

		"pad symmetric": pad([]int{0, 5, 1}, []int{0, 2, 0}, image.Symmetric),
		"pad reflect":   pad([]int{0, 7, 1}, []int{0, 9, 0}, image.Reflect),
		"pad wrap":      pad([]int{0, 4, 1}, []int{1, 8, 0}, image.Wrap),
		"pad edge":      pad([]int{0, 2, 1}, []int{0, 1, 3}, image.Edge),
		"pad integers":  pad([]int{0, 4}, []int{0, 4}, image.Symmetric),

		"unfold": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
			return []ir.Value{image.Unfold(b, in["x"], []int{2, 3}, image.PatchOptions{Pad: []int{1, 0}, Stride: []int{2, 1}, Dilation: []int{1, 2}})}
		},
		"fold": func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
			return []ir.Value{image.Fold(b, in["x"], []int{4, 5}, []int{2, 3}, image.PatchOptions{Pad: []int{1}, Stride: []int{2}})}
		},
	}
	for _, mode := range []string{image.Linear, image.Nearest, image.Cubic} {
		for _, padding := range []string{image.Zeros, image.Edge, image.Reflect} {
			name := "grid_sample " + mode + " " + padding
			all[name] = one("x", "grid", sample(image.GridOptions{Mode: mode, Padding: padding}))
			if mode != image.Nearest {
				all[name+" align"] = one("x", "grid", sample(image.GridOptions{Mode: mode, Padding: padding, AlignCorners: true}))
			}
		}
	}
	return all
}

func one(x, y string, f func(b *ir.Builder, x, y ir.Value) ir.Value) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value { return []ir.Value{f(b, in[x], in[y])} }
}

func sample(o image.GridOptions) func(b *ir.Builder, x, grid ir.Value) ir.Value {
	return func(b *ir.Builder, x, grid ir.Value) ir.Value { return image.GridSample(b, x, grid, o) }
}

func affine(sizes []int, align bool) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{image.AffineGrid(b, in["theta"], sizes, align)}
	}
}

func resize(sizes []int, o image.ResizeOptions) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{image.Resize(b, in["x"], sizes, o)}
	}
}

func pad(low, high []int, mode string) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{image.Pad(b, in["x"], low, high, mode)}
	}
}

func TestValuesAreThoseOfPyTorchNumPyAndPillow(t *testing.T) {
	functiontest.Run(t, "../irtest/cases/functions.json", "image.", functions())
}
