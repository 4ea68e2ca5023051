package onnx_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// readBack writes a model, reads it and imports it.
func readBack(t *testing.T, m *onnx.Model, o onnx.Options) *onnx.Import {
	t.Helper()
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := onnx.Decode(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	i, err := read.Import(o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A sample of each op, exported and imported again, has the same results.
func TestExportedSamplesReadBack(t *testing.T) {
	exported := 0
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		for _, s := range d.Samples() {
			g, n, err := irtest.SampleGraph(op, s)
			if err != nil {
				t.Fatal(err)
			}
			m, err := onnx.Export(g, onnx.ExportOptions{})
			if errors.Is(err, ir.ErrUnsupported) {
				continue // the next sample may be of another type
			}
			if err != nil {
				t.Errorf("%s: %v", op, err)
				break
			}
			exported++
			t.Run(string(op), func(t *testing.T) { sameResults(t, g, readBack(t, m, onnx.Options{}), n, s) })
			break
		}
	}
	if exported < 300 {
		t.Errorf("%d ops have a sample that is exported", exported)
	}
}

// sameResults compares the results of a sample's graph with those of the graph read back.
func sameResults(t *testing.T, g *ir.Graph, read *onnx.Import, n *ir.Node, s ir.Sample) {
	t.Helper()
	want, err := ir.Eval(g, irtest.SampleInputs(s), ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in, back := weightsOf(t, read), read.Graph
	for _, p := range back.Ports() {
		if in[p.Name] != nil {
			continue
		}
		in[p.Name] = irtest.SampleInputs(s)[p.Name]
	}
	got, err := ir.Eval(back, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range want {
		tolerance := irtest.SampleTolerance(n, s, a.DType.Real())
		if !a.Type().Equal(got[i].Type()) {
			t.Fatalf("result %d is %s; it was %s", i, got[i].Type(), a.Type())
		}
		for k := range a.Len() {
			if !tolerance.Allows(got[i].Float(k), a.Float(k)) {
				t.Fatalf("result %d has %v at %d; it was %v", i, got[i].Float(k), k, a.Float(k))
			}
		}
	}
}

// perceptron has symbolic sizes, weights and a state.
func perceptron(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("perceptron", func(b *ir.Builder) {
		nn.Infer(b)
		n, m := ir.Sym("n"), ir.Sym("m")
		x := b.Input("x", ir.F32, n, m, ir.N(3))
		h := ops.Relu(b, nn.Linear(b, x, 4))
		h = ops.Reshape(b, h, n.Mul(m), ir.N(4))
		b.Output("y", ops.Softmax(b, h, -1))
		count := b.State("count", ir.F32)
		b.SetState("count", ops.Add(b, count, ops.DimSize(b, ir.F32, n.Mul(n.Add(ir.N(1))))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Symbols are dim_params, parameters initializers of their names, and a state an input and an output.
func TestExportKeepsNamesAndSymbols(t *testing.T) {
	g := perceptron(t)
	weights := map[string][]byte{
		"linear0/weight": ir.Floats(ir.F32, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3, 4).Bytes(),
		"linear0/bias":   ir.Floats(ir.F32, []float64{1, 0, 1, 0}).Bytes(),
	}
	m, err := onnx.Export(g, onnx.ExportOptions{Weights: func(name string) ([]byte, error) { return weights[name], nil }})
	if err != nil {
		t.Fatal(err)
	}
	if in := m.Inputs(); len(in) != 2 || in[0].Shape.String() != "[n,m,3]" || in[1].Name != "count" {
		t.Errorf("the inputs are %v", in)
	}
	back := readBack(t, m, onnx.Options{})
	if w := back.Weights; len(w) != 2 || w[0].Name != "linear0/weight" {
		t.Errorf("the weights are %v", w)
	}
	y, _ := back.Graph.Output("y")
	if _, next := back.Graph.Output("count_next"); !next || y.Value.Shape().String() != "[m*n,4]" {
		t.Errorf("the graph read back is\n%s", back.Graph)
	}
}

// throughFile returns the results, for x, of size n, of a graph that is exported and read back.
func throughFile(t *testing.T, g *ir.Graph, x ...float64) []*ir.Array {
	t.Helper()
	m, err := onnx.Export(g, onnx.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := readBack(t, m, onnx.Options{}).Graph.Bind(map[string]int{"n": len(x)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ir.Eval(bound, map[string]*ir.Array{"x": ir.Floats(ir.F32, x, len(x))}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The end of a slice whose size is open is computed from sizes that nothing else may have asked for.
func TestExportedSliceOfOpenSize(t *testing.T) {
	g, err := ir.Build("slice", func(b *ir.Builder) {
		n := ir.Sym("n")
		x := b.Input("x", ir.F32, n)
		b.Output("y", ops.SliceAxis(b, x, 0, ir.N(1), n.Sub(ir.N(1))))
	})
	if err != nil {
		t.Fatal(err)
	}
	got := throughFile(t, g, 5, 6, 7)
	if !slices.Equal(got[0].F, []float64{6, 7}) {
		t.Errorf("y is %v, not 6 and 7", got[0].F)
	}
}

// A linear layer of several leading axes is one MatMul: onnxruntime refuses a Reshape behind a DequantizeLinear of int8.
func TestExportedLinearLayerIsOneProduct(t *testing.T) {
	g, err := ir.Build("linear", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("n"), ir.N(3), ir.N(4))
		b.Output("y", ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(4, 5)...)))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Export(g, onnx.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := m.Write(&file); err != nil || bytes.Contains(file.Bytes(), []byte("Reshape")) || bytes.Count(file.Bytes(), []byte("MatMul")) != 1 {
		t.Errorf("%q, %v", file.Bytes(), err)
	}
}

// Reversed and sorted axes of open sizes are Slices by -1 and TopK's of the whole axis.
func TestExportedOrderOfOpenSize(t *testing.T) {
	g, err := ir.Build("order", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("n"))
		b.Output("reversed", ops.Reverse(b, x, 0))
		b.Output("sorted", ops.Sort(b, ops.SortAttrs{}, x)[0])
		b.Output("order", ops.ArgSort(b, x, ops.SortAttrs{Descending: true}))
	})
	if err != nil {
		t.Fatal(err)
	}
	got := throughFile(t, g, 2, 3, 1, 3)
	if !slices.Equal(got[0].F, []float64{3, 1, 3, 2}) || !slices.Equal(got[1].F, []float64{1, 2, 3, 3}) || !slices.Equal(got[2].I, []int64{1, 3, 0, 2}) {
		t.Errorf("the results are %v, %v, %v", got[0].F, got[1].F, got[2].I)
	}
}

// An output may be the value of another one, or repeat it.
func TestExportedOutputsOfOneValue(t *testing.T) {
	g, err := ir.Build("outputs", func(b *ir.Builder) {
		sum := ops.ReduceSum(b, b.Input("x", ir.F32, ir.N(3)))
		b.Output("sum", sum)
		b.Output("twice", sum)
		b.Output("rows", ops.BroadcastTo(b, sum, ir.Dims(2)))
		b.Output("again", sum)
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Export(g, onnx.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ir.Eval(readBack(t, m, onnx.Options{}).Graph, map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{5, 6, 7}, 3)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{18}, {18}, {18, 18}, {18}} {
		if !slices.Equal(got[i].F, want) {
			t.Errorf("output %d is %v, not %v", i, got[i].F, want)
		}
	}
}

// What nothing uses is not written: here a product that another one replaces, and its constant.
func TestExportLeavesOutWhatIsNotUsed(t *testing.T) {
	g, err := ir.Build("unused", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		ops.Mul(b, x, ops.Const(b, ir.F32, 12345))
		b.Output("y", ops.Neg(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Export(g, onnx.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := m.Write(&file); err != nil || bytes.Contains(file.Bytes(), []byte("Mul")) || bytes.Contains(file.Bytes(), []byte("Constant")) {
		t.Errorf("%q, %v", file.Bytes(), err)
	}
}

// Weights may be in a separate file, aligned to pages.
func TestExportedWeightsBeside(t *testing.T) {
	data := ir.Floats(ir.F32, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3, 4).Bytes()
	m, err := onnx.Export(perceptron(t), onnx.ExportOptions{
		Weights: func(string) ([]byte, error) { return data, nil },
		Has:     func(name string) bool { return name == "linear0/weight" },
	})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := m.WriteFile(name, true); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name + ".data"); err != nil || info.Size() != 4096 {
		t.Errorf("the file of weights: %v, %v", info, err)
	}
	read, err := onnx.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	back, err := read.Import(onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := back.Weights[0].Bytes(); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the weight read back is %v, %v", got, err)
	}
}

// What ONNX cannot say is refused by the name of the op, before anything is written.
func TestExportRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *ir.Builder)
		kind  error
		op    ir.Op
	}{
		"complex": {func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.N(3))
			b.Output("y", ops.Real(b, ops.Complex(b, x, x)))
		}, ir.ErrUnsupported, ops.OpComplex},
		"symbols": {func(b *ir.Builder) {
			b.Output("y", ops.CumProd(b, b.Input("x", ir.F32, ir.Sym("n")), ops.CumSumAttrs{}))
		}, ir.ErrSymbol, ops.OpCumProd},
		"no axis": {func(b *ir.Builder) {
			n := ir.Sym("n")
			x := b.Input("x", ir.F32, n.Mul(ir.N(2)))
			b.Output("y", ops.Reshape(b, x, n, ir.N(2)))
		}, ir.ErrSymbol, ops.OpReshape},
	} {
		g, err := ir.Build(name, c.build)
		if err != nil {
			t.Fatal(err)
		}
		_, err = onnx.Export(g, onnx.ExportOptions{})
		var at *ir.OpError
		if !errors.Is(err, c.kind) || !errors.As(err, &at) || at.Op != c.op {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := onnx.Export(nil, onnx.ExportOptions{}); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no graph: %v", err)
	}
	short, err := onnx.Export(perceptron(t), onnx.ExportOptions{Weights: func(string) ([]byte, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := short.Write(&bytes.Buffer{}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("a weight without elements: %v", err)
	}
}

// The operator of a scan may be a composite, such as log_add_exp.
func TestExportedScanByComposite(t *testing.T) {
	build := func(n ir.Dim) *ir.Graph {
		g, err := ir.Build("scan", func(b *ir.Builder) {
			x := b.Input("x", ir.F64, n, ir.N(2))
			y := ops.AssociativeScan(b, ops.AssociativeAttrs{}, []ir.Value{x}, func(b *ir.Builder, x, y []ir.Value) []ir.Value {
				return []ir.Value{ops.LogAddExp(b, x[0], y[0])}
			})
			b.Output("y", y[0])
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if _, err := onnx.Export(build(ir.Sym("n")), onnx.ExportOptions{}); !errors.Is(err, ir.ErrSymbol) {
		t.Errorf("the error of an open size is %v", err)
	}
	m, err := onnx.Export(build(ir.N(3)), onnx.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{math.Log(1), math.Log(5), math.Log(2), math.Log(6), math.Log(3), math.Log(7)}
	got, err := ir.Eval(readBack(t, m, onnx.Options{}).Graph, map[string]*ir.Array{"x": ir.Floats(ir.F64, x, 3, 2)}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 5, 3, 11, 6, 18} {
		if d := math.Exp(got[0].F[i]) - want; math.Abs(d) > 1e-12 {
			t.Errorf("element %d is off by %g", i, d)
		}
	}
}
