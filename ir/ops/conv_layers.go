package ops

import (
	"slices"

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
// mean 1.
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
		NewAttrs: func() ir.Attrs { return &Conv2DAttrs{} },
		Infer:    inferConv2D,
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

// OpConvTranspose is the transposed convolution layer of image models.
const OpConvTranspose ir.Op = "conv_transpose"

// ConvTransposeAttrs describe a transposed convolution over the axes between
// the first and the last. The lists have an entry for each of them.
type ConvTransposeAttrs struct {
	Strides, Dilations []int // nil: 1
	PadLo, PadHi       []int // nil: 0; the padding of the convolution, cropped from the result
	OutputPadding      []int // nil: 0; added at the end
	Groups             int   // 0: 1
}

// Visit shows the attributes.
func (a *ConvTransposeAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("strides", &a.Strides)
	v.Ints("dilations", &a.Dilations)
	v.Ints("pad_lo", &a.PadLo)
	v.Ints("pad_hi", &a.PadHi)
	v.Ints("output_padding", &a.OutputPadding)
	v.Int("groups", &a.Groups)
}

// Complete fills in strides and dilations of 1, no padding and one group.
func (a *ConvTransposeAttrs) Complete(in []ir.Type, _ func(name string) bool) {
	if len(in) > 0 {
		a.complete(len(in[0].Shape) - 2)
	}
}

func (a *ConvTransposeAttrs) complete(spatial int) {
	spatial = max(spatial, 0)
	fillNil(repeatInt(1, spatial), &a.Strides, &a.Dilations)
	fillNil(repeatInt(0, spatial), &a.PadLo, &a.PadHi, &a.OutputPadding)
	a.Groups = max(a.Groups, 1)
}

func init() {
	defineComposite(composite{
		op: OpConvTranspose,
		doc: "Transposed convolution, plus a bias: each element of x adds its product with the weight to a window of the result. x is " +
			"[batch, spatial axes..., in], the weight [window..., in, out/groups], the bias [out]. A spatial axis of size n becomes " +
			"(n − 1)·stride + (window − 1)·dilation + 1 − pad_lo − pad_hi + output_padding long.",
		operands: []string{"x", "weight", "bias"}, optional: 1, types: floats,
		newAttrs: func() ir.Attrs { return &ConvTransposeAttrs{} },
		constraints: []string{
			"all operands have one float type; x and weight have one rank of 3 or more",
			"the lists have an entry for each spatial axis; strides, dilations and groups are at least 1",
			"in is a multiple of groups; the sizes of the window are not symbolic",
		},
		check: checkConvTranspose,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return addBias(b, convTranspose(b, n.Attrs().(*ConvTransposeAttrs), in[0], in[1]), in[2:])
		},
	})
}

func checkConvTranspose(n *ir.Node) error {
	a, x, w := n.Attrs().(*ConvTransposeAttrs), n.Input(0).Type(), n.Input(1).Type()
	if x.DType != w.DType {
		return ir.DTypef("weight is %s, not of the element type of x, %s", w, x)
	}
	rank := len(x.Shape)
	if rank < 3 || len(w.Shape) != rank {
		return ir.Shapef("x of rank %d and a weight of rank %d: both need one rank of 3 or more", rank, len(w.Shape))
	}
	for _, list := range [][]int{a.Strides, a.Dilations, a.PadLo, a.PadHi, a.OutputPadding} {
		if len(list) != rank-2 {
			return ir.Attrf("strides, dilations, pad_lo, pad_hi or output_padding has %d entries, not one for each of %d spatial axes", len(list), rank-2)
		}
	}
	for i := range a.Strides {
		if a.Strides[i] < 1 || a.Dilations[i] < 1 || a.OutputPadding[i] < 0 {
			return ir.Attrf("strides has %d, dilations %d and output_padding %d: the first two must be 1 or more, the last not negative", a.Strides[i], a.Dilations[i], a.OutputPadding[i])
		}
	}
	in := x.Shape[rank-1]
	if w.Shape[rank-2] != in {
		return ir.Shapef("x has %s channels, the weight takes %s", in, w.Shape[rank-2])
	}
	if _, err := in.Div(ir.N(a.Groups)); err != nil || a.Groups < 1 {
		return ir.Shapef("%s channels do not divide into %d groups", in, a.Groups)
	}
	return checkBias(n, w.Shape[rank-1].Mul(ir.N(a.Groups)))
}

// convTranspose convolves x, dilated by the strides, with the reversed weight.
func convTranspose(b *ir.Builder, a *ConvTransposeAttrs, x, weight ir.Value) ir.Value {
	spatial := len(a.Strides)
	lo, hi := make([]int, spatial), make([]int, spatial)
	for i := range spatial {
		size, ok := sizeOf(b, OpConvTranspose, weight, i)
		if !ok {
			return ir.Value{}
		}
		reach := (size - 1) * a.Dilations[i]
		lo[i], hi[i] = reach-a.PadLo[i], reach-a.PadHi[i]+a.OutputPadding[i]
	}
	w := Reverse(b, weight, counting(0, spatial)...)
	if a.Groups > 1 { // [..., groups·in, out] to [..., in, groups·out]
		w = splitAxis(b, w, spatial, ir.N(a.Groups))
		w = mergeAxes(b, MoveAxis(b, w, spatial, spatial+1), spatial+1)
	}
	image := slices.Concat([]int{0, spatial + 1}, counting(1, spatial))
	return ConvGeneral(b, x, w, ConvAttrs{
		PadLo: lo, PadHi: hi, LhsDilation: a.Strides, RhsDilation: a.Dilations,
		Lhs: image, Rhs: slices.Concat([]int{spatial + 1, spatial}, counting(0, spatial)), Out: image,
		FeatureGroups: ir.N(a.Groups),
	})
}

// ConvTranspose returns the transposed convolution of x, [batch, spatial axes..., in],
// with weight, [window..., in, out/groups], plus bias, [out], which may be left out (the
// zero Value): [batch, spatial axes..., out]. A spatial axis of size n becomes (n −
// 1)·stride + (window − 1)·dilation + 1 − padding + output padding, and is empty if that is
// negative. All have one float type. Strides, dilations and groups are 1 and paddings 0 by default.
func ConvTranspose(b *ir.Builder, x, weight, bias ir.Value, a ConvTransposeAttrs) ir.Value {
	a.complete(x.Rank() - 2)
	return b.Add1(OpConvTranspose, &a, given(x, weight, bias)...)
}
