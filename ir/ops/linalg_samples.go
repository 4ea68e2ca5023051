package ops

import (
	"github.com/rlx-go/rlx/ir"
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
	for m := range product(a.Dims[:len(a.Dims)-2]) {
		for i := range min(rows, cols) {
			f(m*rows*cols+i*cols+i, i, cols)
		}
	}
}
