package ops

import "github.com/rlx-go/rlx/ir"

// OpConvGeneral is convolution (cross-correlation) over any number of axes.
const OpConvGeneral ir.Op = "conv_general"

// ConvAttrs describe a convolution. Lhs, Rhs and Out are the layouts: Lhs and Out list the
// batch axis, the feature axis and the spatial axes; Rhs lists the axis of output
// features, that of input features and the spatial axes. The other lists have one entry
// for each spatial axis. Nil lists stand for the defaults: strides and dilations of 1, no
// padding, axes in the order of the lists; a group count of 0 stands for 1.
type ConvAttrs struct {
	Strides      []int
	PadLo, PadHi []int // added to lhs after dilation; negative padding crops
	LhsDilation  []int // LhsDilation-1 zeros are inserted between the elements of lhs
	RhsDilation  []int // and RhsDilation-1 between those of rhs
	Lhs, Rhs     []int
	Out          []int
	// FeatureGroups splits the input and output features into groups with one convolution
	// each. BatchGroups splits the batch and the output features. At most one of them
	// differs from 1.
	FeatureGroups, BatchGroups ir.Dim
}

// Visit shows the attributes.
func (a *ConvAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("strides", &a.Strides)
	v.Ints("pad_lo", &a.PadLo)
	v.Ints("pad_hi", &a.PadHi)
	v.Ints("lhs_dilation", &a.LhsDilation)
	v.Ints("rhs_dilation", &a.RhsDilation)
	v.Ints("lhs", &a.Lhs)
	v.Ints("rhs", &a.Rhs)
	v.Ints("out", &a.Out)
	visitDim(v, "feature_groups", &a.FeatureGroups)
	visitDim(v, "batch_groups", &a.BatchGroups)
}

func init() {
	define(&ir.Def{
		Op: OpConvGeneral,
		Doc: "Convolution of lhs with rhs, without flipping rhs (XLA's ConvGeneralDilated): the result at a position is the sum of products of " +
			"rhs with the part of the padded, dilated lhs that starts there. f16 and bf16 accumulate in f32.",
		Constraints: numbered(
			"lhs and rhs have one numeric element type and one rank of at least 2.",
			"lhs, rhs and out are permutations of the axes; the other lists have one entry for each spatial axis.",
			"strides and dilations are at least 1.",
			"feature_groups or batch_groups is 1; both are at least 1.",
			"the input features of lhs are feature_groups times those of rhs.",
			"the output features are a multiple of both group counts, the batch is one of batch_groups.",
			"a result axis is empty where the dilated rhs is longer than the padded lhs.",
		),
		Operands:  []string{"lhs", "rhs"},
		NewAttrs:  func() ir.Attrs { return &ConvAttrs{FeatureGroups: ir.N(1), BatchGroups: ir.N(1)} },
		Infer:     inferConv,
		Eval:      evalConv,
		JVP:       bilinearJVP,
		Transpose: transposeConv,
		Batch:     batchConv,
		Lower:     &ir.ContractLowering{Spec: convContraction},
	})
}

// ConvGeneral returns the convolution (cross-correlation) of x with the kernel w, of one
// numeric type. By default x is [batch, in, spatial axes...] and w [out, in/groups,
// window...], and the result is [batch, out, spatial axes...]; Lhs, Rhs and Out of a
// select other layouts. f16 and bf16 accumulate in f32.
func ConvGeneral(b *ir.Builder, x, w ir.Value, a ConvAttrs) ir.Value {
	a.complete(x.Rank())
	return b.Add1(OpConvGeneral, &a, x, w)
}

// complete sets the defaults for operands of the given rank.
func (a *ConvAttrs) complete(rank int) {
	spatial := max(rank-2, 0)
	fillNil(repeatInt(1, spatial), &a.Strides, &a.LhsDilation, &a.RhsDilation)
	fillNil(repeatInt(0, spatial), &a.PadLo, &a.PadHi)
	fillNil(counting(0, rank), &a.Lhs, &a.Rhs, &a.Out)
	for _, groups := range []*ir.Dim{&a.FeatureGroups, &a.BatchGroups} {
		if groups.Is(0) {
			*groups = ir.N(1)
		}
	}
}

func inferConv(n *ir.Node) ([]ir.Type, error) {
	t, err := convType(n.Attrs().(*ConvAttrs), n.Input(0).Type(), n.Input(1).Type())
	return []ir.Type{t}, err
}

// convType returns the type of the convolution of x with w.
func convType(a *ConvAttrs, x, w ir.Type) (ir.Type, error) {
	if x.DType != w.DType || !x.DType.IsNumeric() {
		return ir.Type{}, ir.DTypef("%s and %s are not of one numeric type", x, w)
	}
	if err := checkConvAttrs(a, len(x.Shape), len(w.Shape)); err != nil {
		return ir.Type{}, err
	}
	if err := checkConvGroups(a, x.Shape, w.Shape); err != nil {
		return ir.Type{}, err
	}
	out := make(ir.Shape, len(x.Shape))
	batch, err := x.Shape[a.Lhs[0]].Div(a.BatchGroups)
	if err != nil {
		return ir.Type{}, err
	}
	out[a.Out[0]], out[a.Out[1]] = batch, w.Shape[a.Rhs[0]]
	for i := range a.Strides {
		size, err := convSize(a, i, x.Shape[a.Lhs[i+2]], w.Shape[a.Rhs[i+2]])
		if err != nil {
			return ir.Type{}, err
		}
		out[a.Out[i+2]] = size
	}
	return ir.Type{DType: x.DType, Shape: out}, nil
}

func checkConvAttrs(a *ConvAttrs, rank, kernelRank int) error {
	if rank < 2 || rank != kernelRank {
		return ir.Shapef("lhs of rank %d and rhs of rank %d: both need one rank of 2 or more", rank, kernelRank)
	}
	for _, list := range [][]int{a.Strides, a.PadLo, a.PadHi, a.LhsDilation, a.RhsDilation} {
		if len(list) != rank-2 {
			return ir.Attrf("strides, pad_lo, pad_hi, lhs_dilation or rhs_dilation has %d entries, not one for each of %d spatial axes", len(list), rank-2)
		}
	}
	for i := range a.Strides {
		if a.Strides[i] < 1 || a.LhsDilation[i] < 1 || a.RhsDilation[i] < 1 {
			return ir.Attrf("strides has %d, lhs_dilation %d and rhs_dilation %d: they must be 1 or more", a.Strides[i], a.LhsDilation[i], a.RhsDilation[i])
		}
	}
	for _, axes := range [][]int{a.Lhs, a.Rhs, a.Out} {
		if len(axes) != rank {
			return ir.Attrf("lhs, rhs or out names %d axes, not %d", len(axes), rank)
		}
		if err := checkAxes(axes, rank); err != nil {
			return err
		}
	}
	return nil
}

func checkConvGroups(a *ConvAttrs, x, w ir.Shape) error {
	fg, bg := a.FeatureGroups, a.BatchGroups
	if !fg.Valid() || !bg.Valid() || fg.Is(0) || bg.Is(0) || !fg.Is(1) && !bg.Is(1) {
		return ir.Attrf("feature_groups is %s and batch_groups %s: they must be positive, and one of them 1", fg, bg)
	}
	if in := w[a.Rhs[1]].Mul(fg); x[a.Lhs[1]] != in {
		return ir.Shapef("the image has %s features on axis %d, the kernel takes %s, in %s groups", x[a.Lhs[1]], a.Lhs[1], in, fg)
	}
	for _, groups := range []ir.Dim{fg, bg} {
		if _, err := w[a.Rhs[0]].Div(groups); err != nil {
			return ir.Shapef("%s output features do not divide into %s groups", w[a.Rhs[0]], groups)
		}
	}
	if _, err := x[a.Lhs[0]].Div(bg); err != nil {
		return ir.Shapef("a batch of %s does not divide into %s groups", x[a.Lhs[0]], bg)
	}
	return nil
}

// convSize returns the size of spatial axis i of the result for spatial sizes in and
// window of lhs and rhs.
func convSize(a *ConvAttrs, i int, in, window ir.Dim) (ir.Dim, error) {
	padded := dilated(in, a.LhsDilation[i]).Add(ir.N(a.PadLo[i])).Add(ir.N(a.PadHi[i]))
	return windowCount(padded, dilated(window, a.RhsDilation[i]), a.Strides[i])
}
