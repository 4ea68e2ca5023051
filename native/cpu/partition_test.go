package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// width is the size of both dimensions of the values of random graphs.
const width = 8

// drawOp returns a random op on a matrix, with a weight of the same size.
func drawOp(random *rand.Rand) (name string, f func(b *ir.Builder, x, w ir.Value) ir.Value) {
	axis := random.IntN(2)
	switch random.IntN(16) {
	case 0:
		return "tanh", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.Tanh(b, x) }
	case 1:
		return "matmul", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.MatMul(b, x, w) }
	case 2:
		return "matmul from the left", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.MatMul(b, w, x) }
	case 3:
		return "transpose", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) }
	case 4:
		return "softmax", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.Softmax(b, x, axis) }
	case 5:
		return "mean", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Sub(b, x, ops.BroadcastTo(b, ops.ExpandDims(b, ops.Mean(b, x, axis), axis), x.Shape()))
		}
	case 6:
		return "max", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Sub(b, x, ops.BroadcastTo(b, ops.ExpandDims(b, ops.ReduceMax(b, x, axis), axis), x.Shape()))
		}
	case 7:
		return "reshape", func(b *ir.Builder, x, w ir.Value) ir.Value {
			y := ops.Transpose(b, ops.Reshape(b, x, ir.Dims(2, 4, width)...), 1, 0, 2)
			return ops.Reshape(b, y, ir.Dims(width, width)...)
		}
	case 8:
		return "take", func(b *ir.Builder, x, w ir.Value) ir.Value {
			at := ops.Literal(b, ir.Ints(ir.I32, []int64{7, 0, 3, 3, 9, -1, 2, 5}, width))
			return ops.Add(b, ops.Take(b, x, at, axis, ops.OutsideFill), w)
		}
	case 9:
		return "cumsum", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Mul(b, ops.CumSum(b, x, ops.CumSumAttrs{Axis: axis}), ops.Const(b, x.DType(), 0.2))
		}
	case 10:
		return "roll", func(b *ir.Builder, x, w ir.Value) ir.Value {
			x = ops.Mul(b, x, w)
			return ops.Concatenate(b, axis, ops.SliceAxis(b, x, axis, ir.N(3), ir.N(width-3)), ops.SliceAxis(b, x, axis, ir.N(0), ir.N(3)))
		}
	case 11:
		return "sort", func(b *ir.Builder, x, w ir.Value) ir.Value {
			return ops.Sort(b, ops.SortAttrs{Axis: axis}, x, ops.Mul(b, x, w))[1]
		}
	case 12:
		return "convolution", func(b *ir.Builder, x, w ir.Value) ir.Value {
			images := ops.Reshape(b, x, ir.Dims(width, 2, 4)...)
			kernel := ops.Reshape(b, ops.SliceAxis(b, w, 0, ir.N(0), ir.N(2)), ir.Dims(2, 2, 4)...)
			y := ops.ConvGeneral(b, images, kernel, ops.ConvAttrs{PadLo: []int{2}, PadHi: []int{1}})
			return ops.Reshape(b, y, ir.Dims(width, width)...)
		}
	case 13:
		return "windows", func(b *ir.Builder, x, w ir.Value) ir.Value {
			y := ops.Windows(b, x, ops.WindowsAttrs{Axes: []int{axis}, Sizes: []int{3}, Strides: []int{1}, Dilations: []int{1}})
			pad := []int{1 - axis, axis}
			return ops.Pad(b, ops.ReduceMax(b, y, 2), ops.Const(b, x.DType(), 0.5), pad, pad, nil)
		}
	case 14:
		return "dropout", func(b *ir.Builder, x, w ir.Value) ir.Value {
			kept := ops.Lt(b, ops.Uniform(b, ops.Key(b, 3), x.DType(), x.Shape()...), ops.ConstLike(b, x, 0.7))
			return ops.Select(b, kept, x, ops.ZerosLike(b, x))
		}
	}
	return "scatter", func(b *ir.Builder, x, w ir.Value) ir.Value {
		at := ops.Literal(b, ir.Ints(ir.I32, []int64{1, 1, 7, 0, 8, 2, 4, 3}, width, 1))
		a := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{axis}}}
		if axis == 1 {
			x = ops.Transpose(b, x, 1, 0)
		}
		return ops.ScatterAdd(b, w, at, x, a)
	}
}

// TestPartitionsComputeWhatOneDeviceDoes divides random graphs and their derivatives, inputs along random
// axes of meshes of up to 8 ranks.
func TestPartitionsComputeWhatOneDeviceDoes(t *testing.T) {
	for _, mesh := range [][2]int{{2, 1}, {1, 4}, {2, 2}, {4, 2}, {8, 1}} {
		for seed := range uint64(8) {
			d := ir.F64
			if seed%4 == 3 {
				d = ir.F32
			}
			t.Run(fmt.Sprint(mesh, d, seed), func(t *testing.T) { comparePartition(t, mesh, d, rand.New(rand.NewPCG(seed, uint64(mesh[0])))) })
		}
	}
}

func comparePartition(t *testing.T, mesh [2]int, d ir.DType, random *rand.Rand) {
	text := ""
	var list []func(b *ir.Builder, x, w ir.Value) ir.Value
	for range 5 {
		name, f := drawOp(random)
		text, list = text+name+"; ", append(list, f)
	}
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", d, ir.Dims(width, width)...)
		for i, f := range list {
			x = f(b, x, b.Input(fmt.Sprint("w", i), d, ir.Dims(width, width)...))
		}
		b.Output("y", x)
	})
	if err == nil {
		g, err = autodiff.VJP(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := parallel.Partition{Mesh: []parallel.Axis{{Name: "data", Size: mesh[0]}, {Name: "model", Size: mesh[1]}}}
	axes := [][]string{nil, {"data"}, {"", "data"}, {"model"}, {"", "model"}, {"data", "model"}, {"model", "data"}}
	in := map[string]native.Tensor{}
	for _, port := range g.Ports() {
		x := make([]float64, width*width)
		for i := range x {
			x[i] = random.NormFloat64()
		}
		in[port.Name] = native.FromArray(ir.Floats(d, x, width, width))
		s := parallel.Sharding{Pattern: port.Name, Axes: axes[random.IntN(len(axes))]}
		p.Shardings, text = append(p.Shardings, s), text+fmt.Sprint(s)
	}
	divided, report, err := p.Apply(g, nil)
	if err != nil {
		t.Fatal(text, err)
	}
	want := runAlone(t, g, in)
	got := runRanks(t, divided, mesh, func(rank int) map[string]native.Tensor {
		parts := map[string]native.Tensor{}
		for _, s := range p.Shardings {
			parts[s.Pattern] = matrixPart(t, in[s.Pattern], s.Axes, mesh, rank)
		}
		return parts
	})
	tolerance := map[ir.DType]float64{ir.F64: 1e-11, ir.F32: 2e-4}[d]
	for name, x := range want {
		w := elementsOf(t, x)
		for rank := range got {
			for i, y := range elementsOf(t, got[rank][name]) {
				if !(math.Abs(y-w[i]) <= tolerance*max(1, math.Abs(w[i]))) {
					t.Fatalf("%s\n%s of rank %d, element %d: %v, on one device %v\n%s", text, name, rank, i, y, w[i], report)
				}
			}
		}
	}
}

// matrixPart returns a rank's part of a matrix.
func matrixPart(t *testing.T, x native.Tensor, axes []string, mesh [2]int, rank int) native.Tensor {
	from, size := [2]int{}, [2]int{width, width}
	for dim, axis := range axes {
		if axis == "" {
			continue
		}
		at, n := rank/mesh[1], mesh[0]
		if axis == "model" {
			at, n = rank%mesh[1], mesh[1]
		}
		size[dim] /= n
		from[dim] = at * size[dim]
	}
	t.Helper()
	all := elementsOf(t, x)
	var out []float64
	for i := range size[0] {
		out = append(out, all[(from[0]+i)*width+from[1]:][:size[1]]...)
	}
	return native.FromArray(ir.Floats(x.DType, out, size[0], size[1]))
}
