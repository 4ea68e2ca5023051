package onnx_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// Three elements times 1.5 are four and a half, of which there are four: PyTorch and onnxruntime align the last of them
// with the last of three, and the tests of ONNX a fifth one that is half there.
func TestResizeAlignsCorners(t *testing.T) {
	graph := graphOf([]field{
		node("Resize", names("x", "", "s"), names("y"), attribute("mode", "linear"), attribute("coordinate_transformation_mode", "align_corners")),
	}, []field{tensorOf("s", onnx.Float, []int{1}, floatBytes(1.5))}, []field{info("x", onnx.Float, 3)}, []field{info("y", onnx.Float, 4)})
	for producer, want := range map[string][]float64{
		"pytorch": {0, 2, 4, 6},
		"another": {0, 12. / 7, 24. / 7, 36. / 7},
	} {
		m, err := onnx.Decode(append(model(16, graph), message(field{2, producer})...))
		if err != nil {
			t.Fatal(err)
		}
		i, err := m.Import(onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := evaluated(t, i, map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{0, 3, 6})})
		for j, w := range want {
			if got.Len() != len(want) || !(math.Abs(got.F[j]-w) <= 1e-6) {
				t.Errorf("of %s: %v, not %v", producer, got.F, want)
				break
			}
		}
	}
}
