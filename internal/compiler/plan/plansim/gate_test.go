package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// chosen is one of two chains of n products of rows×rows matrices.
func chosen(rows, n int) (*ir.Graph, error) {
	return ir.Build("chosen", func(b *ir.Builder) {
		x, p := b.Input("x", ir.F32, ir.Dims(rows, rows)...), b.Input("p", ir.Bool)
		chain := func(sign float64) ops.Branch {
			return func(b *ir.Builder, in []ir.Value) []ir.Value {
				y := ops.Mul(b, in[0], ops.Const(b, ir.F32, sign))
				for range n {
					y = ops.Tanh(b, ops.MatMul(b, y, in[0]))
				}
				return []ir.Value{y}
			}
		}
		b.Output("y", ops.Cond(b, p, []ir.Value{x}, chain(1), chain(-1))[0])
	})
}

// TestBranchesRunOnlyWhereTaken counts the dispatches of a run with and without those that a gate
// skips: by the rule for targets, products in branches justify a gate from 1<<20 multiplications
// on.
func TestBranchesRunOnlyWhereTaken(t *testing.T) {
	for _, c := range []struct {
		what             string
		rows, n          int
		all, held, gates int
	}{
		{"small branches", 16, 2, 4, 0, 0},
		{"large branches", 128, 2, 5, 4, 1},
	} {
		g, err := chosen(c.rows, c.n)
		if err != nil {
			t.Fatal(err)
		}
		p := compiled(t, g)
		held, gates := 0, 0
		for _, s := range p.Entries[0].Steps {
			d := s.(*plan.Dispatch)
			if d.Grid != nil {
				held++
			}
			if p.Kernels[d.Kernel].Name == "gate" {
				gates++
			}
		}
		if all := p.Entries[0].Dispatches(); all != c.all || held != c.held || gates != c.gates {
			t.Errorf("%s: %d dispatches, %d of them behind %d gates, want %d, %d, %d", c.what, all, held, gates, c.all, c.held, c.gates)
		}
	}
	g, err := chosen(5, 2)
	if err != nil {
		t.Fatal(err)
	}
	gated := plan.WebGPU()
	gated.Branch = 1
	for _, p := range []int64{0, 1} {
		values := someValues(g)
		values["p"] = ir.Int(ir.Bool, p)
		checkTwoRuns(t, g, values, gated)
	}
}

// doubled doubles x until it is 9 or more.
func doubled(b *ir.Builder, x ir.Value) ir.Value {
	return ops.WhileLoop(b, ops.While{
		Carries: []ir.Value{x},
		Cond:    func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, 9)) },
		Body:    func(b *ir.Builder, _, c []ir.Value) []ir.Value { return []ir.Value{ops.Add(b, c[0], c[0])} },
	})[0]
}

// Loops without a bound run in each step of a scan and in a branch, both where the device skips
// launches and where it runs empty grids.
func TestLoopsWithoutABound(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		_, ys := ops.Scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, xs []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{doubled(b, xs[0])}
		}})
		b.Output("each", ys[0])
		first := ops.ReduceMax(b, x)
		b.Output("branch", ops.Cond(b, ops.Gt(b, first, ops.Const(b, ir.F32, 3)), []ir.Value{first},
			func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{doubled(b, in[0])} },
			func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Neg(b, in[0])} })[0])
	})
	branching := plan.WebGPU()
	branching.Branches = true
	for _, target := range []plan.Target{branching, plan.WebGPU(), plan.WebAssembly(false)} {
		for _, x := range [][]float64{{1, 10, 3.5}, {9, 1, 0.25}, {2, 1, 0.5}} {
			checkTwoRuns(t, g, map[string]*ir.Array{"x": ir.Floats(ir.F32, x, 3)}, target)
		}
	}
}
