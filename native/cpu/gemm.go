package cpu

import (
	"github.com/rlx-go/rlx/internal/simd"
)

// spaces are the workers' scratch memory for products.
type spaces struct {
	f32 []simd.Space[float32]
	f64 []simd.Space[float64]
	// pairs is f32 for products of pairs of bf16.
	pairs []simd.Space[float32]
	// unpacked has rows of packed weights as numbers.
	unpacked [][]float32
}

// grow makes room for a product.
func (s *spaces) grow(x *matrixProduct) {
	s.begin()
	z := simd.Size{M: x.m, N: x.n, K: x.k}
	for i := range s.f32 {
		switch {
		case x.double:
			s.f64[i].Grow(z)
		case x.pairs:
			s.pairs[i].Pairs = true
			s.pairs[i].Grow(z)
		default:
			s.f32[i].Grow(z)
		}
	}
}

func (s *spaces) begin() {
	if s.f32 == nil {
		s.f32, s.f64 = make([]simd.Space[float32], workers()), make([]simd.Space[float64], workers())
		s.pairs = make([]simd.Space[float32], workers())
		s.unpacked = make([][]float32, workers())
	}
}

// growUnpacked makes room for products of m rows with n unpacked rows of k numbers.
func (s *spaces) growUnpacked(m, n, k int) {
	s.begin()
	for i := range s.unpacked {
		if s.f32[i].Grow(simd.Size{M: m, N: n, K: k}); len(s.unpacked[i]) < n*k {
			s.unpacked[i] = make([]float32, n*k)
		}
	}
}

// productStep computes a matrixProduct in tiles of tileM×tileN elements, and each in parts along k.
type productStep struct {
	*matrixProduct
	tileM, tileN   int
	tilesM, tilesN int
	parts          int
	rest           *buffer // the parts after the first, each a whole result
	// windows, if not nil, is a fused step that writes the right factor of a product just
	// before the product, into a slot of each worker, so that it stays in its cache.
	windows *padStep
}

// Minimum size of a tile, so that packing costs little compared to the products, and the minimum
// nanoseconds of work that repay waking another core.
const (
	pieceM    = 96
	pieceN    = 128
	pieceCost = 4000
)

// estimate returns the nanoseconds of one core by a roofline: 75 multiplications, and 40 bytes
// read per nanosecond, or 100 from its own cache.
func (x *matrixProduct) estimate() float64 {
	m, n, k := float64(x.m), float64(x.n), float64(x.k)
	bytes, rate := 4*(m*k+k*n+m*n), 40.
	if x.double {
		bytes *= 2
	}
	if bytes < nearBytes {
		rate = 100
	}
	return float64(x.count) * max(m*n*k/75, bytes/rate)
}

// nearBytes is the part of a core's second-level cache that a product may count on.
const nearBytes = 512 << 10

// largeTile is the number of elements of a tile that packs little beside its products.
const largeTile = 256 * 256

// partsOf returns the number of parts along k into which a product is divided: one for a single worker, where there are
// enough tiles, and where the results are more than an eighth of the factors.
func (x *matrixProduct) partsOf(workers int) int {
	parts := simd.Parts(x.k)
	if workers == 1 || x.m == 1 || x.n == 1 || x.results() >= 3*workers*largeTile || 8*(parts-1)*x.m*x.n > x.k*(x.m+x.n) {
		return 1
	}
	return parts
}

// newProduct returns the step that computes a product.
func newProduct(c *compiler, x *matrixProduct) *productStep {
	x.env.spaces.grow(x)
	p := &productStep{matrixProduct: x}
	if p.divide(workers()); p.parts > 1 {
		p.rest = c.scratch(x.c.dtype, (p.parts-1)*p.results())
	}
	return p
}

// divide divides a product along k, and then halves the tiles, until each worker has several, since other processes may
// use the cores too; for a single worker it does not.
func (p *productStep) divide(workers int) {
	p.tileM, p.tileN, p.parts = p.m, p.n, p.partsOf(workers)
	for p.cut() {
		switch {
		case workers == 1 || p.chunks() >= 3*workers || p.cost < 2*pieceCost*float64(p.chunks()):
			return
		case p.tileM >= 2*pieceM && (p.tileM >= p.tileN || p.tileN < 2*pieceN):
			p.tileM = halve(p.tileM, 12)
		case p.tileN >= 2*pieceN:
			p.tileN = halve(p.tileN, 32)
		case p.wastes(workers) && p.tileM >= 24:
			p.tileM = halve(p.tileM, 12)
		case p.wastes(workers) && p.tileN >= 64:
			p.tileN = halve(p.tileN, 32)
		default:
			return
		}
	}
}

// wastes reports whether more than a fifth of the workers' time passes without work as the chunks do not divide by them.
func (p *productStep) wastes(workers int) bool {
	chunks := p.chunks()
	return 5*chunks < 4*((chunks+workers-1)/workers*workers)
}

// fuseWindows makes a step that writes the right factors part of this one; it reports whether
// it could. Each tile must be a whole product.
func (p *productStep) fuseWindows(s step) bool {
	pad, ok := s.(*padStep)
	if !ok || pad.to != p.b.buf || len(p.batch) != 1 || p.chunks() != p.count || p.count < workers() || pad.rows%p.count != 0 {
		return false
	}
	if p.b.batch[0] != pad.rows/p.count*pad.dims[len(pad.dims)-1] {
		return false
	}
	p.windows = pad
	return true
}

// cut counts the tiles and reports whether there are any.
func (p *productStep) cut() bool {
	p.tilesM, p.tilesN = (p.m+p.tileM-1)/max(p.tileM, 1), (p.n+p.tileN-1)/max(p.tileN, 1)
	return p.m*p.n > 0
}

func (p *productStep) chunks() int { return p.count * p.tilesM * p.tilesN * p.parts }

// results returns the number of elements of all products.
func (x *matrixProduct) results() int { return x.count * x.m * x.n }

// halve returns about half of n, rounded up to a multiple of tile.
func halve(n, tile int) int { return (n/2 + tile - 1) / tile * tile }

func (p *productStep) run(r *runner) {
	chunks := p.chunks()
	if p.cost < 2*pieceCost {
		for i := range chunks {
			p.do(0, i)
		}
	} else {
		r.job.run(p, chunks)
	}
	if p.parts > 1 {
		elems := p.results()
		const add = 0.4 // nanoseconds for each number
		r.job.runCosting(add*float64((p.parts-1)*elems), (*sumOfParts)(p), (elems+summed-1)/summed)
	}
}

// do computes a part of a tile.
func (p *productStep) do(worker, chunk int) {
	part := chunk % p.parts
	chunk /= p.parts
	item := chunk / (p.tilesM * p.tilesN)
	i := chunk / p.tilesN % p.tilesM * p.tileM
	j := chunk % p.tilesN * p.tileN
	right := item
	if p.windows != nil {
		right = worker
		rows := p.windows.rows / p.count
		p.windows.write(item*rows, (item+1)*rows, view[uint32](p.b.buf)[worker*p.b.batch[0]:])
	}
	switch s := &p.env.spaces; {
	case p.double:
		piece(&s.f64[worker], p, item, right, i, j, part)
	case p.pairs:
		piece(&s.pairs[worker], p, item, right, i, j, part)
	default:
		piece(&s.f32[worker], p, item, right, i, j, part)
	}
}

// piece computes a part of the tile at (i, j) of a product, whose factors are those of batch items left
// and right.
func piece[T simd.Float](s *simd.Space[T], p *productStep, left, right, i, j, part int) {
	m, n := min(p.tileM, p.m-i), min(p.tileN, p.n-j)
	a, b := operand[T](&p.a, p.batch, left, p.env), operand[T](&p.b, p.batch, right, p.env)
	at := (left*p.m+i)*p.n + j
	switch {
	case p.parts > 1:
		c := view[T](p.c)[at:]
		if part > 0 {
			c = view[T](p.rest)[(part-1)*p.results()+at:]
		}
		simd.ProductPart(s, simd.Size{M: m, N: n, K: p.k}, part, a.From(i, 0), b.From(0, j), c, p.n)
	case p.n == 1 && a.Col == 1 && b.Row == 1:
		simd.Dots(s, m, p.k, a.From(i, 0).Data, a.Row, b.Data, view[T](p.c)[at:])
	case p.m == 1 && a.Col == 1 && b.Row == 1 && b.Col != 1:
		simd.Dots(s, n, p.k, b.From(0, j).Data, b.Col, a.Data, view[T](p.c)[at:])
	case p.n == 1 && simd.GatheredDots(s, m, p.k, a.From(i, 0), b, view[T](p.c)[at:]):
	case p.m == 1 && simd.GatheredDots(s, n, p.k, b.From(0, j).Transposed(), a.Transposed(), view[T](p.c)[at:]):
	default:
		simd.Product(s, simd.Size{M: m, N: n, K: p.k}, a.From(i, 0), b.From(0, j), view[T](p.c)[at:], p.n)
	}
}

// sumOfParts adds the parts of a product to the first one, some elements in a chunk.
type sumOfParts productStep

// summed is the number of elements of a chunk of [sumOfParts].
const summed = 4096

func (p *sumOfParts) do(_, chunk int) {
	from := chunk * summed
	end := min(from+summed, p.results())
	if p.double {
		addParts[float64]((*productStep)(p), from, end)
	} else {
		addParts[float32]((*productStep)(p), from, end)
	}
}

func addParts[T simd.Float](p *productStep, from, end int) {
	sum, rest := view[T](p.c)[from:end], view[T](p.rest)
	for part := range p.parts - 1 {
		simd.AddTo(sum, rest[part*p.results()+from:][:end-from])
	}
}

func operand[T simd.Float](m *matrix, batch []int, item int, env *environment) simd.Matrix[T] {
	return simd.Matrix[T]{Data: view[T](m.buf)[m.first(batch, item, env):], Row: m.row, Col: m.col, RowAt: m.rowAt, ColAt: m.colAt}
}
