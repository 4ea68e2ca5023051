package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpBroadcastInDim, broadcastSamples)
}

func broadcastSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, shape, axes []int }{
		{[]int{}, []int{}, []int{}},
		{[]int{}, []int{67, 3}, []int{}},
		{[]int{1}, []int{0}, []int{0}},
		{[]int{0}, []int{0, 3}, []int{0}},
		{[]int{3}, []int{3, 2}, []int{0}},
		{[]int{2, 1}, []int{2, 131}, []int{0, 1}},
		{[]int{1, 1}, []int{1, 1}, []int{0, 1}},
		{[]int{3, 1, 2}, []int{3, 5, 4, 2}, []int{0, 2, 3}},
	} {
		out = append(out, ir.Sample{Name: shapeName(c.dims), Attrs: &ops.BroadcastAttrs{Shape: ir.Dims(c.shape...), Axes: c.axes}, In: []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)}})
	}
	return append(out, ofTypes(&ops.BroadcastAttrs{Shape: ir.Dims(2, 3), Axes: []int{1}}, 3)...)
}
