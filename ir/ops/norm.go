package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// Normalisation over the last axes.
const (
	OpLayerNorm ir.Op = "layer_norm"
	OpRMSNorm   ir.Op = "rms_norm"
)

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
	define(&ir.Def{
		Op: OpLayerNorm,
		Doc: "(x - mean(x)) / √(mean((x - mean(x))²) + epsilon) over the last axes, times scale, plus bias (Ba, Kiros " +
			"and Hinton, Layer Normalization). It is computed in f32 for narrower types.",
		Constraints: numbered(normConstraints...),
		Operands:    []string{"x", "scale", "bias"}, Optional: 2, Ones: []string{"scale"},
		NewAttrs:    func() ir.Attrs { return &NormAttrs{Axes: 1} },
		Infer:       inferNorm,
		NoTranspose: notLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a, x := n.Attrs().(*NormAttrs), wide(b, in[0])
			axes := lastAxes(x, a)
			centred := Sub(b, x, ExpandDims(b, Mean(b, x, axes...), axes...))
			return []ir.Value{normalised(b, centred, in, a)}
		},
	})
	define(&ir.Def{
		Op: OpRMSNorm,
		Doc: "x / √(mean(x²) + epsilon) over the last axes, times scale (Zhang and Sennrich, Root Mean Square Layer " +
			"Normalization). It is computed in f32 for narrower types.",
		Constraints: numbered(normConstraints...),
		Operands:    []string{"x", "scale"}, Optional: 1, Ones: []string{"scale"},
		NewAttrs:    func() ir.Attrs { return &NormAttrs{Axes: 1} },
		Infer:       inferNorm,
		NoTranspose: notLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{normalised(b, wide(b, in[0]), in, n.Attrs().(*NormAttrs))}
		},
	})
}

var normConstraints = []string{
	"all operands have one float type",
	"axes is at least 1 and at most the rank of x; epsilon is not negative",
	"the operands after x, which may be left out, have the shape of the last axes of x",
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

// normalised divides x by its root mean square and applies the scale and bias in in, if
// any.
func normalised(b *ir.Builder, x ir.Value, in []ir.Value, a *NormAttrs) ir.Value {
	axes := lastAxes(x, a)
	square := ExpandDims(b, Mean(b, Mul(b, x, x), axes...), axes...)
	y := Mul(b, x, Rsqrt(b, Add(b, square, ConstLike(b, square, a.Epsilon))))
	if len(in) > 1 {
		y = Mul(b, y, wide(b, in[1]))
	}
	if len(in) > 2 {
		y = Add(b, y, wide(b, in[2]))
	}
	return Convert(b, y, in[0].DType())
}

func inferNorm(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*NormAttrs), n.Input(0).Type()
	if err := floats.check(x.DType); err != nil {
		return nil, err
	}
	if a.Axes < 1 || a.Axes > len(x.Shape) {
		return nil, ir.Attrf("axes is %d, not from 1 to the rank of x, %d", a.Axes, len(x.Shape))
	}
	if !(a.Epsilon >= 0) {
		return nil, ir.Attrf("epsilon is %v, not 0 or more", a.Epsilon)
	}
	want := ir.Type{DType: x.DType, Shape: x.Shape[len(x.Shape)-a.Axes:]}
	for i, v := range n.Inputs()[1:] {
		if !v.Type().Equal(want) {
			return nil, ir.Shapef("operand %d is %s, not %s", i+1, v.Type(), want)
		}
	}
	return []ir.Type{x}, nil
}
