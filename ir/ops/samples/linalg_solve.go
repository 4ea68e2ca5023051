package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpTriangularSolve, triangularSamples)
	add(ops.OpSolve, solveSamples)
	add(ops.OpInv, func() []ir.Sample {
		return matrixSamples(dominant, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 5, 5})
	})
	add(ops.OpSlogdet, func() []ir.Sample {
		return slices.Concat(
			matrixSamples(general, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 5, 5}),
			[]ir.Sample{{Name: "singular", NoGrad: "a pivot is 0", In: []*ir.Array{ir.Floats(ir.F32, []float64{1, 2, 2, 4}, 2, 2)}}},
		)
	})
	add(ops.OpPinv, func() []ir.Sample {
		return loosely(matrixSamples(positive, &ops.CutoffAttrs{Cutoff: -1}, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 5, 3}, []int{2, 0}, []int{3, 4}))
	})
	add(ops.OpLstsq, func() []ir.Sample {
		sample := func(name string, x, y []int) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.CutoffAttrs{Cutoff: -1}, In: []*ir.Array{positive(9, ir.F32, x...), draw(8, ir.F32, -1, 1, y...)}}
		}
		return loosely([]ir.Sample{
			sample("more equations", []int{5, 3}, []int{5, 2}), sample("fewer equations", []int{2, 2, 3}, []int{2, 2, 1}),
			sample("no columns", []int{2, 2}, []int{2, 0}), sample("nothing unknown", []int{2, 0}, []int{2, 1}),
		})
	})
	add(ops.OpMatrixRank, func() []ir.Sample {
		low := ir.Sample{Name: "of rank 1", Attrs: &ops.CutoffAttrs{Cutoff: -1}, In: []*ir.Array{ir.Floats(ir.F32, []float64{1, 2, 3, 2, 4, 6}, 2, 3)}}
		return append(matrixSamples(positive, &ops.CutoffAttrs{Cutoff: -1}, []int{3, 2}, []int{2, 2, 3}, []int{0, 2}), low)
	})
}

func solveSamples() []ir.Sample {
	sample := func(name string, a ops.SolveAttrs, d ir.DType, x, y []int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{dominant(7, d, x...), draw(8, d, -1, 1, y...)}}
	}
	transposed := ops.SolveAttrs{TransposeA: true}
	return []ir.Sample{
		sample("one column", ops.SolveAttrs{}, ir.F32, []int{3, 3}, []int{3, 1}),
		sample("transposed", transposed, ir.F32, []int{3, 3}, []int{3, 2}),
		sample("batch", transposed, ir.F32, []int{2, 5, 5}, []int{2, 5, 3}),
		sample("one by one", ops.SolveAttrs{}, ir.F32, []int{1, 1}, []int{1, 2}),
		sample("empty", ops.SolveAttrs{}, ir.F32, []int{0, 0}, []int{0, 2}),
		sample("no columns", ops.SolveAttrs{}, ir.F32, []int{2, 2}, []int{2, 0}),
		sample("f64", ops.SolveAttrs{}, ir.F64, []int{4, 4}, []int{4, 2}),
	}
}

// loosely gives samples a tolerance for functions of singular vectors.
func loosely(samples []ir.Sample) []ir.Sample {
	for i := range samples {
		samples[i].Tol = 2e-4
	}
	return samples
}
