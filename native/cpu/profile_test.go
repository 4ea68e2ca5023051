package cpu_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestProfileTimesEveryStep profiles a loop around a product: the names, launches and
// operations are those of a run, and the state changes as often as it ran.
func TestProfileTimesEveryStep(t *testing.T) {
	const n, steps, runs = 8, 5, 3
	g := build(t, func(b *ir.Builder) {
		x, w := b.State("x", ir.F32, ir.Dims(n, n)...), b.Input("w", ir.F32, ir.Dims(n, n)...)
		carries, _ := ops.Scan(b, ops.Loop{
			Consts: []ir.Value{w}, Carries: []ir.Value{x}, Length: ir.N(steps),
			Body: func(b *ir.Builder, w, x, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.MatMul(b, x[0], w[0])}, nil
			},
		})
		b.SetState("x", carries[0])
		sorted := ops.Sort(b, ops.SortAttrs{Axis: 1}, carries[0])
		b.Output("y", sorted[0])
	})
	p, ctx := compileGraphs(t, ir.Entry{Name: "run", Graph: g}), context.Background()
	identity, twice := make([]float32, n*n), make([]float32, n*n)
	for i := range n {
		identity[i*n+i], twice[i*n+i] = 1, 2
	}
	if err := p.Set(ctx, "x", native.Float32s(identity, n, n)); err != nil {
		t.Fatal(err)
	}
	run(t, p, map[string]native.Tensor{"w": native.Float32s(twice, n, n)})
	timings, err := p.(native.Profiler).Profile(ctx, "run", runs)
	if err != nil {
		t.Fatal(err)
	}
	products, sorts := 0, 0
	for _, x := range timings {
		if x.Time <= 0 || x.Bytes <= 0 || x.Name == "" {
			t.Errorf("%q takes %v for %d bytes", x.Name, x.Time, x.Bytes)
		}
		switch {
		case strings.HasSuffix(x.Name, "product"):
			products += x.Launches
			if x.Operations != steps*2*n*n*n {
				t.Errorf("%s makes %g operations", x.Name, x.Operations)
			}
		case strings.Contains(x.Name, "argsort"):
			sorts += x.Launches
		}
	}
	if products != steps || sorts == 0 {
		t.Errorf("%d products and %d steps of a sort were timed:\n%v", products, sorts, timings)
	}
	x, err := p.Get(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := x.Float32s(); got[0] != 1<<(steps*(runs+1)) {
		t.Errorf("after a run and %d profiled ones the state is %g", runs, got[0])
	}
}

func TestProfileRefusesUntimedPrograms(t *testing.T) {
	p, ctx := compileGraphs(t, ir.Entry{Name: "run", Graph: square(t, 4)}).(native.Profiler), context.Background()
	if _, err := p.Profile(ctx, "run", 0); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("no runs: %v", err)
	}
	if _, err := p.Profile(ctx, "walk", 1); !errors.Is(err, ir.ErrName) {
		t.Errorf("an unknown entry: %v", err)
	}
	if _, err := p.Profile(ctx, "run", 1); err != nil {
		t.Errorf("before the first run: %v", err)
	}
}
