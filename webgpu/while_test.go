//go:build cgo && !js

package webgpu

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
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

// compiled returns a source of a module with a graph as entry "run".
func compiled(t *testing.T, build func(b *ir.Builder)) source {
	t.Helper()
	g, err := ir.Build("g", build)
	must(t, err)
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	must(t, err)
	return planOf(m)
}

// The sums are those of counting up to the bound by ones: closed forms. A loop of 146
// rounds takes several looks, one of none takes one.
func TestLoopsWithoutABoundRunOnTheDevice(t *testing.T) {
	p := load(t, compiled(t, withLoops))
	upTo := func(x, least float64) float64 { return x + max(0, math.Ceil(least-x)) }
	for _, x := range [][]float64{{1, 4.5, 2}, {200, -30, 9.5}, {2, 1, 0.5}} {
		first := max(x[0], x[1], x[2])
		branch := -first
		if first > 3 {
			branch = upTo(first, 40)
		}
		got := run(t, p, "run", tensors{"x": floats([]float32{float32(x[0]), float32(x[1]), float32(x[2])}, 3)})
		check := func(name string, want ...float64) {
			for i, v := range asFloats(got[name]) {
				if v != want[i] {
					t.Errorf("x %v: %s is %v, not %v", x, name, asFloats(got[name]), want)
				}
			}
		}
		check("alone", upTo(first, 150))
		check("each", upTo(x[0], 10), upTo(x[1], 10), upTo(x[2], 10))
		check("branch", branch)
	}
}

// Those who wait for a run that never ends wait no longer than their contexts say.
func TestEndlessLoopStopsWithItsContext(t *testing.T) {
	open(t)
	p, err := the.open(ctx, "open", native.Options{}, nil, compiled(t, func(b *ir.Builder) {
		b.Output("y", counted(b, b.Input("x", ir.F32), math.Inf(1)))
	}))
	must(t, err)
	endless := tensors{"x": floats([]float32{1e30})} // 1e30 + 1 is 1e30
	soon, stop := context.WithCancel(ctx)
	stop()
	if _, err := p.Run(soon, "run", endless); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	r, err := p.Run(ctx, "run", endless)
	must(t, err)
	soon, stop = context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if _, err := r.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of time: %v", err)
	}
	if err := p.Close(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed out of time: %v", err)
	}
}
