//go:build cgo && (darwin || linux)

package driver_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
	"github.com/rlx-go/rlx/native/coreml/train"
)

// runtime is Core ML: on Linux the one in software, whose objects are counted.
func runtime(t *testing.T) driver.Runtime {
	t.Helper()
	rt, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	before := alive()
	t.Cleanup(func() {
		if now := alive(); now != before {
			t.Errorf("%d objects of Core ML are alive, %d were before", now, before)
		}
	})
	return rt
}

// written writes a graph as a package.
func written(t *testing.T, o coreml.Options, build func(b *ir.Builder)) string {
	t.Helper()
	g, err := ir.Build("test", build)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("test", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := coreml.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "m.mlpackage")
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOutputsAreWrittenInPlace: a vector is written into its backing, a matrix is read from rows that
// are padded, and so are integers and bools.
func TestOutputsAreWrittenInPlace(t *testing.T) {
	rt := runtime(t)
	dir := written(t, coreml.Options{}, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 3, 5)...)
		b.Output("twice", ops.Add(b, x, x))
		b.Output("sums", ops.ReduceSum(b, x, 1, 2))
		b.Output("large", ops.Gt(b, x, ops.Const(b, ir.F32, 14)))
		b.Output("best", ops.ArgMax(b, x, 2))
	})
	m, err := coreml.Load(rt, dir, "step", driver.CPUOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := make([]float32, 30)
	for i := range x {
		x[i] = float32(i)
	}
	out, err := m.Predict(map[string]native.Tensor{"x": native.Float32s(x, 2, 3, 5)})
	if err != nil {
		t.Fatal(err)
	}
	twice, _ := out["twice"].Float32s()
	sums, _ := out["sums"].Float32s()
	large, _ := out["large"].Bools()
	best, _ := out["best"].Int32s()
	for i := range x {
		if twice[i] != 2*x[i] || large[i] != (i > 14) {
			t.Fatalf("element %d is doubled to %g and large: %t", i, twice[i], large[i])
		}
	}
	if sums[0] != 105 || sums[1] != 330 || len(best) != 6 || best[5] != 4 {
		t.Errorf("sums are %v, the places of the best %v", sums, best)
	}
	if _, err := m.Predict(map[string]native.Tensor{"x": native.Float32s(x, 2, 3, 5)}); err != nil {
		t.Errorf("a second run: %v", err)
	}
}

// TestStatesPersistBetweenRuns: a run reads the states that the one before it wrote.
func TestStatesPersistBetweenRuns(t *testing.T) {
	rt := runtime(t)
	dir := written(t, coreml.Options{States: true}, func(b *ir.Builder) {
		sum := ops.Add(b, b.State("sum", ir.F16, ir.N(3)), b.Input("x", ir.F16, ir.N(3)))
		b.SetState("sum", sum)
		b.Output("now", sum)
	})
	m, err := coreml.Load(rt, dir, "step", driver.AllUnits)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	x := native.FromArray(ir.Floats(ir.F16, []float64{1, 2, -3}))
	for i := range 4 {
		out, err := m.Predict(map[string]native.Tensor{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := out["now"].Array(); a.F[0] != float64(i+1) || a.F[2] != -3*float64(i+1) {
			t.Errorf("after run %d the sum is %v", i, a.F)
		}
	}
}

// TestStatesAreSetAndRead: values go into states, and come out, by way of buffers whose rows
// are padded; parameters can be states that only the host changes.
func TestStatesAreSetAndRead(t *testing.T) {
	rt := runtime(t)
	dir := written(t, coreml.Options{States: true, ParamStates: true}, func(b *ir.Builder) {
		x := b.Input("x", ir.F16, ir.Dims(2, 3)...)
		sum := ops.Add(b, b.State("sum", ir.F16, ir.Dims(2, 3)...), ops.Mul(b, x, b.Param("w", ir.F16, ir.Dims(2, 3)...)))
		b.SetState("sum", sum)
		b.Output("now", ops.ReduceSum(b, sum, 0, 1))
	})
	m, err := coreml.Load(rt, dir, "step", driver.AllUnits)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	half := func(x ...float64) native.Tensor {
		a := ir.NewArray(ir.F16, 2, 3)
		copy(a.F, x)
		return native.FromArray(a)
	}
	for name, x := range map[string]native.Tensor{"w": half(1, 2, 3, 4, 5, 6), "sum": half(10, 20, 30, 40, 50, 60)} {
		if err := m.Set(name, x); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := m.Predict(map[string]native.Tensor{"x": half(1, 1, 1, 0, 0, 2)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]float64{"w": {1, 2, 3, 4, 5, 6}, "sum": {12, 24, 36, 40, 50, 84}} {
		got, err := m.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := got.Array(); !slices.Equal(a.F, want) {
			t.Errorf("%s is %v, not %v", name, a.F, want)
		}
	}
	if err := m.Set("x", half()); !errors.Is(err, ir.ErrName) {
		t.Errorf("an input is set: %v", err)
	}
	if err := m.Set("w", native.Float32(1)); !errors.Is(err, ir.ErrDType) {
		t.Errorf("another type is set: %v", err)
	}
	if _, err := m.Get("x"); !errors.Is(err, ir.ErrName) {
		t.Errorf("an input is read: %v", err)
	}
}

// TestFunctionsAreChosen: of several sizes the requested one is loaded.
func TestFunctionsAreChosen(t *testing.T) {
	rt := runtime(t)
	dir := written(t, coreml.Options{Shapes: []map[string]int{{"n": 2}, {"n": 3}}}, func(b *ir.Builder) {
		b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.Sym("n"))))
	})
	m, err := coreml.Load(rt, dir, "step_n3", driver.AllUnits)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if slots := m.Slots(); len(slots) != 2 || slots[0].Name != "x" || slots[0].Dims[0] != 3 || slots[1].Role != native.Output {
		t.Errorf("the slots are %v", slots)
	}
	out, err := m.Predict(map[string]native.Tensor{"x": native.Float32s([]float32{1, 2, 3})})
	if y, _ := out["y"].Float32s(); err != nil || len(y) != 3 || y[2] != -3 {
		t.Errorf("the result is %v: %v", y, err)
	}
	if _, err := m.Predict(map[string]native.Tensor{"x": native.Float32s([]float32{1, 2})}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("two elements for three: %v", err)
	}
	if _, err := coreml.Load(rt, dir, "step", driver.AllUnits); !errors.Is(err, ir.ErrName) {
		t.Errorf("an entry of several sizes: %v", err)
	}
	if _, err := coreml.Load(rt, dir, "eval", driver.AllUnits); !errors.Is(err, ir.ErrName) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// TestSizesAreChosen: the model is that of the sizes given, and sizes that are not among
// those enumerated are an error that lists them.
func TestSizesAreChosen(t *testing.T) {
	rt := runtime(t)
	dir := written(t, coreml.Options{Shapes: []map[string]int{{"n": 2}, {"n": 3}}}, func(b *ir.Builder) {
		b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.Sym("n"), ir.N(1))))
	})
	s, err := coreml.LoadSizes(rt, dir, "step", driver.AllUnits)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := 1; n <= 4; n++ {
		out, err := s.Predict(map[string]native.Tensor{"x": native.Float32s(make([]float32, n), n, 1)})
		if there := n == 2 || n == 3; there && (err != nil || out["y"].Dims[0] != n) || !there && (!errors.Is(err, ir.ErrShape) || !strings.Contains(err.Error(), "x[2,1]; x[3,1]")) {
			t.Errorf("%d elements: %v, %v", n, out["y"], err)
		}
	}
	if _, err := s.Predict(nil); !errors.Is(err, ir.ErrName) {
		t.Errorf("no input: %v", err)
	}
	if len(s.Models()) != 2 {
		t.Errorf("%d sizes", len(s.Models()))
	}
	if _, err := coreml.LoadSizes(rt, dir, "eval", driver.AllUnits); !errors.Is(err, ir.ErrName) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// TestTrainerTrains trains a model through the binding.
func TestTrainerTrains(t *testing.T) {
	rt := runtime(t)
	g, err := ir.Build("linear", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(4, 2)...), b.Input("y", ir.F32, ir.Dims(4, 1)...)
		off := ops.Sub(b, ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(2, 1)...)), y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, off, off)))
	})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]native.Tensor{
		"x": native.Float32s([]float32{1, 0, 0, 1, 1, 1, -1, 0.5}, 4, 2), "y": native.Float32s([]float32{2, -1, 1, -2.5}, 4, 1),
	}
	for name, o := range map[string]train.Options{"host": {}, "fused": {Fuse: true}, "fp16": {Half: true}} {
		o.Optimizer, o.Rate = optim.SGD{Momentum: 0.9}, 0.1
		s, err := train.New(rt, g, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := s.Step(context.Background(), in); err != nil {
				t.Fatal(err)
			}
		}
		w, _ := s.Param("w")
		if x, _ := w.Float32s(); math.Abs(float64(x[0]-2)) > 1e-2 || math.Abs(float64(x[1]+1)) > 1e-2 {
			t.Errorf("%s: w is %v, not 2 and -1", name, x)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamageIsReported: Core ML's own words come out.
func TestDamageIsReported(t *testing.T) {
	rt := runtime(t)
	if _, err := rt.Load(filepath.Join(t.TempDir(), "none.mlpackage"), "main", driver.AllUnits); err == nil {
		t.Error("a package that is not there is loaded")
	}
	dir := written(t, coreml.Options{}, func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", ir.F32, ir.N(2)))) })
	m, err := rt.Load(dir, "main", driver.AllUnits)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Predict(nil, nil); err == nil {
		t.Error("a model runs without its input")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Predict(nil, nil); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a closed model: %v", err)
	}
}
