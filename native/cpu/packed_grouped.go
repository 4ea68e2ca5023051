package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// groupedStep multiplies each row of x with the packed matrix of its group. Rows are ordered by group first, so that each matrix is
// read once: in place for a few rows, or unpacked.
type groupedStep struct {
	from, groups, to *buffer
	starts           []int   // the first row of each group in order, and their end
	order            []int   // rows of from, by group; those of no group last
	inPlace          inPlace // nil for formats that are not read in place
	unpacked         *unpackStep
	chunks           int // of a matrix
}

// inPlace multiplies rows with weights that it reads in place.
type inPlace interface {
	// prepare computes what all products with a row of x have in common.
	prepare()
	// multiply multiplies rows of x, from one to another, with rows of weights, from first to end.
	multiply(w []byte, from, to, first, end int)
}

// groupedProduct compiles a product of rows with the packed matrices of their groups.
func groupedProduct(c *compiler, g *fusion.Group) error {
	r := fusion.RoutineOf(g)
	x, w, groups := r.In[0], r.In[1], r.In[2]
	x.Value = scalar.Convert(x.Value, ir.F32)
	p := packedProduct{rows: x.Dims[0], n: w.Dims[1], k: x.Dims[1], rowBytes: w.Dims[2] * w.Value.Type.Size()}
	if p.rows*p.n == 0 {
		return nil
	}
	s := &groupedStep{starts: make([]int, w.Dims[0]+1), order: make([]int, p.rows)}
	var err error
	if s.from, err = c.rowMajorBuffer(g.Name()+" x", x); err != nil {
		return err
	}
	if p.w, err = c.rowMajorBuffer(g.Name()+" w", w); err != nil {
		return err
	}
	if s.groups, err = c.rowMajorBuffer(g.Name()+" groups", groups); err != nil {
		return err
	}
	attrs := r.Node.Attrs().(*ops.PackedProductAttrs)
	rounds := attrs.ActivationBits != 0
	if rounds {
		p.x = s.from
		s.from = roundedBlocks(c, p)
	}
	p.x, p.out, s.to = c.scratch(ir.F32, p.rows*p.k), c.scratch(ir.F32, p.rows*p.n), c.scratch(ir.F32, p.rows*p.n)
	s.unpacked = newUnpackStep(c, p, attrs.Format)
	s.chunks = s.unpacked.chunks()
	switch packing, ok := packings[attrs.Format]; {
	case ok && rounds && p.k > 0 && simd.HasIntegers():
		s.inPlace = newIntegerStep(p, packing)
	case ok:
		s.inPlace = newPackedStep(p, packing)
	}
	c.add(s)
	d := r.Node.Types()[0].DType
	return c.storeResult(g.Name(), *r.Out[0], s.to, func(value scalar.Expr) fusion.ElementStore { return r.Store(0, scalar.Convert(value, d)) })
}

func (s *groupedStep) run(r *runner) {
	p := &s.unpacked.packedProduct
	from, x, out, to := view[float32](s.from), view[float32](p.x), view[float32](p.out), view[float32](s.to)
	s.sort(view[int32](s.groups))
	for i, row := range s.order {
		copy(x[i*p.k:][:p.k], from[row*p.k:])
	}
	if s.inPlace != nil {
		s.inPlace.prepare()
	}
	r.job.run(s, (len(s.starts)-1)*s.chunks)
	clear(out[s.starts[len(s.starts)-1]*p.n:])
	for i, row := range s.order {
		copy(to[row*p.n:][:p.n], out[i*p.n:])
	}
}

// sort orders the rows by group, those of no group last (counting sort).
func (s *groupedStep) sort(groups []int32) {
	clear(s.starts)
	count := len(s.starts) - 1
	for _, group := range groups {
		if 0 <= group && int(group) < count {
			s.starts[group]++
		}
	}
	at := 0
	for i, n := range s.starts {
		s.starts[i] = at
		at += n
	}
	last := at
	for row, group := range groups {
		if 0 <= group && int(group) < count {
			s.order[s.starts[group]] = row
			s.starts[group]++
		} else {
			s.order[last] = row
			last++
		}
	}
	copy(s.starts[1:], s.starts) // each is the end of its group now
	s.starts[0] = 0
}

// do multiplies the rows of a group with a chunk of its matrix.
func (s *groupedStep) do(worker, i int) {
	group, chunk := i/s.chunks, i%s.chunks
	from, to, p := s.starts[group], s.starts[group+1], &s.unpacked.packedProduct
	if from == to {
		return
	}
	w := p.w.data[group*p.n*p.rowBytes:]
	if s.inPlace != nil && to-from <= maxInPlace(s.unpacked.k) {
		first := chunk * s.unpacked.rowsPerChunk
		s.inPlace.multiply(w, from, to, first, min(first+s.unpacked.rowsPerChunk, p.n))
		return
	}
	s.unpacked.multiply(worker, w, from, to, chunk)
}
