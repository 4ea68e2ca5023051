package passes

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func shapeIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpReshape:        {moveOfSplat, sameShape, reshapeReshape},
		ops.OpTranspose:      {moveOfSplat, transposeSame, transposeTwice, transposeOfUnits, transposeOfDot},
		ops.OpBroadcastInDim: {sameShape, broadcastTwice, broadcastUnits, broadcastReshape},
		ops.OpReverse:        {moveOfSplat, reverseUnits, reverseTwice},
		ops.OpSlice:          {moveOfSplat},
	}
}

// moveOfSplat: moving the elements of a splat gives a splat.
func moveOfSplat(s site) ir.Value { return spread(s, s.in[0]) }

// sameShape: a reshape or a broadcast to the shape of x is x. The axes of a broadcast increase, so that they are the
// identity.
func sameShape(s site) ir.Value {
	if s.in[0].Shape().Equal(s.n.Types()[0].Shape) {
		return s.in[0]
	}
	return ir.Value{}
}

func reshapeReshape(s site) ir.Value {
	if x, ok := operandOf(s.in[0], ops.OpReshape); ok {
		return ops.Reshape(s.b, x, s.n.Types()[0].Shape...)
	}
	return ir.Value{}
}

func permOf(n *ir.Node) []int { return n.Attrs().(*ops.TransposeAttrs).Perm }

func isCounting(axes []int) bool {
	for i, a := range axes {
		if a != i {
			return false
		}
	}
	return true
}

// transpose is [ops.Transpose] without the special meaning of an empty perm.
func transpose(b *ir.Builder, x ir.Value, perm []int) ir.Value {
	if isCounting(perm) {
		return x
	}
	return ops.Transpose(b, x, perm...)
}

func transposeSame(s site) ir.Value {
	if isCounting(permOf(s.n)) {
		return s.in[0]
	}
	return ir.Value{}
}

func transposeTwice(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpTranspose)
	if !ok {
		return ir.Value{}
	}
	return transpose(s.b, x, permute.Pick(permOf(s.in[0].Node()), permOf(s.n)))
}

// transposeOfUnits: moving axes of size 1 alone is a reshape.
func transposeOfUnits(s site) ir.Value {
	moving := slices.DeleteFunc(slices.Clone(permOf(s.n)), func(a int) bool { return s.in[0].Dim(a).Is(1) })
	if slices.IsSorted(moving) {
		return ops.Reshape(s.b, s.in[0], s.n.Types()[0].Shape...)
	}
	return ir.Value{}
}

func broadcastAxes(n *ir.Node) []int { return n.Attrs().(*ops.BroadcastAttrs).Axes }

// broadcastUnits: a broadcast that only adds axes of size 1 is a reshape.
func broadcastUnits(s site) ir.Value {
	to := s.n.Types()[0].Shape
	if s.in[0].Rank() > 0 && s.in[0].Shape().Size() == to.Size() && !to.Size().Is(0) {
		return ops.Reshape(s.b, s.in[0], to...)
	}
	return ir.Value{}
}

func broadcastTwice(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpBroadcastInDim)
	if !ok {
		return ir.Value{}
	}
	return ops.BroadcastInDim(s.b, x, s.n.Types()[0].Shape, permute.Pick(broadcastAxes(s.n), broadcastAxes(s.in[0].Node())))
}

// broadcastReshape: a broadcast of a reshape that only adds axes of size 1 is one
// broadcast.
func broadcastReshape(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpReshape)
	if !ok || slices.ContainsFunc(x.Shape(), func(d ir.Dim) bool { return d.Is(1) }) {
		return ir.Value{}
	}
	var kept []int
	for i, d := range s.in[0].Shape() {
		if !d.Is(1) {
			kept = append(kept, i)
		}
	}
	if !x.Shape().Equal(permute.Pick(s.in[0].Shape(), kept)) {
		return ir.Value{}
	}
	return ops.BroadcastInDim(s.b, x, s.n.Types()[0].Shape, permute.Pick(broadcastAxes(s.n), kept))
}

func axesOf(n *ir.Node) []int { return n.Attrs().(*ops.AxesAttrs).Axes }

// reverseUnits drops axes of size 1.
func reverseUnits(s site) ir.Value {
	axes := slices.DeleteFunc(slices.Clone(axesOf(s.n)), func(a int) bool { return s.in[0].Dim(a).Is(1) })
	switch {
	case len(axes) == 0:
		return s.in[0]
	case len(axes) < len(axesOf(s.n)):
		return ops.Reverse(s.b, s.in[0], axes...)
	}
	return ir.Value{}
}

func reverseTwice(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpReverse)
	if !ok {
		return ir.Value{}
	}
	inner, outer := axesOf(s.in[0].Node()), axesOf(s.n)
	var once []int
	for axis := range x.Rank() {
		if slices.Contains(inner, axis) != slices.Contains(outer, axis) {
			once = append(once, axis)
		}
	}
	if len(once) == 0 {
		return x
	}
	return ops.Reverse(s.b, x, once...)
}
