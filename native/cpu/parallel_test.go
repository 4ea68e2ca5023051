package cpu_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// The samples of ops are small. These tests have enough work for all cores and more than a
// block along every axis.

func graph(tb testing.TB, f func(b *ir.Builder)) ir.Entry {
	tb.Helper()
	g, err := ir.Build("run", f)
	if err != nil {
		tb.Fatal(err)
	}
	return ir.Entry{Name: "run", Graph: g}
}

func outputs(tb testing.TB, e ir.Entry, in map[string]native.Tensor) map[string][]float32 {
	tb.Helper()
	p := compileGraphs(tb, e)
	r, err := p.Run(context.Background(), "run", in)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := r.Wait(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	floats := map[string][]float32{}
	for name, x := range out {
		if floats[name], err = x.Float32s(); err != nil {
			tb.Fatal(err)
		}
	}
	return floats
}

func near(tb testing.TB, name string, at int, got float32, want, tol float64) {
	if d := math.Abs(float64(got) - want); !(d <= tol*math.Max(1, math.Abs(want))) {
		tb.Helper() // which takes longer than the comparison
		tb.Fatalf("%s: element %d is %v, want %v", name, at, got, want)
	}
}

func TestLargeMapsAndReductionsOnAllCores(t *testing.T) {
	const rows, cols = 700, 1301
	x := random(rows * cols)
	got := outputs(t, graph(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, cols)...)
		b.Output("turned", ops.Transpose(b, ops.Mul(b, x, x), 1, 0))
		b.Output("rows", ops.ReduceSum(b, x, 1))
		b.Output("cols", ops.ReduceMax(b, x, 0))
		b.Output("all", ops.ReduceSum(b, x))
		b.Output("softmax", ops.Softmax(b, x, 1))
		b.Output("running", ops.CumSum(b, x, ops.CumSumAttrs{Axis: 0}))
	}), map[string]native.Tensor{"x": native.Float32s(x, rows, cols)})
	all := 0.0
	running, largest := make([]float64, cols), make([]float64, cols)
	for j := range largest {
		largest[j] = math.Inf(-1)
	}
	for i := range rows {
		sum, exps := 0.0, 0.0
		for _, v := range x[i*cols : (i+1)*cols] {
			sum, exps = sum+float64(v), exps+math.Exp(float64(v))
		}
		for j := range cols {
			v := float64(x[i*cols+j])
			running[j], largest[j] = running[j]+v, math.Max(largest[j], v)
			near(t, "turned", j*rows+i, got["turned"][j*rows+i], v*v, 1e-6)
			near(t, "softmax", i*cols+j, got["softmax"][i*cols+j], math.Exp(v)/exps, 1e-6)
			near(t, "running", i*cols+j, got["running"][i*cols+j], running[j], 1e-4)
		}
		near(t, "rows", i, got["rows"][i], sum, 1e-5)
		all += sum
	}
	for j := range cols {
		near(t, "cols", j, got["cols"][j], largest[j], 0)
	}
	near(t, "all", 0, got["all"][0], all, 1e-5)
}

func TestLargeProductsInEveryLayout(t *testing.T) {
	const m, n, k = 190, 333, 270
	for _, c := range []struct {
		name       string
		turnA      bool
		turnB      bool
		batch      int
		relu, thin bool
	}{
		{name: "plain", batch: 1},
		{name: "left transposed", turnA: true, batch: 1},
		{name: "right transposed", turnB: true, batch: 1},
		{name: "both transposed", turnA: true, turnB: true, batch: 1},
		{name: "batch", batch: 3},
		{name: "epilogue", batch: 1, relu: true},
		{name: "few columns", batch: 1, thin: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := n
			if c.thin {
				n = 7
			}
			a, y := random(c.batch*m*k), random(c.batch*k*n)
			shapeA, shapeB := []int{c.batch, m, k}, []int{c.batch, k, n}
			if c.turnA {
				shapeA = []int{c.batch, k, m}
			}
			if c.turnB {
				shapeB = []int{c.batch, n, k}
			}
			got := outputs(t, graph(t, func(b *ir.Builder) {
				x, y := b.Input("a", ir.F32, ir.Dims(shapeA...)...), b.Input("b", ir.F32, ir.Dims(shapeB...)...)
				if c.turnA {
					x = ops.Transpose(b, x, 0, 2, 1)
				}
				if c.turnB {
					y = ops.Transpose(b, y, 0, 2, 1)
				}
				z := ops.MatMul(b, x, y)
				if c.relu {
					z = ops.Relu(b, ops.Add(b, z, ops.Const(b, ir.F32, 0.25)))
				}
				b.Output("z", z)
			}), map[string]native.Tensor{"a": native.Float32s(a, shapeA...), "b": native.Float32s(y, shapeB...)})["z"]
			at := func(x []float32, item, rows, cols, i, j int, turned bool) float64 {
				if turned {
					return float64(x[(item*cols+j)*rows+i])
				}
				return float64(x[(item*rows+i)*cols+j])
			}
			for item := range c.batch {
				for i := 0; i < m; i += 7 {
					for j := range n {
						sum := 0.0
						for l := range k {
							sum += at(a, item, m, k, i, l, c.turnA) * at(y, item, k, n, l, j, c.turnB)
						}
						if c.relu {
							sum = math.Max(sum+0.25, 0)
						}
						place := (item*m+i)*n + j
						near(t, "z", place, got[place], sum, 1e-4)
					}
				}
			}
		})
	}
}

func TestBoundStepsDoNotAllocate(t *testing.T) {
	// Large enough for all cores, and with everything a model has.
	step := mlpStep(t, 128, 64, 256, 10)
	runBound(t, step)
	if n := testing.AllocsPerRun(20, func() { runBound(t, step) }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// TestConvolutionsOfManyPoints has enough points for windows to be gathered, with padding,
// strides and a fused operation on the input.
func TestConvolutionsOfManyPoints(t *testing.T) {
	const batch, in, out, size, kernel = 3, 5, 7, 17, 3
	for _, c := range []struct {
		name        string
		stride, pad int
		relu        bool
	}{{"plain", 1, 0, false}, {"padded", 1, 1, false}, {"strided", 2, 1, false}, {"after a relu", 1, 2, true}} {
		t.Run(c.name, func(t *testing.T) {
			x, w := random(batch*in*size*size), random(out*in*kernel*kernel)
			got := outputs(t, graph(t, func(b *ir.Builder) {
				v := b.Input("x", ir.F32, ir.Dims(batch, in, size, size)...)
				if c.relu {
					v = ops.Relu(b, v)
				}
				two := func(n int) []int { return []int{n, n} }
				b.Output("y", ops.ConvGeneral(b, v, b.Input("w", ir.F32, ir.Dims(out, in, kernel, kernel)...),
					ops.ConvAttrs{Strides: two(c.stride), PadLo: two(c.pad), PadHi: two(c.pad)}))
			}), map[string]native.Tensor{
				"x": native.Float32s(x, batch, in, size, size), "w": native.Float32s(w, out, in, kernel, kernel),
			})["y"]
			wide := (size+2*c.pad-kernel)/c.stride + 1
			if len(got) != batch*out*wide*wide {
				t.Fatalf("%d elements", len(got))
			}
			for place, y := range got {
				j, i, o, n := place%wide, place/wide%wide, place/wide/wide%out, place/wide/wide/out
				sum := 0.0
				for k := range in * kernel * kernel {
					q, p, f := k%kernel, k/kernel%kernel, k/kernel/kernel
					row, col := i*c.stride+p-c.pad, j*c.stride+q-c.pad
					if row < 0 || row >= size || col < 0 || col >= size {
						continue
					}
					v := float64(x[((n*in+f)*size+row)*size+col])
					if c.relu {
						v = math.Max(v, 0)
					}
					sum += v * float64(w[o*in*kernel*kernel+k])
				}
				near(t, "y", place, y, sum, 1e-5)
			}
		})
	}
}

// TestSelectsThatAreNotPadding has selects that resemble padding.
func TestSelectsThatAreNotPadding(t *testing.T) {
	const rows, cols = 40, 50
	x := random(rows * cols)
	got := outputs(t, graph(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, cols)...)
		kept := b.Input("kept", ir.Bool, ir.Dims(rows, cols)...)
		zeros := ops.ZerosLike(b, x)
		b.Output("masked", ops.Select(b, kept, x, zeros))
		b.Output("positive", ops.Select(b, ops.Gt(b, x, zeros), x, zeros))
	}), map[string]native.Tensor{"x": native.Float32s(x, rows, cols), "kept": native.Zeros(ir.Bool, rows, cols)})
	for i, v := range x {
		near(t, "masked", i, got["masked"][i], 0, 0)
		near(t, "positive", i, got["positive"][i], math.Max(float64(v), 0), 0)
	}
}
