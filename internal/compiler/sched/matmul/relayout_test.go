package matmul_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// relayoutCases are convolutions with operands that multiply-adds cannot read in pieces.
var relayoutCases = []struct {
	name    string
	bf16    string // the operands of which multiply-adds read a relayout, in bf16
	tf32    string // and in TF32
	product func(b *ir.Builder, d ir.DType)
}{
	{"three channels of an image, zeros behind them", "left", "left", func(b *ir.Builder, d ir.DType) {
		convolve(b, d, []int{1, 9, 10, 3}, []int{5, 5, 3, 16}, 2, 1)
	}},
	{"three channels of eight images, which lie last", "left", "left", func(b *ir.Builder, d ir.DType) {
		convolve(b, d, []int{8, 5, 6, 3}, []int{3, 3, 3, 16}, 1, 1)
	}},
	{"one channel, along one axis", "left", "left", func(b *ir.Builder, d ir.DType) {
		convolve(b, d, []int{3, 90, 1}, []int{9, 1, 8}, 1, 1)
	}},
	{"along three axes", "left", "left", func(b *ir.Builder, d ir.DType) {
		convolve(b, d, []int{2, 4, 5, 4, 2}, []int{3, 2, 3, 2, 8}, 1, 1)
	}},
	{"to three channels", "left right", "left right", func(b *ir.Builder, d ir.DType) {
		convolve(b, d, []int{2, 7, 6, 6}, []int{3, 3, 6, 3}, 1, 1)
	}},
	{"in two groups", "left", "left", func(b *ir.Builder, d ir.DType) {
		convolve(b, d, []int{8, 4, 5, 6}, []int{3, 3, 3, 16}, 1, 2)
	}},
	{"the gradient of weights, with rows of zeros", "left", "left", func(b *ir.Builder, d ir.DType) {
		gradient(b, d, []int{2, 9, 8, 3}, []int{2, 9, 8, 8}, 3)
	}},
	{"the gradient of weights, by eight images", "left", "left", func(b *ir.Builder, d ir.DType) {
		gradient(b, d, []int{8, 5, 4, 3}, []int{8, 5, 4, 8}, 3)
	}},
	{"few channels first", "left right", "left", func(b *ir.Builder, d ir.DType) {
		x, w := b.Input("x", d, ir.Dims(2, 6, 6, 5)...), b.Input("w", d, ir.Dims(16, 6, 3, 3)...)
		b.Output("y", ops.ConvGeneral(b, x, w, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}))
	}},
	{"of shuffled pixels", "left", "left", func(b *ir.Builder, d ir.DType) {
		x := ops.PixelShuffle(b, b.Input("x", d, ir.Dims(2, 3, 4, 32)...), 2)
		b.Output("y", ops.ConvGeneral(b, x, b.Input("w", d, ir.Dims(3, 3, 8, 8)...), channelsLast(2, 1, 1)))
	}},
}

// channelsLast are the attributes of a convolution along some axes, with a padding of 1.
func channelsLast(axes, stride, groups int) ops.ConvAttrs {
	a := ops.ConvAttrs{Lhs: []int{0, axes + 1}, Rhs: []int{axes + 1, axes}, FeatureGroups: ir.N(groups)}
	for i := range axes {
		a.Lhs, a.Rhs = append(a.Lhs, 1+i), append(a.Rhs, i)
		a.Strides, a.PadLo, a.PadHi = append(a.Strides, stride), append(a.PadLo, 1), append(a.PadHi, 1)
	}
	a.Out = a.Lhs
	return a
}

func convolve(b *ir.Builder, d ir.DType, x, w []int, stride, groups int) {
	b.Output("y", ops.ConvGeneral(b, b.Input("x", d, ir.Dims(x...)...), b.Input("w", d, ir.Dims(w...)...), channelsLast(len(x)-2, stride, groups)))
}

// gradient is that of the weights of a square window, for cotangents y.
func gradient(b *ir.Builder, d ir.DType, x, y []int, window int) {
	a := ops.ConvAttrs{
		PadLo: []int{1, 1}, PadHi: []int{window - 2, window - 2},
		Lhs: []int{3, 0, 1, 2}, Rhs: []int{3, 0, 1, 2}, Out: []int{2, 3, 0, 1},
	}
	b.Output("dw", ops.ConvGeneral(b, b.Input("x", d, ir.Dims(x...)...), b.Input("y", d, ir.Dims(y...)...), a))
}

// slowMemory is a device whose memory is so slow that relayouts, which are shorter, replace staged operands.
func slowMemory() plan.Target {
	t := schedtest.Hopper()
	t.Device = hardware.H200()
	t.Device.Bytes /= 1 << 10
	return t
}

func TestConvolutionsReadRelayouts(t *testing.T) {
	for _, c := range relayoutCases {
		for i, d := range []ir.DType{ir.BF16, ir.F32} {
			t.Run(c.name+", "+d.String(), func(t *testing.T) {
				g := schedtest.Build(t, func(b *ir.Builder) { c.product(b, d) })
				tile := []emit.Schedule{matmul.ShortMmaSchedules(slowMemory().Caps)[0], matmul.MmaSchedules(1, slowMemory().Caps)[2]}[i]
				names := schedtest.RunOn(t, g, schedtest.ContractionsBy(t, g, slowMemory(), tile), schedtest.Wholes)
				var relayouts []string
				for _, n := range names {
					if n, ok := strings.CutSuffix(n, "_relayout"); ok {
						relayouts = append(relayouts, n[strings.LastIndex(n, "_")+1:])
					}
				}
				if want := strings.Fields([]string{c.bf16, c.tf32}[i]); !slices.Equal(relayouts, want) {
					t.Errorf("relayouts of %q, not %q, in %q", relayouts, want, names)
				}
			})
		}
	}
}
