package onnx_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// TestOpsOfONNXRuntime holds the ops of the domain com.microsoft to the values that ONNX Runtime returns for the same models:
// the sums of the elements of y and of their products with 1, 2, 3, ….
func TestOpsOfONNXRuntime(t *testing.T) {
	all, dims := []any{1, 2, 4}, []int{1, 2, 4}
	x := floatBytes(0.5, -1, 2, 0.25, -3, 1.5, 0.125, -0.75)
	given := []field{
		tensorOf("s", onnx.Float, dims, floatBytes(1, 0.5, -0.25, 2, 0, 1, -1, 0.75)), tensorOf("g", onnx.Float, []int{4}, floatBytes(1, 0.5, 2, -1)),
		tensorOf("b", onnx.Float, []int{4}, floatBytes(0.5, -0.5, 0.25, 1)),
	}
	for _, test := range []struct {
		name, domain, op string
		in, out          []string
		attrs            []field
		sum, weighted    float64
	}{
		{"skip", "com.microsoft", "SkipLayerNormalization", names("x", "s", "g"), names("y"), nil, -1.937198, -9.968219},
		{"skip_biases", "com.microsoft", "SkipLayerNormalization", names("x", "s", "g", "b", "b"), names("y"), []field{attribute("epsilon", float32(0.25))}, -0.573967, -3.13888},
		{"skip_sum", "com.microsoft", "SkipLayerNormalization", names("x", "s", "g", "", "b"), names("", "", "", "y"), nil, 6.125, 22.125},
		{"skip_simplified_sum", "com.microsoft", "SkipSimplifiedLayerNormalization", names("x", "s", "g"), names("", "", "", "y"), nil, 3.625, 8.625},
		{"simplified", "", "SimplifiedLayerNormalization", names("x", "g"), names("y"), []field{attribute("epsilon", float32(0.25))}, 2.287107, 6.822702},
		{"skip_simplified", "com.microsoft", "SkipSimplifiedLayerNormalization", names("x", "s", "g", "b"), names("y"), nil, -1.18081, -13.629027},
		{"gelu", "com.microsoft", "Gelu", names("x"), names("y"), nil, 3.585739, 13.99037},
		{"bias_gelu", "com.microsoft", "BiasGelu", names("x", "b"), names("y"), nil, 5.299378, 19.644216},
		{"fast_gelu", "com.microsoft", "FastGelu", names("x", "b"), names("y"), nil, 5.299367, 19.644875},
		{"quick_gelu", "com.microsoft", "QuickGelu", names("x"), names("y"), []field{attribute("alpha", float32(1.5))}, 3.419022, 13.267786},
		{"matmul_b", "com.microsoft", "FusedMatMul", names("x", "s"), names("y"), []field{attribute("alpha", float32(0.5)), attribute("transB", 1)}, -2.890625, -6.859375},
		{"matmul_a", "com.microsoft", "FusedMatMul", names("x", "s"), names("y"), []field{attribute("transA", 1)}, 4.09375, 59.1875},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := node(test.op, test.in, test.out, test.attrs...)
			n.value = append(n.value.([]field), field{7, test.domain})
			data := append(model(17, graphOf([]field{n}, given, []field{info("x", onnx.Float, all...)}, []field{info("y", onnx.Float)})), message(field{8, []field{{1, "com.microsoft"}, {2, 1}}})...)
			m, err := onnx.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			i, err := m.Import(onnx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			in := map[string]*ir.Array{"x": arrayOf(t, ir.Type{DType: ir.F32, Shape: ir.Dims(dims...)}, x)}
			for _, w := range i.Weights {
				elements, err := w.Bytes()
				if err != nil {
					t.Fatal(err)
				}
				in[w.Name] = arrayOf(t, w.Type, elements)
			}
			y := evaluated(t, i, in)
			var sum, weighted float64
			for k := range y.Len() {
				sum += y.Float(k)
				weighted += float64(k+1) * y.Float(k)
			}
			if !(math.Abs(sum-test.sum) <= 1e-4) || !(math.Abs(weighted-test.weighted) <= 1e-4) {
				t.Errorf("the sums are %v and %v, not %v and %v", sum, weighted, test.sum, test.weighted)
			}
		})
	}
}

// arrayOf returns the elements of a type.
func arrayOf(t *testing.T, of ir.Type, elements []byte) *ir.Array {
	t.Helper()
	a, err := ir.ArrayOf(of, elements)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestRefusalsOfONNXRuntime asserts that errors name the op, the node and a way out.
func TestRefusalsOfONNXRuntime(t *testing.T) {
	for op, want := range map[string]string{
		"FusedMatMul": "transpose the operands by nodes of their own",
		"QMoE":        "the op is not known; 13 ops of the domain are: export without the optimiser",
	} {
		n := node(op, names("x", "x"), names("y"), attribute("transBatchA", 1))
		n.value = append(n.value.([]field), field{3, "layer"}, field{7, "com.microsoft"})
		m, err := onnx.Decode(append(model(17, graphOf([]field{n}, nil, []field{info("x", onnx.Float, 1, 2, 2)}, []field{info("y", onnx.Float)})), message(field{8, []field{{1, "com.microsoft"}, {2, 1}}})...))
		if err != nil {
			t.Fatal(err)
		}
		var of *onnx.Error
		if _, err = m.Import(onnx.Options{}); !errors.As(err, &of) || !errors.Is(err, ir.ErrUnsupported) || of.Node != "layer" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (%+v)", op, err, of)
		}
	}
}
