package cpu_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
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

// TestProfileCountsBuffers has the steps of language models: products with packed weights, in place by floats and by
// integers and unpacked with rounded rows, and attention over a cache, of which all positions count. The results of many
// workers would count, too.
func TestProfileCountsBuffers(t *testing.T) {
	if !cpu.Alone(t, "GOMAXPROCS=2") {
		return
	}
	const n, k, room, depth = 96, 64, 128, 16
	product := func(of func(b *ir.Builder, x, w ir.Value, format string) ir.Value, rows int) func(b *ir.Builder) ir.Value {
		return func(b *ir.Builder) ir.Value {
			return of(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), b.Param("w", ir.U8, ir.Dims(n, k/32*34)...), "q8_0")
		}
	}
	attention := func(b *ir.Builder) ir.Value {
		input := func(name string, rows int) ir.Value { return b.Input(name, ir.F32, ir.Dims(2, rows, depth)...) }
		return ops.CachedAttention(b, input("q", 1), ops.KVCache{K: input("k", room), V: input("v", room), Past: b.Input("past", ir.I32)}, ops.CachedAttentionAttrs{Scale: 1})
	}
	for name, c := range map[string]struct {
		of    func(b *ir.Builder) ir.Value
		bytes int64 // at least
		count float64
	}{
		"floats in place":   {product(ops.QuantizedMatMul, 1), 4*(k+n) + n*k/32*34, 2 * n * k},
		"integers in place": {product(ops.QuantizedMatMul8, 1), 4*(k+n) + n*k/32*34, 2 * n * k},
		"unpacked":          {product(ops.QuantizedMatMul8, 50), 50*4*(k+k+k+n) + n*k/32*34, 2 * 50 * n * k},
		"attention":         {attention, 4 * 2 * depth * (2 + 2*room), 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := compileGraphs(t, ir.Entry{Name: "run", Graph: build(t, func(b *ir.Builder) { b.Output("y", c.of(b)) })})
			timings, err := p.(native.Profiler).Profile(t.Context(), "run", 2)
			if err != nil {
				t.Fatal(err)
			}
			var bytes int64
			var count float64
			for _, x := range timings {
				if x.Bytes == 0 {
					t.Errorf("%s has no bytes", x.Name)
				}
				bytes, count = bytes+x.Bytes, count+x.Operations
			}
			if bytes < c.bytes || bytes > 2*c.bytes+4096 || count != c.count {
				t.Errorf("%d bytes and %g operations, want %d and %g: %v", bytes, count, c.bytes, c.count, timings)
			}
		})
	}
}
