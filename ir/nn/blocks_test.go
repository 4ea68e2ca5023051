package nn_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestActiveBlocks holds the results and gradients of blocks, some of which are not active, to those of
// all blocks times 1 or 0.
func TestActiveBlocks(t *testing.T) {
	for _, on := range [][]int64{{1}, {0}, {1, 0, 1}} {
		n := len(on)
		block := func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Tanh(b, nn.Linear(b, x, 3, nn.LinearOptions{Name: "f"}))
		}
		results := func(f func(b *ir.Builder, x, active ir.Value) ir.Value) []*ir.Array {
			g, err := ir.Build("g", func(b *ir.Builder) {
				y := f(b, b.Input("x", ir.F32, ir.Dims(n, 2, 3)...), b.Input("active", ir.Bool, ir.Dims(n)...))
				b.Output("loss", ops.ReduceSum(b, ops.Square(b, y)))
				b.Output("y", y)
			})
			if err == nil {
				g, err = autodiff.ValueAndGrad(g, "loss", "x", "f/weight", "f/bias")
			}
			if err != nil {
				t.Fatal(err)
			}
			in := map[string]*ir.Array{"active": ir.Ints(ir.Bool, on, n)}
			for name, dims := range map[string][]int{"x": {n, 2, 3}, "f/weight": {3, 3}, "f/bias": {3}} {
				a := ir.NewArray(ir.F32, dims...)
				for i := range a.F {
					a.F[i] = math.Sin(float64(3*i + len(name)))
				}
				in[name] = a
			}
			out, err := ir.Eval(g, in, ir.EvalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		got := results(func(b *ir.Builder, x, active ir.Value) ir.Value { return nn.ActiveBlocks(b, x, active, block) })
		want := results(func(b *ir.Builder, x, active ir.Value) ir.Value {
			return ops.Mul(b, block(b, x), ops.Convert(b, ops.Reshape(b, active, ir.Dims(n, 1, 1)...), ir.F32))
		})
		for i := range want {
			for j, x := range got[i].F {
				if !(math.Abs(x-want[i].F[j]) <= 1e-5) {
					t.Errorf("blocks %v: result %d, element %d: %v, want %v", on, i, j, x, want[i].F[j])
				}
			}
		}
	}
}

// TestActiveBlocksAreIndependent drops elements of blocks of ones: each block has its own random numbers.
func TestActiveBlocksAreIndependent(t *testing.T) {
	const n, size = 2, 64
	g, err := ir.Build("g", func(b *ir.Builder) {
		nn.Train(b)
		y := nn.ActiveBlocks(b, ops.Ones(b, ir.F32, ir.Dims(n, size)...), ops.Ones(b, ir.Bool, ir.N(n)), func(b *ir.Builder, x ir.Value) ir.Value { return nn.Dropout(b, x, 0.5) })
		b.Output("y", y)
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{nn.RandomState: ir.Ints(ir.U32, []int64{1, 2}, 2)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(g.Outputs(), func(o ir.Output) bool { return o.Name == "y" })
	if y := out[at].F; slices.Equal(y[:size], y[size:]) {
		t.Errorf("both blocks are %v", y[:size])
	}
}

// TestActiveBlocksRefuses has operands and functions that do not fit.
func TestActiveBlocksRefuses(t *testing.T) {
	same := func(_ *ir.Builder, x ir.Value) ir.Value { return x }
	for _, c := range []struct {
		kind      error
		x, active ir.Type
		f         func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{ir.ErrShape, ir.TypeOf(ir.F32, ir.Dims(2, 3)...), ir.TypeOf(ir.Bool, ir.N(3)), same},
		{ir.ErrShape, ir.TypeOf(ir.F32, ir.Dims(2, 3)...), ir.TypeOf(ir.I32, ir.N(2)), same},
		{ir.ErrShape, ir.TypeOf(ir.F32), ir.TypeOf(ir.Bool, ir.N(2)), same},
		{ir.ErrShape, ir.TypeOf(ir.F32, ir.Dims(2, 3)...), ir.TypeOf(ir.Bool, ir.N(2)), func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x) }},
		{ir.ErrSymbol, ir.TypeOf(ir.F32, ir.Sym("n"), ir.N(3)), ir.TypeOf(ir.Bool, ir.Sym("n")), same},
		{ir.ErrGraph, ir.TypeOf(ir.F32, ir.Dims(2, 3)...), ir.TypeOf(ir.Bool, ir.N(2)), nil},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			b.Output("y", nn.ActiveBlocks(b, b.Input("x", c.x.DType, c.x.Shape...), b.Input("active", c.active.DType, c.active.Shape...), c.f))
		})
		if !errors.Is(err, c.kind) {
			t.Errorf("x %s, active %s: %v, want %v", c.x, c.active, err, c.kind)
		}
	}
}
