//go:build cgo && !js

package exec_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/webgpu/internal/exec"
)

// counted adds 1 to x until it is least or more.
func counted(b *ir.Builder, x ir.Value, least float64) ir.Value {
	return ops.WhileLoop(b, ops.While{
		Carries: []ir.Value{x},
		Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value {
			return ops.Lt(b, c[0], ops.Const(b, ir.F32, least))
		},
		Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
			return []ir.Value{ops.Add(b, c[0], ops.Const(b, ir.F32, 1))}
		},
	})[0]
}

// withLoops are loops without a bound: alone, in each step of a scan, in a branch.
func withLoops(b *ir.Builder) {
	x := b.Input("x", ir.F32, ir.N(3))
	first := ops.ReduceMax(b, x)
	b.Output("alone", counted(b, first, 150))
	_, ys := ops.Scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, xs []ir.Value) (next, ys []ir.Value) {
		return nil, []ir.Value{counted(b, xs[0], 10)}
	}})
	b.Output("each", ys[0])
	b.Output("branch", ops.Cond(b, ops.Gt(b, first, ops.Const(b, ir.F32, 3)), []ir.Value{first},
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{counted(b, in[0], 40)} },
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Neg(b, in[0])} })[0])
}

// compiled compiles a graph as entry "run" for the device.
func compiled(t *testing.T, dev *exec.Device, build func(b *ir.Builder)) *plan.Plan {
	t.Helper()
	g, err := ir.Build("g", build)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, dev.Target(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The sums are those of counting up to the bound by ones: closed forms. A loop of 146
// rounds takes several looks, one of none takes one.
func TestLoopsWithoutABoundRunOnTheDevice(t *testing.T) {
	dev := open(t)
	s := load(t, dev, compiled(t, dev, withLoops))
	e := entry(t, s, "run")
	upTo := func(x, least float64) float64 { return x + max(0, math.Ceil(least-x)) }
	for _, x := range [][]float64{{1, 4.5, 2}, {200, -30, 9.5}, {2, 1, 0.5}} {
		given := floats([]float32{float32(x[0]), float32(x[1]), float32(x[2])}, 3)
		if err := e.Set(ctx, "x", given); err != nil {
			t.Fatal(err)
		}
		first := max(x[0], x[1], x[2])
		branch := -first
		if first > 3 {
			branch = upTo(first, 40)
		}
		// Two steps in one run give the same, as does a second run.
		for _, steps := range []int{1, 2} {
			got := run(t, e, steps, "alone", "each", "branch")
			check := func(name string, want ...float64) {
				for i, v := range asFloats(got[name]) {
					if v != want[i] {
						t.Errorf("x %v, %d steps: %s is %v, not %v", x, steps, name, asFloats(got[name]), want)
					}
				}
			}
			check("alone", upTo(first, 150))
			check("each", upTo(x[0], 10), upTo(x[1], 10), upTo(x[2], 10))
			check("branch", branch)
		}
	}
}

func TestEndlessLoopStopsWithItsContext(t *testing.T) {
	dev := open(t)
	s := load(t, dev, compiled(t, dev, func(b *ir.Builder) {
		b.Output("y", counted(b, b.Input("x", ir.F32), math.Inf(1)))
	}))
	e := entry(t, s, "run")
	if err := e.Set(ctx, "x", floats([]float32{1e30})); err != nil { // 1e30 + 1 is 1e30
		t.Fatal(err)
	}
	soon, stop := context.WithCancel(ctx)
	stop()
	if _, err := e.Run(soon, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	soon, stop = context.WithTimeout(ctx, 300e6)
	defer stop()
	if _, err := e.Run(soon, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of time: %v", err)
	}
	if s.Steps() != 0 {
		t.Errorf("%d steps were counted", s.Steps())
	}
}
