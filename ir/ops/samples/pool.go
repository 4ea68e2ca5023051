package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpMaxPool, maxPoolSamples)
	add(ops.OpAvgPool, avgPoolSamples)
	addAll(adaptiveSamples, ops.OpAdaptiveAvgPool, ops.OpAdaptiveMaxPool)
	add(ops.OpPixelShuffle, func() []ir.Sample {
		return moved(movement{&ops.FactorAttrs{Factor: 2}, []int{1, 3, 2, 8}}, movement{&ops.FactorAttrs{Factor: 3}, []int{2, 1, 2, 9}}, movement{&ops.FactorAttrs{Factor: 1}, []int{0, 2, 2, 1}})
	})
	add(ops.OpPixelUnshuffle, func() []ir.Sample {
		return moved(movement{&ops.FactorAttrs{Factor: 2}, []int{1, 4, 2, 3}}, movement{&ops.FactorAttrs{Factor: 3}, []int{2, 3, 6, 1}}, movement{&ops.FactorAttrs{Factor: 1}, []int{0, 2, 2, 1}})
	})
}

// poolSamples returns the windows for samples of both pools.
func poolSamples(attrs func(ops.PoolAttrs) ir.Attrs) []ir.Sample {
	sample := func(name string, a ops.PoolAttrs, dims ...int) ir.Sample {
		a.Complete(nil, nil)
		return ir.Sample{Name: name, Attrs: attrs(a), In: []*ir.Array{drawn(ir.F32, dims...)}}
	}
	return []ir.Sample{
		sample("halving", ops.PoolAttrs{Sizes: []int{2, 2}}, 2, 4, 6, 3),
		sample("overlapping and padded", ops.PoolAttrs{
			Sizes: []int{3, 3}, Strides: []int{2, 1}, PadLo: []int{1, 2}, PadHi: []int{0, 1},
		}, 1, 7, 5, 2),
		sample("one axis, dilated", ops.PoolAttrs{Sizes: []int{3}, Strides: []int{1}, Dilations: []int{2}}, 2, 9, 3),
		sample("whole", ops.PoolAttrs{Sizes: []int{7, 7}}, 1, 7, 7, 33),
		sample("no images", ops.PoolAttrs{Sizes: []int{2, 2}}, 0, 4, 4, 3),
	}
}

func maxPoolSamples() []ir.Sample {
	out := poolSamples(func(a ops.PoolAttrs) ir.Attrs { return &a })
	ties := ir.Sample{
		Name: "ties", Attrs: out[0].Attrs, In: []*ir.Array{ir.NewArray(ir.F32, 1, 4, 4, 1)},
		NoGrad: "ties",
	}
	return append(out, ties)
}

func avgPoolSamples() []ir.Sample {
	return slices.Concat(
		poolSamples(func(a ops.PoolAttrs) ir.Attrs { return &ops.AvgPoolAttrs{PoolAttrs: a} }),
		poolSamples(func(a ops.PoolAttrs) ir.Attrs { return &ops.AvgPoolAttrs{PoolAttrs: a, CountIncludePad: true} }))
}

func adaptiveSamples() []ir.Sample {
	sample := func(name string, sizes []int, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.SizesAttrs{Sizes: sizes}, In: []*ir.Array{x}}
	}
	return []ir.Sample{
		sample("sequence", []int{3}, distinct(-1, 1, 2, 7, 2)), sample("image", []int{2, 3}, distinct(-1, 1, 1, 5, 4, 2)),
		sample("global", []int{1, 1, 1}, distinct(-1, 1, 1, 2, 3, 2, 2)), sample("larger", []int{5}, distinct(-1, 1, 1, 3, 1)),
		sample("half", []int{2}, drawn(ir.F16, 1, 4, 2)), sample("no images", []int{2}, ir.NewArray(ir.F32, 0, 3, 2)),
	}
}
