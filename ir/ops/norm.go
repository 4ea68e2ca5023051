package ops

import (
	"cmp"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// Normalisation over any axes, and over the last ones.
const (
	OpStandardize ir.Op = "standardize"
	OpLayerNorm   ir.Op = "layer_norm"
	OpRMSNorm     ir.Op = "rms_norm"
)

// StandardizeAttrs hold the axes that share a mean and a variance, and the epsilon added to the variance.
type StandardizeAttrs struct {
	AxesAttrs
	EpsilonAttrs
}

// Visit shows the attributes.
func (a *StandardizeAttrs) Visit(v ir.AttrVisitor) {
	a.AxesAttrs.Visit(v)
	a.EpsilonAttrs.Visit(v)
}

// NormAttrs hold the number of trailing axes to normalise over, and the epsilon added to
// the mean square.
type NormAttrs struct {
	Axes    int
	Epsilon float64
}

// Visit shows the attributes.
func (a *NormAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axes", &a.Axes)
	v.Float("epsilon", &a.Epsilon)
}

func init() {
	defineComposite(composite{
		op: OpStandardize, doc: "(x − mean) / √(variance + epsilon), with the statistics over some axes. It is computed in f32 for narrower types.",
		types: floats, newAttrs: func() ir.Attrs { return &StandardizeAttrs{EpsilonAttrs: EpsilonAttrs{defaultEpsilon}} },
		constraints: []string{"the axes are distinct axes of x", "epsilon is not negative"},
		check: func(n *ir.Node) error {
			a := n.Attrs().(*StandardizeAttrs)
			return cmp.Or(checkAxes(a.Axes, n.Input(0).Rank()), checkEpsilon(a.Epsilon))
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return Convert(b, newStandard(b, in[0], n.Attrs().(*StandardizeAttrs)).y, in[0].DType())
		},
		jvp: func(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
			s := newStandard(b, in[0], n.Attrs().(*StandardizeAttrs))
			out[0] = Convert(b, s.y, out[0].DType())
			return []ir.Value{Convert(b, s.tangent(b, MulZero(b, wide(b, t[0]), s.scale)), out[0].DType())}
		},
	})
	define(&ir.Def{
		Op: OpLayerNorm,
		Doc: "(x - mean(x)) / √(mean((x - mean(x))²) + epsilon) over the last axes, times scale, plus bias (Ba, Kiros " +
			"and Hinton, Layer Normalization). It is computed in f32 for narrower types.",
		Constraints: numbered(normConstraints...),
		Operands:    []string{"x", "scale", "bias"}, Optional: 2, Ones: []string{"scale"},
		NewAttrs: func() ir.Attrs { return &NormAttrs{Axes: 1} },
		Infer:    inferNorm,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a, x := n.Attrs().(*NormAttrs), wide(b, in[0])
			return []ir.Value{affine(b, Standardize(b, x, a.Epsilon, lastAxes(x, a)...), in)}
		},
	})
	define(&ir.Def{
		Op: OpRMSNorm,
		Doc: "x / √(mean(x²) + epsilon) over the last axes, times scale (Zhang and Sennrich, Root Mean Square Layer " +
			"Normalization). It is computed in f32 for narrower types.",
		Constraints: numbered(normConstraints...),
		Operands:    []string{"x", "scale"}, Optional: 1, Ones: []string{"scale"},
		NewAttrs: func() ir.Attrs { return &NormAttrs{Axes: 1} },
		Infer:    inferNorm,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a, x := n.Attrs().(*NormAttrs), wide(b, in[0])
			square := KeepDims(b, Mean, Mul(b, x, x), lastAxes(x, a)...)
			return []ir.Value{scaled(b, x, square, a.Epsilon, in)}
		},
	})
}

// standard is x, in f32 if it is narrower, standardised over some axes.
type standard struct {
	axes                     []int
	mean, variance, scale, y ir.Value // y = (x − mean)·scale; the others have size 1 along the axes
}

func newStandard(b *ir.Builder, x ir.Value, a *StandardizeAttrs) standard {
	x = wide(b, x)
	mean := KeepDims(b, Mean, x, a.Axes...)
	centred := Sub(b, x, mean)
	variance := KeepDims(b, Mean, Mul(b, centred, centred), a.Axes...)
	scale := Rsqrt(b, plusEpsilon(b, variance, a.Epsilon))
	return standard{a.Axes, mean, variance, scale, Mul(b, centred, scale)}
}

// tangent returns the tangent of y, given that of x times scale, t: t without its parts along 1 and along y. The
// derivative of the body would have a mean of deviations in addition, which is 0 and takes another pass over all
// elements. Means are negated, rather than subtracted, for a transpose that sums the cotangents themselves.
func (s standard) tangent(b *ir.Builder, t ir.Value) ir.Value {
	mean := func(x ir.Value) ir.Value { return Neg(b, KeepDims(b, Mean, x, s.axes...)) }
	return Add(b, Add(b, t, mean(t)), MulZero(b, mean(MulZero(b, t, s.y)), s.y))
}

var normConstraints = []string{
	"all operands have one float type",
	"axes is at least 1 and at most the rank of x; epsilon is not negative",
	"the operands after x, which may be left out, have the shape of the last axes of x",
}

// Standardize returns (x − mean)/√(variance + epsilon), with the statistics over the given axes, or all if none is
// given. x is of a float type; narrow types are computed in f32. epsilon is not negative and has no default.
func Standardize(b *ir.Builder, x ir.Value, epsilon float64, axes ...int) ir.Value {
	return b.Add1(OpStandardize, &StandardizeAttrs{reducedAlong(x, axes), EpsilonAttrs{epsilon}}, x)
}

// LayerNorm returns (x − mean)/√(variance + epsilon)·scale + bias, with the statistics
// over the trailing axes that scale has (Ba, Kiros and Hinton, Layer Normalization). scale
// and bias have the shape of those axes; bias may be left out (the zero Value). All have
// one float type; narrow types are computed in f32. epsilon is not negative and has no
// default.
func LayerNorm(b *ir.Builder, x, scale, bias ir.Value, epsilon float64) ir.Value {
	return b.Add1(OpLayerNorm, &NormAttrs{scale.Rank(), epsilon}, given(x, scale, bias)...)
}

// RMSNorm returns x/√(mean(x²) + epsilon)·scale, with the mean over the trailing axes that
// scale has (Zhang and Sennrich, Root Mean Square Layer Normalization). All have one float
// type; narrow types are computed in f32. epsilon is not negative and has no default.
func RMSNorm(b *ir.Builder, x, scale ir.Value, epsilon float64) ir.Value {
	return b.Add1(OpRMSNorm, &NormAttrs{scale.Rank(), epsilon}, x, scale)
}

func lastAxes(x ir.Value, a *NormAttrs) []int { return counting(x.Rank()-a.Axes, a.Axes) }

func inferNorm(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*NormAttrs), n.Input(0).Type()
	if err := floats.check(x.DType); err != nil {
		return nil, err
	}
	if a.Axes < 1 || a.Axes > len(x.Shape) {
		return nil, ir.Attrf("axes is %d, not from 1 to the rank of x, %d", a.Axes, len(x.Shape))
	}
	if err := checkEpsilon(a.Epsilon); err != nil {
		return nil, err
	}
	want := ir.Type{DType: x.DType, Shape: x.Shape[len(x.Shape)-a.Axes:]}
	for i, v := range n.Inputs()[1:] {
		if !v.Type().Equal(want) {
			return nil, ir.Shapef("%s is %s, not %s", operandName(n, i+1), v.Type(), want)
		}
	}
	return []ir.Type{x}, nil
}

// Normalisation of images and sequences with their channels on the last axis.
const (
	OpGroupNorm          ir.Op = "group_norm"
	OpInstanceNorm       ir.Op = "instance_norm"
	OpBatchNormInference ir.Op = "batch_norm_inference"
	OpBatchNormTraining  ir.Op = "batch_norm_training"
)

// EpsilonAttrs hold the epsilon that is added to a variance.
type EpsilonAttrs struct{ Epsilon float64 }

// Visit shows the attributes.
func (a *EpsilonAttrs) Visit(v ir.AttrVisitor) { v.Float("epsilon", &a.Epsilon) }

// GroupNormAttrs hold the number of channel groups and the epsilon.
type GroupNormAttrs struct {
	Groups int
	EpsilonAttrs
}

// Visit shows the attributes.
func (a *GroupNormAttrs) Visit(v ir.AttrVisitor) {
	v.Int("groups", &a.Groups)
	a.EpsilonAttrs.Visit(v)
}

// BatchNormAttrs hold the epsilon and the momentum, the weight of the batch statistics in
// the running ones. [BatchNormTraining] replaces zero fields by the defaults: an epsilon
// of 1e-5, a momentum of 0.1.
type BatchNormAttrs struct {
	EpsilonAttrs
	Momentum float64
}

// Visit shows the attributes.
func (a *BatchNormAttrs) Visit(v ir.AttrVisitor) {
	a.EpsilonAttrs.Visit(v)
	v.Float("momentum", &a.Momentum)
}

const (
	defaultEpsilon  = 1e-5
	defaultMomentum = 0.1
)

func init() {
	vectorsDoc := "the other operands have the element type of x and an element for each of its channels"
	imageDoc := "x has rank 2 or more, its first axis being the batch and its last one the channels"
	group := composite{
		op: OpGroupNorm, doc: "(x − mean) / √(variance + epsilon)·scale + bias, with the statistics of each example over the spatial axes and " +
			"over each group of neighbouring channels (Wu and He, Group Normalization). It is computed in f32 for narrower types.",
		operands: []string{"x", "scale", "bias"}, optional: 2, ones: []string{"scale"}, types: floats,
		newAttrs:    func() ir.Attrs { return &GroupNormAttrs{1, EpsilonAttrs{defaultEpsilon}} },
		constraints: []string{imageDoc, vectorsDoc, "the channels divide into the groups; epsilon is not negative"},
		check:       checkChannels,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*GroupNormAttrs)
			return groupNorm(b, in, ir.N(a.Groups), a.Epsilon)
		},
	}
	defineComposite(group)
	group.op, group.doc = OpInstanceNorm, "group_norm with one channel in each group (Ulyanov, Vedaldi and Lempitsky, Instance Normalization)."
	group.newAttrs = func() ir.Attrs { return &EpsilonAttrs{defaultEpsilon} }
	group.constraints = []string{imageDoc, vectorsDoc, "epsilon is not negative"}
	group.body = func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
		return groupNorm(b, in, in[0].Dim(-1+in[0].Rank()), n.Attrs().(*EpsilonAttrs).Epsilon)
	}
	defineComposite(group)

	defineComposite(composite{
		op: OpBatchNormInference, doc: "(x − mean) / √(variance + epsilon)·scale + bias, with the running statistics of each channel (Ioffe and Szegedy, " +
			"Batch Normalization). It is computed in f32 for narrower types.",
		operands: []string{"x", "scale", "bias", "mean", "variance"}, ones: []string{"scale", "variance"}, types: floats,
		newAttrs:    func() ir.Attrs { return &EpsilonAttrs{defaultEpsilon} },
		constraints: []string{imageDoc, vectorsDoc, "epsilon is not negative"},
		check:       checkChannels,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			x := Sub(b, wide(b, in[0]), wide(b, in[3]))
			return scaled(b, x, wide(b, in[4]), n.Attrs().(*EpsilonAttrs).Epsilon, in)
		},
	})
	defineBatchNormTraining(imageDoc, vectorsDoc)
}

// checkChannels reports an error unless x has a batch axis and a channel axis and the
// other operands are [channels].
func checkChannels(n *ir.Node) error {
	x := n.Input(0).Type()
	if len(x.Shape) < 2 {
		return ir.Shapef("x is %s, not of rank 2 or more: a batch and channels", x)
	}
	channels := x.Shape[len(x.Shape)-1]
	want := ir.TypeOf(x.DType, channels)
	for i, v := range n.Inputs()[1:] {
		if !v.Type().Equal(want) {
			return ir.Shapef("%s is %s, not %s", operandName(n, i+1), v.Type(), want)
		}
	}
	epsilon := 0.0
	switch a := n.Attrs().(type) {
	case *EpsilonAttrs:
		epsilon = a.Epsilon
	case *BatchNormAttrs:
		if epsilon = a.Epsilon; !(a.Momentum >= 0 && a.Momentum <= 1) {
			return ir.Attrf("momentum is %v, not in [0, 1]", a.Momentum)
		}
	case *GroupNormAttrs:
		epsilon = a.Epsilon
		if a.Groups < 1 {
			return ir.Attrf("groups is %d, less than 1", a.Groups)
		}
		if _, err := channels.Div(ir.N(a.Groups)); err != nil {
			return ir.Shapef("%s channels do not divide into %d groups", channels, a.Groups)
		}
	}
	return checkEpsilon(epsilon)
}

func checkEpsilon(epsilon float64) error {
	if !(epsilon >= 0) {
		return ir.Attrf("epsilon is %v, not 0 or more", epsilon)
	}
	return nil
}

// groupNorm splits the channels into groups along a new axis and normalises each.
func groupNorm(b *ir.Builder, in []ir.Value, groups ir.Dim, epsilon float64) ir.Value {
	x, last := wide(b, in[0]), in[0].Rank()-1
	shape := x.Shape()
	if groups.Is(0) {
		return in[0]
	}
	y := Standardize(b, splitAxis(b, x, last, groups), epsilon, append(counting(1, last-1), last+1)...)
	return affine(b, Reshape(b, y, shape...), in)
}

func plusEpsilon(b *ir.Builder, variance ir.Value, epsilon float64) ir.Value {
	return Add(b, variance, ConstLike(b, variance, epsilon))
}

// affine applies the scale and bias among in, if any, and converts to the type of in[0].
func affine(b *ir.Builder, y ir.Value, in []ir.Value) ir.Value {
	if len(in) > 1 {
		y = Mul(b, y, wide(b, in[1]))
	}
	if len(in) > 2 {
		y = Add(b, y, wide(b, in[2]))
	}
	return Convert(b, y, in[0].DType())
}

// scaled divides the centred values by √(variance + epsilon) and applies scale and bias.
func scaled(b *ir.Builder, centred, variance ir.Value, epsilon float64, in []ir.Value) ir.Value {
	return affine(b, Mul(b, centred, Rsqrt(b, plusEpsilon(b, variance, epsilon))), in)
}

// newBatch is x standardised by the statistics of each channel.
func newBatch(b *ir.Builder, x ir.Value, a *BatchNormAttrs) standard {
	return newStandard(b, x, &StandardizeAttrs{AxesAttrs{counting(0, x.Rank()-1)}, a.EpsilonAttrs})
}

func batchNormTraining(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a := n.Attrs().(*BatchNormAttrs)
	return a.results(b, newBatch(b, in[0], a), in)
}

// results are those of batch_norm_training, given x standardised.
func (a *BatchNormAttrs) results(b *ir.Builder, s standard, in []ir.Value) []ir.Value {
	count := DimSize(b, s.y.DType(), pick(in[0].Shape(), s.axes)...)
	one := OnesLike(b, count)
	unbiased := Mul(b, s.variance, Div(b, count, Max(b, one, Sub(b, count, one))))
	run := func(old, now ir.Value) ir.Value {
		now = StopGradient(b, Reshape(b, now, old.Shape()...))
		return Convert(b, Add(b, a.kept(b, wide(b, old)), Mul(b, now, ConstLike(b, now, a.Momentum))), old.DType())
	}
	return []ir.Value{affine(b, s.y, in), run(in[3], s.mean), run(in[4], unbiased)}
}

// kept returns the share of an old running statistic, or of its tangent, in the new one.
func (a *BatchNormAttrs) kept(b *ir.Builder, old ir.Value) ir.Value {
	return Mul(b, old, ConstLike(b, old, 1-a.Momentum))
}

// jvpBatchNormTraining multiplies by scale first, so that its transpose has the two sums that the cotangents of scale
// and bias are, and no others.
func jvpBatchNormTraining(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a := n.Attrs().(*BatchNormAttrs)
	s := newBatch(b, in[0], a)
	copy(out, a.results(b, s, in))
	parts := make([]ir.Value, 3)
	if t[0].Valid() {
		parts[0] = s.tangent(b, MulZero(b, wide(b, t[0]), Mul(b, s.scale, wide(b, in[1]))))
	}
	if t[1].Valid() {
		parts[1] = MulZero(b, wide(b, t[1]), s.y)
	}
	if t[2].Valid() {
		parts[2] = Add(b, ZerosLike(b, s.y), wide(b, t[2]))
	}
	tangents := make([]ir.Value, len(out))
	for _, x := range parts {
		tangents[0] = addTangents(b, tangents[0], x)
	}
	for i := range tangents {
		if old := 2 + i; i > 0 && t[old].Valid() {
			tangents[i] = a.kept(b, wide(b, t[old]))
		}
		if tangents[i].Valid() {
			tangents[i] = Convert(b, tangents[i], out[i].DType())
		}
	}
	return tangents
}

func defineBatchNormTraining(imageDoc, vectorsDoc string) {
	define(&ir.Def{
		Op: OpBatchNormTraining, Operands: []string{"x", "scale", "bias", "mean", "variance"}, Ones: []string{"scale", "variance"},
		Doc: "x normalised by the batch mean and variance of each channel, times scale, plus bias; and the new running mean and variance: " +
			"momentum times those of the batch, with the unbiased variance, plus 1 − momentum times the operands (Ioffe and Szegedy, Batch Normalization). No derivative " +
			"flows into the running statistics. It is computed in f32 for narrower types.",
		Constraints: numbered(imageDoc+"; its element type is float", vectorsDoc, "epsilon is not negative, momentum is in [0, 1]"),
		NewAttrs:    func() ir.Attrs { return &BatchNormAttrs{EpsilonAttrs{defaultEpsilon}, defaultMomentum} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if err := floats.check(n.Input(0).DType()); err != nil {
				return nil, err
			}
			if err := checkChannels(n); err != nil {
				return nil, err
			}
			return bodyTypes(n, batchNormTraining)
		},
		JVP: jvpBatchNormTraining, Body: batchNormTraining,
	})
}

// GroupNorm normalises x, [batch, spatial axes..., channels], over the spatial axes and
// the channels of each of groups groups, then applies scale and bias, [channels] (Wu and
// He, Group Normalization). bias may be left out (the zero Value). groups divides the
// channels; epsilon is not negative and has no default.
func GroupNorm(b *ir.Builder, x, scale, bias ir.Value, groups int, epsilon float64) ir.Value {
	return b.Add1(OpGroupNorm, &GroupNormAttrs{groups, EpsilonAttrs{epsilon}}, given(x, scale, bias)...)
}

// InstanceNorm is [GroupNorm] with one channel in each group (Ulyanov, Vedaldi and
// Lempitsky, Instance Normalization).
func InstanceNorm(b *ir.Builder, x, scale, bias ir.Value, epsilon float64) ir.Value {
	return b.Add1(OpInstanceNorm, &EpsilonAttrs{epsilon}, given(x, scale, bias)...)
}

// BatchNormVectors are the vectors of a batch norm, each [channels].
type BatchNormVectors struct {
	Scale, Bias ir.Value
	// Mean and Variance are the running statistics.
	Mean, Variance ir.Value
}

// BatchNormInference returns (x − mean)/√(variance + epsilon)·scale + bias for x [batch,
// spatial axes..., channels]. epsilon is not negative and has no default.
func BatchNormInference(b *ir.Builder, x ir.Value, v BatchNormVectors, epsilon float64) ir.Value {
	return b.Add1(OpBatchNormInference, &EpsilonAttrs{epsilon}, x, v.Scale, v.Bias, v.Mean, v.Variance)
}

// BatchNormTraining normalises x, [batch, spatial axes..., channels], by the mean and
// variance of each channel over the batch and the spatial axes, and applies scale and
// bias. mean and variance are the new running statistics, to be stored in states
// ([ir.Builder.SetState]): momentum times the batch statistics, with the unbiased
// variance, plus 1 − momentum times those of v. Zero fields of a take their defaults: see
// [BatchNormAttrs].
func BatchNormTraining(b *ir.Builder, x ir.Value, v BatchNormVectors, a BatchNormAttrs) (y, mean, variance ir.Value) {
	if a.Epsilon == 0 {
		a.Epsilon = defaultEpsilon
	}
	if a.Momentum == 0 {
		a.Momentum = defaultMomentum
	}
	out := b.Add(OpBatchNormTraining, &a, x, v.Scale, v.Bias, v.Mean, v.Variance)
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}, ir.Value{}
	}
	return out[0], out[1], out[2]
}

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
		doc:         "layer_norm of x over its last axis, or with rms its rms_norm, times 1 + scale, plus shift, where scale and shift are computed from the conditioning (Peebles and Xie, Scalable Diffusion Models with Transformers).",
		constraints: []string{"scale and shift have the element type of x and broadcast to it", "epsilon is not negative"},
		check: func(n *ir.Node) error {
			x := n.Input(0)
			for i, v := range n.Inputs()[1:] {
				if s, err := BroadcastShapes(v.Shape(), x.Shape()); err != nil || !s.Equal(x.Shape()) {
					return ir.Shapef("%s is %s, which does not broadcast to x, %s", operandName(n, i+1), v.Shape(), x.Shape())
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
			norm := Sqrt(b, sumOver(b, Square(b, v), permute.Others(v.Rank(), []int{axis})))
			by := BroadcastInDim(b, Div(b, wide(b, in[1]), norm), v.Shape(), []int{axis})
			return Convert(b, Mul(b, v, by), in[0].DType())
		},
	})
}

// AdaNorm returns norm(x)·(1 + scale) + shift, the adaptive norm of DiT (Peebles and Xie).
// The norm is a layer norm over the last axis, or an RMS norm with a.RMS. scale and shift
// have the type of x and broadcast to it. An epsilon of 0 means 1e-5.
func AdaNorm(b *ir.Builder, x, scale, shift ir.Value, a AdaNormAttrs) ir.Value {
	a.Epsilon = cmp.Or(a.Epsilon, defaultEpsilon)
	return b.Add1(OpAdaNorm, &a, x, scale, shift)
}

// WeightNorm returns g·v/‖v‖, with the norm over all axes of v but axis and g [size of
// axis] (Salimans and Kingma, Weight Normalization).
func WeightNorm(b *ir.Builder, v, g ir.Value, axis int) ir.Value {
	return b.Add1(OpWeightNorm, axisAttrs(v, axis), v, g)
}
