package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// packings are the block-quantised formats that products read without unpacking.
var packings = map[string]simd.Packing{"q8_0": simd.Q8, "q4_0": simd.Q4, "q4_1": simd.Q4Min}

// maxInPlace returns the maximum number of rows of k numbers that are multiplied with packed weights in place. Each row
// unpacks them anew: for more rows, and for other formats, some rows of weights are unpacked at a time, which pays off for
// fewer rows where a cache holds many rows of weights (q4_0, AMD EPYC, ns of a block of 32, in place and unpacked: four
// rows of 576 4.3 and 3.8, eight 8.5 and 5.2; eight of 4096 6.3 and 13).
func maxInPlace(k int) int {
	if 4*k*maxUnpacked <= unpackBytes {
		return 3
	}
	return 8
}

// readsPacked reports whether a node is a product with packed weights that steps of this file compute:
// one in f32 of a format of GGUF files.
func readsPacked(n *ir.Node) bool {
	a, product := n.Attrs().(*ops.PackedProductAttrs)
	if !product {
		return false
	}
	_, ok := gguf.TypeOf(a.Format)
	_, known := n.Input(0).Shape().Ints()
	return ok && known && a.DType == ir.F32
}

// packedProduct is a product of rows with a matrix of packed rows.
type packedProduct struct {
	x, w, out    *buffer
	rows, n, k   int
	rowBytes     int
	rowsPerChunk int // rows of w
}

func (s *packedProduct) chunks() int { return (s.n + s.rowsPerChunk - 1) / s.rowsPerChunk }

// operations counts the multiplications and additions.
func (s *packedProduct) operations() float64 {
	return 2 * float64(s.rows) * float64(s.n) * float64(s.k)
}

// packedProduct compiles a product of rows with packed weights.
func (c *compiler) packedProduct(g *fusion.Group) error {
	r := fusion.RoutineOf(g)
	x, w := r.In[0], r.In[1]
	x.Value = scalar.Convert(x.Value, ir.F32)
	p := packedProduct{rows: product(x.Dims[:len(x.Dims)-1]), n: w.Dims[0], k: x.Dims[len(x.Dims)-1], rowBytes: w.Dims[1] * w.Value.Type.Size()}
	if p.rows*p.n == 0 {
		return nil
	}
	var err error
	if p.x, err = c.rowMajorBuffer(g.Name()+" x", x); err != nil {
		return err
	}
	if p.w, err = c.rowMajorBuffer(g.Name()+" w", w); err != nil {
		return err
	}
	p.out = c.scratch(ir.F32, p.rows*p.n)
	attrs := r.Node.Attrs().(*ops.PackedProductAttrs)
	packing, inPlace := packings[attrs.Format]
	inPlace = inPlace && p.rows <= maxInPlace(p.k)
	rounds := attrs.ActivationBits != 0
	integers := inPlace && rounds && simd.HasIntegers()
	if rounds && !integers {
		p.x = roundedBlocks(c, p)
	}
	switch {
	case integers:
		c.add(newIntegerStep(p, packing))
	case inPlace:
		c.add(newPackedStep(p, packing))
	default:
		c.add(newUnpackStep(c, p, attrs.Format))
	}
	d := r.Node.Types()[0].DType
	return c.storeResult(g.Name(), *r.Out[0], p.out, func(value scalar.Expr) fusion.ElementStore { return r.Store(0, scalar.Convert(value, d)) })
}

// rowMajorBuffer returns values as a row-major array, in place if they are one in memory
// already.
func (c *compiler) rowMajorBuffer(name string, x fusion.Elements) (*buffer, error) {
	if e := x.Value; e.Op == scalar.OpLoad && scalar.Equal(scalar.Simplify(e.Args[0]), scalar.Simplify(linear(x.Dims, x.At))) {
		if b := c.buffers[e.Ref]; b != nil {
			return b, nil
		}
	}
	return c.materialize(name, x)
}

// packedStep multiplies a few rows with weights that it reads in place.
type packedStep struct {
	packedProduct
	packing   simd.Packing
	blocks    int
	blockSums []float32 // of each row of x, for minima
}

// packedRate is roughly the number of packed weights that a core multiplies per nanosecond.
const packedRate = 30

func newPackedStep(p packedProduct, packing simd.Packing) *packedStep {
	s := &packedStep{packedProduct: p, packing: packing, blocks: p.k / simd.PackedElements}
	if packing == simd.Q4Min {
		s.blockSums = make([]float32, p.rows*simd.SumsLen(s.blocks))
	}
	s.rowsPerChunk = max(1, chunkCost/max(1, p.rows*p.k/packedRate))
	return s
}

func (s *packedStep) run(r *runner) {
	s.prepare()
	r.job.run(s, s.chunks())
}

// prepare sums the blocks of the rows of x.
func (s *packedStep) prepare() {
	for i := range s.rows {
		if sums := s.sumsOf(i); sums != nil {
			simd.BlockSums(view[float32](s.x)[i*s.k:][:s.k], sums)
		}
	}
}

// sumsOf returns the sums of the blocks of a row of x; nil for a format without minima.
func (s *packedStep) sumsOf(row int) []float32 {
	if s.blockSums == nil {
		return nil
	}
	n := simd.SumsLen(s.blocks)
	return s.blockSums[row*n:][:n]
}

// do multiplies the rows of x with some rows of the weights.
func (s *packedStep) do(_, chunk int) {
	first := chunk * s.rowsPerChunk
	s.multiply(s.w.data, 0, s.rows, first, min(first+s.rowsPerChunk, s.n))
}

// multiply multiplies rows of x, from one to another, with rows of weights, from first to end.
func (s *packedStep) multiply(w []byte, from, to, first, end int) {
	x, out := view[float32](s.x), view[float32](s.out)
	for ; first < end; first += packedTile {
		n := min(packedTile, end-first)
		for i := from; i < to; i++ {
			simd.DotsPacked(s.packing, s.blocks, w[first*s.rowBytes:], s.rowBytes, x[i*s.k:], s.sumsOf(i), out[i*s.n+first:][:n])
		}
	}
}

// integerStep multiplies a few rows, which it rounds to 8 bits, with weights that it reads in place.
type integerStep struct {
	packedProduct
	packing simd.Packing
	blocks  int
	rounded []simd.Integers // of all rows
}

// integerRate is packedRate of integers.
const integerRate = 2 * packedRate

func newIntegerStep(p packedProduct, packing simd.Packing) *integerStep {
	s := &integerStep{packedProduct: p, packing: packing, blocks: p.k / simd.PackedElements}
	s.rounded = make([]simd.Integers, p.rows*simd.IntegersLen(s.blocks))
	s.rowsPerChunk = max(1, chunkCost/max(1, p.rows*p.k/integerRate))
	return s
}

// row returns a row of x, rounded.
func (s *integerStep) row(i int) []simd.Integers {
	n := simd.IntegersLen(s.blocks)
	return s.rounded[i*n:][:n]
}

func (s *integerStep) run(r *runner) {
	if s.k == 0 {
		clear(view[float32](s.out))
		return
	}
	s.prepare()
	r.job.run(s, s.chunks())
}

// prepare rounds the rows of x.
func (s *integerStep) prepare() {
	for i := range s.rows {
		simd.RoundToIntegers(s.packing, view[float32](s.x)[i*s.k:][:s.k], s.row(i))
	}
}

// do multiplies the rows of x with some rows of the weights.
func (s *integerStep) do(_, chunk int) {
	first := chunk * s.rowsPerChunk
	s.multiply(s.w.data, 0, s.rows, first, min(first+s.rowsPerChunk, s.n))
}

// multiply multiplies rows of x, from one to another, with rows of weights, from first to end.
func (s *integerStep) multiply(w []byte, from, to, first, end int) {
	tile := end - first
	if to-from > 1 {
		tile = packedTile
	}
	for ; first < end; first += tile {
		for i := from; i < to; i++ {
			simd.DotsIntegers(s.packing, min(tile, end-first), s.blocks, w[first*s.rowBytes:], s.rowBytes, s.row(i), view[float32](s.out)[i*s.n+first:])
		}
	}
}

// roundStep rounds the rows of x to 8 bits, for products in f32.
type roundStep struct {
	from, to     *buffer
	rows, k      int
	rowsPerChunk int
}

// roundTime is roughly the nanoseconds in which a core rounds a number.
const roundTime = 2.5

// roundedBlocks adds a step that rounds the rows of x to 8 bits, and returns their buffer.
func roundedBlocks(c *compiler, p packedProduct) *buffer {
	s := &roundStep{from: p.x, to: c.scratch(ir.F32, p.rows*p.k), rows: p.rows, k: p.k}
	s.rowsPerChunk = max(1, int(chunkCost/roundTime)/max(1, p.k))
	c.add(s)
	return s.to
}

func (s *roundStep) run(r *runner) { r.job.run(s, (s.rows+s.rowsPerChunk-1)/s.rowsPerChunk) }

func (s *roundStep) do(_, chunk int) {
	first := chunk * s.rowsPerChunk
	end := min(first+s.rowsPerChunk, s.rows)
	simd.RoundBlocks(view[float32](s.from)[first*s.k:end*s.k], view[float32](s.to)[first*s.k:])
}

// packedTile is the number of weight rows that all rows of x read in turn while the
// first-level cache holds them.
const packedTile = 4

// unpackStep multiplies rows with weights that it unpacks, some rows at a time, into a worker's cache.
type unpackStep struct {
	packedProduct
	format    gguf.Type
	packing   simd.Packing
	hasKernel bool // for packing
	rowBytes  int  // without padding
	env       *environment
}

// Rows of weights are unpacked by unpackBytes, half of a core's second-level cache, but at most
// maxUnpacked of them, so that all cores have some.
const (
	unpackBytes = 256 << 10
	maxUnpacked = 64
)

func newUnpackStep(c *compiler, p packedProduct, format string) *unpackStep {
	t, _ := gguf.TypeOf(format)
	elements, bytes := t.Block()
	s := &unpackStep{packedProduct: p, format: t, rowBytes: p.k / elements * bytes, env: c.env}
	s.packing, s.hasKernel = packings[format]
	s.rowsPerChunk = min(max(unpackBytes/4/max(p.k, 1), 4), maxUnpacked, p.n)
	s.env.spaces.growUnpacked(p.rows, s.rowsPerChunk, p.k)
	return s
}

func (s *unpackStep) run(r *runner) { r.job.run(s, s.chunks()) }

// do multiplies the rows of x with some rows of the weights.
func (s *unpackStep) do(worker, chunk int) { s.multiply(worker, s.w.data, 0, s.rows, chunk) }

// multiply multiplies rows of x, from one to another, with a chunk of rows of weights.
func (s *unpackStep) multiply(worker int, packed []byte, from, to, chunk int) {
	first := chunk * s.rowsPerChunk
	n := min(s.rowsPerChunk, s.n-first)
	x, out, w := view[float32](s.x)[from*s.k:], view[float32](s.out)[from*s.n+first:], s.env.spaces.unpacked[worker]
	for i := range n {
		s.unpack(w[i*s.k:][:s.k], packed[(first+i)*s.packedProduct.rowBytes:][:s.rowBytes])
	}
	space := &s.env.spaces.f32[worker]
	if to-from <= maxInPlace(s.k) {
		for i := range to - from {
			simd.Dots(space, n, s.k, w, s.k, x[i*s.k:][:s.k], out[i*s.n:])
		}
		return
	}
	simd.Product(space, simd.Size{M: to - from, N: n, K: s.k}, simd.Matrix[float32]{Data: x, Row: s.k, Col: 1}, simd.Matrix[float32]{Data: w, Row: 1, Col: s.k}, out, s.n)
}

// unpack unpacks a row of weights.
func (s *unpackStep) unpack(to []float32, packed []byte) {
	if s.hasKernel {
		s.packing.Unpack(to, packed)
		return
	}
	// The op requires whole blocks of a known type per row, so there is no error.
	_ = gguf.Dequantize(s.format, to, packed)
}
