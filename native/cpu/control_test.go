package cpu_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestOnlyTheBranchTakenRuns chooses between a loop that ends and one that does not.
func TestOnlyTheBranchTakenRuns(t *testing.T) {
	doubled := func(most float64) ops.Branch {
		return func(b *ir.Builder, in []ir.Value) []ir.Value {
			return ops.WhileLoop(b, ops.While{
				Carries: in,
				Cond:    func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, most)) },
				Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
					return []ir.Value{ops.Min(b, ops.Add(b, c[0], c[0]), ops.Const(b, ir.F32, 100))}
				},
			})
		}
	}
	g, err := ir.Build("g", func(b *ir.Builder) {
		ends := b.Input("ends", ir.Bool)
		b.Output("y", ops.Cond(b, ends, []ir.Value{b.Input("x", ir.F32)}, doubled(50), doubled(1000))[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := cpu.Backend().Compile(context.Background(), m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]native.Tensor{"ends": native.Zeros(ir.Bool), "x": native.Zeros(ir.F32)}
	in["ends"].Data[0] = 1
	x, _ := in["x"].Float32s()
	for start, want := range map[float32]float32{3: 96, 49: 98, 51: 51} {
		x[0] = start
		run, err := p.Run(context.Background(), "run", in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := run.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if y, _ := out["y"].Float32s(); y[0] != want {
			t.Errorf("from %v: %v, want %v", start, y[0], want)
		}
	}
}
