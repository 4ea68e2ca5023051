package samples

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// matrixSamples are the samples of an op of one operand: matrices of f32 that
// make returns for each shape, and some of f64.
func matrixSamples(make func(seed uint64, d ir.DType, dims ...int) *ir.Array, a ir.Attrs, shapes ...[]int) []ir.Sample {
	var out []ir.Sample
	for i, dims := range shapes {
		out = append(out, ir.Sample{Name: shapeName(dims), Attrs: a, In: []*ir.Array{make(uint64(2*i+1), ir.F32, dims...)}})
	}
	return append(out, ir.Sample{Name: "f64", Attrs: a, In: []*ir.Array{make(2, ir.F64, 4, 4)}})
}

// general returns matrices without a structure.
func general(seed uint64, d ir.DType, dims ...int) *ir.Array { return draw(seed, d, -1, 1, dims...) }

// dominant returns matrices whose diagonals are larger than the rest of their
// rows together, so that nothing that is solved with them grows.
func dominant(seed uint64, d ir.DType, dims ...int) *ir.Array {
	a := draw(seed, d, -1, 1, dims...)
	eachDiagonal(a, func(at, i, n int) {
		for k := range n {
			a.F[at-i+k] /= float64(n)
		}
		a.F[at] = 1.25 + 0.25*float64(i%3)
	})
	a.Round()
	return a
}

// positive returns matrices whose symmetric part is positive definite, with
// eigenvalues well apart.
func positive(seed uint64, d ir.DType, dims ...int) *ir.Array {
	a := draw(seed, d, -1, 1, dims...)
	eachDiagonal(a, func(at, i, n int) {
		for k := range n {
			a.F[at-i+k] /= 4 * float64(n)
		}
		a.F[at] = 0.5 + 1.5*float64(i+1)/float64(n)
	})
	a.Round()
	return a
}

// eachDiagonal calls f for each element on the diagonal of each matrix, with its
// place in all elements and in its row, and the length of the row.
func eachDiagonal(a *ir.Array, f func(at, i, n int)) {
	rows, cols := a.Dims[len(a.Dims)-2], a.Dims[len(a.Dims)-1]
	matrices := 1
	for _, n := range a.Dims[:len(a.Dims)-2] {
		matrices *= n
	}
	for m := range matrices {
		for i := range min(rows, cols) {
			f(m*rows*cols+i*cols+i, i, cols)
		}
	}
}

func triangularSamples() []ir.Sample {
	var out []ir.Sample
	for bits := range 16 {
		a := &ops.TriangularAttrs{LeftSide: bits&1 != 0, Lower: bits&2 != 0, TransposeA: bits&4 != 0, UnitDiagonal: bits&8 != 0}
		y := []int{3, 2}
		if !a.LeftSide {
			y = []int{2, 3}
		}
		out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{dominant(1, ir.F32, 3, 3), draw(2, ir.F32, -1, 1, y...)}})
	}
	left := &ops.TriangularAttrs{LeftSide: true, Lower: true}
	for _, s := range [][2][]int{{{1, 1}, {1, 3}}, {{0, 0}, {0, 2}}, {{3, 3}, {3, 0}}, {{2, 5, 5}, {2, 5, 1}}, {{67, 67}, {67, 3}}} {
		out = append(out, ir.Sample{Name: shapeName(s[0]) + shapeName(s[1]), Attrs: left, In: []*ir.Array{dominant(3, ir.F32, s[0]...), draw(4, ir.F32, -1, 1, s[1]...)}})
	}
	return append(out, ir.Sample{Name: "f64", Attrs: &ops.TriangularAttrs{}, In: []*ir.Array{dominant(5, ir.F64, 4, 4), draw(6, ir.F64, -1, 1, 2, 4)}})
}

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

func init() {
	add(ops.OpMatrixPower, func() []ir.Sample {
		var out []ir.Sample
		for _, p := range []int{0, 1, 2, 5, -2} {
			a := &ops.MatrixPowerAttrs{Exponent: p}
			out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{dominant(uint64(p+9), ir.F32, 2, 3, 3)}})
		}
		return append(out, ir.Sample{Name: "empty", Attrs: &ops.MatrixPowerAttrs{Exponent: 3}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 0)}})
	})
	add(ops.OpExpm, func() []ir.Sample {
		large := dominant(5, ir.F32, 3, 3)
		for i := range large.F {
			large.F[i] *= -8
		}
		out := matrixSamples(general, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 2, 2})
		return append(out, ir.Sample{Name: "squared often", In: []*ir.Array{large}})
	})
	add(ops.OpMatrixNorm, func() []ir.Sample { return matrixNormSamples(true) })
	add(ops.OpCondNumber, func() []ir.Sample { return matrixNormSamples(false) })
}

func matrixNormSamples(rectangles bool) []ir.Sample {
	var out []ir.Sample
	for i, order := range []string{ops.NormFrobenius, ops.NormNuclear, ops.NormSpectral, ops.NormSmallest, ops.NormColumns, ops.NormRows, "-1", "-inf"} {
		out = append(out, ir.Sample{Name: order, Attrs: &ops.MatrixNormAttrs{Order: order}, In: []*ir.Array{positive(uint64(i), ir.F32, 2, 3, 3)}})
	}
	if rectangles {
		for _, order := range []string{ops.NormNuclear, ops.NormRows, ops.NormSpectral} {
			out = append(out, ir.Sample{Name: "rows, " + order, Attrs: &ops.MatrixNormAttrs{Order: order}, In: []*ir.Array{positive(3, ir.F32, 5, 3)}})
			out = append(out, ir.Sample{Name: "empty, " + order, Attrs: &ops.MatrixNormAttrs{Order: order}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 2)}})
		}
	}
	return loosely(out)
}
