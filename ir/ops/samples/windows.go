package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpWindows, windowsSamples)
	add(ops.OpOverlapAdd, overlapAddSamples)
}

func windowsSamples() []ir.Sample {
	sample := func(name string, a ops.WindowsAttrs, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, dims...)}}
	}
	return []ir.Sample{
		sample("images", ops.WindowsAttrs{Axes: []int{1, 2}, Sizes: []int{2, 3}, Strides: []int{2, 1}, Dilations: []int{1, 1}}, 2, 4, 5, 3),
		sample("dilated", ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{3}, Strides: []int{2}, Dilations: []int{3}}, 17, 2),
		sample("axes out of order", ops.WindowsAttrs{Axes: []int{2, 0}, Sizes: []int{2, 3}, Strides: []int{1, 2}, Dilations: []int{2, 1}}, 5, 2, 6),
		sample("strides skip elements", ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{1}, Strides: []int{4}, Dilations: []int{1}}, 70),
		sample("no window fits", ops.WindowsAttrs{Axes: []int{0}, Sizes: []int{4}, Strides: []int{1}, Dilations: []int{1}}, 3),
		sample("empty", ops.WindowsAttrs{Axes: []int{1}, Sizes: []int{2}, Strides: []int{1}, Dilations: []int{1}}, 0, 3),
		sample("no axes", ops.WindowsAttrs{}, 2, 2),
	}
}

func overlapAddSamples() []ir.Sample {
	sample := func(name string, a ops.OverlapAddAttrs, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, dims...)}}
	}
	half := sample("half", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{1}, Dilations: []int{1}, Dims: ir.Dims(9)}, 3, 7)
	half.In = []*ir.Array{drawn(ir.F16, 3, 7)}
	return []ir.Sample{
		sample("images", ops.OverlapAddAttrs{Axes: []int{1, 2}, Strides: []int{2, 1}, Dilations: []int{1, 1}, Dims: ir.Dims(4, 5)}, 2, 2, 3, 3, 2, 3),
		sample("uncovered elements", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{4}, Dilations: []int{1}, Dims: ir.Dims(70)}, 18, 1),
		sample("dilated", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{2}, Dilations: []int{3}, Dims: ir.Dims(17)}, 6, 2, 3),
		sample("axes out of order", ops.OverlapAddAttrs{Axes: []int{2, 0}, Strides: []int{1, 2}, Dilations: []int{2, 1}, Dims: ir.Dims(6, 5)}, 2, 2, 4, 2, 3),
		sample("longer than the stride", ops.OverlapAddAttrs{Axes: []int{0, 1}, Strides: []int{2, 3}, Dilations: []int{1, 1}, Dims: ir.Dims(11, 9)}, 4, 2, 5, 4),
		sample("pooled images", ops.OverlapAddAttrs{Axes: []int{1, 2}, Strides: []int{2, 2}, Dilations: []int{1, 1}, Dims: ir.Dims(6, 5)}, 2, 3, 2, 3, 2, 2),
		sample("no windows", ops.OverlapAddAttrs{Axes: []int{0}, Strides: []int{1}, Dilations: []int{1}, Dims: ir.Dims(3)}, 0, 4),
		half,
	}
}
