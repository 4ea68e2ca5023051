package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpResize, resizeSamples)
}

func resizeSamples() []ir.Sample {
	var out []ir.Sample
	for _, mode := range []string{ops.ResizeNearest, ops.ResizeLinear, ops.ResizeCubic} {
		for _, align := range []bool{false, true} {
			a := &ops.ResizeAttrs{Sizes: []int{5, 2}, Mode: mode, AlignCorners: align}
			out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{drawn(ir.F32, 2, 3, 4, 2)}})
		}
	}
	return append(out,
		ir.Sample{Name: "doubled sequence", Attrs: &ops.ResizeAttrs{Sizes: []int{6}, Mode: ops.ResizeLinear, AlignCorners: false}, In: []*ir.Array{drawn(ir.F16, 2, 3, 2)}},
		ir.Sample{Name: "one element", Attrs: &ops.ResizeAttrs{Sizes: []int{1, 3}, Mode: ops.ResizeLinear, AlignCorners: true}, In: []*ir.Array{drawn(ir.F32, 1, 4, 1, 2)}},
		ir.Sample{Name: "empty", Attrs: &ops.ResizeAttrs{Sizes: []int{0}, Mode: ops.ResizeLinear, AlignCorners: false}, In: []*ir.Array{drawn(ir.F32, 1, 4, 2)}})
}
