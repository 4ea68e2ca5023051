package coreml_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
)

// normOperand makes the scale or the bias of a layer norm of three elements from a value;
// the zero Value is an absent one.
func normOperand(b *ir.Builder, kind, name string, x []float64) ir.Value {
	switch kind {
	case "constant":
		return ops.Literal(b, ir.Floats(ir.F32, x, 3))
	case "repeated":
		return ops.BroadcastTo(b, ops.Const(b, ir.F32, x[0]), ir.Dims(3))
	case "input":
		return b.Input(name, ir.F32, ir.Dims(3)...)
	case "computed":
		return ops.Neg(b, b.Input(name, ir.F32, ir.Dims(3)...))
	}
	return ir.Value{}
}

// MIL's layer_norm requires that gamma and beta are constants. Other scales and biases are
// applied after it, as are constants that a tile repeats.
func TestLayerNormTakesOnlyConstants(t *testing.T) {
	x, scale, bias := []float64{1, 2, 4, -3, 0, 0.5}, []float64{2, -3, 0.25}, []float64{1, 0, -5}
	in := map[string]*ir.Array{"x": ir.Floats(ir.F32, x, 2, 3), "scale": ir.Floats(ir.F32, scale, 3), "bias": ir.Floats(ir.F32, bias, 3)}
	kinds := []string{"constant", "repeated", "input", "computed", "absent"}
	var entries []ir.Entry
	var takes [][]string
	for _, s := range kinds[:4] {
		for _, o := range kinds {
			g, err := ir.Build("norm", func(b *ir.Builder) {
				x := b.Input("x", ir.F32, ir.Dims(2, 3)...)
				b.Output("y", ops.LayerNorm(b, x, normOperand(b, s, "scale", scale), normOperand(b, o, "bias", bias), 0.1))
			})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if s == "constant" && o == "constant" {
				want = append(want, "beta")
			}
			if s == "constant" {
				want = append(want, "gamma")
			}
			entries, takes = append(entries, ir.Entry{Name: s + "_" + o, Graph: g}), append(takes, want)
		}
	}
	p := roundTrip(t, entries)
	for i, f := range p.Program.Functions {
		if got := normParameters(t, f); !slices.Equal(got, takes[i]) {
			t.Errorf("%s: layer_norm takes %v, not %v", f.Name, got, takes[i])
		}
		given := map[string]*ir.Array{}
		for _, port := range entries[i].Graph.Ports() {
			given[port.Name] = in[port.Name]
		}
		compare(t, p, f, entries[i].Graph, given, func(ir.DType) irtest.Tolerance { return irtest.Tolerance{Abs: 1e-6, Rel: 1e-5} })
	}
}

// normParameters returns which of gamma and beta the layer_norm of a function takes, in
// the order of their names.
func normParameters(t *testing.T, f *mil.Function) []string {
	t.Helper()
	at := slices.IndexFunc(f.Ops, func(op *mil.Op) bool { return op.Kind == "layer_norm" })
	if at < 0 {
		t.Fatalf("%s has no layer_norm", f.Name)
	}
	var names []string
	for _, a := range f.Ops[at].Inputs {
		if a.Parameter == "gamma" || a.Parameter == "beta" {
			names = append(names, a.Parameter)
		}
	}
	slices.Sort(names)
	return names
}
