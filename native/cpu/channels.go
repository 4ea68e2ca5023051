package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// channelFactor is a factor of a contraction whose batch is contiguous in memory: that of a load, or
// one with coords to be materialised.
type channelFactor struct {
	direct *matrix
	value  scalar.Expr
	coords []coordinate
	elems  int
}

// channelFactors returns the factors of a contraction with the channels last, for a stencil. The few
// columns of the groups of a convolution become channels, too: they fill too little of a vector. It returns
// nil where a stencil does not apply, or would copy about as much as it multiplies.
func channelFactors(c *compiler, k *fusion.ContractionCode) []channelFactor {
	width, channels, m, n := jit.Width(), product(k.Batch), product(k.M), product(k.N)
	few := n == 1 || len(k.N) == 1 && k.NAt[0].Op == scalar.OpVar && 4*n <= width
	if !few || len(k.Batch) == 0 || !fitsStencil(m, product(k.K), channels*n) || k.Sum.Type != ir.F32 {
		return nil
	}
	batch, at := k.Batch, k.BatchAt
	if n > 1 {
		batch, at = slices.Concat(k.Batch, k.N), slices.Concat(k.BatchAt, k.NAt)
	}
	for _, v := range at {
		if v.Op != scalar.OpVar {
			return nil
		}
	}
	orderSumAxes(k)
	out := []channelFactor{
		newChannelFactor(c, k.A, factorAxes{batch, k.M, k.K, at, k.MAt, k.KAt}),
		newChannelFactor(c, k.B, factorAxes{batch, k.K, nil, at, k.KAt, nil}),
	}
	const reuse = 2 // that of windows of 3 × 3 by strides of 2 is 2.25
	for _, f := range out {
		if f.direct == nil && (f.coords == nil || f.elems > m*product(k.K)*channels*n/reuse) {
			return nil
		}
	}
	k.Batch, k.BatchAt, k.N, k.NAt = batch, at, nil, nil
	return out
}

// newChannelFactor returns a factor with the axes of a batch last; without a matrix and coordinates where it
// has none.
func newChannelFactor(c *compiler, e scalar.Expr, x factorAxes) channelFactor {
	known := x.dims()
	if m, ok := x.stored(c, e, known); ok && slices.Equal(m.batch, rowMajor(x.batch, 1)) {
		return channelFactor{direct: &m}
	}
	value, coords := windowCoordinates(e, known)
	inBatch := func(name string) bool {
		return slices.ContainsFunc(x.batchAt, func(v scalar.Expr) bool { return v.Name == name })
	}
	kept := coords[:0:0]
	for _, at := range coords {
		switch {
		case at.v.Op == scalar.OpVar && inBatch(at.v.Name):
		case slices.ContainsFunc(at.is.terms, func(t affineTerm) bool { return inBatch(t.of.Name) }):
			return channelFactor{}
		default:
			kept = append(kept, at)
		}
	}
	if coords == nil {
		return channelFactor{}
	}
	orderAsStored(value, kept)
	for i, v := range x.batchAt {
		kept = append(kept, coordinate{v, x.batch[i], affine{terms: []affineTerm{{1, v}}}})
	}
	elems, ok := pointsOf(kept)
	if !ok {
		return channelFactor{}
	}
	return channelFactor{value: value, coords: kept, elems: elems}
}

// matrix returns a factor as a matrix. One that is not in memory is stored by its coordinates, and the matrix has
// tables of their places.
func (f channelFactor) matrix(c *compiler, name string, x factorAxes, id int, t ir.DType) (matrix, error) {
	if f.direct != nil {
		return *f.direct, nil
	}
	var vars []scalar.Expr
	var sizes []int
	for _, at := range f.coords {
		vars, sizes = append(vars, at.v), append(sizes, at.size)
	}
	buf := c.scratch(t, product(sizes))
	code := &fusion.Code{Outer: vars, Rows: []fusion.ElementStore{{
		Tensor: &fusion.Tensor{ID: id, Name: name, DType: t}, Offset: scalar.Simplify(linear(sizes, vars)), Value: scalar.Simplify(f.value),
	}}}
	var sum affine
	for i, stride := range rowMajor(sizes, 1) {
		sum.add(f.coords[i].is, stride)
	}
	return x.table(sum, buf), c.nest(name, code, sizes, nil, map[int]*buffer{id: buf})
}
