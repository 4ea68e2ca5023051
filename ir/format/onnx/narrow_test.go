package onnx_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
)

// longs returns the number of i64 values of a graph that something uses.
func longs(g *ir.Graph) int {
	used := map[ir.Value]bool{}
	for _, o := range g.Outputs() {
		used[o.Value] = true
	}
	n := 0
	for _, node := range slices.Backward(g.Nodes()) {
		if !slices.ContainsFunc(node.Results(), func(v ir.Value) bool { return used[v] }) {
			continue
		}
		for _, v := range node.Inputs() {
			used[v] = true
		}
		for _, v := range node.Results() {
			if v.DType() == ir.I64 {
				n++
			}
		}
	}
	return n
}

// Token numbers given as int64, counted from the end if negative, and positions become i32; values
// that may leave its range stay i64.
func TestNarrowKeepsWhatMayOverflow(t *testing.T) {
	inputs := []field{info("x", onnx.Float, 5), info("ids", onnx.Int64, 3)}
	graph := func(nodes ...field) []field {
		return graphOf(nodes, []field{tensorOf("big", onnx.Int64, nil, intBytes(1<<40)), tensorOf("two", onnx.Int64, nil, intBytes(2))},
			inputs, []field{info("y", onnx.Float)})
	}
	for _, c := range []struct {
		name  string
		graph []field
		longs bool
		want  []float64
	}{
		{"indices", graph(node("Gather", names("x", "ids"), names("y"))), false, []float64{2, 5, 1}},
		{"largest", graph(node("ArgMax", names("x"), names("i")), node("Add", names("i", "two"), names("k")), node("Cast", names("k"), names("y"), attribute("to", 1))), false, []float64{6}},
		{"sums of numbers that are given", graph(node("Add", names("ids", "two"), names("k")), node("Cast", names("k"), names("y"), attribute("to", 1))), true, []float64{3, 1, 2}},
		{"sums of which 32 bits are read", graph(
			node("ReduceSum", names("ids"), names("n"), attribute("keepdims", 0)), node("Mul", names("n", "two"), names("k")), node("Cast", names("k"), names("l"), attribute("to", 6)),
			node("Cast", names("l"), names("y"), attribute("to", 1)),
		), false, []float64{0}},
		{"sums that are read as a whole, too", graph(
			node("Add", names("ids", "two"), names("k")), node("Cast", names("k"), names("l"), attribute("to", 6)), node("Cast", names("k"), names("m"), attribute("to", 1)),
			node("Cast", names("l"), names("n"), attribute("to", 1)), node("Add", names("m", "n"), names("y")),
		), true, []float64{6, 2, 4}},
		{"large constants", graph(node("Less", names("ids", "big"), names("k")), node("Cast", names("k"), names("y"), attribute("to", 1))), true, []float64{1, 1, 1}},
	} {
		i := imported(t, 17, onnx.Options{Narrow: true}, c.graph)
		if got := longs(i.Graph) > 0; got != c.longs {
			t.Errorf("%s: i64 in the graph is %v:\n%s", c.name, got, i.Graph)
		}
		in := map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{1, 2, 3, 4, 5}), "ids": ir.Ints(ir.I32, []int64{1, -1, 0})}
		if got := evaluated(t, i, in).F; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
