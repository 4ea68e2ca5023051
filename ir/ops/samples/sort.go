package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpArgSort, argSortSamples)
	add(ops.OpSort, sortSamples)
	add(ops.OpTopK, topKSamples)
}

func sortInputs() map[string]*ir.Array {
	inf, nan := math.Inf(1), math.NaN()
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	return map[string]*ir.Array{
		"one":        distinct(-1, 1, 1),
		"row":        distinct(-1, 1, 7),
		"ties":       row(1, 3, -1, 3, -1, 1, 1),
		"zeros":      row(0, math.Copysign(0, -1), 0, -1, math.Copysign(0, -1)),
		"nan":        row(1, nan, inf, nan, -inf, -1),
		"tiny":       row(1e-40, -1e-40, 0, 2e-40, -1e-39),
		"beyond 512": distinct(-2, 2, 611),
	}
}

func argSortSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, a ops.SortAttrs, x *ir.Array) {
		out = append(out, ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}})
	}
	inputs := sortInputs()
	for _, name := range []string{"one", "row", "ties", "zeros", "nan", "tiny", "beyond 512"} {
		add(name, ops.SortAttrs{}, inputs[name])
		add(name+" descending", ops.SortAttrs{Descending: true}, inputs[name])
	}
	add("columns", ops.SortAttrs{Axis: 0}, distinct(-1, 1, 67, 3))
	add("middle axis", ops.SortAttrs{Axis: 1, Descending: true}, distinct(-1, 1, 2, 5, 3))
	add("many short rows", ops.SortAttrs{Axis: 1}, distinct(-1, 1, 131, 3))
	add("empty rows", ops.SortAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0))
	add("no rows", ops.SortAttrs{Axis: 1}, ir.NewArray(ir.F32, 0, 2))
	for _, d := range typesIn(isReal)[1:] {
		add(d.String(), ops.SortAttrs{}, draw(2, d, -3, 3, 17))
		add(d.String()+" descending", ops.SortAttrs{Descending: true}, draw(3, d, -3, 3, 17))
	}
	add("bool", ops.SortAttrs{Descending: true}, ir.Ints(ir.Bool, []int64{0, 1, 1, 0, 1}, 5))
	return out
}

func sortSamples() []ir.Sample {
	inputs := sortInputs()
	const ties = "ties share no slope"
	return []ir.Sample{
		{Name: "row", Attrs: &ops.SortAttrs{}, In: []*ir.Array{inputs["row"]}},
		{Name: "ties", Attrs: &ops.SortAttrs{Descending: true}, In: []*ir.Array{inputs["ties"]}, NoGrad: ties},
		{Name: "nan", Attrs: &ops.SortAttrs{}, In: []*ir.Array{inputs["nan"]}, NoGrad: "NaN elements"},
		{Name: "nan descending", Attrs: &ops.SortAttrs{Descending: true}, In: []*ir.Array{inputs["nan"]}, NoGrad: "NaN elements"},
		{Name: "columns with a payload", Attrs: &ops.SortAttrs{}, In: []*ir.Array{distinct(-1, 1, 5, 3), distinct(-1, 1, 5, 3)}},
		{Name: "integers with payloads", Attrs: &ops.SortAttrs{Axis: 1, Descending: true}, In: []*ir.Array{
			draw(4, ir.I32, -3, 3, 2, 9), distinct(-1, 1, 2, 9), draw(5, ir.I32, -9, 9, 2, 9),
		}},
		{Name: "empty", Attrs: &ops.SortAttrs{}, In: []*ir.Array{ir.NewArray(ir.F32, 0)}},
	}
}

func topKSamples() []ir.Sample {
	inputs := sortInputs()
	sample := func(name string, a ops.TopKAttrs, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	return []ir.Sample{
		sample("three", ops.TopKAttrs{K: 3}, inputs["row"], ""),
		sample("smallest", ops.TopKAttrs{K: 2, Axis: 0, Smallest: true}, distinct(-1, 1, 5, 3), ""),
		sample("all of each row", ops.TopKAttrs{K: 4, Axis: 1}, distinct(-1, 1, 3, 4), ""),
		sample("none", ops.TopKAttrs{}, inputs["row"], ""),
		sample("ties", ops.TopKAttrs{K: 3}, inputs["ties"], "ties share no slope"),
		sample("nan", ops.TopKAttrs{K: 5}, inputs["nan"], "NaN elements"),
	}
}
