package layers

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// convolutions are those of pixels, with channels last, of planes, with channels before the spatial axes, and transposed ones.
func convolutions() (out []Layer) {
	for _, c := range []struct{ n, h, w, in, out, window, stride, dilation, groups int }{
		{32, 56, 56, 24, 40, 3, 1, 1, 1},
		{32, 57, 43, 48, 48, 5, 2, 1, 1},
		{16, 64, 64, 96, 96, 7, 1, 1, 96},
		{16, 64, 64, 64, 64, 3, 1, 4, 1},
		{8, 128, 128, 3, 17, 3, 1, 1, 1},
		{8, 128, 128, 17, 1, 1, 1, 1, 1},
		{64, 28, 28, 120, 120, 3, 2, 1, 120},
		{64, 28, 28, 100, 200, 1, 1, 1, 1},
		{16, 56, 56, 128, 128, 3, 1, 1, 8},
		{16, 56, 56, 60, 60, 3, 1, 1, 20},
		{4, 256, 256, 32, 32, 3, 1, 1, 1},
		{4, 256, 256, 8, 8, 9, 1, 1, 1},
		{2, 512, 512, 16, 3, 3, 1, 1, 1},
		{128, 8, 8, 512, 512, 3, 1, 1, 1},
		{128, 7, 7, 256, 1024, 1, 1, 1, 1},
	} {
		out = append(out, of(fmt.Sprint("convolution ", c), func(b *ir.Builder) ir.Value {
			pad := c.dilation * (c.window - 1) / 2
			x, w := floats(b, "x", c.n, c.h, c.w, c.in), floats(b, "w", c.window, c.window, c.in/c.groups, c.out)
			return ops.Conv2D(b, ops.Relu(b, x), w, floats(b, "bias", c.out), ops.Conv2DAttrs{
				Strides: []int{c.stride, c.stride}, Dilations: []int{c.dilation, c.dilation}, PadLo: []int{pad, pad}, PadHi: []int{pad, pad}, Groups: c.groups,
			})
		}))
	}
	for _, c := range []struct {
		x, w []int
		a    ops.ConvAttrs
	}{
		{[]int{32, 64, 4000}, []int{64, 64, 9}, ops.ConvAttrs{PadLo: []int{4}, PadHi: []int{4}}},
		{[]int{16, 1, 64000}, []int{64, 1, 16}, ops.ConvAttrs{Strides: []int{4}, PadLo: []int{6}, PadHi: []int{6}}},
		{[]int{16, 1024, 1000}, []int{1024, 1, 4}, ops.ConvAttrs{PadLo: []int{3}, PadHi: []int{0}, FeatureGroups: ir.N(1024)}},
		{[]int{2, 32, 32, 32, 32}, []int{32, 32, 3, 3, 3}, ops.ConvAttrs{PadLo: []int{1, 1, 1}, PadHi: []int{1, 1, 1}}},
		{[]int{4, 4, 48, 48, 48}, []int{8, 4, 3, 3, 3}, ops.ConvAttrs{PadLo: []int{1, 1, 1}, PadHi: []int{1, 1, 1}}},
		{[]int{32, 64, 56, 56}, []int{64, 64, 3, 3}, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}},
		{[]int{32, 64, 56, 56}, []int{128, 64, 3, 3}, ops.ConvAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}},
		{[]int{32, 128, 56, 56}, []int{128, 1, 5, 5}, ops.ConvAttrs{PadLo: []int{2, 2}, PadHi: []int{2, 2}, FeatureGroups: ir.N(128)}},
		{[]int{32, 3, 224, 224}, []int{64, 3, 7, 7}, ops.ConvAttrs{Strides: []int{2, 2}, PadLo: []int{3, 3}, PadHi: []int{3, 3}}},
	} {
		out = append(out, of(fmt.Sprint("convolution of planes ", c.x, c.w, c.a.Strides), func(b *ir.Builder) ir.Value {
			return ops.ConvGeneral(b, ops.Relu(b, floats(b, "x", c.x...)), floats(b, "w", c.w...), c.a)
		}))
	}
	for _, c := range [][4]int{{16, 32, 64, 32}, {16, 16, 128, 64}, {4, 128, 16, 3}} {
		out = append(out, of(fmt.Sprint("transposed convolution ", c), func(b *ir.Builder) ir.Value {
			x, w := floats(b, "x", c[0], c[1], c[1], c[2]), floats(b, "w", 4, 4, c[2], c[3])
			return ops.ConvTranspose(b, x, w, floats(b, "bias", c[3]), ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		}))
	}
	return out
}

// generalConvolutions have windows that are not square, even or larger than their steps, channels that are multiplied, and
// three axes of pixels.
func generalConvolutions() (out []Layer) {
	for _, c := range []struct {
		x, w []int
		a    ops.Conv2DAttrs
	}{
		{[]int{32, 17, 17, 192}, []int{1, 7, 192, 192}, ops.Conv2DAttrs{PadLo: []int{0, 3}, PadHi: []int{0, 3}}},
		{[]int{32, 17, 17, 192}, []int{7, 1, 192, 192}, ops.Conv2DAttrs{PadLo: []int{3, 0}, PadHi: []int{3, 0}}},
		{[]int{64, 224, 224, 3}, []int{16, 16, 3, 384}, ops.Conv2DAttrs{Strides: []int{16, 16}}},
		{[]int{64, 224, 224, 3}, []int{4, 4, 3, 96}, ops.Conv2DAttrs{Strides: []int{4, 4}}},
		{[]int{32, 56, 56, 96}, []int{2, 2, 96, 192}, ops.Conv2DAttrs{Strides: []int{2, 2}}},
		{[]int{16, 84, 84, 4}, []int{8, 8, 4, 32}, ops.Conv2DAttrs{Strides: []int{4, 4}}},
		{[]int{16, 56, 56, 64}, []int{3, 3, 1, 128}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}, Groups: 64}},
		{[]int{16, 65, 65, 48}, []int{3, 3, 48, 64}, ops.Conv2DAttrs{Strides: []int{3, 3}, Dilations: []int{2, 2}}},
		{[]int{32, 1, 4000, 64}, []int{1, 3, 64, 128}, ops.Conv2DAttrs{Dilations: []int{1, 16}, PadLo: []int{0, 32}, PadHi: []int{0, 0}}},
		{[]int{64, 28, 28, 1}, []int{5, 5, 1, 20}, ops.Conv2DAttrs{}},
		{[]int{4, 64, 64, 1280}, []int{3, 3, 1280, 640}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}},
		{[]int{64, 14, 14, 480}, []int{5, 5, 1, 480}, ops.Conv2DAttrs{PadLo: []int{2, 2}, PadHi: []int{2, 2}, Groups: 480}},
		{[]int{1, 800, 1333, 3}, []int{7, 7, 3, 64}, ops.Conv2DAttrs{Strides: []int{2, 2}, PadLo: []int{3, 3}, PadHi: []int{3, 3}}},
	} {
		if c.a.Groups == 0 {
			c.a.Groups = 1
		}
		out = append(out, of(fmt.Sprint("convolution ", c.x, c.w, c.a.Strides), func(b *ir.Builder) ir.Value {
			return ops.Conv2D(b, ops.Relu(b, floats(b, "x", c.x...)), floats(b, "w", c.w...), floats(b, "bias", c.w[3]), c.a)
		}))
	}
	for _, c := range []struct{ n, size, in, out, window, stride int }{{4, 32, 16, 32, 3, 1}, {4, 32, 32, 64, 2, 2}, {2, 24, 64, 64, 3, 1}} {
		out = append(out, of(fmt.Sprint("convolution of volumes ", c), func(b *ir.Builder) ir.Value {
			last, pad := []int{0, 4, 1, 2, 3}, c.window/2*(2-c.stride)
			x, w := floats(b, "x", c.n, c.size, c.size, c.size, c.in), floats(b, "w", c.window, c.window, c.window, c.in, c.out)
			return ops.ConvGeneral(b, ops.Relu(b, x), w, ops.ConvAttrs{
				Strides: []int{c.stride, c.stride, c.stride}, PadLo: []int{pad, pad, pad}, PadHi: []int{pad, pad, pad},
				Lhs: last, Rhs: []int{4, 3, 0, 1, 2}, Out: last,
			})
		}))
	}
	return append(out,
		of("transposed convolution by 2", func(b *ir.Builder) ir.Value {
			return ops.ConvTranspose(b, floats(b, "x", 8, 64, 64, 128), floats(b, "w", 2, 2, 128, 64), floats(b, "bias", 64), ops.ConvTransposeAttrs{Strides: []int{2, 2}})
		}),
		of("convolution of patches of points", func(b *ir.Builder) ir.Value {
			return ops.MaxPool(b, ops.Relu(b, ops.MatMul(b, floats(b, "x", 16, 1024, 32, 64), floats(b, "w", 64, 128))), ops.PoolAttrs{Sizes: []int{1, 32}, Strides: []int{1, 32}})
		}),
		of("largest of each neighbourhood", func(b *ir.Builder) ir.Value {
			return ops.ReduceMax(b, ops.Relu(b, ops.MatMul(b, floats(b, "x", 16, 1024, 32, 64), floats(b, "w", 64, 128))), 2)
		}),
		of("patches folded", func(b *ir.Builder) ir.Value {
			return image.Fold(b, floats(b, "x", 8, 62*62, 9*32), []int{64, 64}, []int{3, 3})
		}))
}

// windows are pools, resized images and other layers that read pixels near a position.
func windows() (out []Layer) {
	for _, p := range [][4]int{{64, 112, 64, 3}, {16, 57, 96, 2}, {16, 64, 100, 5}, {4, 256, 16, 7}} {
		x := func(b *ir.Builder) ir.Value { return ops.Relu(b, floats(b, "x", p[0], p[1], p[1], p[2])) }
		for _, stride := range []int{1, 2} {
			half := []int{p[3] / 2, p[3] / 2}
			a := ops.PoolAttrs{Sizes: []int{p[3], p[3]}, Strides: []int{stride, stride}, PadLo: half, PadHi: half}
			name := fmt.Sprint(p, " by ", stride)
			out = append(out,
				of("max pool "+name, func(b *ir.Builder) ir.Value { return ops.MaxPool(b, x(b), a) }),
				of("mean pool "+name, func(b *ir.Builder) ir.Value { return ops.AvgPool(b, x(b), ops.AvgPoolAttrs{PoolAttrs: a}) }))
		}
		out = append(out, of(fmt.Sprint("adaptive pool ", p), func(b *ir.Builder) ir.Value { return ops.AdaptiveAvgPool(b, x(b), 7, 7) }))
		for _, mode := range []string{ops.ResizeNearest, ops.ResizeLinear, ops.ResizeCubic} {
			for _, size := range []int{2 * p[1], 3 * p[1] / 4} {
				out = append(out, of(fmt.Sprint("resize ", mode, " ", p, " to ", size), func(b *ir.Builder) ir.Value {
					return ops.Resize(b, x(b), ops.ResizeAttrs{Sizes: []int{size, size}, Mode: mode})
				}))
			}
		}
	}
	return append(out,
		of("grid sample", func(b *ir.Builder) ir.Value {
			return image.GridSample(b, floats(b, "x", 8, 64, 64, 32), ops.Tanh(b, floats(b, "grid", 8, 64, 64, 2)))
		}),
		of("patches", func(b *ir.Builder) ir.Value { return image.Unfold(b, floats(b, "x", 8, 64, 64, 32), []int{3, 3}) }),
		of("pixel shuffle", func(b *ir.Builder) ir.Value { return ops.PixelShuffle(b, floats(b, "x", 8, 64, 64, 128), 2) }),
		of("reflected padding", func(b *ir.Builder) ir.Value {
			return ops.PadMode(b, floats(b, "x", 16, 128, 128, 32), []int{0, 3, 3, 0}, []int{0, 3, 3, 0}, "reflect")
		}),
		of("every other pixel", func(b *ir.Builder) ir.Value {
			return ops.Slice(b, floats(b, "x", 64, 256, 256), ir.Dims(0, 0, 1), ir.Dims(64, 128, 100), []int{1, 2, 2})
		}))
}
