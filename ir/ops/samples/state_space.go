package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
