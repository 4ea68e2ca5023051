package cpu_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// layerJobs are layers over images, sequences and volumes, each described by its name, from which the peer makes
// the same: the op; nhwc for channels last or nchw; the sizes of batch, channels and space; "to" the channels of
// the result; the sizes of the window; and, where they are not 1, strides, dilations and groups. "gradient" adds
// the gradients in both operands of half the sum of squares. Windows have a padding of half their size.
var layerJobs = namedLayers(`
conv nchw 1x3x64x64 to 32 window 3x3
conv nhwc 32x3x32x32 to 16 window 3x3
conv nchw 1x3x224x224 to 24 window 3x3 stride 2
conv nhwc 1x3x224x224 to 64 window 7x7 stride 2
conv nchw 32x6x14x14 to 16 window 5x5
conv nhwc 32x17x17x17 to 17 window 3x3
conv nchw 1x17x33x35 to 19 window 3x3
conv nhwc 1x64x28x28 to 64 window 3x3
conv nchw 32x64x14x14 to 64 window 3x3
conv nhwc 1x256x7x7 to 256 window 3x3
conv nchw 1x96x14x14 to 24 window 1x1
conv nhwc 32x24x14x14 to 144 window 1x1
conv nhwc 1x480x7x7 to 80 window 1x1
conv nchw 4x32x28x28 to 64 window 3x3 stride 2
conv nhwc 32x32x15x15 to 48 window 3x3 stride 2
conv nhwc 4x24x40x40 to 24 window 3x3 dilated 2
conv nchw 1x32x33x33 to 32 window 3x3 dilated 4
conv nhwc 4x48x20x20 to 48 window 3x3 groups 3
conv nhwc 4x64x20x20 to 64 window 3x3 groups 8
conv nchw 1x128x28x28 to 128 window 3x3 groups 32
conv nhwc 8x96x14x14 to 96 window 3x3 groups 6 stride 2
conv nchw 8x240x14x14 to 60 window 1x1 groups 3
conv nhwc 1x72x28x28 to 72 window 5x5 groups 72 stride 2
conv nchw 1x120x28x28 to 120 window 5x5 groups 120
conv nhwc 32x17x15x15 to 17 window 3x3 groups 17
conv nchw 4x32x32x32 to 64 window 3x3 groups 32
conv nhwc 8x24x28x28 to 24 window 7x7 groups 24
conv nhwc 8x17x17x17 to 24 window 3x3 gradient
conv nchw 8x32x28x28 to 32 window 3x3 stride 2 gradient
conv nhwc 1x64x28x28 to 64 window 3x3 gradient
conv nchw 8x3x32x32 to 32 window 5x5 gradient
conv nhwc 8x64x14x14 to 64 window 3x3 groups 4 gradient
conv nchw 4x96x14x14 to 96 window 3x3 groups 32 gradient
conv nchw 4x48x28x28 to 48 window 3x3 groups 48 gradient
conv nhwc 4x48x28x28 to 48 window 5x5 groups 48 stride 2 gradient
conv nhwc 8x24x14x14 to 24 window 3x3 dilated 2 gradient
conv nhwc 8x64x14x14 to 128 window 1x1 stride 2 gradient
conv nwc 1x64x2000 to 64 window 3 dilated 8
conv ncw 8x32x1000 to 32 window 2 dilated 16
conv ncw 16x1x4000 to 17 window 25 stride 5
conv ncw 8x80x300 to 128 window 3
conv nwc 8x64x500 to 64 window 31 groups 64
conv ncw 8x32x500 to 32 window 3 dilated 4 gradient
conv ndhwc 1x3x16x28x28 to 16 window 3x3x3
conv ncdhw 2x16x8x14x14 to 32 window 3x3x3
conv ncdhw 2x16x8x14x14 to 16 window 3x1x1
conv ndhwc 2x16x8x14x14 to 16 window 3x3x3 gradient
transposed nhwc 8x32x16x16 to 32 window 4x4 stride 2
transposed nchw 1x128x7x7 to 64 window 4x4 stride 2
transposed nhwc 4x17x20x20 to 6 window 3x3 stride 2
transposed nchw 8x64x8x8 to 32 window 2x2 stride 2
transposed nhwc 4x32x14x14 to 16 window 4x4 stride 2 gradient
max nchw 8x32x56x56 window 3x3 stride 2
max nhwc 8x17x33x33 window 2x2 stride 2
max nchw 1x192x28x28 window 3x3
max nhwc 8x32x28x28 window 3x3 stride 2 gradient
max nchw 8x24x28x28 window 2x2 stride 2 gradient
max ncdhw 2x16x8x28x28 window 3x3x3 stride 2
average nchw 4x48x28x28 window 3x3
average nhwc 4x48x28x28 window 2x2 stride 2 gradient
bf16 conv nhwc 8x64x14x14 to 64 window 3x3
bf16 conv nchw 8x32x28x28 to 64 window 1x1
bf16 product 1x128x1024x1024
bf16 product 12x128x64x128
bf16 product 1x17x3000x333
bf16 product 1x1x2048x2048
f16 product 1x128x512x512
cholesky 1000 of 4
cholesky 200 of 17
lu 1000 of 8
solve 1000 of 4
solve 100 of 48
qr 500 of 8
eigh 200 of 16
svd 200 of 12
inverse 1000 of 6
cholesky 1 of 300
svd 1 of 200
eigh 1 of 130
`)

func namedLayers(names string) (list []job) {
	for name := range strings.Lines(strings.TrimSpace(names)) {
		name = strings.TrimSpace(name)
		list = append(list, job{name, func(tb testing.TB) *ir.Graph { return parseLayer(tb, name).graph(tb) }})
	}
	return list
}

// layerJob is what a name of layerJobs describes.
type layerJob struct {
	dtype                      ir.DType
	op, layout                 string
	sizes, window              []int // sizes are batch, channels and space
	to, stride, dilated, group int
	of                         int // of a factorisation, the size
	gradient                   bool
}

func parseLayer(tb testing.TB, name string) layerJob {
	sizes := func(s string) (out []int) {
		for x := range strings.SplitSeq(s, "x") {
			n, err := strconv.Atoi(x)
			if err != nil {
				tb.Fatal(name, err)
			}
			out = append(out, n)
		}
		return out
	}
	l := layerJob{dtype: ir.F32, stride: 1, dilated: 1, group: 1}
	words := strings.Fields(name)
	for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F64} {
		if words[0] == d.String() {
			l.dtype, words = d, words[1:]
		}
	}
	l.op, words = words[0], words[1:]
	if strings.HasPrefix(words[0], "n") {
		l.layout, words = words[0], words[1:]
	}
	l.sizes, words = sizes(words[0]), words[1:]
	for ; len(words) > 0; words = words[1:] {
		if words[0] == "gradient" {
			l.gradient = true
			continue
		}
		v := sizes(words[1])
		switch words[0] {
		case "window":
			l.window = v
		default:
			*map[string]*int{"to": &l.to, "stride": &l.stride, "dilated": &l.dilated, "groups": &l.group, "of": &l.of}[words[0]] = v[0]
		}
		words = words[1:]
	}
	return l
}

// image returns the axes of batch, channels and space, and all sizes in their order in memory.
func (l *layerJob) image() (perm, dims []int) {
	rank := len(l.sizes)
	if strings.HasPrefix(l.layout, "nc") {
		return sequence(rank), l.sizes
	}
	perm = append([]int{0, rank - 1}, sequence(rank)[1:rank-1]...)
	dims = make([]int, rank)
	for i, at := range perm {
		dims[at] = l.sizes[i]
	}
	return perm, dims
}

func sequence(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// graph returns the job's graph.
func (l layerJob) graph(tb testing.TB) *ir.Graph {
	if f := factorisations[l.op]; f != nil {
		return typedFactors("", l.dtype, f, l.sizes[0], l.of, l.of).graph(tb)
	}
	if l.op == "product" {
		return multiplied("", l.dtype, l.sizes[0], l.sizes[1], l.sizes[2], l.sizes[3], false).graph(tb)
	}
	g := build(tb, func(b *ir.Builder) {
		_, dims := l.image()
		y := l.layer(b, b.Input("x", l.dtype, ir.Dims(dims...)...))
		if l.gradient {
			y = ops.ReduceSum(b, ops.Mul(b, y, y))
		}
		b.Output("y", y)
	})
	if !l.gradient {
		return g
	}
	wrt := []string{"x", "w"}
	if l.to == 0 {
		wrt = wrt[:1]
	}
	g, err := autodiff.ValueAndGrad(g, "y", wrt...)
	return must(tb, g, err)
}

// layer adds the layer to x.
func (l *layerJob) layer(b *ir.Builder, x ir.Value) ir.Value {
	space, perm := len(l.window), []int(nil)
	perm, _ = l.image()
	each := func(n int) []int { return slices.Repeat([]int{n}, space) }
	pad := make([]int, space)
	for i, w := range l.window {
		pad[i] = (w - 1) / 2 * l.dilated
	}
	if l.op == "conv" {
		a := ops.ConvAttrs{Strides: each(l.stride), PadLo: pad, PadHi: pad, RhsDilation: each(l.dilated), FeatureGroups: ir.N(l.group), Lhs: perm, Out: perm}
		w := append([]int{l.to, l.sizes[1] / l.group}, l.window...)
		if perm[1] != 1 { // [window..., in, out]
			w = append(slices.Clone(l.window), l.sizes[1]/l.group, l.to)
			a.Rhs = append([]int{space + 1, space}, sequence(space)...)
		}
		return ops.ConvGeneral(b, x, b.Input("w", l.dtype, ir.Dims(w...)...), a)
	}
	// The other layers have the channels last.
	last, first := append(append([]int{0}, sequence(space + 2)[2:]...), 1), append([]int{0, space + 1}, sequence(space + 1)[1:]...)
	if perm[1] == 1 {
		x = ops.Transpose(b, x, last...)
	}
	pool := ops.PoolAttrs{Sizes: l.window, Strides: each(l.stride), PadLo: pad, PadHi: pad}
	switch l.op {
	case "max":
		x = ops.MaxPool(b, x, pool)
	case "average":
		x = ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: pool, CountIncludePad: true})
	default:
		w := append(slices.Clone(l.window), l.sizes[1], l.to)
		x = ops.ConvTranspose(b, x, b.Input("w", l.dtype, ir.Dims(w...)...), ir.Value{}, ops.ConvTransposeAttrs{Strides: each(l.stride), PadLo: pad, PadHi: pad})
	}
	if perm[1] == 1 {
		x = ops.Transpose(b, x, first...)
	}
	return x
}

// TestLayersAreGraphs keeps the jobs valid between runs of the benchmark.
func TestLayersAreGraphs(t *testing.T) {
	for _, j := range slices.Concat(layerJobs, factorJobs) {
		if g := j.graph(t); len(g.Outputs()) == 0 {
			t.Errorf("%s computes nothing", j.name)
		}
	}
}

// BenchmarkLayers runs layers, as [BenchmarkSingles].
func BenchmarkLayers(b *testing.B) { benchmarkPairs(b, layerJobs, "peers/layers.py") }
