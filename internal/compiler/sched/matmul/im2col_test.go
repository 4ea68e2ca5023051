package matmul_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// nhwc returns attributes with channels last, and windows [spatial..., in, out].
func nhwc(spatial int, a ops.ConvAttrs) ops.ConvAttrs {
	a.Lhs, a.Rhs = []int{0, spatial + 1}, []int{spatial + 1, spatial}
	for i := range spatial {
		a.Lhs, a.Rhs = append(a.Lhs, i+1), append(a.Rhs, i)
	}
	a.Out = a.Lhs
	return a
}

// byWeights are the attributes of the gradient by weights of a convolution with channels last, of x by the cotangent.
func byWeights(a ops.ConvAttrs) ops.ConvAttrs {
	a.Lhs, a.Rhs, a.Out = []int{3, 0, 1, 2}, []int{3, 0, 1, 2}, []int{2, 3, 0, 1}
	return a
}

// convolutionCases are convolutions of x and w, with their attributes.
var convolutionCases = []struct {
	name   string
	d      ir.DType
	x, w   []int
	a      ops.ConvAttrs
	im2col bool
}{
	{"a window of 3×3", ir.BF16, []int{2, 7, 9, 64}, []int{3, 3, 64, 40}, nhwc(2, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}), true},
	{"channels of a chunk and a half", ir.F16, []int{2, 6, 5, 96}, []int{3, 2, 96, 24}, nhwc(2, ops.ConvAttrs{PadLo: []int{2, 0}, PadHi: []int{0, 1}}), true},
	{"few channels of f32", ir.F32, []int{2, 7, 5, 40}, []int{3, 3, 40, 24}, nhwc(2, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}), true},
	{"strides and dilation", ir.BF16, []int{2, 12, 11, 64}, []int{3, 3, 64, 24}, nhwc(2, ops.ConvAttrs{Strides: []int{2, 3}, RhsDilation: []int{2, 1}, PadLo: []int{1, 2}, PadHi: []int{2, 1}}), true},
	{"one tap by strides", ir.BF16, []int{2, 8, 9, 136}, []int{1, 1, 136, 24}, nhwc(2, ops.ConvAttrs{Strides: []int{2, 2}}), true},
	{"one spatial axis", ir.BF16, []int{3, 50, 64}, []int{5, 64, 24}, nhwc(1, ops.ConvAttrs{PadLo: []int{4}, PadHi: []int{0}, RhsDilation: []int{3}}), true},
	{"three spatial axes", ir.BF16, []int{2, 4, 5, 6, 64}, []int{3, 2, 3, 64, 24}, nhwc(3, ops.ConvAttrs{PadLo: []int{1, 0, 1}, PadHi: []int{1, 1, 1}, Strides: []int{1, 2, 1}}), true},
	{"the gradient by weights", ir.BF16, []int{2, 7, 9, 64}, []int{2, 7, 9, 40}, byWeights(ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}), true},
	{"that of strides and dilation", ir.BF16, []int{3, 9, 11, 128}, []int{3, 3, 5, 40}, byWeights(ops.ConvAttrs{Strides: []int{2, 1}, RhsDilation: []int{3, 2}, PadLo: []int{1, 2}, PadHi: []int{1, 1}}), true},
	{"that of odd channels", ir.BF16, []int{2, 7, 9, 40}, []int{2, 7, 9, 40}, byWeights(ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}), false},
	{"that of f32", ir.F32, []int{2, 7, 9, 64}, []int{2, 7, 9, 40}, byWeights(ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}), false},
	{"channels that do not fill pieces", ir.BF16, []int{2, 7, 9, 36}, []int{3, 3, 36, 40}, nhwc(2, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}), false},
	{"channels first", ir.BF16, []int{2, 64, 7, 9}, []int{40, 64, 3, 3}, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}, true},
	{"a dilated operand", ir.BF16, []int{2, 7, 9, 64}, []int{3, 3, 64, 40}, nhwc(2, ops.ConvAttrs{LhsDilation: []int{2, 1}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}), false},
	{"groups", ir.BF16, []int{2, 7, 9, 128}, []int{3, 3, 64, 40}, nhwc(2, ops.ConvAttrs{FeatureGroups: ir.N(2)}), false},
	{"wide padding in three axes", ir.BF16, []int{1, 3, 3, 3, 64}, []int{2, 2, 2, 64, 24}, nhwc(3, ops.ConvAttrs{PadLo: []int{1, 1, 17}, PadHi: []int{0, 0, 0}}), false},
}

// TestGradientsByImagesInIm2colMode reverses the window, as the gradient by the images of a convolution does.
func TestGradientsByImagesInIm2colMode(t *testing.T) {
	matmul.WithSmallImages(t)
	for _, d := range []ir.DType{ir.BF16, ir.F32} {
		a := nhwc(2, ops.ConvAttrs{PadLo: []int{2, 0}, PadHi: []int{0, 1}})
		a.Rhs = []int{2, 3, 0, 1}
		checkIm2col(t, true, func(b *ir.Builder) ir.Value {
			w := ops.Reverse(b, b.Input("w", d, ir.Dims(3, 2, 40, 72)...), 0, 1)
			return ops.ConvGeneral(b, b.Input("x", d, ir.Dims(2, 6, 7, 72)...), w, a)
		})
	}
}

// TestConvolutionsInIm2colMode expects copies in im2col mode where they are possible, and right results and gradients.
func TestConvolutionsInIm2colMode(t *testing.T) {
	matmul.WithSmallImages(t)
	for _, c := range convolutionCases {
		t.Run(c.name, func(t *testing.T) {
			checkIm2col(t, c.im2col, func(b *ir.Builder) ir.Value {
				return ops.ConvGeneral(b, b.Input("x", c.d, ir.Dims(c.x...)...), b.Input("w", c.d, ir.Dims(c.w...)...), c.a)
			})
		})
	}
}

// checkIm2col runs a convolution by multiply-adds, whole and in parts, and expects that it is copied in im2col mode or not.
func checkIm2col(t *testing.T, im2col bool, f func(b *ir.Builder) ir.Value) {
	t.Helper()
	g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", f(b)) })
	c := schedtest.NewCase(t, g, schedtest.Wholes)
	for _, parts := range []int{1, 3} {
		by := schedtest.ContractionsBy(t, g, schedtest.Hopper(), matmul.MmaSchedules(parts, schedtest.Hopper().Caps)[2])
		found := false
		for _, k := range schedtest.Kernels(t, g, by) {
			for _, b := range k.TensorMaps {
				found = found || b.Im2col != nil
			}
			if err := schedtest.Hopper().Check(k); err != nil {
				t.Error(err)
			}
		}
		if found != im2col {
			t.Errorf("im2col mode %t, want %t", found, im2col)
		}
		c.RunOn(t, by)
	}
}

// TestShortProductsShareMultiprocessors expects two workgroups on a multiprocessor where that was faster on an H200: for
// convolutions of few terms, not for long ones and not where results fill a part of a tile.
func TestShortProductsShareMultiprocessors(t *testing.T) {
	for _, c := range []struct {
		name                   string
		image, in, out, window int
		shared                 bool
	}{
		{"64 columns", 56, 64, 64, 3, true},
		{"128 columns", 28, 128, 128, 3, true},
		{"long", 14, 512, 512, 3, false},
		{"few columns", 56, 64, 32, 3, false},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.BF16, ir.Dims(64, c.image, c.image, c.in)...)
			w := b.Input("w", ir.BF16, ir.Dims(c.window, c.window, c.in, c.out)...)
			a := nhwc(2, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}})
			b.Output("y", ops.ConvGeneral(b, x, w, a))
		})
		shared := false
		for _, k := range schedtest.Kernels(t, g, schedtest.Hopper()) {
			shared = shared || k.Resident == 2 && k.HasRoles()
			if err := schedtest.Hopper().Check(k); err != nil {
				t.Error(err)
			}
		}
		if shared != c.shared {
			t.Errorf("%s: two workgroups share a multiprocessor: %t, not %t", c.name, shared, c.shared)
		}
	}
}
