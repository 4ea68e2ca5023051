package plansim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/routine"
)

// turnedProduct is x·xᵀ of a matrix of f32 by a library, with memory to work in.
func turnedProduct(n *ir.Node, _ loop.Caps) *ir.Algorithm {
	dims, _ := n.Input(0).Shape().Ints()
	rows, columns := dims[0], dims[1]
	operand := ir.Memory{Space: ir.OperandMemory}
	return &ir.Algorithm{
		Scratch: []ir.Type{ir.TypeOf(ir.U8, ir.N(64))},
		Launches: []ir.KernelLaunch{{
			Routine: routine.Product{
				Operand: ir.F32, Result: ir.F32, Batch: 1, M: rows, N: rows, K: columns, Workspace: 64,
				Left: routine.Layout{Row: columns}, Right: routine.Layout{Row: columns, Transposed: true}, Out: routine.Layout{Row: rows},
			},
			Arrays: []ir.Memory{operand, operand, {Space: ir.ScratchMemory}, {Space: ir.ResultMemory}},
		}},
	}
}

// calls registers an op that names a routine, changed by f.
func calls(t *testing.T, op ir.Op, f func(a *ir.Algorithm)) *ir.Module {
	t.Helper()
	if err := ir.Register(&ir.Def{
		Op: op, Operands: []string{"x"}, NoGrad: "a test", NoTranspose: "a test", NoBatch: "a test",
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			rows := n.Input(0).Dim(0)
			return []ir.Type{{DType: ir.F32, Shape: ir.Shape{rows, rows}}}, nil
		},
		Lower: &ir.KernelsLowering{Kernels: func(n *ir.Node, caps loop.Caps) *ir.Algorithm {
			a := turnedProduct(n, caps)
			f(a)
			return a
		}},
	}); err != nil {
		t.Fatal(err)
	}
	return moduleOf(t, schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 3)...)
		b.Output("y", ops.Neg(b, b.Add1(op, nil, ops.Add(b, x, x))))
	}))
}

func withLibrary() plan.Target {
	t := plan.WebGPU()
	t.Products = loop.AllProducts
	return t
}

// An op names a library routine, which becomes a step of the plan between the kernels before and
// after it.
func TestAnOpCallsALibrary(t *testing.T) {
	m := calls(t, "call.good", func(*ir.Algorithm) {})
	s := open(t, m.Entries[0].Graph, withLibrary())
	out, err := s.Run("run", map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{1, 2, 3, -1, 0, 5}, 2, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := compare(out["y"], ir.Floats(ir.F32, []float64{-56, -56, -56, -104}, 2, 2), 0); diff != "" {
		t.Error(diff)
	}
	if r := s.Plan().Routines; len(r) != 1 || r[0].Name() != "product" {
		t.Errorf("the plan calls %v", r)
	}
	if _, err := plan.Compile(m, plan.WebGPU(), plansim.Text); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("error %v for a target without the library, not of kind %q", err, ir.ErrUnsupported)
	}
}

func TestCallsThatDoNotFitTheirOpAreRefused(t *testing.T) {
	for _, c := range []struct {
		op    ir.Op
		words string
		f     func(a *ir.Algorithm)
	}{
		{"call.fewer", "4 arrays", func(a *ir.Algorithm) { a.Launches[0].Arrays = a.Launches[0].Arrays[1:] }},
		{"call.small", "array 2 is u8[4] of 4 bytes; it must have 64", func(a *ir.Algorithm) { a.Scratch[0] = ir.TypeOf(ir.U8, ir.N(4)) }},
		{"call.writes", "writes operand 0", func(a *ir.Algorithm) { a.Launches[0].Arrays[3] = a.Launches[0].Arrays[0] }},
		{"call.none", "unknown memory 1", func(a *ir.Algorithm) { a.Launches[0].Arrays[2].Number = 1 }},
	} {
		_, err := plan.Compile(calls(t, c.op, c.f), withLibrary(), plansim.Text)
		if !errors.Is(err, ir.ErrDef) || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), string(c.op)) {
			t.Errorf("%s: %v, not of kind %v with %q", c.op, err, ir.ErrDef, c.words)
		}
	}
}
