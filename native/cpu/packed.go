package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// packings are the block-quantised formats that products read without unpacking.
var packings = map[string]simd.Packing{"q8_0": simd.Q8, "q4_0": simd.Q4}

// maxPackedRows is the maximum number of rows that are multiplied with packed weights in
// place. Each row unpacks them anew: for more rows they are unpacked to memory once.
const maxPackedRows = 8

// packingOf returns the format of a product's packed weights; false for a node that is no
// product of a few rows with weights of a supported format.
func packingOf(n *ir.Node) (simd.Packing, bool) {
	if n.Op() != ops.OpQuantizedMatMul {
		return 0, false
	}
	a := n.Attrs().(*ops.PackedAttrs)
	p, ok := packings[a.Format]
	x, known := n.Input(0).Shape().Ints()
	return p, ok && known && a.DType == ir.F32 && product(x[:len(x)-1]) <= maxPackedRows
}

// packedStep multiplies rows with a matrix of packed rows.
type packedStep struct {
	packing         simd.Packing
	x, w, out       *buffer
	rows, n, blocks int
	rowBytes        int
	rowsPerChunk    int // rows of w
}

// packedProduct compiles a product of rows with packed weights, which are read in place.
func (c *compiler) packedProduct(g *fusion.Group, p simd.Packing) error {
	r := g.Routine()
	x, w := r.In[0], r.In[1]
	x.Value = scalar.Convert(x.Value, ir.F32)
	k := x.Dims[len(x.Dims)-1]
	s := &packedStep{packing: p, rows: product(x.Dims[:len(x.Dims)-1]), n: w.Dims[0], blocks: k / simd.PackedElements}
	if s.rows*s.n == 0 {
		return nil
	}
	s.rowBytes = w.Dims[1] * w.Value.Type.Size()
	var err error
	if s.x, err = c.rowMajorBuffer(g.Name()+" x", x); err != nil {
		return err
	}
	if s.w, err = c.rowMajorBuffer(g.Name()+" w", w); err != nil {
		return err
	}
	s.out = c.scratch(ir.F32, s.rows*s.n)
	perRow := max(1, s.rows*k/packedRate)
	s.rowsPerChunk = max(1, chunkCost/perRow)
	c.add(s)
	d := r.Node.Types()[0].DType
	return c.storeResult(g.Name(), *r.Out[0], s.out, func(value scalar.Expr) fusion.ElementStore { return r.Store(0, scalar.Convert(value, d)) })
}

// packedRate is roughly the number of packed weights that a core multiplies per nanosecond.
const packedRate = 30

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

func (s *packedStep) run(r *runner) { r.job.run(s, (s.n+s.rowsPerChunk-1)/s.rowsPerChunk) }

// do multiplies the rows of x with some rows of the weights.
func (s *packedStep) do(_, chunk int) {
	x, out := view[float32](s.x), view[float32](s.out)
	k := s.blocks * simd.PackedElements
	for first := chunk * s.rowsPerChunk; first < min((chunk+1)*s.rowsPerChunk, s.n); first += packedTile {
		n := min(packedTile, min((chunk+1)*s.rowsPerChunk, s.n)-first)
		for i := range s.rows {
			simd.DotsPacked(s.packing, n, s.blocks, s.w.data[first*s.rowBytes:], s.rowBytes, x[i*k:], out[i*s.n+first:], 1)
		}
	}
}

// packedTile is the number of weight rows that all rows of x read in turn while the
// first-level cache holds them.
const packedTile = 4
