package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

func batchReduce(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	at := axes[0]
	reduced := shifted(axesOf(n), at)
	out := at
	for _, a := range reduced {
		if a < at {
			out--
		}
	}
	return b.Add(n.Op(), &AxesAttrs{reduced}, in[0]), []int{out}
}

// jvpProduct computes Σᵢ tᵢ·Πⱼ≠ᵢ xⱼ without division, so zeros are harmless at any order:
// the products run along a second copy of the reduced axes, in which element i is replaced
// by 1.
func jvpProduct(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	kept, reduced := keptAxes(n), axesOf(n)
	x := mergeReduced(b, in[0], kept, reduced)
	tangent := mergeReduced(b, t[0], kept, reduced)
	i := x.Rank() - 1 // the merged reduced axis
	count := x.Dim(i)
	square := append(x.Shape().Clone(), count)
	self := Eq(b, Iota(b, ir.I32, i, square...), Iota(b, ir.I32, i+1, square...))
	wide := BroadcastInDim(b, x, square, withoutAxis(i+2, i))
	others := ReduceProd(b, Select(b, self, OnesLike(b, wide), wide), i+1)
	return []ir.Value{ReduceSum(b, scale(b, tangent, others), i)}
}

// mergeReduced moves the reduced axes to the end and merges them.
func mergeReduced(b *ir.Builder, x ir.Value, kept, reduced []int) ir.Value {
	shape := pick(x.Shape(), kept)
	count := ir.Shape(pick(x.Shape(), reduced)).Size()
	return Reshape(b, Transpose(b, x, slices.Concat(kept, reduced)...), append(shape, count)...)
}

// jvpExtremum shares the tangent equally among the elements that attain the extremum. No
// element equals NaN, so a NaN result has the tangent 0/0, NaN.
func jvpExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	x, axes := in[0], axesOf(n)
	wide := func(v ir.Value) ir.Value { return BroadcastInDim(b, v, x.Shape(), keptAxes(n)) }
	attained := Convert(b, Eq(b, x, wide(out[0])), sumType(x.DType()))
	shares := Div(b, attained, wide(sumOver(b, attained, axes)))
	return []ir.Value{sumOver(b, scale(b, t[0], Convert(b, shares, x.DType())), axes)}
}
