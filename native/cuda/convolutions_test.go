//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
	"github.com/rlx-go/rlx/native/cuda"
)

// convolution is a convolution of images by windows of equal sides, with channels last.
type convolution struct {
	images   []int // batch, spatial axes, channels
	out      int   // channels of the result
	window   int
	stride   int
	dilation int
	lo, hi   int  // padding
	shuffled bool // the images are pixels shuffled from four times the channels in half the size
}

func (c *convolution) String() string {
	name := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.images), " ", "x"), "[]") + fmt.Sprintf("_%d_by_%d", c.out, c.window)
	if c.stride > 1 {
		name += fmt.Sprintf("_stride_%d", c.stride)
	}
	if c.dilation > 1 {
		name += fmt.Sprintf("_dilation_%d", c.dilation)
	}
	if c.shuffled {
		name += "_shuffled"
	}
	return name
}

// attrs returns the attributes, for weights [window..., in, out].
func (c *convolution) attrs() ops.ConvAttrs {
	n := len(c.images) - 2
	a := ops.ConvAttrs{Lhs: []int{0, n + 1}, Rhs: []int{n + 1, n}}
	for i := range n {
		a.Lhs, a.Rhs = append(a.Lhs, i+1), append(a.Rhs, i)
		a.Strides, a.RhsDilation = append(a.Strides, max(c.stride, 1)), append(a.RhsDilation, max(c.dilation, 1))
		a.PadLo, a.PadHi = append(a.PadLo, c.lo), append(a.PadHi, c.hi)
	}
	a.Out = a.Lhs
	return a
}

// sizes returns the sizes of the weights and of the result.
func (c *convolution) sizes() (weights, result []int) {
	n := len(c.images) - 2
	weights = append(slices.Repeat([]int{c.window}, n), c.images[n+1], c.out)
	result = append(result, c.images[0])
	for _, size := range c.images[1 : n+1] {
		result = append(result, (size+c.lo+c.hi-(c.window-1)*max(c.dilation, 1)-1)/max(c.stride, 1)+1)
	}
	return weights, append(result, c.out)
}

// stored returns the sizes of the images as they are stored.
func (c *convolution) stored() []int {
	if !c.shuffled {
		return c.images
	}
	return []int{c.images[0], c.images[1] / 2, c.images[2] / 2, 4 * c.images[3]}
}

// convolutionKinds are the products of a convolution: the result, and the gradients by the images and by the weights.
var convolutionKinds = []string{"forward", "images", "weights"}

// of returns what a kind computes from operands of a type.
func (c *convolution) of(b *ir.Builder, kind string, x, w, ct ir.Value) ir.Value {
	conv := func(b *ir.Builder, in []ir.Value) []ir.Value {
		if c.shuffled {
			in = []ir.Value{ops.PixelShuffle(b, in[0], 2), in[1]}
		}
		return []ir.Value{ops.ConvGeneral(b, in[0], in[1], c.attrs())}
	}
	if kind == "forward" {
		return conv(b, []ir.Value{x, w})[0]
	}
	_, pull := autodiff.VJPOf(b, conv, []ir.Value{x, w})
	return pull([]ir.Value{ct})[slices.Index(convolutionKinds, kind)-1]
}

// copiedConvolutions are read in im2col mode, but for gradients by the images of strided ones.
var copiedConvolutions = []convolution{
	{images: []int{4, 29, 31, 64}, out: 72, window: 3, lo: 1, hi: 1},
	{images: []int{9, 46, 47, 64}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{3, 33, 34, 128}, out: 64, window: 4, stride: 2, lo: 2, hi: 1},
	{images: []int{5, 20, 37, 192}, out: 128, window: 3, dilation: 2, lo: 0, hi: 3},
	{images: []int{2, 1050, 128}, out: 128, window: 5, dilation: 3, lo: 7, hi: 0},
	{images: []int{2, 9, 14, 11, 64}, out: 64, window: 3, lo: 1, hi: 2},
	{images: []int{4, 19, 28, 11, 128}, out: 64, window: 2, stride: 2, lo: 1, hi: 0},
}

// fewChannels have too few channels for that mode.
var fewChannels = []convolution{
	{images: []int{16, 63, 63, 3}, out: 64, window: 7, stride: 2, lo: 3, hi: 3},
	{images: []int{3, 256, 256, 3}, out: 64, window: 3, lo: 1, hi: 1},
	{images: []int{4, 64, 64, 64}, out: 3, window: 3, lo: 1, hi: 1, shuffled: true},
}

// TestGPUConvolves compares convolutions of small whole numbers and their gradients with the CPU's. Nothing is rounded.
func TestGPUConvolves(t *testing.T) {
	gpu(t)
	by := cuda.With(loop.NoProducts)
	warpGroups := strings.Contains(by.Info().Description, "compute capability 9.0")
	for i, c := range slices.Concat(copiedConvolutions, fewChannels) {
		for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
			for _, kind := range convolutionKinds {
				t.Run(fmt.Sprintf("%s %s %s", &c, d, kind), func(t *testing.T) {
					sources := checkConvolution(t, by, &c, d, kind)
					im2col := !(kind == "images" && c.stride > 1) && !(kind == "weights" && d == ir.F32)
					if copied := strings.Contains(sources, "copy_pixels"); warpGroups && i < len(copiedConvolutions) && copied != im2col {
						t.Errorf("im2col mode %t, want %t", copied, im2col)
					}
				})
			}
		}
	}
}

// checkConvolution returns the sources of a convolution's kernels.
func checkConvolution(t *testing.T, by native.Backend, c *convolution, d ir.DType, kind string) string {
	t.Helper()
	weights, result := c.sizes()
	dims := map[string][]int{"x": c.stored(), "w": weights, "ct": result}
	g, err := ir.Build("convolution", func(b *ir.Builder) {
		in := func(name string) ir.Value { return b.Input(name, d, ir.Dims(dims[name]...)...) }
		b.Output("y", ops.Convert(b, c.of(b, kind, in("x"), in("w"), in("ct")), ir.F32))
	})
	must(t, err)
	p := compileWith(t, by, g, native.Options{TF32: true})
	in := map[string]native.Tensor{}
	for i, name := range []string{"x", "w", "ct"} {
		x := sparse(uint64(i), product(dims[name]))
		in[name] = tensor(d, x, 1, len(x), false)
		in[name] = native.Tensor{DType: d, Dims: dims[name], Data: in[name].Data}
	}
	size := map[string][]int{"forward": result, "images": c.stored(), "weights": weights}[kind]
	got, want := resultOf(t, p, in, size), resultOf(t, compileWith(t, cpu.Backend(), g, native.Options{}), in, size)
	for i, x := range got {
		if x != want[i] {
			t.Fatalf("element %d is %g, want %g", i, x, want[i])
		}
	}
	return strings.Join(cuda.Sources(p), "")
}

// resultOf returns the result of a program.
func resultOf(t *testing.T, p native.Program, in map[string]native.Tensor, size []int) []float32 {
	t.Helper()
	out := native.Zeros(ir.F32, size...)
	bound, err := p.Bind(context.Background(), "step", in, map[string]native.Tensor{"y": out})
	must(t, err)
	must(t, bound.Start(context.Background()))
	must(t, bound.Wait(context.Background()))
	got, err := out.Float32s()
	must(t, err)
	return got
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
