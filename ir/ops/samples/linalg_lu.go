package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpLU, func() []ir.Sample {
		out := matrixSamples(general, nil, []int{4, 4}, []int{1, 1}, []int{0, 0}, []int{2, 3, 5}, []int{2, 5, 3}, []int{0, 3}, []int{35, 33})
		return append(out, ir.Sample{
			Name: "singular", NoGrad: "a pivot is 0", In: []*ir.Array{ir.Floats(ir.F32, []float64{0, 2, 1, 0, 1, 3, 0, 4, 5}, 3, 3)},
		})
	})
	add(ops.OpDet, func() []ir.Sample {
		return loosely(matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 4, 4}))
	})
	add(ops.OpCofactor, func() []ir.Sample {
		out := matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 4, 4})
		square := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, 2, 2) }
		return loosely(append(out,
			ir.Sample{Name: "singular", In: []*ir.Array{square(0, 1, 0, 2)}},
			ir.Sample{Name: "along one", In: []*ir.Array{square(1, 2, 3, 5), square(-1, 3, 2, 7)}},
			ir.Sample{Name: "along two", In: []*ir.Array{positive(1, ir.F32, 2, 3, 3), general(2, ir.F32, 2, 3, 3), general(3, ir.F32, 2, 3, 3)}},
			ir.Sample{Name: "along one, empty", In: []*ir.Array{ir.NewArray(ir.F32, 0, 0), ir.NewArray(ir.F32, 0, 0)}},
		))
	})
}
