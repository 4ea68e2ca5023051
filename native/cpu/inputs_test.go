package cpu_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// BenchmarkInputs compiles a sum of very many inputs and runs it once: the time should grow
// linearly.
func BenchmarkInputs(b *testing.B) {
	for _, n := range []int{12_500, 25_000, 50_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			g := inputsGraph(b, n)
			m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
			if err != nil {
				b.Fatal(err)
			}
			in := map[string]native.Tensor{}
			for _, p := range g.Ports() {
				in[p.Name] = native.Float32s([]float32{1, 2, 3, 4})
			}
			for b.Loop() {
				runOnce(b, m, in, float32(len(in)))
			}
		})
	}
}

// inputsGraph returns a graph of the family with n inputs.
func inputsGraph(t testing.TB, n int) *ir.Graph {
	i := slices.IndexFunc(irtest.Families, func(f irtest.Growing) bool { return f.Name == "inputs" })
	g, err := irtest.Families[i].Graph(2 * n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// runOnce compiles and runs a module, and compares the first element of y with want.
func runOnce(t testing.TB, m *ir.Module, in map[string]native.Tensor, want float32) {
	ctx := context.Background()
	p, err := cpu.Backend().Compile(ctx, m, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(ctx)
	r, err := p.Run(ctx, "run", in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := out["y"].Float32s(); err != nil || y[0] != want {
		t.Fatalf("a sum of %v ones is %v, %v", want, y, err)
	}
}
