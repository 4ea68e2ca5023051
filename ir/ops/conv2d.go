package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// OpConv2D is the convolution layer of image models.
const OpConv2D ir.Op = "conv2d"

// Conv2DAttrs describe a convolution over height and width, in this order. Negative
// padding crops.
type Conv2DAttrs struct {
	Strides, Dilations []int // nil: 1
	PadLo, PadHi       []int // nil: 0
	Groups             int   // 0: 1
}

// Visit shows the attributes.
func (a *Conv2DAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("strides", &a.Strides)
	v.Ints("dilations", &a.Dilations)
	v.Ints("pad_lo", &a.PadLo)
	v.Ints("pad_hi", &a.PadHi)
	v.Int("groups", &a.Groups)
}

// SamePadding returns the low and high padding of each axis that makes a convolution or
// pool with stride 1 keep the sizes; the odd element goes to the high side. Nil dilations
// stand for 1.
func SamePadding(window, dilations []int) (lo, hi []int) {
	for i, w := range window {
		total := w - 1
		if i < len(dilations) {
			total *= dilations[i]
		}
		lo, hi = append(lo, total/2), append(hi, total-total/2)
	}
	return lo, hi
}

func init() {
	define(&ir.Def{
		Op: OpConv2D,
		Doc: "Convolution of images (cross-correlation), channels last so that loads coalesce, plus a bias. " +
			"x is [batch, height, width, in], the weight [height, width, in/groups, out], the bias [out].",
		Constraints: numbered(
			"all operands have one float type",
			"the lists have two entries; strides, dilations and groups are at least 1",
			"the dilated weight is no longer than the padded image",
			"in and out are multiples of groups",
		),
		Operands: []string{"x", "weight", "bias"}, Optional: 1,
		NewAttrs:    func() ir.Attrs { return &Conv2DAttrs{} },
		Infer:       inferConv2D,
		NoTranspose: "taken of its body",
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*Conv2DAttrs)
			return []ir.Value{addBias(b, ConvGeneral(b, in[0], in[1], a.general()), in[2:])}
		},
	})
}

// Conv2D returns the convolution of images x, [batch, height, width, in], with weight,
// [height, width, in/groups, out], plus bias, [out], which may be left out (the zero
// Value): [batch, height, width, out]. All have one float type; f16 and bf16 accumulate in
// f32. By default strides, dilations and groups are 1 and there is no padding, so the
// result is smaller than x by the window minus 1.
func Conv2D(b *ir.Builder, x, weight, bias ir.Value, a Conv2DAttrs) ir.Value {
	a.complete()
	return b.Add1(OpConv2D, &a, given(x, weight, bias)...)
}

// complete sets the defaults.
func (a *Conv2DAttrs) complete() {
	fillNil(repeatInt(1, 2), &a.Strides, &a.Dilations)
	fillNil(repeatInt(0, 2), &a.PadLo, &a.PadHi)
	a.Groups = max(a.Groups, 1)
}

// general returns the attributes of the conv_general in the body.
func (a *Conv2DAttrs) general() ConvAttrs {
	return ConvAttrs{
		Strides: a.Strides, PadLo: a.PadLo, PadHi: a.PadHi,
		LhsDilation: repeatInt(1, 2), RhsDilation: a.Dilations,
		Lhs: []int{0, 3, 1, 2}, Rhs: []int{3, 2, 0, 1}, Out: []int{0, 3, 1, 2},
		FeatureGroups: ir.N(a.Groups), BatchGroups: ir.N(1),
	}
}

func inferConv2D(n *ir.Node) ([]ir.Type, error) {
	a, x, w := n.Attrs().(*Conv2DAttrs), n.Input(0).Type(), n.Input(1).Type()
	if err := floats.check(x.DType); err != nil {
		return nil, err
	}
	if len(x.Shape) != 4 || len(w.Shape) != 4 {
		return nil, ir.Shapef("x of rank %d and a weight of rank %d, both must be 4", len(x.Shape), len(w.Shape))
	}
	g := a.general()
	t, err := convType(&g, x, w)
	if err != nil {
		return nil, err
	}
	for i, axis := range []int{1, 2} {
		if t.Shape[axis].Is(0) {
			return nil, ir.Shapef("a weight of %s with dilation %d is longer than %s elements padded by %d and %d",
				w.Shape[i], a.Dilations[i], x.Shape[axis], a.PadLo[i], a.PadHi[i])
		}
	}
	return []ir.Type{t}, checkBias(n, w.Shape[3])
}
