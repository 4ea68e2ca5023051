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
