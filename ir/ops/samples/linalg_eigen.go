package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpJacobi, func() []ir.Sample {
		var out []ir.Sample
		add := func(name string, a ops.JacobiAttrs, d ir.DType, dims ...int) {
			out = append(out, ir.Sample{Name: name + shapeName(dims), Attrs: &a, In: []*ir.Array{draw(3, d, -1, 1, dims...)}, Tol: 1e-4})
		}
		add("two rows ", ops.JacobiAttrs{Length: 3}, ir.F32, 2, 3)
		add("one row ", ops.JacobiAttrs{Length: 3}, ir.F32, 2, 1, 3)
		add("none ", ops.JacobiAttrs{}, ir.F32, 0, 2)
		add("longer rows ", ops.JacobiAttrs{Length: 2}, ir.F32, 3, 2, 4)
		add("one sweep ", ops.JacobiAttrs{Length: 5, Sweeps: 1}, ir.F32, 5, 6)
		add("one sweep ", ops.JacobiAttrs{Length: 8, Sweeps: 1}, ir.F64, 8, 8)
		return out
	})
	add(ops.OpEigh, func() []ir.Sample {
		out := matrixSamples(positive, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 4, 4}, []int{2, 2})
		for i := range out {
			out[i].Tol = 1e-4 // the error of eigenvectors is rounding error divided by eigenvalue gaps
		}
		return out
	})
	add(ops.OpSVD, func() []ir.Sample {
		out := matrixSamples(positive, &ops.FullAttrs{}, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 5, 3}, []int{3, 0}, []int{3, 4})
		for _, dims := range [][]int{{4, 2}, {2, 4}} {
			out = append(out, ir.Sample{
				Name: "full " + shapeName(dims), Attrs: &ops.FullAttrs{Full: true}, In: []*ir.Array{positive(6, ir.F32, dims...)},
				NoGrad: "the vectors beyond the singular values are not unique",
			})
		}
		for i := range out {
			out[i].Tol = 1e-4 // the error of vectors is rounding error divided by gaps of singular values
		}
		return out
	})
}
