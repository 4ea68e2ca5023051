package cpu_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestGradientsOfConvolutions has sums long enough for the filters' gradient to be computed
// transposed, and numbers of channels for tiles of every height. The expected values are sums
// in f64 by the definition of a convolution.
func TestGradientsOfConvolutions(t *testing.T) {
	const batch, in, out, size, kernel = 3, 5, 21, 19, 3
	x, w, dy := random(batch*in*size*size), random(out*in*kernel*kernel), random(batch*out*size*size)
	loss := build(t, func(b *ir.Builder) {
		y := ops.ConvGeneral(b, b.Param("x", ir.F32, ir.Dims(batch, in, size, size)...), b.Param("w", ir.F32, ir.Dims(out, in, kernel, kernel)...),
			ops.ConvAttrs{Strides: []int{1, 1}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, b.Input("dy", ir.F32, ir.Dims(batch, out, size, size)...))))
	})
	wantX, wantW := make([]float64, len(x)), make([]float64, len(w))
	for n := range batch {
		for place := range out * size * size {
			o, i, j := place/size/size, place/size%size, place%size
			g := float64(dy[n*out*size*size+place])
			for f := range in * kernel * kernel {
				c, row, col := f/kernel/kernel, i+f/kernel%kernel-1, j+f%kernel-1
				if row < 0 || row >= size || col < 0 || col >= size {
					continue
				}
				from := ((n*in+c)*size+row)*size + col
				wantX[from] += g * float64(w[o*in*kernel*kernel+f])
				wantW[o*in*kernel*kernel+f] += g * float64(x[from])
			}
		}
	}
	everyLevel(t, func(t *testing.T) {
		g, err := autodiff.ValueAndGrad(loss, "loss", "x", "w")
		p := compileGraphs(t, ir.Entry{Name: "run", Graph: must(t, g, err)})
		for name, v := range map[string]native.Tensor{"x": native.Float32s(x, batch, in, size, size), "w": native.Float32s(w, out, in, kernel, kernel)} {
			if err := p.Set(context.Background(), name, v); err != nil {
				t.Fatal(err)
			}
		}
		results := map[string]native.Tensor{}
		for _, s := range p.Slots("run") {
			if s.Role == native.Output {
				results[s.Name] = native.Zeros(s.DType, s.Dims...)
			}
		}
		runBound(t, bind(t, p, "run", map[string]native.Tensor{"dy": native.Float32s(dy, batch, out, size, size)}, results))
		for name, want := range map[string][]float64{"x": wantX, "w": wantW} {
			got, err := results[autodiff.GradName(name)].Float32s()
			if err != nil {
				t.Fatal(name, err)
			}
			for i := range want {
				near(t, "gradient of "+name, i, got[i], want[i], 1e-4)
			}
		}
	})
}

// TestGradientToOneChannelReadsRows checks that the windows are read row by row, with all channels of a pixel after each other,
// although the filters are read backwards.
func TestGradientToOneChannelReadsRows(t *testing.T) {
	loss := build(t, func(b *ir.Builder) {
		y := ops.Conv2D(b, b.Param("x", ir.F32, ir.Dims(2, 28, 28, 1)...), b.Param("w", ir.F32, ir.Dims(5, 5, 1, 20)...), ir.Value{}, ops.Conv2DAttrs{Groups: 1})
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, y)))
	})
	g, err := autodiff.Grad(loss, "loss", "x")
	p := compileGraphs(t, ir.Entry{Name: "run", Graph: must(t, g, err)})
	if runs := cpu.RunsOfWindows(p); runs != 5 {
		t.Errorf("a window of 5 rows is read in %d runs", runs)
	}
}

// TestConvolutionsDoNotModifyOperands pads images into a tensor that is also a result.
func TestConvolutionsDoNotModifyOperands(t *testing.T) {
	const batch, in, out, size = 4, 3, 5, 20
	x, w := random(batch*in*size*size), random(out*in*9)
	results := func(padded bool) map[string][]float32 {
		return outputs(t, graph(t, func(b *ir.Builder) {
			x, w := b.Input("x", ir.F32, ir.Dims(batch, in, size, size)...), b.Input("w", ir.F32, ir.Dims(out, in, 3, 3)...)
			margin := []int{1, 1}
			if padded {
				x, margin = ops.Pad(b, x, ops.Const(b, ir.F32, 0), []int{0, 0, 1, 1}, []int{0, 0, 1, 1}, nil), []int{0, 0}
				b.Output("padded", x)
			}
			b.Output("y", ops.ConvGeneral(b, x, w, ops.ConvAttrs{Strides: []int{1, 1}, PadLo: margin, PadHi: margin}))
		}), map[string]native.Tensor{"x": native.Float32s(x, batch, in, size, size), "w": native.Float32s(w, out, in, 3, 3)})
	}
	want, got := results(false), results(true)
	for i, y := range want["y"] {
		near(t, "y", i, got["y"][i], float64(y), 0)
	}
	const wide = size + 2
	for i, v := range got["padded"] {
		plane, row, col, inside := i/wide/wide, i/wide%wide-1, i%wide-1, 0.0
		if row >= 0 && row < size && col >= 0 && col < size {
			inside = float64(x[(plane*size+row)*size+col])
		}
		near(t, "padded", i, v, inside, 0)
	}
}
