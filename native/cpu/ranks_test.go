package cpu_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/cpu"
)

// instruction is a step of a random program of several ranks: it has a meaning on each rank, and
// one on one device, for the arrays of all ranks stacked along two axes of the mesh.
type instruction struct {
	text    string
	ranks   func(b *ir.Builder, x ir.Value) ir.Value
	stacked func(b *ir.Builder, x ir.Value) ir.Value
}

// meshAxes are the names of the axes of the meshes of these tests.
var meshAxes = []string{"data", "model"}

// drawCollective returns a random collective along mesh axis k of n ranks, for a local shape, and
// the shape after it; ok is false where the shape does not allow it.
func drawCollective(random *rand.Rand, k, n int, shape [2]int) (in instruction, after [2]int, ok bool) {
	mesh := ops.MeshAttrs{MeshAxis: meshAxes[k], Devices: n}
	axis, other := random.IntN(2), random.IntN(2)
	spread := func(b *ir.Builder, y ir.Value) ir.Value { // gives all ranks along k the same value
		shape := y.Shape().Clone()
		y = ops.ExpandDims(b, y, k)
		full := append(append(append(ir.Shape{}, shape[:k]...), ir.N(n)), shape[k:]...)
		return ops.BroadcastTo(b, y, full)
	}
	at := func(b *ir.Builder, x ir.Value, i int) ir.Value { return ops.SliceAxis(b, x, k, ir.N(i), ir.N(1)) }
	switch random.IntN(7) {
	case 0:
		kind := []string{ops.AllReduceSum, ops.AllReduceMean, ops.AllReduceMax, ops.AllReduceMin}[random.IntN(4)]
		reduce := map[string]func(*ir.Builder, ir.Value, ...int) ir.Value{
			ops.AllReduceSum: ops.ReduceSum, ops.AllReduceMean: ops.Mean, ops.AllReduceMax: ops.ReduceMax, ops.AllReduceMin: ops.ReduceMin,
		}[kind]
		return instruction{
			"all_reduce " + kind,
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllReduce(b, x, mesh, kind) },
			func(b *ir.Builder, x ir.Value) ir.Value { return spread(b, reduce(b, x, k)) },
		}, shape, true
	case 1:
		after = shape
		after[axis] *= n
		return instruction{
			fmt.Sprint("all_gather ", axis),
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllGather(b, x, mesh, axis) },
			func(b *ir.Builder, x ir.Value) ir.Value {
				y := ops.MoveAxis(b, x, k, 1+axis)
				s := y.Shape()
				return spread(b, ops.Reshape(b, y, s[0], ir.N(after[0]), ir.N(after[1])))
			},
		}, after, after[0]*after[1] <= 1024
	case 2:
		after = shape
		after[axis] /= n
		return instruction{
			fmt.Sprint("reduce_scatter ", axis),
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceScatter(b, x, mesh, axis) },
			func(b *ir.Builder, x ir.Value) ir.Value {
				sum := ops.ReduceSum(b, x, k)
				dims := []ir.Dim{sum.Shape()[0]}
				for i, d := range after {
					if i == axis {
						dims = append(dims, ir.N(n))
					}
					dims = append(dims, ir.N(d))
				}
				return ops.MoveAxis(b, ops.Reshape(b, sum, dims...), 1+axis, k)
			},
		}, after, shape[axis]%n == 0
	case 3:
		after = shape
		after[axis] /= n
		after[other] *= n
		return instruction{
			fmt.Sprint("all_to_all ", axis, other),
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllToAll(b, x, mesh, axis, other) },
			func(b *ir.Builder, x ir.Value) ir.Value {
				s := x.Shape()
				dims := []ir.Dim{s[0], s[1]}
				for i, d := range shape {
					if i == axis {
						dims = append(dims, ir.N(n), ir.N(d/n))
					} else {
						dims = append(dims, ir.N(d))
					}
				}
				y := ops.MoveAxis(b, ops.Reshape(b, x, dims...), 2+axis, k) // receivers before senders
				y = ops.MoveAxis(b, y, k+1, 2+other)
				return ops.Reshape(b, y, s[0], s[1], ir.N(after[0]), ir.N(after[1]))
			},
		}, after, shape[axis]%n == 0
	case 4:
		var from, to []int
		senders, receivers := random.Perm(n), random.Perm(n)
		for i := range random.IntN(n + 1) {
			from, to = append(from, senders[i]), append(to, receivers[i])
		}
		return instruction{
			fmt.Sprint("permute ", from, to),
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.CollectivePermute(b, x, mesh, from, to) },
			func(b *ir.Builder, x ir.Value) ir.Value {
				parts := make([]ir.Value, n)
				for i := range parts {
					parts[i] = ops.ZerosLike(b, at(b, x, 0))
				}
				for i := range from {
					parts[to[i]] = at(b, x, from[i])
				}
				return ops.Concatenate(b, k, parts...)
			},
		}, shape, true
	case 5:
		root := random.IntN(n)
		return instruction{
			fmt.Sprint("broadcast ", root),
			func(b *ir.Builder, x ir.Value) ir.Value { return ops.CollectiveBroadcast(b, x, mesh, root) },
			func(b *ir.Builder, x ir.Value) ir.Value {
				return spread(b, ops.Squeeze(b, at(b, x, root), k))
			},
		}, shape, true
	}
	scale := func(b *ir.Builder, x, i ir.Value) ir.Value {
		return ops.Mul(b, x, ops.Add(b, ops.Const(b, x.DType(), 0.5), ops.Mul(b, ops.Convert(b, i, x.DType()), ops.Const(b, x.DType(), 0.25))))
	}
	return instruction{
		"axis_index",
		func(b *ir.Builder, x ir.Value) ir.Value { return scale(b, x, ops.AxisIndex(b, mesh)) },
		func(b *ir.Builder, x ir.Value) ir.Value {
			return scale(b, x, ops.Iota(b, ir.I32, k, x.Shape()...))
		},
	}, shape, true
}

// drawLocal returns a random op without communication.
func drawLocal(random *rand.Rand, shape [2]int) instruction {
	if random.IntN(2) == 0 {
		f := func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Add(b, ops.Tanh(b, x), ops.Mul(b, x, ops.Const(b, x.DType(), 0.3)))
		}
		return instruction{"tanh", f, f}
	}
	w := make([]float64, shape[1]*shape[1])
	for i := range w {
		w[i] = (random.Float64() - 0.5) / math.Sqrt(float64(shape[1]))
	}
	f := func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MatMul(b, x, ops.Convert(b, ops.Literal(b, ir.Floats(ir.F64, w, shape[1], shape[1])), x.DType()))
	}
	return instruction{"matmul", f, f}
}

// TestRanksComputeWhatOneDeviceDoes runs random programs of all collectives on meshes of up to 8
// ranks, forward and backward, and compares them with one device that has the arrays of all ranks
// stacked and no collectives.
func TestRanksComputeWhatOneDeviceDoes(t *testing.T) {
	for _, mesh := range [][2]int{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {4, 1}, {5, 1}, {2, 3}, {7, 1}, {2, 4}, {8, 1}} {
		for seed := range uint64(12) {
			d := []ir.DType{ir.F64, ir.F32}[seed%2]
			t.Run(fmt.Sprint(mesh, d, seed), func(t *testing.T) { compareRanks(t, mesh, d, seed) })
		}
	}
}

// ranksProgram is a random program, with the graphs of its derivative on ranks and on one device.
type ranksProgram struct {
	text           string
	ranks, stacked *ir.Graph
	before, after  [2]int
}

func drawProgram(t *testing.T, mesh [2]int, d ir.DType, random *rand.Rand) ranksProgram {
	t.Helper()
	p := ranksProgram{before: [2]int{4, 6}}
	shape := p.before
	var list []instruction
	for len(list) < 6 {
		list = append(list, drawLocal(random, shape))
		k := random.IntN(2)
		in, after, ok := drawCollective(random, k, mesh[k], shape)
		if ok {
			list, shape = append(list, in), after
			p.text += in.text + " along " + meshAxes[k] + "; "
		}
	}
	p.after = shape
	build := func(name string, dims []int, of func(instruction) func(*ir.Builder, ir.Value) ir.Value) *ir.Graph {
		g, err := ir.Build(name, func(b *ir.Builder) {
			x := b.Input("x", d, ir.Dims(dims...)...)
			for _, in := range list {
				x = of(in)(b, x)
			}
			b.Output("y", x)
		})
		if err == nil {
			g, err = autodiff.VJP(g)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", name, p.text, err)
		}
		return g
	}
	p.ranks = build("ranks", p.before[:], func(in instruction) func(*ir.Builder, ir.Value) ir.Value { return in.ranks })
	p.stacked = build("stacked", append(mesh[:], p.before[:]...), func(in instruction) func(*ir.Builder, ir.Value) ir.Value { return in.stacked })
	return p
}

func compareRanks(t *testing.T, mesh [2]int, d ir.DType, seed uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(mesh[0]*10+mesh[1])))
	p := drawProgram(t, mesh, d, random)
	n := mesh[0] * mesh[1]
	noise := func(dims [2]int) []float64 {
		x := make([]float64, n*dims[0]*dims[1])
		for i := range x {
			x[i] = 2*random.Float64() - 1
		}
		return x
	}
	x, ct := noise(p.before), noise(p.after)
	full := func(x []float64, dims [2]int) native.Tensor {
		return native.FromArray(ir.Floats(d, x, mesh[0], mesh[1], dims[0], dims[1]))
	}
	want := runAlone(t, p.stacked, map[string]native.Tensor{"x": full(x, p.before), "cotangent/y": full(ct, p.after)})
	got := runRanks(t, p.ranks, mesh, func(rank int) map[string]native.Tensor {
		piece := func(x []float64, dims [2]int) native.Tensor {
			size := dims[0] * dims[1]
			return native.FromArray(ir.Floats(d, x[rank*size:][:size], dims[0], dims[1]))
		}
		return map[string]native.Tensor{"x": piece(x, p.before), "cotangent/y": piece(ct, p.after)}
	})
	tolerance := map[ir.DType]float64{ir.F64: 1e-12, ir.F32: 2e-5}[d]
	for _, name := range []string{"y", "grad/x"} {
		all := elementsOf(t, want[name])
		size, scale := len(all)/n, 1.0
		for _, v := range all {
			scale = max(scale, math.Abs(v))
		}
		for rank := range n {
			for i, v := range elementsOf(t, got[rank][name]) {
				if w := all[rank*size+i]; !(math.Abs(v-w) <= tolerance*scale) {
					t.Fatalf("%s\n%s of rank %d, element %d: %v, on one device %v", p.text, name, rank, i, v, w)
				}
			}
		}
	}
}

func elementsOf(t *testing.T, x native.Tensor) []float64 {
	t.Helper()
	a, err := x.Array()
	if err != nil {
		t.Fatal(err)
	}
	return a.F
}

func moduleOf(g *ir.Graph) (*ir.Module, error) {
	return ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
}

// runAlone runs a graph on one device.
func runAlone(t *testing.T, g *ir.Graph, in map[string]native.Tensor) map[string]native.Tensor {
	t.Helper()
	out, err := runOn(t.Context(), g, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func runOn(ctx context.Context, g *ir.Graph, mesh *collective.Mesh, in map[string]native.Tensor) (map[string]native.Tensor, error) {
	m, err := moduleOf(g)
	if err != nil {
		return nil, err
	}
	p, err := cpu.Backend().Compile(ctx, m, native.Options{Mesh: mesh})
	if err != nil {
		return nil, err
	}
	defer p.Close(ctx)
	r, err := p.Run(ctx, "run", in)
	if err != nil {
		return nil, err
	}
	return r.Wait(ctx)
}

// runRanks runs a graph on the ranks of a mesh, in this process.
func runRanks(t *testing.T, g *ir.Graph, mesh [2]int, in func(rank int) map[string]native.Tensor) []map[string]native.Tensor {
	t.Helper()
	groups := collective.Local(mesh[0]*mesh[1], collective.Options{})
	out, errs := make([]map[string]native.Tensor, len(groups)), make([]error, len(groups))
	var all sync.WaitGroup
	for rank, group := range groups {
		all.Go(func() {
			m, err := collective.NewMesh(t.Context(), group, collective.Axis{Name: "data", Size: mesh[0]}, collective.Axis{Name: "model", Size: mesh[1]})
			if err == nil {
				out[rank], err = runOn(t.Context(), g, m, in(rank))
			}
			if errs[rank] = err; err != nil {
				group.Abort(err)
			}
		})
	}
	all.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	return out
}
