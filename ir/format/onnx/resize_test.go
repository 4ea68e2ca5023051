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

// The coordinates of a shorter axis, as onnxruntime has them: operator set 10 takes the element after each place where the
// axis shrinks, and the other modes count the elements that there are, not the fraction of one.
func TestResizeShrinks(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5}
	for _, c := range []struct {
		opset  int
		attrs  []field
		scales []float32
		roi    []float32
		want   []float64
	}{
		{10, []field{attribute("mode", "nearest")}, []float32{0.6}, nil, []float64{1, 3, 5}},
		{10, []field{attribute("mode", "nearest")}, []float32{1.6}, nil, []float64{1, 1, 2, 2, 3, 4, 4, 5}},
		{10, []field{attribute("mode", "linear")}, []float32{0.5}, nil, []float64{1, 3}},
		{13, []field{attribute("mode", "linear"), attribute("coordinate_transformation_mode", "pytorch_half_pixel")}, []float32{0.3}, nil, []float64{1}},
		{13, []field{attribute("mode", "cubic"), attribute("coordinate_transformation_mode", "pytorch_half_pixel")}, []float32{0.2}, nil, []float64{1}},
		{13, []field{attribute("mode", "linear"), attribute("coordinate_transformation_mode", "tf_crop_and_resize")}, []float32{0.7}, []float32{0.25, 0.75}, []float64{2, 3, 4}},
		{13, []field{attribute("mode", "linear"), attribute("coordinate_transformation_mode", "tf_crop_and_resize")}, []float32{0.3}, []float32{0.25, 1}, []float64{3.5}},
	} {
		weights := []field{tensorOf("s", onnx.Float, []int{1}, floatBytes(c.scales...))}
		operands := names("x", "", "s")
		if c.opset == 10 {
			operands = names("x", "s")
		}
		if c.roi != nil {
			weights = append(weights, tensorOf("r", onnx.Float, []int{2}, floatBytes(c.roi...)))
			operands[1] = "r"
		}
		graph := graphOf([]field{node("Resize", operands, names("y"), c.attrs...)}, weights,
			[]field{info("x", onnx.Float, len(x))}, []field{info("y", onnx.Float, len(c.want))})
		m, err := onnx.Decode(model(c.opset, graph))
		if err != nil {
			t.Fatal(err)
		}
		i, err := m.Import(onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := evaluated(t, i, map[string]*ir.Array{"x": ir.Floats(ir.F32, x)})
		for j, w := range c.want {
			if got.Len() != len(c.want) || !(math.Abs(got.F[j]-w) <= 1e-5) {
				t.Errorf("by %v, region %v of operator set %d: %v, not %v", c.scales, c.roi, c.opset, got.F, c.want)
				break
			}
		}
	}
}
