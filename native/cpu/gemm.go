package cpu

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// The sizes of the pieces that a product is cut into. Each is small enough that
// gonum computes it on the goroutine that asks, and that the piece of the right
// factor stays in the nearest cache.
const (
	pieceM = 64
	pieceN = 128
	pieceK = 64
)

// newProduct returns the step that computes a contraction.
func newProduct(x *contraction) *productStep {
	x.tileM, x.tileN = pieceM, pieceN
	if x.m > 4*x.n {
		x.tileM, x.tileN = pieceN, pieceM
	}
	x.tilesM, x.tilesN = (x.m+x.tileM-1)/x.tileM, (x.n+x.tileN-1)/x.tileN
	x.multiplies = float64(x.count) * float64(x.m) * float64(x.n) * float64(x.k)
	return &productStep{x}
}

// productStep computes a contraction tile by tile.
type productStep struct{ *contraction }

func (p *productStep) run(r *runner) {
	chunks := p.count * p.tilesM * p.tilesN
	if p.multiplies < 1<<17 { // about the time that it takes to wake the others
		for i := range chunks {
			p.do(0, i)
		}
		return
	}
	r.job.run(p, chunks)
}

// do computes one tile.
func (p *productStep) do(_, chunk int) {
	item := chunk / (p.tilesM * p.tilesN)
	i := chunk / p.tilesN % p.tilesM * p.tileM
	j := chunk % p.tilesN * p.tileN
	m, n := min(p.tileM, p.m-i), min(p.tileN, p.n-j)
	a := p.a.first(p.batch, item, p.env) + i*p.a.row
	b := p.b.first(p.batch, item, p.env) + j*p.b.col
	c := (item*p.m+i)*p.n + j
	if p.double {
		tile(gonum.Implementation{}.Dgemm, p.contraction, view[float64](p.a.buf)[a:], view[float64](p.b.buf)[b:], view[float64](p.c)[c:], m, n)
		return
	}
	tile(gonum.Implementation{}.Sgemm, p.contraction, view[float32](p.a.buf)[a:], view[float32](p.b.buf)[b:], view[float32](p.c)[c:], m, n)
}

// gemm is c = alpha·a·b + beta·c as BLAS has it, row-major.
type gemm[T float32 | float64] func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)

// tile computes m×n elements of a product, a stretch of the inner axis at a
// time.
func tile[T float32 | float64](f gemm[T], x *contraction, a, b, c []T, m, n int) {
	if x.k == 0 {
		for i := range m {
			clear(c[i*x.n : i*x.n+n])
		}
		return
	}
	if inRegisters {
		blocks(x, a, b, c, m, n)
		return
	}
	tA, lda := order(x.a)
	tB, ldb := order(x.b)
	step := pieceK
	if tA == blas.NoTrans && tB == blas.Trans {
		step = 8 * pieceK // sums along rows of both: the longer the better
	}
	for l := 0; l < x.k; l += step {
		beta := T(1)
		if l == 0 {
			beta = 0
		}
		f(tA, tB, m, n, min(step, x.k-l), 1, a[l*x.a.col:], lda, b[l*x.b.row:], ldb, beta, c, x.n)
	}
}

// order returns a matrix's layout in the words of BLAS.
func order(m matrix) (blas.Transpose, int) {
	if m.col == 1 {
		return blas.NoTrans, m.row
	}
	return blas.Trans, m.col
}
