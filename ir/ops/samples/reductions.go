package samples

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addReduction(ops.OpReduceSum, reduction{})
	addReduction(ops.OpReduceProd, reduction{samples: productSamples})
	addReduction(ops.OpReduceMax, reduction{noEmptyGrad: "infinite result", samples: extremumSamples})
	addReduction(ops.OpReduceMin, reduction{noEmptyGrad: "infinite result", samples: extremumSamples})
	addReduction(ops.OpMean, reduction{noEmptyGrad: "NaN result"})
	add(ops.OpSumAll, sumAllSamples)
}

// reduction describes the samples of a reduction.
type reduction struct {
	// noEmptyGrad is the reason to skip gradient checks of empty samples, if any.
	noEmptyGrad string
	samples     func() []ir.Sample // further samples
}

func addReduction(op ir.Op, r reduction) {
	add(op, func() []ir.Sample { return reduceSamples(op, r) })
}

func reduceSamples(op ir.Op, r reduction) []ir.Sample {
	var out []ir.Sample
	add := func(x *ir.Array, axes ...int) {
		a := &ops.AxesAttrs{Axes: axes}
		s := ir.Sample{Name: x.Type().String() + ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{x}}
		if x.Len() == 0 {
			s.NoGrad = r.noEmptyGrad
		}
		out = append(out, s)
	}
	add(draw(1, ir.F32, -2, 2))
	add(draw(2, ir.F32, -2, 2, 7), 0)
	add(draw(3, ir.F32, -2, 2, 0), 0)
	add(draw(4, ir.F32, -2, 2, 3, 0), 1)
	add(draw(5, ir.F32, -2, 2, 3, 0), 0)
	add(draw(6, ir.F32, -2, 2, 1, 1), 0, 1)
	add(distinct(-4, 4, 67, 131), 1)
	add(distinct(-4, 4, 67, 131), 0)
	add(distinct(-1.5, 1.5, 13, 5), 1, 0)
	add(distinct(-1.5, 1.5, 2, 3, 4, 2), 2, 0)
	add(draw(11, ir.F32, -2, 2, 2, 3))
	for _, d := range typesIn(accepts(op, &ops.AxesAttrs{}, 1))[1:] {
		add(draw(12, d, -2, 3, 4, 3), 0)
		add(draw(13, d, -2, 3, 0, 3), 0)
	}
	if r.samples != nil {
		out = append(out, r.samples()...)
	}
	return out
}

func productSamples() []ir.Sample {
	x := ir.Floats(ir.F32, []float64{2, 0, 3, 0, 0, 5, 1, 2, 3, 0, 0, 0}, 4, 3)
	return []ir.Sample{{Name: "zeros", Attrs: &ops.AxesAttrs{Axes: []int{1}}, In: []*ir.Array{x}}}
}

func extremumSamples() []ir.Sample {
	row := func(name, noGrad string, x ...float64) ir.Sample {
		return ir.Sample{Name: name, NoGrad: noGrad, Attrs: &ops.AxesAttrs{Axes: []int{0}}, In: []*ir.Array{ir.Floats(ir.F32, x, len(x))}}
	}
	return []ir.Sample{
		row("ties", "ties share the gradient", 1, 3, 3, -1, 3, -1),
		row("all alike", "ties share the gradient", 2, 2, 2),
		row("infinities", "infinite elements", math.Inf(1), 0, math.Inf(-1)),
		row("nan", "NaN element", 1, math.NaN(), 3),
		row("nan and infinities", "NaN element", math.Inf(1), math.NaN(), math.Inf(-1)),
	}
}

func sumAllSamples() []ir.Sample {
	var out []ir.Sample
	for _, shapes := range [][][]int{
		{{}},
		{{0}},
		{{7}},
		{{67, 3}, {0, 2}, {1, 1}, {5}},
		{{8192}, {8193}, {3, 5461}},
	} {
		s := ir.Sample{Name: shapeName(shapes[0])}
		for i, dims := range shapes {
			s.In = append(s.In, draw(uint64(i), ir.F32, -2, 2, dims...))
		}
		out = append(out, s)
	}
	many := ir.Sample{Name: "more than a kernel binds"}
	for i := range 11 {
		many.In = append(many.In, draw(uint64(i), ir.F32, -2, 2, i, 3))
	}
	out = append(out, many)
	for _, d := range []ir.DType{ir.F16, ir.F64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{draw(1, d, -2, 2, 3), draw(2, d, -2, 2, 2, 4)}})
	}
	return out
}

func init() {
	addAll(argSamples, ops.OpArgMax, ops.OpArgMin)
}

func argSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, axis int, d ir.DType, x *ir.Array) {
		out = append(out, ir.Sample{Name: name, Attrs: &ops.ArgAttrs{Axis: axis, DType: d}, In: []*ir.Array{x}})
	}
	for _, c := range []struct {
		axis int
		dims []int
	}{{0, []int{1}}, {0, []int{7}}, {1, []int{0, 3}}, {1, []int{67, 131}}, {0, []int{67, 131}}, {1, []int{2, 3, 4}}} {
		add(shapeName(c.dims), c.axis, ir.I32, draw(1, ir.F32, -2, 2, c.dims...))
	}
	for _, d := range typesIn(isReal)[1:] {
		add(d.String(), 1, ir.I32, draw(2, d, -3, 3, 4, 5))
	}
	for _, d := range typesIn(isInteger) {
		add("as "+d.String(), 0, d, draw(3, ir.F32, -3, 3, 5, 4))
	}
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	inf := math.Inf(1)
	add("ties", 0, ir.I32, row(1, 3, -1, 3, -1))
	add("infinities", 0, ir.I32, row(-inf, -inf, inf, inf))
	add("worst only", 0, ir.I32, row(-inf, -inf))
	add("best only", 0, ir.I32, row(inf, inf))
	add("nan", 0, ir.I32, row(1, math.NaN(), 3, math.NaN(), -1))
	add("nan only", 0, ir.I32, row(math.NaN(), math.NaN()))
	return out
}

func init() {
	addAll(varSamples, ops.OpVar, ops.OpStd)
	add(ops.OpNorm, normOrderSamples)
	addAll(countSamples, ops.OpAll, ops.OpAny, ops.OpCountNonzero)
	add(ops.OpBincount, func() []ir.Sample {
		return []ir.Sample{
			{Name: "some", Attrs: &ops.BinsAttrs{Bins: 4}, In: []*ir.Array{ir.Ints(ir.I32, []int64{3, 1, 1, -1, 4, 0, 3, 3}, 2, 4)}},
			{Name: "many", Attrs: &ops.BinsAttrs{Bins: 70}, In: []*ir.Array{draw(1, ir.U8, 0, 80, 131)}},
			{Name: "none", Attrs: &ops.BinsAttrs{Bins: 3}, In: []*ir.Array{ir.NewArray(ir.I32, 0)}},
		}
	})
	add(ops.OpHistogram, func() []ir.Sample {
		return []ir.Sample{
			{Name: "ends", Attrs: &ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 4}, Low: -1, High: 1}, In: []*ir.Array{
				ir.Floats(ir.F32, []float64{-1, 1, 0, 0.5, -0.2, 2, -3, math.NaN(), math.Inf(1)}),
			}},
			{Name: "matrix", Attrs: &ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 7}, Low: -2, High: 2}, In: []*ir.Array{draw(1, ir.F32, -3, 3, 13, 11)}},
			{Name: "none", Attrs: &ops.HistogramAttrs{BinsAttrs: ops.BinsAttrs{Bins: 3}, Low: 0, High: 1}, In: []*ir.Array{ir.NewArray(ir.F32, 0)}},
		}
	})
}

func varSamples() []ir.Sample {
	sample := func(name string, correction int, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.VarAttrs{AxesAttrs: ops.AxesAttrs{Axes: axes}, Correction: correction}, In: []*ir.Array{x}}
	}
	equal := sample("equal", 0, ir.NewArray(ir.F32, 2, 3), 1)
	equal.NoGrad = "the root of 0"
	return []ir.Sample{
		sample("rows", 0, drawn(ir.F32, 5, 7), 1), sample("unbiased", 1, drawn(ir.F32, 5, 7), 0),
		sample("all", 1, drawn(ir.F32, 2, 3, 4), 0, 1, 2), sample("beyond a tile", 0, drawn(ir.F32, 3, 300), 1),
		sample("half", 0, drawn(ir.F16, 2, 6), 1), sample("no rows", 0, ir.NewArray(ir.F32, 0, 3), 1), equal,
	}
}

func normOrderSamples() []ir.Sample {
	sample := func(name string, order float64, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.NormOrderAttrs{AxesAttrs: ops.AxesAttrs{Axes: axes}, Order: order}, In: []*ir.Array{x}}
	}
	out := []ir.Sample{
		sample("zero", 2, ir.NewArray(ir.F32, 3), 0), sample("half", 2, drawn(ir.F16, 2, 6), 1),
		sample("no rows", 2, ir.NewArray(ir.F32, 0, 3), 1), sample("all", 2, drawn(ir.F32, 3, 131), 0, 1),
	}
	out[0].NoGrad = "a kink"
	for _, p := range []float64{0, 1, 2, 3, 0.5, math.Inf(1), math.Inf(-1)} {
		out = append(out, sample("order "+ir.FormatAttrs(&ops.NormOrderAttrs{Order: p}), p, drawn(ir.F32, 4, 5), 1))
	}
	return out
}

func countSamples() []ir.Sample {
	sample := func(name string, x *ir.Array, axes ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxesAttrs{Axes: axes}, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("bool", draw(1, ir.Bool, 0, 1, 67, 3), 1), sample("numbers", ir.Floats(ir.F32, []float64{0, 1, 0, 0, 2, math.NaN()}, 3, 2), 1),
		sample("all axes", draw(1, ir.I32, 0, 3, 5, 7), 0, 1), sample("no elements", ir.NewArray(ir.Bool, 2, 0), 1),
		sample("no rows", ir.NewArray(ir.Bool, 0, 3), 1), sample("scalar", ir.Int(ir.Bool, 1)),
	}
}

func init() {
	add(ops.OpSoftmax, softmaxSamples)
	add(ops.OpLogSoftmax, softmaxSamples)
	add(ops.OpLogSumExp, softmaxSamples)
}

func softmaxSamples() []ir.Sample {
	sample := func(name string, axis int, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{x}}
	}
	none := math.Inf(-1)
	masked := sample("masked", 1, ir.Floats(ir.F32, []float64{1, none, 3, none, none, none, 0, 0, none}, 3, 3))
	masked.NoGrad = "finite differences fail at infinity"
	return []ir.Sample{
		sample("rows", 1, drawn(ir.F32, 3, 5)),
		sample("beyond a tile", 1, drawn(ir.F32, 5, 300)),
		sample("first axis", 0, drawn(ir.F32, 7, 3)),
		sample("inner axis", 1, drawn(ir.F32, 2, 9, 4)),
		sample("one element", 0, drawn(ir.F32, 1)),
		sample("no rows", 1, ir.NewArray(ir.F32, 0, 4)),
		sample("large", 0, ir.Floats(ir.F32, []float64{1000, 999, -1000})),
		sample("half", 1, drawn(ir.F16, 2, 6)),
		masked,
	}
}

func init() {
	for _, op := range []ir.Op{ops.OpCumSum, ops.OpCumProd, ops.OpCumMax, ops.OpCumMin, ops.OpCumLogSumExp} {
		add(op, func() []ir.Sample { return cumulativeSamples(op) })
	}
}

func cumulativeSamples(op ir.Op) []ir.Sample {
	values := func(dims ...int) *ir.Array {
		if op == ops.OpCumProd { // products of many stay near 1
			return draw(5, ir.F32, 0.9, 1.1, dims...)
		}
		return distinct(-1, 1.3, dims...)
	}
	sample := func(name string, a ops.CumSumAttrs, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}}
	}
	out := []ir.Sample{
		sample("rows", ops.CumSumAttrs{Axis: 1}, values(3, 5)),
		sample("columns from the end", ops.CumSumAttrs{Axis: 0, Reverse: true}, values(7, 3)),
		sample("exclusive", ops.CumSumAttrs{Axis: 0, Exclusive: true}, values(9)),
		sample("exclusive from the end", ops.CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, values(2, 4, 3)),
		sample("many columns", ops.CumSumAttrs{Axis: 0}, values(11, 13)),
		sample("beyond a block", ops.CumSumAttrs{Axis: 1}, values(2, 1031)),
		sample("one element", ops.CumSumAttrs{}, values(1)),
		sample("empty", ops.CumSumAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0)),
	}
	if op != ops.OpCumSum && op != ops.OpCumProd {
		for i := range out {
			if out[i].Attrs.(*ops.CumSumAttrs).Exclusive {
				out[i].NoGrad = "infinite where nothing is before"
			}
		}
	}
	class := isReal
	switch op {
	case ops.OpCumSum, ops.OpCumProd:
		class = isNumber
	case ops.OpCumLogSumExp:
		class = isFloat
	}
	for _, d := range typesIn(class)[1:] {
		out = append(out, sample(d.String(), ops.CumSumAttrs{}, draw(6, d, -2, 2, 6)))
	}
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	inf := math.Inf(1)
	special := []ir.Sample{
		sample("zeros", ops.CumSumAttrs{}, row(2, 0, 3, 0, 1)),
		sample("ties", ops.CumSumAttrs{}, row(1, 3, 3, -1, 3)),
		sample("infinities", ops.CumSumAttrs{}, row(-inf, 1, -inf, inf, 2)),
		sample("nan", ops.CumSumAttrs{}, row(1, math.NaN(), 2)),
	}
	for i := range special {
		if i > 0 && op != ops.OpCumProd || op == ops.OpCumMax || op == ops.OpCumMin {
			special[i].NoGrad = special[i].Name
		}
	}
	if op == ops.OpCumProd {
		special = special[:2]
	}
	return append(out, special...)
}

func init() {
	add(ops.OpAssociativeScan, associativeSamples)
}

func associativeSamples() []ir.Sample {
	graph := func(f func(b *ir.Builder, x, y []ir.Value) []ir.Value, types ...ir.DType) *ir.Graph {
		g, err := ir.Build("combine", func(b *ir.Builder) {
			var scalars []ir.Type
			for _, d := range slices.Concat(types, types) {
				scalars = append(scalars, ir.TypeOf(d))
			}
			v := declare(b, "in", scalars)
			for i, r := range f(b, v[:len(types)], v[len(types):]) {
				b.Output(string(rune('a'+i)), r)
			}
		})
		if err != nil {
			panic(err)
		}
		return g
	}
	// The sum of velocities, in units of that of light.
	velocities := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		one := ops.OnesLike(b, x[0])
		return []ir.Value{ops.Div(b, ops.Add(b, x[0], y[0]), ops.Add(b, one, ops.Mul(b, x[0], y[0])))}
	}, ir.F32)
	// Maps x → a·x + b, one after the other.
	maps := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, y[0], x[0]), ops.Add(b, ops.Mul(b, y[0], x[1]), y[1])}
	}, ir.F32, ir.F32)
	// The last of all that are marked.
	marked := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		return []ir.Value{ops.Or(b, x[0], y[0]), ops.Select(b, y[0], y[1], x[1])}
	}, ir.Bool, ir.I32)
	turns := graph(func(b *ir.Builder, x, y []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, x[0], y[0])}
	}, ir.C64)
	sample := func(name string, a ops.AssociativeAttrs, g *ir.Graph, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, Subs: []*ir.Graph{g}, In: in}
	}
	some := func(dims ...int) *ir.Array { return draw(3, ir.F32, -0.9, 0.9, dims...) }
	return []ir.Sample{
		sample("rows", ops.AssociativeAttrs{Axis: 1}, velocities, some(2, 5)),
		sample("columns from the end", ops.AssociativeAttrs{Reverse: true}, velocities, some(5, 3)),
		sample("beyond a block", ops.AssociativeAttrs{}, velocities, draw(3, ir.F32, -0.1, 0.1, 1031)),
		sample("one", ops.AssociativeAttrs{}, velocities, some(1)),
		sample("empty", ops.AssociativeAttrs{Axis: 1}, velocities, ir.NewArray(ir.F32, 2, 0)),
		sample("maps", ops.AssociativeAttrs{Axis: 1, Reverse: true}, maps, some(3, 70), some(3, 70)),
		sample("complex", ops.AssociativeAttrs{Axis: 1}, turns, draw(5, ir.C64, -1, 1, 2, 9)),
		sample("marked", ops.AssociativeAttrs{}, marked, ir.Ints(ir.Bool, []int64{0, 1, 0, 0, 1, 0, 0}, 7), draw(4, ir.I32, -9, 9, 7)),
	}
}

func init() {
	add(ops.OpLinearRecurrence, recurrenceSamples)
}

func recurrenceSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, d ir.DType, a ops.CumSumAttrs, dims ...int) {
		x, y := draw(3, d, -0.9, 1, dims...), draw(4, d, -1, 1, dims...)
		out = append(out, ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x, y}})
	}
	add("rows", ir.F32, ops.CumSumAttrs{Axis: 1}, 3, 5)
	add("columns from the end", ir.F32, ops.CumSumAttrs{Axis: 0, Reverse: true}, 7, 3)
	add("exclusive", ir.F32, ops.CumSumAttrs{Exclusive: true}, 9)
	add("exclusive from the end", ir.F32, ops.CumSumAttrs{Axis: 1, Reverse: true, Exclusive: true}, 2, 4, 9)
	add("beyond a block", ir.F32, ops.CumSumAttrs{Axis: 1}, 2, 1031)
	add("one element", ir.F32, ops.CumSumAttrs{}, 1)
	add("empty", ir.F32, ops.CumSumAttrs{Axis: 1}, 2, 0)
	for _, d := range typesIn(func(d ir.DType) bool { return isFloat(d) || d.IsComplex() })[1:] {
		add(d.String(), d, ops.CumSumAttrs{}, 6)
	}
	pair := ops.CumSumAttrs{Axis: 1}
	for _, name := range []string{"two together", "two together from the end", "two together, exclusive"} {
		a := pair
		a.Reverse, a.Exclusive = name == "two together from the end", name == "two together, exclusive"
		sample := ir.Sample{Name: name, Attrs: &a}
		for i := range 6 {
			sample.In = append(sample.In, draw(uint64(20+i), ir.F32, -0.6, 0.6, 2, 9))
		}
		out = append(out, sample)
	}
	zero := ir.Sample{Name: "zeros", Attrs: &ops.CumSumAttrs{}, In: []*ir.Array{ir.Floats(ir.F32, []float64{0, 1, 0, 2}, 4), ir.Floats(ir.F32, []float64{1, 0, 2, 0}, 4)}}
	return append(out, zero)
}

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
	add("first of columns", ops.SortAttrs{Axis: 0, First: 9, Descending: true}, distinct(-1, 1, 67, 3))
	add("first of ties and NaN", ops.SortAttrs{First: 4}, ir.Floats(ir.F32, []float64{2, math.NaN(), 1, 2, 1, 2, math.NaN(), 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 19))
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
		{Name: "first with a payload", Attrs: &ops.SortAttrs{Axis: 1, First: 2}, In: []*ir.Array{distinct(-1, 1, 3, 5), distinct(-1, 1, 3, 5)}},
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

func init() {
	add(ops.OpSearchSorted, searchSamples)
	add(ops.OpSegmentReduce, segmentSamples)
	add(ops.OpUnique, uniqueSamples)
	add(ops.OpQuantile, quantileSamples)
}

func searchSamples() []ir.Sample {
	nan, inf := math.NaN(), math.Inf(1)
	sorted := ir.Floats(ir.F32, []float64{-inf, -1, 0, 0, 0, 2.5, 7, inf, nan}, 9)
	values := ir.Floats(ir.F32, []float64{-inf, -2, 0, 1, 7, 8, nan, inf}, 2, 4)
	long := ir.NewArray(ir.I32, 131)
	for i := range long.I {
		long.I[i] = int64(i / 3)
	}
	sample := func(name string, right bool, in ...*ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SearchAttrs{Right: right}, In: in}
	}
	return []ir.Sample{
		sample("left", false, sorted, values), sample("right", true, sorted, values),
		sample("integers", false, long, draw(1, ir.I32, -1, 50, 67)), sample("one", true, ir.Floats(ir.F32, []float64{1}), ir.Float(ir.F32, 1)),
		sample("none", false, ir.NewArray(ir.F32, 0), values),
	}
}

func segmentSamples() []ir.Sample {
	ids := ir.Ints(ir.I32, []int64{2, 0, 2, 5, -1, 0, 2})
	sample := func(name, reduction string, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SegmentAttrs{Segments: ir.N(4), Reduction: reduction}, In: []*ir.Array{x, ids}}
	}
	out := []ir.Sample{sample("i32", "max", draw(1, ir.I32, -9, 9, 7)), sample("half", "mean", drawn(ir.F16, 7, 2))}
	for _, r := range []string{"sum", "mean", "prod"} {
		out = append(out, sample(r, r, drawn(ir.F32, 7, 3)))
	}
	for _, r := range []string{"max", "min"} {
		s := sample(r, r, distinct(-1, 1, 7, 3))
		s.NoGrad = "infinite results of empty segments"
		out = append(out, s)
	}
	return append(out, ir.Sample{Name: "no elements", Attrs: &ops.SegmentAttrs{Segments: ir.N(2), Reduction: "sum"}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 3), ir.NewArray(ir.I32, 0)}})
}

func uniqueSamples() []ir.Sample {
	sample := func(name string, size int, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SizeAttrs{Size: ir.N(size)}, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	const ties = "equal elements"
	return []ir.Sample{
		sample("different", 6, distinct(-1, 1, 2, 3), ""),
		sample("repeated", 5, ir.Floats(ir.F32, []float64{3, 1, 3, math.NaN(), 1, 0, math.NaN()}), ties),
		sample("more than asked for", 2, draw(1, ir.I32, -3, 3, 17), ties),
		sample("many", 80, draw(2, ir.I32, 0, 70, 131), ties),
		sample("none", 2, ir.NewArray(ir.F32, 0), ties),
	}
}

func quantileSamples() []ir.Sample {
	sample := func(name string, q float64, axis int, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.QuantileAttrs{AxisAttrs: ops.AxisAttrs{Axis: axis}, Q: q}, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	return []ir.Sample{
		sample("median", 0.5, 1, distinct(-1, 1, 3, 6), ""), sample("of an odd number", 0.5, 0, distinct(-1, 1, 7), ""),
		sample("columns", 0.3, 0, distinct(-1, 1, 5, 3), ""), sample("largest", 1, 0, distinct(-1, 1, 4), ""),
		sample("one element", 0.25, 0, distinct(-1, 1, 1), ""), sample("no rows", 0.5, 1, ir.NewArray(ir.F32, 0, 3), ""),
		sample("half", 0.5, 0, drawn(ir.F16, 5), ""), sample("nan", 0.5, 0, ir.Floats(ir.F32, []float64{1, math.NaN(), 2}), "NaN elements"),
	}
}
