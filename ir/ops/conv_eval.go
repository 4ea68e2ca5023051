package ops

import (

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// convPoint is one spatial axis of a convolution.
type convPoint struct{ stride, lo, lhsDilation, rhsDilation, size int }

// at returns the element of lhs that is multiplied by element k of the window at result
// position o, or false where it is padding.
func (p convPoint) at(o, k int) (int, bool) {
	i := o*p.stride + k*p.rhsDilation - p.lo
	if i < 0 || i%p.lhsDilation != 0 || i/p.lhsDilation >= p.size {
		return 0, false
	}
	return i / p.lhsDilation, true
}

func convPoints(a *ConvAttrs, x ir.Shape) []convPoint {
	out := make([]convPoint, len(a.Strides))
	for i := range out {
		size, _ := x[a.Lhs[i+2]].Const()
		out[i] = convPoint{a.Strides[i], a.PadLo[i], a.LhsDilation[i], a.RhsDilation[i], size}
	}
	return out
}

// convSizes are the group count and the sizes of one group.
type convSizes struct {
	groups                   int // feature or batch groups
	batch, outFeatures       int // of one group
	inFeatures               int // of one group
	batchGroups              bool
	outSpatial, kernelExtent []int
}

func convSizesOf(n *ir.Node) convSizes {
	a := n.Attrs().(*ConvAttrs)
	x, w, y := sizes(n.Input(0).Shape()), sizes(n.Input(1).Shape()), sizes(n.Types()[0].Shape)
	fg, _ := a.FeatureGroups.Const()
	bg, _ := a.BatchGroups.Const()
	return convSizes{
		groups: fg * bg, batchGroups: bg > 1,
		batch: x[a.Lhs[0]] / bg, outFeatures: w[a.Rhs[0]] / (fg * bg), inFeatures: w[a.Rhs[1]],
		outSpatial: pick(y, a.Out[2:]), kernelExtent: pick(w, a.Rhs[2:]),
	}
}

func evalConv(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case out.DType.IsFloat():
		convolve(n, out.F, in[0].F, in[1].F)
	case out.DType.IsComplex():
		convolve(n, out.C, in[0].C, in[1].C)
	default:
		convolve(n, out.I, in[0].I, in[1].I)
	}
	return []*ir.Array{c.Round(out)}, nil
}

// convolve computes the result in row-major order.
func convolve[T float64 | int64 | complex128](n *ir.Node, out, x, w []T) {
	a, s := n.Attrs().(*ConvAttrs), convSizesOf(n)
	points := convPoints(a, n.Input(0).Shape())
	xs, ws := strides(sizes(n.Input(0).Shape())), strides(sizes(n.Input(1).Shape()))
	positions(sizes(n.Types()[0].Shape), func(o int, at []int) {
		batch, feature := at[a.Out[0]], at[a.Out[1]]
		group, first := feature/s.outFeatures, 0
		if s.batchGroups {
			batch += group * s.batch
		} else {
			first = group * s.inFeatures
		}
		var sum T
		positions(s.kernelExtent, func(_ int, k []int) {
			xo, wo, ok := batch*xs[a.Lhs[0]]+first*xs[a.Lhs[1]], feature*ws[a.Rhs[0]], true
			for i, p := range points {
				pos, inside := p.at(at[a.Out[i+2]], k[i])
				ok = ok && inside
				xo, wo = xo+pos*xs[a.Lhs[i+2]], wo+k[i]*ws[a.Rhs[i+2]]
			}
			for f := 0; ok && f < s.inFeatures; f++ {
				sum += x[xo+f*xs[a.Lhs[1]]] * w[wo+f*ws[a.Rhs[1]]]
			}
		})
		out[o] = sum
	})
}

// convContraction contracts input features and window positions. The groups are its batch; the
// free axes of lhs are the batch and the result positions. Both spaces have their axes in the order
// of lhs in memory, so that neighbours in a space are neighbours there, also in the gradient by the
// kernel, whose lhs has the features as its batch.
func convContraction(n *ir.Node) ir.Contraction {
	a, s := n.Attrs().(*ConvAttrs), convSizesOf(n)
	points := convPoints(a, n.Input(0).Shape())
	free, inner := lhsOrder(a.Lhs, a.Lhs[0]), lhsOrder(a.Lhs, a.Lhs[1])
	c := ir.Contraction{
		M:   free.place(s.batch, s.outSpatial),
		N:   []int{s.outFeatures},
		K:   inner.place(s.inFeatures, s.kernelExtent),
		Acc: sumType(n.Types()[0].DType),
	}
	group := func(batch ir.Index, each int, rest scalar.Expr) scalar.Expr {
		if len(batch) == 0 {
			return rest
		}
		return scalar.Add(scalar.Mul(batch[0], loop.Int(each)), rest)
	}
	if s.groups > 1 {
		c.Batch = []int{s.groups}
	}
	c.A = func(batch, m, k ir.Index) (ir.Index, scalar.Expr) {
		at := make(ir.Index, len(a.Lhs))
		at[a.Lhs[0]], at[a.Lhs[1]] = m[free.other], k[inner.other]
		if s.batchGroups {
			at[a.Lhs[0]] = group(batch, s.batch, at[a.Lhs[0]])
		} else {
			at[a.Lhs[1]] = group(batch, s.inFeatures, at[a.Lhs[1]])
		}
		var valid scalar.Expr
		for i, p := range points {
			pos, ok := p.position(m[free.spatial[i]], k[inner.spatial[i]], s.outSpatial[i], s.kernelExtent[i])
			at[a.Lhs[i+2]], valid = pos, both(valid, ok)
		}
		return at, valid
	}
	c.B = func(batch, n, k ir.Index) (ir.Index, scalar.Expr) {
		at := make(ir.Index, len(a.Rhs))
		at[a.Rhs[0]], at[a.Rhs[1]] = group(batch, s.outFeatures, n[0]), k[inner.other]
		for i := range points {
			at[a.Rhs[i+2]] = k[inner.spatial[i]]
		}
		return at, nil
	}
	c.Out = func(batch, m, n ir.Index) ir.Index {
		at := make(ir.Index, len(a.Out))
		at[a.Out[0]], at[a.Out[1]] = m[free.other], group(batch, s.outFeatures, n[0])
		for i := range points {
			at[a.Out[i+2]] = m[free.spatial[i]]
		}
		return at
	}
	return c
}

// spaceOrder is where a space of a convolution has its spatial axes and the other one, the batch or
// the features.
type spaceOrder struct {
	other   int
	spatial []int
}

// lhsOrder orders the axes of a space as lhs has them in memory; other is the axis of lhs that the
// space has besides the spatial ones.
func lhsOrder(lhs []int, other int) spaceOrder {
	before := func(axis int) (count int) {
		for _, x := range append(lhs[2:len(lhs):len(lhs)], other) {
			if x < axis {
				count++
			}
		}
		return count
	}
	o := spaceOrder{other: before(other)}
	for _, axis := range lhs[2:] {
		o.spatial = append(o.spatial, before(axis))
	}
	return o
}

// place returns the sizes of the space.
func (o spaceOrder) place(other int, spatial []int) []int {
	out := make([]int, 1+len(spatial))
	out[o.other] = other
	for i, size := range spatial {
		out[o.spatial[i]] = size
	}
	return out
}

// position is [convPoint.at] in scalar code, for results and windows of the given sizes:
// the element of lhs, 0 where it is padding, and the condition that it is not (nil if it
// always holds).
func (p convPoint) position(o, k scalar.Expr, results, window int) (scalar.Expr, scalar.Expr) {
	i := scalar.Sub(
		scalar.Add(scalar.Mul(o, loop.Int(p.stride)), scalar.Mul(k, loop.Int(p.rhsDilation))), loop.Int(p.lo))
	last := (results-1)*p.stride + (window-1)*p.rhsDilation - p.lo
	return strided(i, p.lhsDilation, p.size, -p.lo, last)
}
