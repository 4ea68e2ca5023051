package splat_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops/splat"
)

// gradient is the loss of a picture with its gradients.
func gradient(t testing.TB, n int, m splat.Image) *ir.Module {
	t.Helper()
	g, err := autodiff.ValueAndGrad(picture(t, ir.F32, n, m), "loss", "means", "covariances", "opacities", "colors", "background")
	if err != nil {
		t.Fatal(err)
	}
	module, err := ir.NewModule("splat", ir.Entry{Name: "grad", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// TestTileKernelsEqualReference runs the kernels of WebGPU in the simulator and
// those of the CPU.
func TestTileKernelsEqualReference(t *testing.T) {
	const n = 12
	m := splat.Image{Height: 13, Width: 18, Near: 1, Tile: 4, Pairs: 120}
	module, in := gradient(t, n, m), gaussians(ir.F32, n, m, 2)
	g := module.Entries[0].Graph
	want, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := plansim.Open(module, plan.WebGPU())
	if err != nil {
		t.Fatal(err)
	}
	got, err := simulated.Run("grad", in)
	if err != nil {
		t.Fatal(err)
	}
	onCPU := runOnCPU(t, module, in)
	for i, o := range g.Outputs() {
		for k, w := range want[i].F {
			for device, x := range map[string]float64{"WebGPU": got[o.Name].F[k], "CPU": onCPU[o.Name][k]} {
				if !(math.Abs(x-w) <= 2e-4*(1+math.Abs(w))) {
					t.Fatalf("%s: %s[%d] is %v, want %v", device, o.Name, k, x, w)
				}
			}
		}
	}
}

func runOnCPU(t *testing.T, m *ir.Module, in map[string]*ir.Array) map[string][]float64 {
	t.Helper()
	call := compiled(t, m, in)
	out := map[string][]float64{}
	for name, x := range call() {
		values, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			out[name] = append(out[name], float64(v))
		}
	}
	return out
}

// compiled returns what runs a module on the CPU.
func compiled(t testing.TB, m *ir.Module, in map[string]*ir.Array) func() rlx.Outputs {
	t.Helper()
	ctx := context.Background()
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	program, err := session.Compile(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	inputs := rlx.Inputs{}
	for name, a := range in {
		values := make([]float32, len(a.F))
		for i, x := range a.F {
			values[i] = float32(x)
		}
		inputs[name] = rlx.Float32s(values, a.Dims...)
	}
	return func() rlx.Outputs {
		out, err := program.Call(ctx, "grad", inputs)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// BenchmarkRender renders images of 256 Gaussians with their gradients on the CPU, with
// and without tiles.
func BenchmarkRender(b *testing.B) {
	for _, side := range []int{128, 256} {
		for _, tile := range []int{0, 16} {
			b.Run(fmt.Sprintf("side=%d/tile=%d", side, tile), func(b *testing.B) {
				m := splat.Image{Height: side, Width: side, Tile: tile, Pairs: 2048}
				call := compiled(b, gradient(b, 256, m), gaussians(ir.F32, 256, m, 4))
				call()
				for b.Loop() {
					call()
				}
			})
		}
	}
}
