package samples

import (
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
