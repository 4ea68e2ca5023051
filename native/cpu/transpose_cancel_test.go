package cpu_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// normOfPlanes normalises planes as images with the channels last, and multiplies by the largest of each channel and
// by a constant array.
func normOfPlanes(b *ir.Builder, x ir.Value) ir.Value {
	x = ops.Transpose(b, x, 0, 2, 3, 1)
	n, _ := x.Shape().Size().Const()
	var weights []byte
	for i := range n {
		weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(float32(i%7)-2))
	}
	y := ops.Sub(b, x, ops.Mean(b, x, 0, 1, 2))
	y = ops.Mul(b, ops.Mul(b, y, ops.ReduceMax(b, x, 0, 1, 2)), b.Constant(x.Type(), weights))
	return ops.Relu(b, ops.Transpose(b, ops.Add(b, y, ops.Const(b, ir.F32, 0.5)), 0, 3, 1, 2))
}

// TestTransposesAroundNorms looks for transposes that are left of a norm of planes, and for one that windows need.
func TestTransposesAroundNorms(t *testing.T) {
	pooled := func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MaxPool(b, ops.Transpose(b, normOfPlanes(b, x), 0, 2, 3, 1), ops.PoolAttrs{Sizes: []int{2, 2}, Strides: []int{2, 2}})
	}
	for _, c := range []struct {
		name string
		f    func(b *ir.Builder, x ir.Value) ir.Value
		want int // of the operand, of the result, and of the constant array where planes are computed
	}{{"norm", normOfPlanes, 1}, {"norm and pool", pooled, 1}, {"group norm", groupNormOfPlanes, 0}} {
		g, err := cpu.LowerComposites(of("", c.f, 3, 20, 11, 9).graph(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := liveTransposes(g); got != c.want {
			t.Errorf("%s: %d transposes, not %d:\n%s", c.name, got, c.want, g)
		}
	}
}

// groupNormOfPlanes has the groups as an axis of its own between the transposes.
func groupNormOfPlanes(b *ir.Builder, x ir.Value) ir.Value {
	channels := x.Dim(1)
	y := ops.GroupNorm(b, ops.Transpose(b, x, 0, 2, 3, 1), b.Input("scale", ir.F32, channels), b.Input("bias", ir.F32, channels), 2, 1e-5)
	return ops.Silu(b, ops.Transpose(b, y, 0, 3, 1, 2))
}

// TestGroupNormOfPlanes compares Σ y²·z and its gradients with those of group_norm and silu of torch.nn.functional
// (PyTorch 2.15, f64).
func TestGroupNormOfPlanes(t *testing.T) {
	g := of("", func(b *ir.Builder, x ir.Value) ir.Value {
		y := groupNormOfPlanes(b, x)
		return ops.ReduceSum(b, ops.Mul(b, ops.Mul(b, y, y), b.Input("z", ir.F32, x.Shape()...)))
	}, 2, 4, 3, 2).graph(t)
	g, err := autodiff.ValueAndGrad(g, "y", "x", "scale", "bias")
	g = must(t, g, err)
	lowered, err := cpu.LowerComposites(g)
	if n := liveTransposes(must(t, lowered, err)); n > 0 {
		t.Errorf("%d transposes:\n%s", n, lowered)
	}
	x, z := make([]float32, 48), make([]float32, 48)
	for i := range x {
		at := float64(i)
		x[i], z[i] = float32(math.Sin(0.7*at*at+at)), float32(math.Cos(1.3*at))
	}
	got := run(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), map[string]native.Tensor{
		"x": native.Float32s(x, 2, 4, 3, 2), "z": native.Float32s(z, 2, 4, 3, 2),
		"scale": native.Float32s([]float32{1, -0.5, 2, 0.25}, 4), "bias": native.Float32s([]float32{0.1, -0.2, 0.3, 0.4}, 4),
	})
	for name, want := range map[string][]float32{
		"y": {-7.9195013},
		"grad/x": {
			-0.04019555, 0.686714, 0.247002, -0.3361255, 0.4277813, -0.03852579, -0.01293724, 0.1438819, -0.3401676, -0.1423382, -0.1331328, -0.4619566,
			-0.3887812, -0.3729682, 8.351911, 5.637112, -6.443662, -0.4652969, -0.8044246, -1.93267, 0.1754844, -1.421597, -1.962869, -0.372238,
			-0.285517, 0.2942618, -0.9082359, -0.02187169, 0.5800674, 3.264196, -0.4068613, -0.2266426, -0.9797102, 0.07714831, -0.9458644, -0.44097,
			-10.97812, -3.228216, 1.406935, -0.0599956, 0.6632758, -0.5637226, 7.553526, -0.05011322, -0.388457, -0.720823, 4.924471, 1.441238,
		},
		"grad/scale": {4.836453, -0.8568776, -10.00997, -0.3027276},
		"grad/bias":  {3.241463, 0.5222, -5.814536, -0.8755737},
	} {
		values, err := got[name].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if math.Abs(float64(values[i]-w)) > 2e-5 {
				t.Errorf("element %d of %s is %g, not %g", i, name, values[i], w)
			}
		}
	}
}

// TestPatchworksOfTransposesAndReshapes compares random chains of these, elementwise ops and a sum with what the
// reference implementation computes from the graph as it is written.
func TestPatchworksOfTransposesAndReshapes(t *testing.T) {
	turned := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 24))
		g := of("", func(b *ir.Builder, x ir.Value) ir.Value { return patchwork(b, x, r) }, 2, 6, 1, 4).graph(t)
		lowered, err := cpu.LowerComposites(g)
		if err != nil {
			t.Fatalf("%v:\n%s", err, g)
		}
		if liveTransposes(lowered) < liveTransposes(g) {
			turned++
		}
		x := ir.NewArray(ir.F32, 2, 6, 1, 4)
		for i := range x.F {
			x.F[i] = float64(r.IntN(9) - 4)
		}
		in := map[string]*ir.Array{"x": x}
		want, err := ir.Eval(g, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ir.Eval(lowered, in, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0].Dims, want[0].Dims) || !slices.Equal(got[0].F, want[0].F) {
			t.Fatalf("seed %d: other values of\n%s\nby\n%s", seed, g, lowered)
		}
	}
	if turned < 50 {
		t.Errorf("only %d graphs have fewer transposes", turned)
	}
}

// patchwork transposes x, applies random ops, and transposes back or sums over axes.
func patchwork(b *ir.Builder, x ir.Value, r *rand.Rand) ir.Value {
	perm := r.Perm(4)
	start := ops.Transpose(b, x, perm...)
	y := start
	for range 2 + r.IntN(3) {
		switch r.IntN(3) {
		case 0:
			y = ops.Add(b, y, ops.Mul(b, y, y))
		case 1: // some axes are repeated
			shape := y.Shape().Clone()
			for i := range shape {
				if r.IntN(2) == 0 {
					shape[i] = ir.N(1)
				}
			}
			y = ops.Sub(b, y, ops.Reshape(b, ops.Iota(b, ir.F32, 0, shape.Size()), shape...))
		default:
			y = regrouped(b, y, r)
		}
	}
	if r.IntN(2) == 0 {
		return ops.ReduceSum(b, y, r.Perm(y.Rank())[:1+r.IntN(y.Rank())]...)
	}
	if r.IntN(4) == 0 { // another user needs the transposed value
		y = ops.Add(b, y, ops.ReduceSum(b, ops.CumSum(b, y, ops.CumSumAttrs{})))
	}
	y = ops.Reshape(b, y, start.Shape()...)
	back := make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	return ops.Neg(b, ops.Transpose(b, y, back...))
}

// regrouped splits an even axis, or joins an axis and the next.
func regrouped(b *ir.Builder, x ir.Value, r *rand.Rand) ir.Value {
	dims, _ := x.Shape().Ints()
	i := r.IntN(len(dims))
	switch {
	case dims[i]%2 == 0:
		dims = slices.Concat(dims[:i], []int{2, dims[i] / 2}, dims[i+1:])
	case i+1 < len(dims):
		dims = slices.Concat(dims[:i], []int{dims[i] * dims[i+1]}, dims[i+2:])
	}
	return ops.Reshape(b, x, ir.Dims(dims...)...)
}

// liveTransposes counts the transposes that the outputs of a graph depend on.
func liveTransposes(g *ir.Graph) (count int) {
	seen := map[*ir.Node]bool{}
	var visit func(n *ir.Node)
	visit = func(n *ir.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.Op() == ops.OpTranspose {
			count++
		}
		for _, v := range n.Inputs() {
			visit(v.Node())
		}
	}
	for _, o := range g.Outputs() {
		visit(o.Value.Node())
	}
	return count
}
