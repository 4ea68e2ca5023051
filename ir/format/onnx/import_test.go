package onnx_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// imported imports a model of the given graph.
func imported(t *testing.T, opset int, o onnx.Options, graph []field, functions ...field) *onnx.Import {
	t.Helper()
	m, err := onnx.Decode(model(opset, graph, functions...))
	if err != nil {
		t.Fatal(err)
	}
	i, err := m.Import(o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// evaluated computes the only output of an imported graph.
func evaluated(t *testing.T, i *onnx.Import, in map[string]*ir.Array) *ir.Array {
	t.Helper()
	out, err := ir.Eval(i.Graph, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func names(list ...string) []string { return list }

// The chains of Shape, Gather and Concat that exporters write before Reshape are computed on
// symbols.
func TestShapeArithmeticIsSymbolic(t *testing.T) {
	g := graphOf([]field{
		node("Shape", names("x"), names("s")),
		node("Gather", names("s", "zero"), names("n")),
		node("Gather", names("s", "last"), names("c")),
		node("Unsqueeze", names("n", "axis"), names("n1")),
		node("Mul", names("c", "two"), names("c2")),
		node("Div", names("c2", "two"), names("c1")),
		node("Unsqueeze", names("c1", "axis"), names("c11")),
		node("Concat", names("n1", "minus", "c11"), names("shape"), attribute("axis", 0)),
		node("Reshape", names("x", "shape"), names("y")),
	}, []field{
		tensorOf("zero", onnx.Int64, nil, intBytes(0)), tensorOf("last", onnx.Int64, nil, intBytes(-1)),
		tensorOf("axis", onnx.Int64, []int{1}, intBytes(0)), tensorOf("two", onnx.Int64, nil, intBytes(2)),
		tensorOf("minus", onnx.Int64, []int{1}, intBytes(-1)),
	}, []field{info("x", onnx.Float, "n", "h", "w", 8)}, []field{info("y", onnx.Float)})
	i := imported(t, 17, onnx.Options{}, g)
	out, _ := i.Graph.Output("y")
	if got := out.Value.Shape().String(); got != "[n,h*w,8]" {
		t.Errorf("the result has shape %s", got)
	}
	if n := len(i.Graph.Nodes()); n != 2 {
		t.Errorf("%d nodes remain of the arithmetic:\n%s", n-2, i.Graph)
	}
}

// TestExpandToAnOpenSize imports an Expand as PyTorch writes it: sizes that are -1, which those of axes are not, become 1.
func TestExpandToAnOpenSize(t *testing.T) {
	i := imported(t, 17, onnx.Options{}, graphOf([]field{
		node("Shape", names("x"), names("shape"), attribute("end", 1)),
		node("Concat", names("shape", "rest"), names("sizes"), attribute("axis", 0)),
		node("Equal", names("sizes", "minus"), names("same")),
		node("Where", names("same", "ones", "sizes"), names("all")),
		node("Expand", names("row", "all"), names("y")),
	}, []field{
		tensorOf("rest", onnx.Int64, []int{2}, intBytes(3, -1)), tensorOf("minus", onnx.Int64, []int{}, intBytes(-1)),
		tensorOf("ones", onnx.Int64, []int{3}, intBytes(1, 1, 1)),
	}, []field{info("x", onnx.Float, "n"), info("row", onnx.Float, 2)}, []field{info("y", onnx.Float)}))
	if y, _ := i.Graph.Output("y"); y.Value.Shape().String() != "[n,3,2]" {
		t.Errorf("the result is %s, not f32[n,3,2]", y.Value.Type())
	}
}

// TestSizesAreChosenByAMatrix chooses sizes by a condition of two axes, which has no sizes.
func TestSizesAreChosenByAMatrix(t *testing.T) {
	i := imported(t, 17, onnx.Options{}, graphOf([]field{
		node("Shape", names("x"), names("shape")),
		node("Where", names("choice", "shape", "other"), names("y")),
	}, []field{
		tensorOf("choice", onnx.Bool, []int{1, 2}, []byte{1, 0}), tensorOf("other", onnx.Int64, []int{2}, intBytes(7, 8)),
	}, []field{info("x", onnx.Float, "n", "m")}, []field{info("y", onnx.Int64)}))
	if y, _ := i.Graph.Output("y"); y.Value.Shape().String() != "[1,2]" {
		t.Errorf("the result is %s, not i64[1,2]", y.Value.Type())
	}
}

// TestSizesAreComparedWithNone compares sizes with an empty list, and chooses by the empty result.
func TestSizesAreComparedWithNone(t *testing.T) {
	i := imported(t, 17, onnx.Options{}, graphOf([]field{
		node("Shape", names("x"), names("shape")),
		node("Equal", names("shape", "none"), names("same")),
		node("Where", names("same", "shape", "none"), names("y")),
	}, []field{tensorOf("none", onnx.Int64, []int{0}, nil)}, []field{info("x", onnx.Float, "n")}, []field{info("y", onnx.Int64)}))
	if y, _ := i.Graph.Output("y"); y.Value.Shape().String() != "[0]" {
		t.Errorf("the result is %s, not i64[0]", y.Value.Type())
	}
}

// A loop with a known number of iterations is a scan, one that ends by its condition a while loop.
func TestLoops(t *testing.T) {
	body := func(condition string) []field {
		return graphOf([]field{
			node("Add", names("carried", "step"), names("sum")),
			node("Less", names("sum", "limit"), names("more")),
			node("Identity", names("before"), names("kept")),
		}, nil, []field{info("i", onnx.Int64), info("before", onnx.Bool), info("carried", onnx.Float)},
			[]field{info(condition, onnx.Bool), info("sum", onnx.Float)})
	}
	graph := func(condition string, turns string) []field {
		return graphOf([]field{
			node("Loop", names(turns, "", "x"), names("y"), attribute("body", body(condition))),
		}, []field{
			tensorOf("five", onnx.Int64, nil, intBytes(5)), tensorOf("limit", onnx.Float, nil, floatBytes(7)),
		}, []field{info("x", onnx.Float), info("step", onnx.Float)}, []field{info("y", onnx.Float)})
	}
	in := map[string]*ir.Array{"x": ir.Float(ir.F32, 1), "step": ir.Float(ir.F32, 3)}
	for _, c := range []struct {
		condition, turns, op string
		want                 float64
	}{{"kept", "five", "scan", 16}, {"more", "five", "while_loop", 7}, {"more", "", "while_loop", 7}} {
		i := imported(t, 17, onnx.Options{}, graph(c.condition, c.turns))
		if !slices.ContainsFunc(i.Graph.Nodes(), func(n *ir.Node) bool { return string(n.Op()) == c.op }) {
			t.Errorf("%v: there is no %s:\n%s", c, c.op, i.Graph)
		}
		if got := evaluated(t, i, in).F[0]; got != c.want {
			t.Errorf("%v: got %v", c, got)
		}
	}
}

// A known condition imports its branch; an unknown one both, with their captured values.
func TestConditions(t *testing.T) {
	branch := func(op string) []field {
		return graphOf([]field{node(op, names("x", "w"), names("r"))}, nil, nil, []field{info("r", onnx.Float)})
	}
	graph := func(condition string) []field {
		return graphOf([]field{
			node("If", names(condition), names("y"), attribute("then_branch", branch("Add")), attribute("else_branch", branch("Mul"))),
		}, []field{
			tensorOf("w", onnx.Float, []int{2}, floatBytes(10, 20)), tensorOf("no", onnx.Bool, nil, []byte{0}),
		}, []field{info("x", onnx.Float, 2), info("c", onnx.Bool)}, []field{info("y", onnx.Float, 2)})
	}
	in := map[string]*ir.Array{
		"x": ir.Floats(ir.F32, []float64{1, 2}), "w": ir.Floats(ir.F32, []float64{10, 20}), "c": ir.Int(ir.Bool, 1),
	}
	i := imported(t, 17, onnx.Options{}, graph("c"))
	if got := evaluated(t, i, in).F; !slices.Equal(got, []float64{11, 22}) {
		t.Errorf("got %v", got)
	}
	if len(i.Weights) != 1 || i.Weights[0].Name != "w" {
		t.Errorf("the weights are %v: one of a branch is a parameter of the graph", i.Weights)
	}
	i = imported(t, 17, onnx.Options{}, graph("no"))
	if got := evaluated(t, i, in).F; !slices.Equal(got, []float64{10, 40}) {
		t.Errorf("got %v", got)
	}
}

// A weight stays a parameter where nodes move or scale it before it is used.
func TestWeightsStayParameters(t *testing.T) {
	g := graphOf([]field{
		node("Transpose", names("w"), names("t")), node("Mul", names("t", "two"), names("m")), node("MatMul", names("x", "m"), names("y")),
	}, []field{tensorOf("w", onnx.Float, []int{1, 2}, floatBytes(3, 4)), tensorOf("two", onnx.Float, nil, floatBytes(2))},
		[]field{info("x", onnx.Float, 1, 2)}, []field{info("y", onnx.Float, 1, 1)})
	i := imported(t, 17, onnx.Options{}, g)
	if len(i.Weights) != 1 || i.Weights[0].Name != "w" {
		t.Fatalf("the weights are %v", i.Weights)
	}
	data, err := i.Weights[0].Bytes()
	if err != nil || !slices.Equal(data, floatBytes(3, 4)) {
		t.Errorf("got %v, %v", data, err)
	}
	if _, has, err := i.Weights[0].Place(); has || err != nil {
		t.Errorf("a weight of the model itself has a place: %v, %v", has, err)
	}
	in := map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{1, 1}, 1, 2), "w": ir.Floats(ir.F32, []float64{3, 4}, 1, 2)}
	if got := evaluated(t, i, in).F; got[0] != 14 {
		t.Errorf("got %v", got)
	}
}

// Functions are inlined with their attributes and defaults, and may not call themselves.
func TestFunctionsAreInlined(t *testing.T) {
	leaky := node("LeakyRelu", names("a"), names("b"), field{5, []field{{1, "alpha"}, {21, "slope"}}})
	function := func(inner field) field {
		return field{25, []field{
			{1, "F"}, {10, "own"}, {4, "a"}, {5, "b"}, {6, "slope"}, {7, inner.value}, {9, []field{{1, ""}, {2, 17}}}, {9, []field{{1, "own"}, {2, 1}}},
		}}
	}
	call := node("F", names("x"), names("y"), attribute("slope", float32(0.25)))
	call.value = append(call.value.([]field), field{7, "own"})
	g := graphOf([]field{call}, nil, []field{info("x", onnx.Float, 2)}, []field{info("y", onnx.Float, 2)})
	i := imported(t, 17, onnx.Options{}, g, function(leaky))
	if got := evaluated(t, i, map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{-4, 4})}).F; !slices.Equal(got, []float64{-1, 4}) {
		t.Errorf("got %v", got)
	}
	self := node("F", names("a"), names("b"))
	self.value = append(self.value.([]field), field{7, "own"})
	m, err := onnx.Decode(model(17, g, function(self)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Import(onnx.Options{}); !errors.Is(err, onnx.ErrDamaged) {
		t.Errorf("a function that calls itself: %v", err)
	}
}

// What cannot be imported is named: the node, its op, its operator set, the inputs to fix.
func TestRefusals(t *testing.T) {
	graph := func(n field) []field {
		return graphOf([]field{node("Shape", names("open"), names("shape")), n}, nil,
			[]field{info("x", onnx.Float, 4), info("n", onnx.Int64, 1), info("open", onnx.Float, "size")}, []field{info("y", onnx.Float)})
	}
	for _, c := range []struct {
		node field
		want string
	}{
		{node("Nope", names("x"), names("y")), `node "y": Nope (opset 17): unsupported: the op is not known`},
		{node("Reshape", names("x", "n"), names("y")), `node "y": Reshape (opset 17): the elements of "n", i64[1], must be known at import; it depends on the inputs ["n"]`},
		{node("Tile", names("x", "shape"), names("y")), `node "y": Tile (opset 17): the elements of "shape", i64[1], must be known at import; it depends on sizes, which Options.Sizes sets`},
		{node("Relu", names("z"), names("y")), `operand "z" is computed by no node before`},
		{node("Cast", names("x"), names("y"), attribute("to", 99)), "element type 99"},
		{node("Flatten", names("x"), names("y"), attribute("axis", 7)), "the axis is 7: it must be in [0, 1]"},
	} {
		m, err := onnx.Decode(model(17, graph(c.node)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Import(onnx.Options{})
		var e *onnx.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// Weights in other files are windows of these, and no path leaves the model's folder.
func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w.bin"), append(make([]byte, 8), floatBytes(3, 4)...), 0o666); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o777); err != nil {
		t.Fatal(err)
	}
	read := func(folder, location string) ([]byte, error) {
		w := field{5, []field{
			{1, 2},
			{2, int(onnx.Float)},
			{8, "w"},
			{14, 1},
			{13, []field{{1, "location"}, {2, location}}},
			{13, []field{{1, "offset"}, {2, "8"}}},
			{13, []field{{1, "length"}, {2, "8"}}},
		}}
		g := graphOf([]field{node("Add", names("x", "w"), names("y"))}, []field{w}, []field{info("x", onnx.Float, 2)}, []field{info("y", onnx.Float, 2)})
		name := filepath.Join(folder, "m.onnx")
		if err := os.WriteFile(name, model(17, g), 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := onnx.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		i, err := m.Import(onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		place, has, err := i.Weights[0].Place()
		if err == nil && (!has || place != onnx.Place{File: location, Offset: 8, Length: 8}) {
			t.Errorf("the place is %+v, %v", place, has)
		}
		data, failed := i.Weights[0].Bytes()
		if (failed == nil) != (err == nil) {
			t.Errorf("the place fails by %v, the bytes by %v", err, failed)
		}
		return data, failed
	}
	got, err := read(dir, "w.bin")
	if err != nil || !slices.Equal(got, floatBytes(3, 4)) {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.Symlink(filepath.Join(dir, "w.bin"), filepath.Join(inside, "link.bin")); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"../w.bin", filepath.Join(dir, "w.bin"), "link.bin", "none.bin", "."} {
		if got, err := read(inside, location); err == nil {
			t.Errorf("%q was read: %v", location, got)
		}
	}
}

// FuzzImport asserts that no bytes make the importer panic or take much time.
func FuzzImport(f *testing.F) {
	branch := graphOf([]field{node("Relu", names("x"), names("r"))}, nil, nil, []field{info("r", onnx.Float)})
	f.Add(model(17, graphOf([]field{
		node("MatMul", names("x", "w"), names("h")), node("Softmax", names("h"), names("s")), node("Shape", names("s"), names("n")),
		node("Reshape", names("s", "n"), names("y")),
	}, []field{tensorOf("w", onnx.Float, []int{2, 2}, floatBytes(1, 2, 3, 4))}, []field{info("x", onnx.Float, "n", 2)}, []field{info("y", onnx.Float)})))
	f.Add(model(13, graphOf([]field{
		node("If", names("c"), names("y"), attribute("then_branch", branch), attribute("else_branch", branch)),
		node("Conv", names("y", "w"), names("z"), attribute("pads", []int{1, 1, 1, 1})),
	}, []field{tensorOf("w", onnx.Float, []int{1, 1, 1, 1}, floatBytes(1))}, []field{info("x", onnx.Float, 1, 1, 4, 4), info("c", onnx.Bool)}, []field{info("z", onnx.Float)})))
	file, cases := microsoftCases(f)
	for _, name := range cases {
		f.Add(storedModel(f, file, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Decode(data)
		if err != nil {
			if !errors.Is(err, onnx.ErrDamaged) && !errors.Is(err, ir.ErrUnsupported) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		m.Inputs()
		if i, err := m.Import(onnx.Options{RoundScales: true}); err == nil {
			if err := ir.Verify(i.Graph); err != nil {
				t.Error(err)
			}
		}
	})
}

// Large tensors of Constant nodes are weights: frozen ones beside initializers, and to be trained in a model that has none.
func TestConstantNodesAreWeights(t *testing.T) {
	list := make([]float32, 65)
	for k := range list {
		list[k] = float32(k)
	}
	value := field{5, []field{{1, "value"}, {20, 4}, {5, tensorOf("", onnx.Float, []int{65}, floatBytes(list...)).value}}}
	node65 := node("Constant", nil, names("c"))
	node65.value = append(node65.value.([]field), value)
	for _, weights := range [][]field{nil, {tensorOf("b", onnx.Float, []int{65}, floatBytes(list...))}} {
		nodes := []field{node65, node("Add", names("x", "c"), names("y"))}
		if weights != nil {
			nodes = append(nodes, node("Add", names("y", "b"), names("z")))
		} else {
			nodes = append(nodes, node("Identity", names("y"), names("z")))
		}
		i := imported(t, 17, onnx.Options{}, graphOf(nodes, weights, []field{info("x", onnx.Float, 65)}, []field{info("z", onnx.Float, 65)}))
		p, ok := i.Graph.Port("c")
		if !ok || p.Kind != ir.ParamPort || p.Options().Frozen != (weights != nil) || len(i.Weights) != 1+len(weights) {
			t.Fatalf("port c is %v, %+v, of %d weights", ok, p.Options(), len(i.Weights))
		}
		in := weightsOf(t, i)
		in["x"] = ir.Floats(ir.F32, make([]float64, 65), 65)
		if got := evaluated(t, i, in).F[64]; got != float64(64*len(i.Weights)) {
			t.Errorf("the last element is %v", got)
		}
	}
}
