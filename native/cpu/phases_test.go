package cpu_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestTransposedConvolutions compares transposed convolutions, with windows longer and shorter than the
// strides, so that some results have no terms, with the definition in f64.
func TestTransposedConvolutions(t *testing.T) {
	const batch, h, w, in = 2, 10, 11, 20
	for _, c := range []struct {
		kernel, strides [2]int
		groups, pad     int
		planes          bool
		out             int
	}{
		{[2]int{3, 4}, [2]int{2, 3}, 1, 1, false, 8},
		{[2]int{4, 3}, [2]int{2, 2}, 1, 1, true, 8},
		{[2]int{2, 5}, [2]int{3, 2}, 2, 0, false, 8},
		{[2]int{4, 4}, [2]int{2, 2}, 1, 1, false, 3}, // to an image
		{[2]int{4, 4}, [2]int{2, 2}, 1, 1, false, 1},
	} {
		out := c.out
		x, weight := random(batch*h*w*in), random(c.kernel[0]*c.kernel[1]*in*out/c.groups)
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(batch, h, w, in)...)
			pad := []int{c.pad, c.pad}
			y := ops.ConvTranspose(b, x, b.Input("w", ir.F32, ir.Dims(c.kernel[0], c.kernel[1], in, out/c.groups)...), ir.Value{}, ops.ConvTransposeAttrs{
				Strides: c.strides[:], PadLo: pad, PadHi: pad, Groups: c.groups,
			})
			y = ops.Add(b, y, ops.Const(b, ir.F32, 1)) // an epilogue
			if c.planes {
				y = ops.Transpose(b, y, 0, 3, 1, 2)
			}
			b.Output("y", y)
		})
		height, wide := (h-1)*c.strides[0]+c.kernel[0]-2*c.pad, (w-1)*c.strides[1]+c.kernel[1]-2*c.pad
		want := make([]float64, batch*height*wide*out)
		for i := range want {
			want[i] = 1
		}
		from, to := in/c.groups, out/c.groups
		for at := range batch * h * w * in {
			n, row, col, ch := at/(h*w*in), at/(w*in)%h, at/in%w, at%in
			for tap := range c.kernel[0] * c.kernel[1] * to {
				k, o := tap/to, ch/from*to+tap%to
				i, j := row*c.strides[0]+k/c.kernel[1]-c.pad, col*c.strides[1]+k%c.kernel[1]-c.pad
				if i < 0 || i >= height || j < 0 || j >= wide {
					continue
				}
				place := ((n*height+i)*wide+j)*out + o
				if c.planes {
					place = ((n*out+o)*height+i)*wide + j
				}
				want[place] += float64(x[at]) * float64(weight[(k*in+ch)*to+tap%to])
			}
		}
		everyLevel(t, func(t *testing.T) {
			p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
			got, err := run(t, p, map[string]native.Tensor{
				"x": native.Float32s(x, batch, h, w, in), "w": native.Float32s(weight, c.kernel[0], c.kernel[1], in, to),
			})["y"].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				near(t, "y", i, got[i], want[i], 1e-4)
			}
		})
	}
}

// TestTransposedConvolutionToAnImage counts the products of one: all phases are one product, whose factors are read where they
// are, the images with their padding.
func TestTransposedConvolutionToAnImage(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(4, 32, 32, 64)...), b.Input("w", ir.F32, ir.Dims(4, 4, 64, 3)...)
		b.Output("y", ops.ConvTranspose(b, x, w, ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}))
	})
	p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
	in, out := tensorsOf(t, p)
	runBound(t, bind(t, p, "run", in, out))
	timings, err := p.(native.Profiler).Profile(t.Context(), "run", 1)
	if err != nil {
		t.Fatal(err)
	}
	products := 0
	for _, x := range timings {
		if strings.HasSuffix(x.Name, "product") {
			products += x.Launches
		}
		if strings.HasSuffix(x.Name, " a") || strings.HasSuffix(x.Name, " b") {
			t.Errorf("step %s copies a factor for each phase", x.Name)
		}
	}
	if products != 1 {
		t.Errorf("%d products, not 1", products)
	}
}

// TestLossOfAnImage compares an image of three channels, which a convolution makes in four phases, and its loss with the
// reference. Rows of three fill no vector: the sums are first copied to their places, and both read a repeated bias.
func TestLossOfAnImage(t *testing.T) {
	const batch, size, in, out = 2, 64, 8, 3
	g := build(t, func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(batch, size, size, in)...), b.Input("w", ir.F32, ir.Dims(4, 4, in, out)...)
		y := ops.ConvTranspose(b, x, w, b.Input("bias", ir.F32, ir.N(out)), ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
		b.Output("y", ops.Tanh(b, y))
		b.Output("loss", ops.Mean(b, ops.Square(b, y)))
	})
	inputs := map[string]native.Tensor{
		"x": native.Float32s(random(batch*size*size*in), batch, size, size, in), "w": native.Float32s(random(16*in*out), 4, 4, in, out), "bias": native.Float32s(random(out), out),
	}
	arrays := map[string]*ir.Array{}
	for name, x := range inputs {
		a, err := x.Array()
		if err != nil {
			t.Fatal(err)
		}
		arrays[name] = a
	}
	reference, err := ir.Eval(g, arrays, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	everyLevel(t, func(t *testing.T) {
		p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
		got := run(t, p, inputs)
		for i, name := range []string{"y", "loss"} {
			values, err := got[name].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for at, want := range reference[i].F {
				near(t, name, at, values[at], want, 1e-5)
			}
		}
		if !jit.Available() {
			return
		}
		timings, err := p.(native.Profiler).Profile(t.Context(), "run", 1)
		if err != nil {
			t.Fatal(err)
		}
		rows, copies := 0, 0
		for _, x := range timings {
			if strings.HasSuffix(x.Name, " rows") {
				rows += x.Launches
			}
			if strings.HasSuffix(x.Name, " copy") {
				copies += x.Launches
			}
		}
		if rows < 2 || copies == 0 {
			t.Errorf("%d steps repeat the bias and %d copy, of %v", rows, copies, timings)
		}
	})
}

// TestGradientsOfPools compares the gradient of the squares of a max pool with overlapping windows, and of an
// average pool of planes, with their definitions in f64: of windows of one block of points, and of two.
func TestGradientsOfPools(t *testing.T) {
	gradientsOfPools(t, 3, 2)
	gradientsOfPools(t, 7, 1)
}

func gradientsOfPools(t *testing.T, window, stride int) {
	const batch, h, w, channels = 4, 23, 25, 32
	half, rows, columns := window/2, (h-1)/stride+1, (w-1)/stride+1
	x := random(batch * h * w * channels)
	g := build(t, func(b *ir.Builder) {
		pool := ops.PoolAttrs{Sizes: []int{window, window}, Strides: []int{stride, stride}, PadLo: []int{half, half}, PadHi: []int{half, half}}
		v := b.Input("x", ir.F32, ir.Dims(batch, h, w, channels)...)
		y := ops.MaxPool(b, v, pool)
		pool.Strides = []int{1, 1}
		planes := ops.Transpose(b, b.Input("planes", ir.F32, ir.Dims(batch, channels, h, w)...), 0, 2, 3, 1)
		mean := ops.AvgPool(b, planes, ops.AvgPoolAttrs{PoolAttrs: pool, CountIncludePad: true})
		b.Output("mean", ops.Transpose(b, mean, 0, 3, 1, 2))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
	})
	g, err := autodiff.ValueAndGrad(g, "loss", "x")
	g = must(t, g, err)
	want, means := make([]float64, len(x)), make([]float64, len(x))
	for i := range batch * channels * rows * columns {
		ch, col, row, n := i%channels, i/channels%columns*stride, i/channels/columns%rows*stride, i/channels/columns/rows
		best := -1
		for k := range window * window {
			at := [2]int{row + k/window - half, col + k%window - half}
			if place := ((n*h+at[0])*w+at[1])*channels + ch; at[0] >= 0 && at[0] < h && at[1] >= 0 && at[1] < w && (best < 0 || x[place] > x[best]) {
				best = place
			}
		}
		want[best] += 2 * float64(x[best])
	}
	for i := range x {
		plane, row, col := i/(h*w), i/w%h, i%w
		for k := range window * window {
			if at := [2]int{row + k/window - half, col + k%window - half}; at[0] >= 0 && at[0] < h && at[1] >= 0 && at[1] < w {
				means[i] += float64(x[(plane*h+at[0])*w+at[1]]) / float64(window*window)
			}
		}
	}
	everyLevel(t, func(t *testing.T) {
		p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
		out := run(t, p, map[string]native.Tensor{"x": native.Float32s(x, batch, h, w, channels), "planes": native.Float32s(x, batch, channels, h, w)})
		for name, want := range map[string][]float64{autodiff.GradName("x"): want, "mean": means} {
			got, err := out[name].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				near(t, name, i, got[i], want[i], 1e-5)
			}
		}
	})
}
