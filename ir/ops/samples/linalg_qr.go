package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpHouseholder, func() []ir.Sample {
		return matrixSamples(dominant, nil, []int{4, 4}, []int{1, 1}, []int{0, 0}, []int{2, 5, 3}, []int{3, 0}, []int{2, 3, 5}, []int{35, 33})
	})
	add(ops.OpQR, func() []ir.Sample {
		out := matrixSamples(dominant, &ops.FullAttrs{}, []int{4, 4}, []int{1, 1}, []int{0, 0}, []int{2, 5, 3}, []int{3, 0}, []int{2, 3, 5}, []int{35, 33})
		full := func(noGrad string, dims ...int) {
			out = append(out, ir.Sample{Name: "full " + shapeName(dims), Attrs: &ops.FullAttrs{Full: true}, NoGrad: noGrad, In: []*ir.Array{dominant(4, ir.F32, dims...)}})
		}
		full("", 3, 5)
		full("the columns beyond those of x can be turned", 5, 3)
		full("the columns beyond those of x can be turned", 2, 0)
		return out
	})
}
