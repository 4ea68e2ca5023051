package ops

import "github.com/rlx-go/rlx/ir"

// Activation functions with a second operand or a gate, and softmin.
const (
	OpPRelu   ir.Op = "prelu"
	OpGlu     ir.Op = "glu"
	OpSwiGlu  ir.Op = "swiglu"
	OpGeGlu   ir.Op = "geglu"
	OpSoftmin ir.Op = "softmin"
)

func init() {
	defineComposite(composite{
		op: OpPRelu, doc: "x where x > 0 and slope·x elsewhere (He et al., Delving Deep into Rectifiers).",
		constraints: []string{"slope has the type of x and is broadcast against it"},
		operands:    []string{"x", "slope"}, types: floats,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return whereAbove(b, in[0], 0, in[0], Mul(b, in[0], in[1]))
		},
	})
	for _, g := range []struct {
		op   ir.Op
		doc  string
		glue func(b *ir.Builder, first, second ir.Value) ir.Value
	}{
		{
			OpGlu, "The first half of x along an axis times the sigmoid of the second (Dauphin et al., Language Modeling with Gated " +
				"Convolutional Networks).",
			func(b *ir.Builder, first, second ir.Value) ir.Value { return Mul(b, first, Sigmoid(b, second)) },
		},
		{
			OpSwiGlu, "silu of the first half of x along an axis times the second half (Shazeer, GLU Variants Improve Transformer).",
			func(b *ir.Builder, first, second ir.Value) ir.Value { return Mul(b, Silu(b, first), second) },
		},
		{
			OpGeGlu, "gelu of the first half of x along an axis times the second half (Shazeer, GLU Variants Improve Transformer).",
			func(b *ir.Builder, first, second ir.Value) ir.Value { return Mul(b, Gelu(b, first), second) },
		},
	} {
		defineComposite(composite{
			op: g.op, doc: g.doc, types: floats, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
			constraints: []string{"axis is an axis of x, of even size"},
			check:       func(n *ir.Node) error { return checkAxes([]int{n.Attrs().(*AxisAttrs).Axis}, n.Input(0).Rank()) },
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				halves := SplitEvenly(b, in[0], n.Attrs().(*AxisAttrs).Axis, 2)
				return g.glue(b, halves[0], halves[1])
			},
		})
	}
	defineComposite(composite{
		op: OpSoftmin, doc: "softmax(−x) along an axis.", types: floats, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
		constraints: []string{"axis is an axis of x"},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return b.Add1(OpSoftmax, n.Attrs(), Neg(b, in[0]))
		},
	})
}

// PRelu returns x where it is positive and slope·x elsewhere (He et al., Delving Deep into
// Rectifiers). slope has the type of x and is broadcast against it.
func PRelu(b *ir.Builder, x, slope ir.Value) ir.Value { return b.Add1(OpPRelu, nil, x, slope) }

// Glu returns the first half of x along axis times the sigmoid of the second half (Dauphin
// et al.). The axis has even size.
func Glu(b *ir.Builder, x ir.Value, axis int) ir.Value { return b.Add1(OpGlu, axisAttrs(x, axis), x) }

// SwiGlu returns silu of the first half of x along axis, the gate, times the second half
// (Shazeer, GLU Variants Improve Transformer). The axis has even size. RLX in Rust calls
// it FusedSwiGLU with gate_first.
func SwiGlu(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpSwiGlu, axisAttrs(x, axis), x)
}

// GeGlu returns gelu of the first half of x along axis times the second half (Shazeer, GLU
// Variants Improve Transformer). The axis has even size.
func GeGlu(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpGeGlu, axisAttrs(x, axis), x)
}

// Softmin returns softmax(−x) along an axis.
func Softmin(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpSoftmin, axisAttrs(x, axis), x)
}
