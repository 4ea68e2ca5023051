package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpCholesky, func() []ir.Sample {
		return matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 5, 5}, []int{0, 2, 2}, []int{67, 67})
	})
	add(ops.OpSPDSqrtm, spdSamples)
	add(ops.OpSPDLogm, spdSamples)
	add(ops.OpLyapunov, func() []ir.Sample {
		var out []ir.Sample
		for _, dims := range [][]int{{3, 3}, {1, 1}, {0, 0}, {2, 2, 2}} {
			out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{positive(1, ir.F32, dims...), general(2, ir.F32, dims...)}})
		}
		return loosely(out)
	})
}

func spdSamples() []ir.Sample {
	return loosely(matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 2, 2}))
}
