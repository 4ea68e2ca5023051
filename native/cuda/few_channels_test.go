//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// convolutions are first and last layers of networks, of few channels: a batch of images of a size, channels before and
// after, and windows with a stride. Where the pixels are shuffled, images of half the size have four times the channels.
var convolutions = []fewChannels{
	{name: "stem_7x7", batch: 64, size: 224, in: 3, out: 64, window: 7, stride: 2},
	{name: "stem_3x3", batch: 64, size: 224, in: 3, out: 64, window: 3, stride: 1},
	{name: "from_3", batch: 16, size: 192, in: 3, out: 64, window: 3, stride: 1},
	{name: "to_3", batch: 16, size: 192, in: 64, out: 3, window: 3, stride: 1},
	{name: "to_3_shuffled", batch: 16, size: 192, in: 64, out: 3, window: 3, stride: 1, shuffled: true},
	{name: "from_1", batch: 256, size: 28, in: 1, out: 32, window: 3, stride: 1},
	{name: "from_4", batch: 4, size: 64, in: 4, out: 320, window: 3, stride: 1},
	{name: "from_6", batch: 8, size: 256, in: 6, out: 48, window: 5, stride: 2},
}

// fewChannels is one of the convolutions.
type fewChannels struct {
	name                                 string
	batch, size, in, out, window, stride int
	shuffled                             bool
}

// BenchmarkConvolutions times convolutions of few channels and their derivatives by images and by weights. Verbose, it
// prints the time of each kernel.
func BenchmarkConvolutions(b *testing.B) {
	d := gpu(b)
	for _, s := range convolutions {
		for _, kind := range []string{"forward", "weights", "images"} {
			for _, c := range stepPrecisions[:2] {
				b.Run(s.name+"_"+kind+"/"+c.name, func(b *testing.B) {
					element := ir.F32
					if c.half != 0 {
						element = c.half
					}
					timeStep(b, d, s.graph(b, element, kind), c.o, func(string) int { return 1 })
				})
			}
		}
	}
}

// graph stores the result of the convolution of bf16 or f32, or one of its derivatives, in a state.
func (s *fewChannels) graph(t testing.TB, d ir.DType, kind string) *ir.Graph {
	t.Helper()
	pad, after := s.window/2, (s.size-1)/s.stride+1
	a := ops.ConvAttrs{
		Strides: []int{s.stride, s.stride}, PadLo: []int{pad, pad}, PadHi: []int{pad, pad},
		Lhs: []int{0, 3, 1, 2}, Rhs: []int{3, 2, 0, 1}, Out: []int{0, 3, 1, 2},
	}
	images := ir.Dims(s.batch, s.size, s.size, s.in)
	if s.shuffled {
		images = ir.Dims(s.batch, s.size/2, s.size/2, 4*s.in)
	}
	g, err := ir.Build("convolution", func(b *ir.Builder) {
		x, w := b.Param("x", d, images...), b.Param("w", d, ir.Dims(s.window, s.window, s.in, s.out)...)
		values, pull := autodiff.VJPOf(b, func(b *ir.Builder, in []ir.Value) []ir.Value {
			if s.shuffled {
				in[0] = ops.PixelShuffle(b, in[0], 2)
			}
			return []ir.Value{ops.ConvGeneral(b, in[0], in[1], a)}
		}, []ir.Value{x, w})
		y := values[0]
		if kind != "forward" {
			cotangents := pull([]ir.Value{b.Param("dy", d, ir.Dims(s.batch, after, after, s.out)...)})
			y = cotangents[map[string]int{"images": 0, "weights": 1}[kind]]
		}
		b.State("result", d, y.Shape()...)
		b.SetState("result", y)
	})
	must(t, err)
	return g
}

// Convolutions of few channels by multiply-adds equal those by other kernels, in f32, for whole numbers so small that
// nothing is rounded.
func TestGPUConvolvesFewChannels(t *testing.T) {
	d := gpu(t)
	for _, s := range []fewChannels{
		{name: "7x7", batch: 16, size: 63, in: 3, out: 64, window: 7, stride: 2},
		{name: "3x3", batch: 3, size: 256, in: 3, out: 64, window: 3, stride: 1},
		{name: "to 3, shuffled", batch: 4, size: 64, in: 64, out: 3, window: 3, stride: 1, shuffled: true},
	} {
		for _, kind := range []string{"forward", "weights", "images"} {
			for _, c := range stepPrecisions[:2] {
				t.Run(s.name+", "+kind+", "+c.name, func(t *testing.T) {
					got, want := s.results(t, d, c.half, kind, c.o), s.results(t, d, 0, kind, native.Options{})
					for i := range want {
						if got[i] != want[i] {
							t.Fatalf("element %d is %g, not %g", i, got[i], want[i])
						}
					}
				})
			}
		}
	}
}

// results runs the convolution on whole numbers, most of them 0.
func (s *fewChannels) results(t *testing.T, b native.Backend, half ir.DType, kind string, o native.Options) []float64 {
	t.Helper()
	d := ir.F32
	if half != 0 {
		d = half
	}
	ctx, g := context.Background(), s.graph(t, d, kind)
	p := compileWith(t, b, g, o)
	for i, port := range g.Ports() {
		if port.Kind == ir.ParamPort {
			dims, _ := port.Value.Shape().Ints()
			n, _ := port.Value.Shape().Size().Const()
			x := tensor(d, sparse(uint64(i), n), 1, n, false)
			x.Dims = dims
			must(t, p.Set(ctx, port.Name, x))
		}
	}
	bound, err := p.Bind(ctx, "step", nil, nil)
	must(t, err)
	must(t, bound.Start(ctx))
	must(t, bound.Wait(ctx))
	x, err := p.Get(ctx, "result")
	must(t, err)
	out := make([]float64, len(x.Data)/d.Size())
	for i := range out {
		var bits uint64
		for j := range d.Size() {
			bits |= uint64(x.Data[i*d.Size()+j]) << (8 * j)
		}
		out[i] = d.FloatFromBits(bits)
	}
	return out
}
