//go:build !js

package cpu

import (
	"math"

	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// routines are blocked by matrix products (factor.go, householder.go, eigen.go); the SVD of f64 is that of
// gonum's LAPACK, adapted to the signs and orders that the ops document.
var routines = map[ir.Op]routine{
	ops.OpCholesky:        {cholesky[float32], cholesky[float64]},
	ops.OpTriangularSolve: {triangularSolve[float32], triangularSolve[float64]},
	ops.OpLU:              {lu[float32], lu[float64]},
	ops.OpQR:              {qr[float32], qr[float64]},
	ops.OpEigh:            {eigh[float32], eigh[float64]},
	ops.OpSVD:             {double: svd},
}

var library gonum.Implementation

// orthonormal computes a QR factorisation of a, of rows×cols numbers, and stores the first width columns
// of q as rows.
func orthonormal(w *workspace[float64], a []float64, rows, cols int, q []float64, width int) {
	columns := w.take(rows * cols)
	simd.Transpose(columns, rows, a, cols, rows, cols)
	h := triangularize(w, columns, rows, cols)
	h.columns(w, q, width)
}

func finite[T simd.Float](x []T) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// hasWrongSign reports whether a vector of n numbers with the given stride has the opposite of
// the sign that the ops choose.
func hasWrongSign[T simd.Float](x []T, n, step int) bool {
	sum := 0.0
	for i := range n {
		sum += float64(x[i*step]) / (float64(i) + math.Sqrt2)
	}
	return sum < 0
}

func svd(w *workspace[float64], n *ir.Node, in, out [][]float64) {
	rows, cols := matrixOf(n.Input(0))
	_, width := matrixOf(n.Result(0))
	height, _ := matrixOf(n.Result(2))
	u, s, vt, k := out[0], out[1], out[2], min(rows, cols)
	if k == 0 {
		orthonormal(w, nil, rows, 0, u, width)
		orthonormal(w, nil, height, 0, vt, cols)
		return
	}
	if n.Input(0).DType() != ir.F64 {
		svdOfSquares(w, in[0], rows, cols, width, height, out)
		return
	}
	ok := finite(in[0])
	if ok {
		ok = thinSVD(w, in[0], rows, cols, u, width, s, vt)
	}
	if !ok {
		for _, x := range out {
			fill(x, math.NaN())
		}
		return
	}
	completeBasis(w, u, rows, k, width, width, 1)
	completeBasis(w, vt, cols, k, height, 1, cols)
	for j := range height {
		if hasWrongSign(vt[j*cols:], cols, 1) {
			negate(vt[j*cols:], cols, 1)
			if j < k {
				negate(u[j:], rows, width)
			}
		}
	}
}

// thinSVD stores the first min(rows, cols) columns of u and rows of vt.
func thinSVD(w *workspace[float64], a []float64, rows, cols int, u []float64, width int, s, vt []float64) bool {
	var ask [1]float64
	library.Dgesvd(lapack.SVDStore, lapack.SVDStore, rows, cols, a, cols, s, u, width, vt, cols, ask[:], -1)
	return library.Dgesvd(lapack.SVDStore, lapack.SVDStore, rows, cols, a, cols, s, u, width, vt, cols, w.take(int(ask[0])), int(ask[0]))
}

// completeBasis extends the first k orthonormal vectors of n numbers to count, as the op's own
// body does: by the Householder reflections of unit vectors. step is the stride of elements,
// next that of vectors.
func completeBasis(w *workspace[float64], x []float64, n, k, count, step, next int) {
	if count == k {
		return
	}
	first, all := w.take(n*k), w.take(n*count)
	for i := range n {
		for j := range k {
			first[i*k+j] = x[i*step+j*next]
		}
	}
	orthonormal(w, first, n, k, all, count)
	for i := range n {
		for j := k; j < count; j++ {
			x[i*step+j*next] = all[j*n+i]
		}
	}
}
