package coreml_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

func module(t *testing.T, build func(b *ir.Builder)) *ir.Module {
	t.Helper()
	g, err := ir.Build("test", build)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("test", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestUnsupportedGraphsAreRefused: the error is typed, and names the node if one
// is the cause.
func TestUnsupportedGraphsAreRefused(t *testing.T) {
	input := func(d ir.DType, dims ...int) func(b *ir.Builder) {
		return func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", d, ir.Dims(dims...)...))) }
	}
	counter := func(d ir.DType) func(b *ir.Builder) {
		return func(b *ir.Builder) {
			s := b.State("s", d, ir.N(2))
			b.SetState("s", ops.Add(b, s, s))
			b.Output("y", s)
		}
	}
	linear := func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Sym("n"), ir.N(2)), b.Param("w", ir.F32, ir.Dims(2, 2)...)))
	}
	weights := func(dims ...int) map[string]native.Tensor {
		return map[string]native.Tensor{"w": native.Zeros(ir.F32, dims...)}
	}
	two := []map[string]int{{"n": 2}, {"n": 3}}
	for name, c := range map[string]struct {
		build   func(b *ir.Builder)
		options coreml.Options
		kind    error
	}{
		"f64":           {input(ir.F64, 2), coreml.Options{}, ir.ErrUnsupported},
		"i64":           {input(ir.I64, 2), coreml.Options{}, ir.ErrUnsupported},
		"complex":       {input(ir.C64, 2), coreml.Options{}, ir.ErrUnsupported},
		"empty":         {input(ir.F32, 0, 2), coreml.Options{}, ir.ErrUnsupported},
		"unknown opset": {input(ir.F32, 2), coreml.Options{Opset: 4}, ir.ErrUnsupported},
		"random numbers": {func(b *ir.Builder) {
			b.Output("y", ops.Dropout(b, b.Input("x", ir.F32, ir.N(4)), b.Input("key", ir.U32, ir.N(2)), 0.5))
		}, coreml.Options{}, ir.ErrUnsupported},
		"state of f32":            {counter(ir.F32), coreml.Options{States: true}, ir.ErrUnsupported},
		"state before CoreML8":    {counter(ir.F16), coreml.Options{States: true, Opset: mil.CoreML7}, ir.ErrUnsupported},
		"symbol without sizes":    {linear, coreml.Options{}, ir.ErrSymbol},
		"sizes before CoreML8":    {linear, coreml.Options{Shapes: two, Opset: mil.CoreML7}, ir.ErrUnsupported},
		"sizes twice":             {linear, coreml.Options{Shapes: append(two, two[0])}, ir.ErrName},
		"weights of another size": {linear, coreml.Options{Shapes: two, Weights: weights(2, 3)}, ir.ErrShape},
		"weights of nobody":       {linear, coreml.Options{Shapes: two, Weights: map[string]native.Tensor{"v": native.Zeros(ir.F32, 1)}}, ir.ErrName},
		"a loop without a bound": {func(b *ir.Builder) {
			b.Output("y", ops.WhileLoop(b, ops.While{
				Carries: []ir.Value{b.Input("x", ir.F32)},
				Cond:    func(b *ir.Builder, _, c []ir.Value) ir.Value { return ops.Lt(b, c[0], ops.Const(b, ir.F32, 9)) },
				Body:    func(b *ir.Builder, _, c []ir.Value) []ir.Value { return []ir.Value{ops.Add(b, c[0], c[0])} },
			})[0])
		}, coreml.Options{}, ir.ErrUnsupported},
	} {
		_, err := coreml.New(module(t, c.build), c.options)
		var typed *coreml.Error
		if !errors.Is(err, c.kind) || !errors.As(err, &typed) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestSizesShareWeights: each set of sizes is a function, and the file holds the
// weights once.
func TestSizesShareWeights(t *testing.T) {
	m := module(t, func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Sym("n"), ir.N(64)), b.Param("w/q", ir.F32, ir.Dims(64, 64)...)))
	})
	w := ir.NewArray(ir.F32, 64, 64)
	for i := range w.F {
		w.F[i] = float64(i%17) / 16
	}
	p, err := coreml.New(m, coreml.Options{
		Shapes: []map[string]int{{"n": 1}, {"n": 8}}, Weights: map[string]native.Tensor{"w/q": native.FromArray(w)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range p.Program.Functions {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"step_n1", "step_n8"}) {
		t.Errorf("the functions are %v", names)
	}
	dir := filepath.Join(t.TempDir(), "m.mlpackage")
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	if n := fileSize(t, filepath.Join(dir, "Data/com.apple.CoreML/weights/weight.bin")); n != 64+64+4*64*64 {
		t.Errorf("the weights take %d bytes", n)
	}
}

// TestHalfPrecisionIsClose: an f32 graph computed in f16 differs only by rounding.
func TestHalfPrecisionIsClose(t *testing.T) {
	m := module(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(3, 16)...)
		b.Output("y", ops.Softmax(b, ops.Gelu(b, ops.MatMul(b, x, ops.Transpose(b, x, 1, 0))), 1))
	})
	p, err := coreml.New(m, coreml.Options{Half: true})
	if err != nil {
		t.Fatal(err)
	}
	x := ir.NewArray(ir.F32, 3, 16)
	for i := range x.F {
		x.F[i] = float64(i%7)/8 - 0.3
	}
	tol := func(ir.DType) irtest.Tolerance { return irtest.Tolerance{Abs: 5e-3, Rel: 5e-3} }
	compare(t, p, p.Program.Functions[0], m.Entries[0].Graph, map[string]*ir.Array{"x": x}, tol)
}
