//go:build !js

package passes

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ChannelsLast computes convolutions of planes, whose last axis is a spatial one, with their channels last: tensor cores
// read whole rows of channels. The operands and the result are transposed around it, where elementwise neighbours
// take the transposes in. Those of few channels stay, depthwise ones among them, which are sums over windows.
func ChannelsLast(g *ir.Graph) (*ir.Graph, error) {
	return replaceNodes(g, hasPlanes, func(s site) ir.Value {
		a := *s.n.Attrs().(*ops.ConvAttrs)
		right, out := windowOrder(a.Rhs[2:], a.Rhs[1], a.Rhs[0]), imageOrder(a.Out)
		if pixels(s.n.Result(0), a.Out) < pixels(s.n.Input(1), a.Rhs) { // the gradient by a window
			right, out = imageOrder(a.Rhs), windowOrder(a.Out[2:], a.Out[0], a.Out[1])
		}
		left := imageOrder(a.Lhs)
		a.Lhs, a.Rhs, a.Out = places(a.Lhs, left), places(a.Rhs, right), places(a.Out, out)
		y := ops.ConvGeneral(s.b, ops.Transpose(s.b, s.in[0], left...), ops.Transpose(s.b, s.in[1], right...), a)
		return ops.Transpose(s.b, y, permute.Inverse(out)...)
	})
}

// minChannels is the least number of channels of a group on either side for tensor cores.
const minChannels = 8

// hasPlanes reports whether a node is a convolution of planes with channels for tensor cores.
func hasPlanes(n *ir.Node) bool {
	if n.Op() != ops.OpConvGeneral {
		return false
	}
	a := n.Attrs().(*ops.ConvAttrs)
	last := len(a.Lhs) - 1
	groups, _ := a.FeatureGroups.Mul(a.BatchGroups).Const()
	in, _ := n.Input(0).Dim(max(a.Lhs[0], a.Lhs[1])).Const() // the other axis that is not spatial is the batch
	out, _ := n.Result(0).Dim(max(a.Out[0], a.Out[1])).Const()
	return in >= minChannels*groups && out >= minChannels && slices.Contains(a.Lhs[2:], last) && slices.Contains(a.Out[2:], last)
}

// pixels counts the points of a value's spatial axes.
func pixels(v ir.Value, roles []int) int {
	n := 1
	for _, axis := range roles[2:] {
		size, _ := v.Dim(axis).Const()
		n *= size
	}
	return n
}

// imageOrder returns the axes of images with the channels last, given those of their roles: the batch, which comes before
// the channels, and the spatial ones.
func imageOrder(roles []int) []int {
	return slices.Concat([]int{min(roles[0], roles[1])}, roles[2:], []int{max(roles[0], roles[1])})
}

// windowOrder returns the axes of a window with the channels last.
func windowOrder(spatial []int, in, out int) []int { return append(slices.Clone(spatial), in, out) }

// places returns where an order has axes.
func places(axes, order []int) []int {
	at := make([]int, len(axes))
	for i, axis := range axes {
		at[i] = slices.Index(order, axis)
	}
	return at
}
