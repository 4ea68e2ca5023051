package cpu

import "github.com/rlx-go/rlx/internal/simd"

// A product of at most maxTiny multiplications costs less than the call of a kernel does. Those of a batch of
// minTiny or more are computed one by one, in chunks of chunkTiny.
const (
	maxTiny   = 32
	minTiny   = 16
	chunkTiny = 512
)

// tinyStep computes a batch of tiny products.
type tinyStep struct{ *matrixProduct }

// isTiny reports whether a product is a batch of tiny products.
func (x *matrixProduct) isTiny() bool {
	terms := x.m * x.n * x.k
	return x.count >= minTiny && terms > 0 && terms <= maxTiny && !x.pairs && x.a.rowAt == nil && x.b.rowAt == nil
}

func (s *tinyStep) run(r *runner) {
	const perTerm = 1.5 // nanoseconds
	r.job.runCosting(perTerm*float64(s.count*s.m*s.n*s.k), s, (s.count+chunkTiny-1)/chunkTiny)
}

func (s *tinyStep) do(_, chunk int) {
	first := chunk * chunkTiny
	last := min(first+chunkTiny, s.count)
	if s.double {
		multiplyTiny[float64](s.matrixProduct, first, last)
		return
	}
	multiplyTiny[float32](s.matrixProduct, first, last)
}

// multiplyTiny computes the products of items first to last − 1: those along the last batch axis one after the other.
func multiplyTiny[T simd.Float](x *matrixProduct, first, last int) {
	axis := len(x.batch) - 1
	for first < last {
		a, b := operand[T](&x.a, x.batch, first, x.env), operand[T](&x.b, x.batch, first, x.env)
		c := view[T](x.c)[first*x.m*x.n:]
		n := min(last-first, x.batch[axis]-first%x.batch[axis])
		for i := range n {
			multiplyOne(x, a.Data[i*x.a.batch[axis]:], b.Data[i*x.b.batch[axis]:], c[i*x.m*x.n:][:x.m*x.n])
		}
		first += n
	}
}

// multiplyOne computes a product of factors that begin at a and b.
func multiplyOne[T simd.Float](x *matrixProduct, a, b, c []T) {
	step, down := x.a.col, x.b.row
	for ; len(c) >= x.n; c = c[x.n:] {
		for j := range c[:x.n] {
			right := b[j*x.b.col:]
			sum := a[0] * right[0]
			for l := 1; l < x.k; l++ {
				sum += a[l*step] * right[l*down]
			}
			c[j] = sum
		}
		a = a[min(x.a.row, len(a)):]
	}
}
