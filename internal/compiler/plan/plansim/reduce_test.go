package plansim_test

import (
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// spreadBack returns a value for each element of x from one for each row, which
// the reduction over axis left.
func spreadBack(b *ir.Builder, v, x ir.Value, axis int) ir.Value {
	var kept []int
	for i := range x.Rank() {
		if i != axis {
			kept = append(kept, i)
		}
	}
	return ops.BroadcastInDim(b, v, x.Shape(), kept)
}

func center(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return ops.Sub(b, x, spreadBack(b, ops.ReduceMax(b, x, axis), x, axis))
}

// reducePrograms return outputs computed from x.
var reducePrograms = []struct {
	name string
	make func(b *ir.Builder, x ir.Value) []ir.Value
}{
	{"sums over each axis", func(b *ir.Builder, x ir.Value) (out []ir.Value) {
		for axis := range x.Rank() {
			out = append(out, ops.ReduceSum(b, x, axis))
		}
		return append(out, ops.ReduceSum(b, x))
	}},
	{"softmax along each axis", func(b *ir.Builder, x ir.Value) (out []ir.Value) {
		for axis := range x.Rank() {
			out = append(out, ops.Softmax(b, x, axis))
		}
		return out
	}},
	{"centred along each axis, then reduced along each", func(b *ir.Builder, x ir.Value) (out []ir.Value) {
		for first := range x.Rank() {
			for second := range x.Rank() {
				out = append(out, ops.ReduceSum(b, ops.Exp(b, center(b, x, first)), second))
			}
		}
		return out
	}},
	{"a sum of maxima, and what is above it", func(b *ir.Builder, x ir.Value) []ir.Value {
		last := x.Rank() - 1
		s := ops.ReduceSum(b, ops.Sin(b, ops.ReduceMax(b, x, last)))
		return []ir.Value{s, ops.Gt(b, x, ops.BroadcastTo(b, s, x.Shape()))}
	}},
	{"arg max, the maximum, and what is there", func(b *ir.Builder, x ir.Value) []ir.Value {
		last := x.Rank() - 1
		if x.Dim(last).Is(0) {
			return []ir.Value{x} // there is no largest element
		}
		i, m := ops.ArgMax(b, x, last), ops.ReduceMax(b, x, last)
		return []ir.Value{i, m, ops.Sub(b, m, ops.ReduceSum(b, x, last)), ops.ArgMin(b, center(b, x, last), last)}
	}},
	{"a map of the sum and its transpose", func(b *ir.Builder, x ir.Value) []ir.Value {
		t := ops.Transpose(b, ops.Exp(b, x), backwards(x.Rank())...)
		return []ir.Value{ops.ReduceSum(b, t, 0), ops.Sub(b, t, spreadBack(b, ops.ReduceSum(b, t, 0), t, 0))}
	}},
	{"integers and booleans", func(b *ir.Builder, x ir.Value) []ir.Value {
		i := ops.Convert(b, ops.Mul(b, x, ops.ConstLike(b, x, 9)), ir.I32)
		positive := ops.Gt(b, i, ops.ZerosLike(b, i))
		u := ops.Convert(b, ops.Abs(b, i), ir.U32)
		count := ops.ReduceSum(b, ops.Convert(b, positive, ir.I32), x.Rank()-1)
		return []ir.Value{
			ops.ReduceMin(b, i, 0), ops.ReduceSum(b, i), ops.ReduceMax(b, u, x.Rank()-1), count,
			ops.Gt(b, i, spreadBack(b, count, i, x.Rank()-1)), positive,
		}
	}},
	{"a map that is kept, and its sums along each axis", func(b *ir.Builder, x ir.Value) []ir.Value {
		y := ops.Exp(b, x)
		out := []ir.Value{y}
		for axis := range x.Rank() {
			out = append(out, ops.ReduceSum(b, y, axis))
		}
		return out
	}},
	{"running sums of what is centred", func(b *ir.Builder, x ir.Value) (out []ir.Value) {
		for axis := range x.Rank() {
			c := ops.CumSum(b, center(b, x, axis), ops.CumSumAttrs{Axis: axis, Reverse: axis == 0, Exclusive: axis == 1})
			out = append(out, c, ops.ReduceMax(b, c, axis))
		}
		return out
	}},
	{"two dozen sums of one value", func(b *ir.Builder, x ir.Value) (out []ir.Value) {
		for i := range 24 {
			out = append(out, ops.ReduceMax(b, ops.Sin(b, ops.Mul(b, x, ops.ConstLike(b, x, float64(i)))), x.Rank()-1))
		}
		return out
	}},
	{"products", func(b *ir.Builder, x ir.Value) []ir.Value {
		y := ops.ReduceProd(b, ops.Add(b, ops.Mul(b, x, ops.ConstLike(b, x, 0.01)), ops.ConstLike(b, x, 1)), x.Rank()-1)
		return []ir.Value{y, ops.Log(b, y)}
	}},
}

// reduceShapes have rows of all lengths: empty, of one element, shorter and
// longer than a workgroup, cut over workgroups, and many of them.
var reduceShapes = [][]int{{0}, {1}, {7}, {300}, {9000}, {0, 3}, {3, 0}, {1, 1}, {5, 1}, {1, 5}, {3, 33}, {300, 3}, {3, 300}, {70, 70}, {2, 5000}, {5000, 2}, {2, 3, 4}, {3, 1, 40}, {4, 40, 3}}

func TestReductionsOfAllShapesEqualReference(t *testing.T) {
	for _, p := range reducePrograms {
		for _, dims := range reduceShapes {
			t.Run(p.name+ir.Dims(dims...).String(), func(t *testing.T) {
				g := schedtest.Build(t, func(b *ir.Builder) {
					for i, v := range p.make(b, b.Input("x", ir.F32, ir.Dims(dims...)...)) {
						b.Output("y"+strconv.Itoa(i), v)
					}
				})
				checkTwoRuns(t, g, someValues(g), plan.WebGPU())
			})
		}
	}
}

// backwards returns the axes of a rank, the last one first.
func backwards(rank int) []int {
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = rank - 1 - i
	}
	return axes
}

// A sum over many rows with enough columns to be split reads the stored map from memory,
// and does not compute it in each part.
func TestMapIsStoredWithSplitReductions(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		y := ops.Exp(b, b.Input("x", ir.F32, ir.Dims(2100, 64)...))
		b.Output("y", y)
		b.Output("sums", ops.ReduceSum(b, y, 0))
	})
	checkTwoRuns(t, g, someValues(g), plan.WebGPU())
}

// Columns with several indices, as those of heads that are packed into rows, are
// read side by side and cut like others.
func TestColumnsOfDigitsAreCut(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := ops.Reshape(b, ops.Exp(b, b.Input("x", ir.F32, ir.Dims(2100, 3, 32)...)), ir.Dims(2100, 96)...)
		b.Output("sums", ops.ReduceSum(b, x, 0))
	})
	checkTwoRuns(t, g, someValues(g), plan.WebGPU())
	m := moduleOf(t, g)
	p, err := plan.Compile(m, plan.WebGPU(), plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Entries[0].Dispatches(); n != 2 {
		t.Errorf("%d launches, not two: parts of the columns, and their sums", n)
	}
}
