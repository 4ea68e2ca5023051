//go:build !js

package cpu

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	blasgonum "gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// routines are those of gonum's LAPACK, adapted to the signs and orders that the ops document.
var routines = map[ir.Op]routine{
	ops.OpCholesky:        cholesky,
	ops.OpTriangularSolve: triangularSolve,
	ops.OpLU:              lu,
	ops.OpQR:              qr,
	ops.OpEigh:            eigh,
	ops.OpSVD:             svd,
}

var (
	library gonum.Implementation
	vectors blasgonum.Implementation
)

// matrixOf returns the size of the matrices of an operand or a result.
func matrixOf(v ir.Value) (rows, cols int) {
	rows, _ = v.Dim(-2).Const()
	cols, _ = v.Dim(-1).Const()
	return rows, cols
}

func cholesky(_ *workspace, n *ir.Node, in, out [][]float64) {
	size, _ := matrixOf(n.Input(0))
	l := out[0]
	symmetrize(l, in[0], size)
	ok := library.Dpotrf(blas.Lower, size, l, max(size, 1))
	for i := range size {
		ok = ok && l[i*size+i] == l[i*size+i]
		clear(l[i*size+i+1 : (i+1)*size])
	}
	if !ok {
		fill(l, math.NaN())
	}
}

// symmetrize stores the symmetric part of a matrix.
func symmetrize(to, from []float64, size int) {
	for i := range size {
		for j := range size {
			to[i*size+j] = from[i*size+j]/2 + from[j*size+i]/2
		}
	}
}

func triangularSolve(_ *workspace, n *ir.Node, in, out [][]float64) {
	a := n.Attrs().(*ops.TriangularAttrs)
	rows, cols := matrixOf(n.Input(1))
	size, _ := matrixOf(n.Input(0))
	side, triangle, transpose, unit := blas.Right, blas.Upper, blas.NoTrans, blas.NonUnit
	if a.LeftSide {
		side = blas.Left
	}
	if a.Lower {
		triangle = blas.Lower
	}
	if a.TransposeA {
		transpose = blas.Trans
	}
	if a.UnitDiagonal {
		unit = blas.Unit
	}
	copy(out[0], in[1])
	if rows*cols > 0 {
		vectors.Dtrsm(side, triangle, transpose, unit, rows, cols, 1, in[0], size, out[0], cols)
	}
}

func lu(w *workspace, n *ir.Node, in, out [][]float64) {
	rows, cols := matrixOf(n.Input(0))
	k := min(rows, cols)
	copy(out[0], in[0])
	w.pivots = slices.Grow(w.pivots[:0], k)[:k]
	if k > 0 {
		library.Dgetrf(rows, cols, out[0], cols, w.pivots)
	}
	order := out[2]
	for i := range order {
		order[i] = float64(i)
	}
	for i, p := range w.pivots {
		out[1][i] = float64(p)
		order[i], order[p] = order[p], order[i]
	}
}

func qr(w *workspace, n *ir.Node, in, out [][]float64) {
	rows, cols := matrixOf(n.Input(0))
	_, width := matrixOf(n.Result(0))
	orthonormal(w, in[0], rows, cols, out[0], width)
	r := out[1]
	for i := range width {
		row := r[i*cols : (i+1)*cols]
		clear(row)
		if first := min(i, cols); i < rows {
			copy(row[first:], in[0][i*cols+first:(i+1)*cols])
		}
	}
}

// orthonormal computes a QR factorisation of a and stores the first width columns of q. The
// upper triangle of a becomes r.
func orthonormal(w *workspace, a []float64, rows, cols int, q []float64, width int) {
	k := min(rows, cols)
	if k == 0 {
		for i := range rows {
			for j := range width {
				q[i*width+j] = 0
				if i == j {
					q[i*width+j] = 1
				}
			}
		}
		return
	}
	tau := w.take(k)
	var ask [1]float64
	library.Dgeqrf(rows, cols, a, cols, tau, ask[:], -1)
	library.Dgeqrf(rows, cols, a, cols, tau, w.take(int(ask[0])), int(ask[0]))
	clear(q)
	for i := range rows {
		copy(q[i*width:i*width+min(k, width)], a[i*cols:i*cols+min(k, cols)])
	}
	library.Dorgqr(rows, width, k, q, width, tau, ask[:], -1)
	library.Dorgqr(rows, width, k, q, width, tau, w.take(int(ask[0])), int(ask[0]))
}

func eigh(w *workspace, n *ir.Node, in, out [][]float64) {
	size, _ := matrixOf(n.Input(0))
	if size == 0 {
		return
	}
	values, v := out[0], out[1]
	symmetrize(v, in[0], size)
	ok := finite(v)
	if ok {
		var ask [1]float64
		library.Dsyev(lapack.EVCompute, blas.Lower, size, v, size, values, ask[:], -1)
		ok = library.Dsyev(lapack.EVCompute, blas.Lower, size, v, size, values, w.take(int(ask[0])), int(ask[0]))
	}
	if !ok {
		fill(values, math.NaN())
		fill(v, math.NaN())
	}
	for j := range size {
		if hasWrongSign(v[j:], size, size) {
			negate(v[j:], size, size)
		}
	}
}

func finite(x []float64) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// hasWrongSign reports whether a vector of n numbers with the given stride has the opposite of
// the sign that the ops choose.
func hasWrongSign(x []float64, n, step int) bool {
	sum := 0.0
	for i := range n {
		sum += x[i*step] / (float64(i) + math.Sqrt2)
	}
	return sum < 0
}

func negate(x []float64, n, step int) {
	for i := range n {
		x[i*step] = -x[i*step]
	}
}

func svd(w *workspace, n *ir.Node, in, out [][]float64) {
	rows, cols := matrixOf(n.Input(0))
	_, width := matrixOf(n.Result(0))
	height, _ := matrixOf(n.Result(2))
	u, s, vt, k := out[0], out[1], out[2], min(rows, cols)
	if k == 0 {
		orthonormal(w, nil, rows, 0, u, width)
		orthonormal(w, nil, height, 0, vt, cols)
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
func thinSVD(w *workspace, a []float64, rows, cols int, u []float64, width int, s, vt []float64) bool {
	var ask [1]float64
	library.Dgesvd(lapack.SVDStore, lapack.SVDStore, rows, cols, a, cols, s, u, width, vt, cols, ask[:], -1)
	return library.Dgesvd(lapack.SVDStore, lapack.SVDStore, rows, cols, a, cols, s, u, width, vt, cols, w.take(int(ask[0])), int(ask[0]))
}

// completeBasis extends the first k orthonormal vectors of n numbers to count, as the op's own
// body does: by the Householder reflections of unit vectors. step is the stride of elements,
// next that of vectors.
func completeBasis(w *workspace, x []float64, n, k, count, step, next int) {
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
			x[i*step+j*next] = all[i*count+j]
		}
	}
}
