package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	const epsilon, momentum = 1e-5, 0.1 // the defaults
	add(ops.OpLayerNorm, func() []ir.Sample { return normSamples(3) })
	add(ops.OpRMSNorm, func() []ir.Sample { return normSamples(2) })
	add(ops.OpGroupNorm, func() []ir.Sample {
		return channelSamples(&ops.GroupNormAttrs{Groups: 2, EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}}, 2)
	})
	add(ops.OpInstanceNorm, func() []ir.Sample { return channelSamples(&ops.EpsilonAttrs{Epsilon: epsilon}, 2) })
	add(ops.OpBatchNormInference, func() []ir.Sample { return channelSamples(&ops.EpsilonAttrs{Epsilon: epsilon}, 4) })
	add(ops.OpBatchNormTraining, func() []ir.Sample {
		out := channelSamples(&ops.BatchNormAttrs{EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}, Momentum: momentum}, 4)
		for i := range out {
			out[i].NoGrad = "no derivative passes into the running statistics"
		}
		return out
	})
	add(ops.OpAdaNorm, func() []ir.Sample {
		sample := func(name string, d ir.DType, rms bool, dims ...[]int) ir.Sample {
			s := ir.Sample{Name: name, Attrs: &ops.AdaNormAttrs{RMS: rms, EpsilonAttrs: ops.EpsilonAttrs{Epsilon: epsilon}}}
			for i, x := range dims {
				s.In = append(s.In, draw(uint64(i+1), d, -1, 1, x...))
			}
			return s
		}
		return []ir.Sample{
			sample("rows", ir.F32, false, []int{2, 3, 5}, []int{2, 1, 5}, []int{2, 1, 5}), sample("rms", ir.F32, true, []int{3, 4}, []int{4}, []int{3, 1}),
			sample("half", ir.F16, false, []int{2, 4}, []int{2, 4}, []int{4}), sample("empty", ir.F32, false, []int{0, 4}, []int{4}, []int{4}),
		}
	})
	add(ops.OpWeightNorm, func() []ir.Sample {
		sample := func(name string, d ir.DType, axis int, dims ...int) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{draw(1, d, 0.25, 2, dims...), draw(2, d, 0.5, 2, dims[axis])}}
		}
		return []ir.Sample{
			sample("columns", ir.F32, 1, 3, 4), sample("convolution", ir.F32, 3, 2, 2, 3, 4), sample("half", ir.F16, 0, 2, 3), sample("none", ir.F32, 0, 0, 3),
		}
	})
}

// normSamples returns samples with 1 to operands operands.
func normSamples(operands int) []ir.Sample {
	sample := func(name string, d ir.DType, axes, operands int, dims ...int) ir.Sample {
		s := ir.Sample{Name: name, Attrs: &ops.NormAttrs{Axes: axes, Epsilon: 1e-5}, In: []*ir.Array{drawn(d, dims...)}}
		for i := range operands - 1 {
			s.In = append(s.In, draw(uint64(i), d, 0.5, 1.5, dims[len(dims)-axes:]...))
		}
		return s
	}
	constant := ir.Sample{Name: "constant rows", Attrs: &ops.NormAttrs{Axes: 1, Epsilon: 1e-5}, In: []*ir.Array{ir.NewArray(ir.F32, 2, 3)}}
	return slices.Concat([]ir.Sample{
		sample("rows", ir.F32, 1, operands, 3, 7),
		sample("beyond a tile", ir.F32, 1, operands, 5, 300),
		sample("two axes", ir.F32, 2, operands, 2, 3, 4),
		sample("plain", ir.F32, 1, 1, 2, 5),
		sample("vector", ir.F32, 1, operands, 9),
		sample("no rows", ir.F32, 1, operands, 0, 3),
		sample("half", ir.F16, 1, operands, 2, 6),
	}, []ir.Sample{constant})
}

func channelSamples(a ir.Attrs, vectors int) []ir.Sample {
	sample := func(name string, d ir.DType, dims ...int) ir.Sample {
		s := ir.Sample{Name: name, Attrs: a, In: []*ir.Array{drawn(d, dims...)}}
		for i := range vectors {
			s.In = append(s.In, draw(uint64(i), d, 0.5, 1.5, dims[len(dims)-1]))
		}
		return s
	}
	return []ir.Sample{
		sample("images", ir.F32, 2, 3, 3, 4), sample("sequences", ir.F32, 3, 7, 2),
		sample("rows", ir.F32, 5, 4), sample("half", ir.F16, 2, 5, 2),
	}
}
