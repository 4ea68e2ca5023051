//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// timedConvolutions are those of residual networks, VGG, a U-Net, DenseNet, a network for videos and one for speech, and first and last
// layers of few channels.
var timedConvolutions = []convolution{
	{images: []int{64, 56, 56, 64}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{64, 28, 28, 128}, out: 128, window: 3, lo: 1, hi: 1},
	{images: []int{64, 14, 14, 256}, out: 256, window: 3, lo: 1, hi: 1},
	{images: []int{64, 7, 7, 512}, out: 512, window: 3, lo: 1, hi: 1},
	{images: []int{64, 56, 56, 128}, out: 128, window: 3, stride: 2, lo: 1, hi: 1},
	{images: []int{64, 56, 56, 256}, out: 512, window: 1, stride: 2},
	{images: []int{64, 224, 224, 64}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{64, 112, 112, 128}, out: 128, window: 3, lo: 1, hi: 1},
	{images: []int{64, 28, 28, 512}, out: 512, window: 3, lo: 1, hi: 1},
	{images: []int{8, 32, 32, 128}, out: 128, window: 3, lo: 1, hi: 1},
	{images: []int{64, 28, 28, 128}, out: 32, window: 3, lo: 1, hi: 1},
	{images: []int{8, 16, 56, 56, 64}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{16, 96, 96, 32}, out: 32, window: 3, lo: 1, hi: 1},
	{images: []int{16, 1500, 512}, out: 512, window: 3, lo: 1, hi: 1},
	{images: []int{64, 224, 224, 3}, out: 64, window: 7, stride: 2, lo: 3, hi: 3},
	{images: []int{64, 224, 224, 3}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{16, 192, 192, 3}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{16, 192, 192, 64}, out: 3, window: 3, lo: 1, hi: 1},
	{images: []int{16, 192, 192, 64}, out: 3, window: 3, lo: 1, hi: 1, shuffled: true},
	{images: []int{256, 28, 28, 1}, out: 32, window: 3, lo: 1, hi: 1},
	{images: []int{4, 64, 64, 4}, out: 320, window: 3, lo: 1, hi: 1},
	{images: []int{8, 256, 256, 6}, out: 48, window: 5, stride: 2, lo: 2, hi: 2},
}

// BenchmarkConvolutions times convolutions and their gradients: microseconds and operations per second.
func BenchmarkConvolutions(b *testing.B) {
	d := gpu(b)
	for i := range timedConvolutions {
		c := &timedConvolutions[i]
		for _, precision := range []string{"bf16", "tf32"} {
			for _, kind := range convolutionKinds {
				b.Run(fmt.Sprintf("%s_%s/%s", c, kind, precision), func(b *testing.B) {
					g := convolved(b, c, map[string]ir.DType{"bf16": ir.BF16, "tf32": ir.F32}[precision], kind)
					p := compileWith(b, d, g, native.Options{TF32: true})
					begin(b, p, g, 1)
					replayed(b, p)
					weights, result := c.sizes()
					work := 2 * float64(product(result)) * float64(product(weights)/c.out)
					b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e12, "TFLOP/s")
					b.ReportMetric(float64(cuda.Launches(p)), "launches")
				})
			}
		}
	}
}

// convolved stores what a kind computes of a convolution in a state.
func convolved(b *testing.B, c *convolution, d ir.DType, kind string) *ir.Graph {
	weights, result := c.sizes()
	dims := map[string][]int{"forward": result, "images": c.stored(), "weights": weights}[kind]
	g, err := ir.Build("convolution", func(b *ir.Builder) {
		in := func(name string, dims []int) ir.Value { return b.Param(name, d, ir.Dims(dims...)...) }
		b.State("y", d, ir.Dims(dims...)...)
		b.SetState("y", c.of(b, kind, in("x", c.stored()), in("w", weights), in("ct", result)))
	})
	must(b, err)
	return g
}
