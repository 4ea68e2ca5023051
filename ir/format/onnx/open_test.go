package onnx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// TestOpenBatch imports ops on images whose batch stays open, and compares their results with those for a batch that
// is given.
func TestOpenBatch(t *testing.T) {
	sizes := []field{
		node("Shape", names("x"), names("s"), attribute("end", 2)),
		node("Concat", names("s", "tail"), names("sizes"), attribute("axis", 0)),
	}
	tail := tensorOf("tail", onnx.Int64, []int{2}, intBytes(3, 8))
	for name, c := range map[string]struct {
		nodes   []field
		tensors []field
	}{
		"AveragePool":                {nodes: []field{node("AveragePool", names("x"), names("y"), attribute("kernel_shape", []int{2, 3}), attribute("pads", []int{1, 1, 0, 1}))}},
		"AveragePool with ceil_mode": {nodes: []field{node("AveragePool", names("x"), names("y"), attribute("kernel_shape", []int{2, 3}), attribute("strides", []int{2, 2}), attribute("ceil_mode", 1))}},
		"MaxPool of the same size":   {nodes: []field{node("MaxPool", names("x"), names("y"), attribute("kernel_shape", []int{3, 3}), attribute("strides", []int{2, 2}), attribute("auto_pad", "SAME_UPPER"))}},
		"Resize by scales": {
			nodes:   []field{node("Resize", names("x", "", "scales"), names("y"), attribute("mode", "linear"))},
			tensors: []field{tensorOf("scales", onnx.Float, []int{4}, floatBytes(1, 1, 2, 1.5))},
		},
		"Resize by sizes": {
			nodes:   append(slices.Clone(sizes), node("Resize", names("x", "", "", "sizes"), names("y"), attribute("mode", "cubic"))),
			tensors: []field{tail},
		},
		"GridSample": {
			nodes: []field{node("GridSample", names("x", "g"), names("y"))},
		},
	} {
		graph := func(batch any) []field {
			inputs := []field{info("x", onnx.Float, batch, 1, 4, 5)}
			if name == "GridSample" {
				inputs = append(inputs, info("g", onnx.Float, batch, 2, 3, 2))
			}
			return graphOf(c.nodes, c.tensors, inputs, []field{info("y", onnx.Float)})
		}
		in := map[string]*ir.Array{"x": ir.NewArray(ir.F32, 2, 1, 4, 5)}
		if name == "GridSample" {
			in["g"] = ir.NewArray(ir.F32, 2, 2, 3, 2)
		}
		for _, a := range in {
			for i := range a.F {
				a.F[i] = float64(i*7%11)/11 - 0.4
			}
		}
		open := imported(t, 18, onnx.Options{}, graph("n"))
		if out, _ := open.Graph.Output("y"); !strings.HasPrefix(out.Value.Shape().String(), "[n,") {
			t.Errorf("%s: the result is %s", name, out.Value.Type())
		}
		bound, err := open.Graph.Bind(map[string]int{"n": 2})
		if err != nil {
			t.Fatal(err)
		}
		open.Graph = bound
		got, want := evaluated(t, open, in), evaluated(t, imported(t, 18, onnx.Options{}, graph(2)), in)
		if got.Len() == 0 || !slices.Equal(got.F, want.F) {
			t.Errorf("%s: %v, want %v", name, got.F, want.F)
		}
	}
}
