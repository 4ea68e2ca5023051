package cpu_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// depthwiseCase is a depthwise convolution of square images, with padding of half the window.
type depthwiseCase struct{ batch, size, channels, window, stride, dilation int }

func (c depthwiseCase) pad() int { return c.dilation * (c.window / 2) }
func (c depthwiseCase) out() int { return (c.size-1)/c.stride + 1 }

// loss is the sum of the results times the input "r".
func (c depthwiseCase) loss(tb testing.TB) *ir.Graph {
	return build(tb, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(c.batch, c.size, c.size, c.channels)...)
		w := b.Param("w", ir.F32, ir.Dims(c.window, c.window, 1, c.channels)...)
		pad := []int{c.pad(), c.pad()}
		y := ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{
			Strides: []int{c.stride, c.stride}, Dilations: []int{c.dilation, c.dilation}, PadLo: pad, PadHi: pad, Groups: c.channels,
		})
		b.Output("y", y)
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, b.Input("r", ir.F32, y.Shape()...))))
	})
}

// reference returns the results and both gradients in f64.
func (c depthwiseCase) reference(x, w, r []float32) (y, dx, dw []float64) {
	out := c.out()
	y, dx, dw = make([]float64, c.batch*out*out*c.channels), make([]float64, len(x)), make([]float64, len(w))
	for n := range c.batch {
		for i := range out * out {
			for k := range c.window * c.window {
				row, col := i/out*c.stride+k/c.window*c.dilation-c.pad(), i%out*c.stride+k%c.window*c.dilation-c.pad()
				if min(row, col) < 0 || max(row, col) >= c.size {
					continue
				}
				for ch := range c.channels {
					from, tap, to := ((n*c.size+row)*c.size+col)*c.channels+ch, k*c.channels+ch, (n*out*out+i)*c.channels+ch
					y[to] += float64(x[from]) * float64(w[tap])
					dx[from] += float64(r[to]) * float64(w[tap])
					dw[tap] += float64(r[to]) * float64(x[from])
				}
			}
		}
	}
	return y, dx, dw
}

// TestDepthwiseConvolutions compares results and gradients with loops in f64.
func TestDepthwiseConvolutions(t *testing.T) {
	for _, c := range []depthwiseCase{
		{2, 9, 16, 3, 1, 1}, {3, 16, 48, 3, 2, 1}, {1, 20, 32, 7, 1, 1}, {2, 13, 64, 5, 1, 2}, {2, 17, 33, 3, 1, 1}, {1, 70, 16, 3, 1, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			g, err := autodiff.ValueAndGrad(c.loss(t), "loss", "x", "w")
			p := compileGraphs(t, ir.Entry{Name: "run", Graph: must(t, g, err)})
			x, w := random(c.batch*c.size*c.size*c.channels), random(c.window*c.window*c.channels)
			r := random(c.batch * c.out() * c.out() * c.channels)
			if err := p.Set(context.Background(), "w", native.Float32s(w, c.window, c.window, 1, c.channels)); err != nil {
				t.Fatal(err)
			}
			out := run(t, p, map[string]native.Tensor{
				"x": native.Float32s(x, c.batch, c.size, c.size, c.channels), "r": native.Float32s(r, c.batch, c.out(), c.out(), c.channels),
			})
			y, dx, dw := c.reference(x, w, r)
			terms := map[string]int{"y": c.window * c.window, autodiff.GradName("x"): c.window * c.window, autodiff.GradName("w"): c.batch * c.out() * c.out()}
			for name, want := range map[string][]float64{"y": y, autodiff.GradName("x"): dx, autodiff.GradName("w"): dw} {
				got, err := out[name].Float32s()
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if !(math.Abs(float64(got[i])-want[i]) <= 4e-7*math.Sqrt(float64(terms[name]))*(1+math.Abs(want[i])/8)) {
						t.Fatalf("%s: element %d is %g, not %g", name, i, got[i], want[i])
					}
				}
			}
		})
	}
}

// BenchmarkDepthwise is the loss of depthwise convolutions and its gradients.
func BenchmarkDepthwise(b *testing.B) {
	for _, c := range []depthwiseCase{{8, 32, 64, 3, 1, 1}, {8, 16, 64, 7, 1, 1}} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			g, err := autodiff.ValueAndGrad(c.loss(b), "loss", "x", "w")
			step := bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: must(b, g, err)}))
			for b.Loop() {
				runBound(b, step)
			}
		})
	}
}
