package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addCell(ops.OpLSTM, 4, 2)
	addCell(ops.OpGRU, 3, 1)
	addCell(ops.OpRNN, 1, 1)
}

func addCell(op ir.Op, gates, carries int) {
	add(op, func() []ir.Sample { return recurrentSamples(op, gates, carries) })
}

func recurrentSamples(op ir.Op, gates, carries int) []ir.Sample {
	sample := func(name string, d ir.DType, a ops.RecurrentAttrs, time, layers int) ir.Sample {
		const batch, features, hidden = 2, 3, 2
		dirs := 1
		if a.Bidirectional {
			dirs = 2
		}
		s := ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{draw(1, d, -1, 1, time, batch, features)}}
		add := func(dims ...int) { s.In = append(s.In, draw(uint64(2+len(s.In)), d, -1, 1, dims...)) }
		for range carries {
			add(layers*dirs, batch, hidden)
		}
		for i := range layers * dirs {
			width := features
			if i >= dirs {
				width = hidden * dirs
			}
			add(width, gates*hidden)
			add(hidden, gates*hidden)
			add(gates * hidden)
			add(gates * hidden)
		}
		return s
	}
	out := []ir.Sample{
		sample("one layer", ir.F32, ops.RecurrentAttrs{}, 3, 1),
		sample("two layers, both ways", ir.F32, ops.RecurrentAttrs{Bidirectional: true}, 2, 2),
		sample("one step", ir.F32, ops.RecurrentAttrs{}, 1, 1),
		sample("no step", ir.F32, ops.RecurrentAttrs{}, 0, 1),
		sample("half", ir.F16, ops.RecurrentAttrs{}, 2, 1),
	}
	if op == ops.OpRNN {
		out = append(out, sample("relu", ir.F32, ops.RecurrentAttrs{Relu: true}, 3, 1))
	}
	return out
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
	add(ops.OpSelectiveScan, func() []ir.Sample { return stateSamples(nil, "btd", "btd", "dn", "btn", "btn", "bdn") })
	add(ops.OpSSD, func() []ir.Sample {
		return stateSamples(&ops.ChunkAttrs{Chunk: 2}, "bthp", "bth", "h", "btgn", "btgn", "bhpn")
	})
	add(ops.OpGatedDelta, func() []ir.Sample {
		out := stateSamples(&ops.ScaleAttrs{Scale: 0.5}, "bthd", "bthd", "bthe", "bth", "bth", "bhde")
		chunks := stateSample("by chunks", ir.F32, 9, &ops.ScaleAttrs{Scale: 1}, "bthd", "bthd", "bthe", "bth", "bth", "bhde")
		return append(out, stateSample("gates of channels", ir.F32, 3, &ops.ScaleAttrs{Scale: 1}, "bthd", "bthd", "bthe", "bthd", "bth", "bhde"), chunks)
	})
}

// stateSample draws operands whose shapes are named by letters.
func stateSample(name string, d ir.DType, time int, a ir.Attrs, shapes ...string) ir.Sample {
	sizes := map[rune]int{'b': 2, 't': time, 'd': 3, 'n': 2, 'h': 2, 'p': 3, 'g': 1, 'e': 2}
	s := ir.Sample{Name: name, Attrs: a}
	for i, shape := range shapes {
		var dims []int
		for _, letter := range shape {
			dims = append(dims, sizes[letter])
		}
		s.In = append(s.In, draw(uint64(i+1), d, -0.6, 0.5, dims...))
	}
	return s
}

func stateSamples(a ir.Attrs, shapes ...string) []ir.Sample {
	return []ir.Sample{
		stateSample("some steps", ir.F32, 3, a, shapes...),
		stateSample("without a state", ir.F32, 4, a, shapes[:5]...),
		stateSample("one step", ir.F32, 1, a, shapes...),
		stateSample("no step", ir.F32, 0, a, shapes...),
		stateSample("half", ir.F16, 3, a, shapes...),
	}
}
