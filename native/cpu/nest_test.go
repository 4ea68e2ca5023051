package cpu_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// A reduction of few long rows has a block for each worker, of whole vectors but for the last, which has one or more.
func TestReductionsHaveBlocksForWorkers(t *testing.T) {
	for row := 1; row < 1200; row++ {
		for _, workers := range []int{1, 2, 3, 8, 64} {
			block, blocks := cpu.SharedBlocks(1, row, 1e9, workers)
			last := row - (blocks-1)*block
			if blocks > 1 && (block%jit.Width() != 0 || last < 1 || last > block || block < 512 && last < jit.Width()) {
				t.Errorf("%d results on %d workers: %d blocks of %d", row, workers, blocks, block)
			}
		}
	}
	for _, c := range []struct {
		rows, row, workers int
		cost               float64
		blocks             int
	}{
		{1, 240, 2, 1e6, 2}, {1, 240, 2, 20e3, 1}, {1, 960, 8, 1e6, 8}, {4, 240, 2, 1e6, 1}, {3, 480, 8, 1e6, 3}, {1, 5, 8, 1e6, 1}, {1, 240, 1, 1e6, 1},
	} {
		if _, blocks := cpu.SharedBlocks(c.rows, c.row, c.cost, c.workers); blocks != c.blocks && jit.Available() {
			t.Errorf("%d × %d results on %d workers: %d blocks, want %d", c.rows, c.row, c.workers, blocks, c.blocks)
		}
	}
}

// Sums over all positions of some channels, in one block or in several, add each element once.
func TestSumsOfChannels(t *testing.T) {
	const rows = 3000
	for _, channels := range []int{5, 33, 40, 64, 200, 241, 520, 700} {
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(rows, channels)...)
			b.Output("sum", ops.ReduceSum(b, x, 0))
			b.Output("max", ops.ReduceMax(b, ops.Mul(b, x, x), 0))
		})
		p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
		x := make([]float32, rows*channels)
		sums, most := make([]float32, channels), make([]float32, channels)
		for i := range x {
			x[i] = float32((i*7919)%101 - 50)
			sums[i%channels] += x[i]
			most[i%channels] = max(most[i%channels], x[i]*x[i])
		}
		out := map[string]native.Tensor{"sum": native.Zeros(ir.F32, channels), "max": native.Zeros(ir.F32, channels)}
		bound := bind(t, p, "run", map[string]native.Tensor{"x": native.Float32s(x, rows, channels)}, out)
		if err := bound.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := bound.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]float32{"sum": sums, "max": most} {
			got, err := out[name].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s of channel %d of %d is %g, want %g", name, i, channels, got[i], want[i])
				}
			}
		}
	}
}

// TestBlocksOfRunsStartAtARun reduces the columns of an array, each repeated, with much work for each number: the array is read in
// runs, and blocks for several workers must not start within one and end in another.
func TestBlocksOfRunsStartAtARun(t *testing.T) {
	const rows, columns, times = 60, 15, 32
	x, most := make([]float32, rows*columns), make([]float32, columns)
	for i := range x {
		x[i] = float32((i * 7919) % 101)
		most[i%columns] = max(most[i%columns], x[i])
	}
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, columns)...)
		y := ops.BroadcastTo(b, ops.ExpandDims(b, x, 2), ir.Dims(rows, columns, times))
		b.Output("max", ops.ReduceMax(b, y, 0))
		b.Output("at", ops.Convert(b, ops.ArgMax(b, y, 0), ir.F32))
		row := ops.Iota(b, ir.F32, 2, ir.Dims(rows, columns, times)...)
		for _, f := range []func(*ir.Builder, ir.Value) ir.Value{ops.Tanh, ops.Sin, ops.Log, ops.Erf} {
			y = f(b, ops.Add(b, y, row))
		}
		b.Output("sum", ops.ReduceSum(b, y, 0))
	})
	everyLevel(t, func(t *testing.T) {
		got := outputsOf[float32](t, ir.Entry{Name: "run", Graph: g}, native.Float32s(x, rows, columns))
		for i, y := range got["max"] {
			if want := most[i/times]; y != want || x[int(got["at"][i])*columns+i/times] != want {
				t.Fatalf("maximum %d is %g at %g, want %g", i, y, got["at"][i], want)
			}
		}
	})
}

// TestRowsAreUpdatedInPlace updates states by a factor of each row. Rows of whole vectors and a part of one end with a vector that
// overlaps the one before: each element changes once.
func TestRowsAreUpdatedInPlace(t *testing.T) {
	const rows, steps = 300, 3
	for _, n := range []int{16, 17, 31, 49, 56, 100} {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			x, by := random(rows*n), random(rows)
			g := build(t, func(b *ir.Builder) {
				factor := ops.Convert(b, b.Input("by", ir.F32, ir.Dims(rows, 1)...), d)
				now := b.State("x", d, ir.Dims(rows, n)...)
				b.SetState("x", ops.Sub(b, now, ops.Mul(b, now, factor)))
			})
			values := ir.NewArray(d, rows, n)
			for i, v := range x {
				values.F[i] = float64(v)
			}
			everyLevel(t, func(t *testing.T) {
				p := compileGraphs(t, ir.Entry{Name: "run", Graph: g})
				if err := p.Set(t.Context(), "x", native.FromArray(values)); err != nil {
					t.Fatal(err)
				}
				for range steps {
					run(t, p, map[string]native.Tensor{"by": native.Float32s(by, rows, 1)})
				}
				y, err := p.Get(t.Context(), "x")
				if err != nil {
					t.Fatal(err)
				}
				a, err := y.Array()
				if err != nil {
					t.Fatal(err)
				}
				for i, got := range a.F {
					near(t, "x", i, float32(got), float64(x[i])*math.Pow(1-float64(by[i/n]), steps), 1e-5)
				}
			})
		}
	}
}
