package rlx_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestMetricsOfOpenSizesLeaveOutPadding counts 12 examples in batches of 5 and 7 rows, padded to 8: the states are those of one
// batch of 12 that nothing pads.
func TestMetricsOfOpenSizesLeaveOutPadding(t *testing.T) {
	measure := func(rows ir.Dim) *ir.Graph {
		g, err := ir.Build("measured", func(b *ir.Builder) {
			p, y := b.Input("p", ir.F32, rows), b.Input("y", ir.F32, rows)
			chances, class := b.Input("chances", ir.F32, rows, ir.N(3)), b.Input("class", ir.I32, rows)
			nn.Regression(b, "price", p, y)
			nn.Regression(b, "weighted", p, y, b.Input("weights", ir.F32, rows))
			nn.AUC(b, "areas", chances, class)
			nn.Calibration(b, "chances", chances, class)
			nn.Confusion(b, "table", ops.ArgMax(b, chances, -1), class, 3)
			nn.Metric(b, "mean", ops.Mean(b, p), ops.DimSize(b, ir.I32, rows))
			b.Output("loss", ops.Mean(b, p))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	_, batches := scored(t)
	all := rlx.Inputs{}
	for _, name := range []string{"p", "y", "weights", "chances", "class"} {
		all[name] = batches[0][name]
	}
	states := func(g *ir.Graph, in ...rlx.Inputs) map[string][]float32 {
		p, err := session(t).Compile(ctx, &ir.Module{Name: "measured", Entries: []ir.Entry{{Name: "run", Graph: g}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(ctx) })
		for _, one := range in {
			if _, err := p.Call(ctx, "run", one); err != nil {
				t.Fatal(err)
			}
		}
		found := map[string][]float32{}
		for _, s := range g.Ports() {
			if s.Kind != ir.StatePort {
				continue
			}
			x, err := p.Get(ctx, s.Name)
			if err != nil {
				t.Fatal(err)
			}
			if found[s.Name], err = x.Float32s(); err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	first, second := rlx.Inputs{}, rlx.Inputs{}
	for name, x := range all {
		row := len(x.Data) / 12
		cut := func(from, to int) rlx.Tensor {
			return rlx.Tensor{DType: x.DType, Dims: append([]int{to - from}, x.Dims[1:]...), Data: slices.Clone(x.Data[from*row : to*row])}
		}
		first[name], second[name] = cut(0, 5), cut(5, 12)
	}
	want, got := states(measure(ir.N(12)), all), states(measure(ir.Sym("rows")), first, second)
	if len(want) != 6 {
		t.Fatalf("%d states", len(want))
	}
	for name, values := range want {
		for i, v := range values {
			if d := math.Abs(float64(got[name][i] - v)); !(d <= 1e-4*(1+math.Abs(float64(v)))) {
				t.Errorf("%s: element %d is %v, want %v", name, i, got[name][i], v)
			}
		}
	}
}
