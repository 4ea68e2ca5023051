//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest/families"
	"github.com/rlx-go/rlx/ir/irtest/layers"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// TestGPULayersAsOnTheCPU compares the gradients of single layers, at sizes that fill a GPU, with those of the CPU.
func TestGPULayersAsOnTheCPU(t *testing.T) {
	d := gpu(t)
	for _, l := range layers.All() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			g, err := l.Loss()
			must(t, err)
			gradientsAsOnTheCPU(t, d, g, func(string) int { return l.Below })
		})
	}
}

// TestGPUFamiliesAsOnTheCPU compares the gradients of models of many kinds with those of the CPU.
func TestGPUFamiliesAsOnTheCPU(t *testing.T) {
	d := gpu(t)
	for _, f := range families.Every() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			g, below, err := f.Loss(1)
			must(t, err)
			gradientsAsOnTheCPU(t, d, g, func(name string) int { return below[name] })
		})
	}
}

// gradientsAsOnTheCPU computes the gradients of a loss in f32 and with products in bf16 on the GPU, and compares both with
// those of the CPU in f32. Those in f32 may differ by a small part of their norm, for a relu at another side of zero, and by a
// multiple of how far they go if the parameters change by rounding: the gradient of a bias before a norm is but rounding.
// Those in bf16 may lose a multiple of what they lose on the CPU.
func gradientsAsOnTheCPU(t *testing.T, d native.Backend, loss *ir.Graph, below func(name string) int) {
	g, err := autodiff.ValueAndGrad(loss, "loss")
	must(t, err)
	half, err := passes.Mixed(g, ir.BF16)
	must(t, err)
	exact := native.Options{}
	want := valuesOf(t, cpu.Backend(), g, exact, below, 0)
	for _, c := range []struct {
		name          string
		got, like     map[string]native.Tensor
		within, times float64
	}{
		{"f32", valuesOf(t, d, g, exact, below, 0), valuesOf(t, cpu.Backend(), g, exact, below, 0x1p-21), 5e-3, 8},
		{"bf16", valuesOf(t, d, half, native.Options{TF32: true}, below, 0), valuesOf(t, cpu.Backend(), half, exact, below, 0), 2e-2, 4},
	} {
		for name := range want {
			off, usual := distance(t, c.got[name], want[name]), distance(t, c.like[name], want[name])
			if !(off <= c.within+c.times*usual) {
				t.Errorf("%s: %s is %.2g of its norm from that of the CPU, where %.2g is usual", c.name, name, off, usual)
			}
		}
	}
}

// valuesOf returns the outputs of one run, with parameters that differ by a part of themselves. It closes the program at once,
// as many are compared at a time.
func valuesOf(t *testing.T, b native.Backend, g *ir.Graph, o native.Options, below func(name string) int, part float64) map[string]native.Tensor {
	t.Helper()
	ctx := context.Background()
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
	must(t, err)
	p, err := b.Compile(ctx, m, o)
	must(t, err)
	defer func() { must(t, p.Close(ctx)) }()
	in := beginBelow(t, p, g, below)
	for _, port := range g.Ports() {
		if part == 0 || port.Kind != ir.ParamPort || port.Value.DType() != ir.F32 {
			continue
		}
		x, err := p.Get(ctx, port.Name)
		must(t, err)
		values, err := x.Float32s()
		must(t, err)
		rng := rand.New(rand.NewPCG(3, 4))
		for i, v := range values {
			values[i] = float32(float64(v) * (1 + part*(2*rng.Float64()-1)))
		}
		must(t, p.Set(ctx, port.Name, x))
	}
	r, err := p.Run(ctx, "step", in)
	must(t, err)
	out, err := r.Wait(ctx)
	must(t, err)
	return out
}

// distance is the Euclidean distance of two tensors of f32 divided by the norm of the second, over what is finite in
// both; what is not must be the same.
func distance(t *testing.T, got, want native.Tensor) float64 {
	t.Helper()
	x, err := got.Float32s()
	must(t, err)
	y, err := want.Float32s()
	must(t, err)
	var apart, norm float64
	for i := range y {
		a, b := float64(x[i]), float64(y[i])
		if a == b && math.IsInf(b, 0) || math.IsNaN(a) && math.IsNaN(b) {
			continue
		}
		apart += (a - b) * (a - b)
		norm += b * b
	}
	return math.Sqrt(apart / max(norm, 1e-30))
}
