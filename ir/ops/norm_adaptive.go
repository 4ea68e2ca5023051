package ops

import (
	"cmp"

	"github.com/rlx-go/rlx/ir"
)

// Norms with a computed scale.
const (
	OpAdaNorm    ir.Op = "ada_norm"
	OpWeightNorm ir.Op = "weight_norm"
)

// AdaNormAttrs choose between layer_norm and, with RMS, rms_norm, and hold the epsilon.
type AdaNormAttrs struct {
	RMS bool
	EpsilonAttrs
}

// Visit shows the attributes.
func (a *AdaNormAttrs) Visit(v ir.AttrVisitor) {
	v.Bool("rms", &a.RMS)
	a.EpsilonAttrs.Visit(v)
}

func init() {
	defineComposite(composite{
		op: OpAdaNorm, operands: []string{"x", "scale", "shift"}, types: floats,
		newAttrs:    func() ir.Attrs { return &AdaNormAttrs{EpsilonAttrs: EpsilonAttrs{defaultEpsilon}} },
		doc:         "layer_norm of x over its last axis, or with rms its rms_norm, times 1 + scale, plus shift, where scale and shift are computed from the conditioning (Peebles and Xie, Scalable Diffusion Models with Transformers). AdaLayerNorm of RLX in Rust.",
		constraints: []string{"scale and shift have the element type of x and broadcast to it", "epsilon is not negative"},
		check: func(n *ir.Node) error {
			x := n.Input(0)
			for i, v := range n.Inputs()[1:] {
				if s, err := BroadcastShapes(v.Shape(), x.Shape()); err != nil || !s.Equal(x.Shape()) {
					return ir.Shapef("operand %d is %s, which does not broadcast to %s", i+1, v.Shape(), x.Shape())
				}
			}
			return oneDType(n)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, op := n.Attrs().(*AdaNormAttrs), OpLayerNorm
			if a.RMS {
				op = OpRMSNorm
			}
			y := b.Add1(op, &NormAttrs{1, a.Epsilon}, wide(b, in[0]))
			scale := wide(b, in[1])
			y = Add(b, Mul(b, y, Add(b, scale, OnesLike(b, scale))), wide(b, in[2]))
			return Convert(b, y, in[0].DType())
		},
	})
	defineComposite(composite{
		op: OpWeightNorm, operands: []string{"v", "g"}, types: floats, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
		doc:         "v·g/‖v‖, with the norm taken over all axes but one and one g for each index of that axis (Salimans and Kingma, Weight Normalization).",
		constraints: []string{"axis is an axis of v", "g has the element type of v and shape [size of the axis]"},
		check: func(n *ir.Node) error {
			v, axis := n.Input(0), n.Attrs().(*AxisAttrs).Axis
			if err := checkAxes([]int{axis}, v.Rank()); err != nil {
				return err
			}
			if want := ir.TypeOf(v.DType(), v.Dim(axis)); !n.Input(1).Type().Equal(want) {
				return ir.Shapef("g is %s, not %s", n.Input(1).Type(), want)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			v, axis := wide(b, in[0]), n.Attrs().(*AxisAttrs).Axis
			norm := Sqrt(b, sumOver(b, Square(b, v), otherAxes(v.Rank(), []int{axis})))
			by := BroadcastInDim(b, Div(b, wide(b, in[1]), norm), v.Shape(), []int{axis})
			return Convert(b, Mul(b, v, by), in[0].DType())
		},
	})
}

// AdaNorm returns norm(x)·(1 + scale) + shift, the adaptive norm of DiT (Peebles and Xie).
// The norm is a layer norm over the last axis, or an RMS norm with a.RMS. scale and shift
// have the type of x and broadcast to it. An epsilon of 0 stands for 1e-5.
func AdaNorm(b *ir.Builder, x, scale, shift ir.Value, a AdaNormAttrs) ir.Value {
	a.Epsilon = cmp.Or(a.Epsilon, defaultEpsilon)
	return b.Add1(OpAdaNorm, &a, x, scale, shift)
}

// WeightNorm returns g·v/‖v‖, with the norm over all axes of v but axis and g [size of
// axis] (Salimans and Kingma, Weight Normalization).
func WeightNorm(b *ir.Builder, v, g ir.Value, axis int) ir.Value {
	return b.Add1(OpWeightNorm, axisAttrs(v, axis), v, g)
}
