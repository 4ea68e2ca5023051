package ops

import (
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// Normalised exponentials along an axis.
const (
	OpSoftmax    ir.Op = "softmax"
	OpLogSoftmax ir.Op = "log_softmax"
	OpLogSumExp  ir.Op = "logsumexp"
)

func init() {
	defineAlongAxis(ir.Def{
		Op: OpSoftmax, JVP: jvpSoftmax, Infer: inferAlongAxis,
		Doc: "exp(x) divided by its sum along an axis. It does not overflow, elements of -Inf give 0, and where " +
			"all elements along the axis are -Inf (a fully masked row) all results are 0.",
	}, func(b *ir.Builder, x ir.Value, axis int) ir.Value {
		e := Exp(b, Sub(b, x, finiteMax(b, x, axis)))
		return Div(b, e, positiveSum(b, e, axis))
	})
	defineAlongAxis(ir.Def{
		Op: OpLogSoftmax, JVP: jvpLogSoftmax, Infer: inferAlongAxis,
		Doc: "The logarithm of softmax, computed stably: x - log(sum(exp(x))). Elements of -Inf give -Inf, " +
			"also where all elements along the axis are -Inf.",
	}, func(b *ir.Builder, x ir.Value, axis int) ir.Value {
		x = Sub(b, x, finiteMax(b, x, axis))
		return Sub(b, x, Log(b, positiveSum(b, Exp(b, x), axis)))
	})
	defineAlongAxis(ir.Def{
		Op: OpLogSumExp, JVP: jvpLogSumExp, Reduces: namedAxes,
		Doc: "log(sum(exp(x))) along an axis, which the result lacks. It does not overflow; it is Inf where an element " +
			"is, and -Inf where all elements along the axis are -Inf, with a derivative of 0.",
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := inferAlongAxis(n)
			if err != nil {
				return nil, err
			}
			return []ir.Type{{DType: t[0].DType, Shape: withoutDim(t[0].Shape, n.Attrs().(*AxisAttrs).Axis)}}, nil
		},
	}, func(b *ir.Builder, x ir.Value, axis int) ir.Value {
		m := finiteMax(b, x, axis)
		m = Select(b, IsFinite(b, m), m, ZerosLike(b, m)) // Inf − Inf would be NaN
		s := ReduceSum(b, Exp(b, Sub(b, x, m)), axis)
		return Add(b, Log(b, s), Squeeze(b, m, axis))
	})
}

// defineAlongAxis completes and registers an op on floats along an axis, computed in f32 for narrower types.
func defineAlongAxis(d ir.Def, f func(b *ir.Builder, x ir.Value, axis int) ir.Value) {
	d.Operands, d.NewAttrs = []string{"x"}, func() ir.Attrs { return &AxisAttrs{} }
	d.Constraints = numbered("x is of a float type", "axis is an axis of x")
	d.Body = func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
		return []ir.Value{inWide(b, in[0], func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, n.Attrs().(*AxisAttrs).Axis) })}
	}
	define(&d)
}

// Softmax returns exp(x) divided by its sum along axis, for x of a float type. It does not
// overflow; a row of -Inf alone, as a full mask leaves it, gives 0.
func Softmax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpSoftmax, axisAttrs(x, axis), x)
}

// LogSoftmax returns x - logsumexp(x) along axis, the logarithm of [Softmax]. Elements of
// -Inf give -Inf.
func LogSoftmax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpLogSoftmax, axisAttrs(x, axis), x)
}

// LogSumExp returns log(sum(exp(x))) along axis, which the result lacks. It does not
// overflow; a row of -Inf alone gives -Inf with a derivative of 0.
func LogSumExp(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpLogSumExp, axisAttrs(x, axis), x)
}

func axisAttrs(x ir.Value, axis int) *AxisAttrs {
	return &AxisAttrs{fromFront([]int{axis}, x.Rank())[0]}
}

func inferAlongAxis(n *ir.Node) ([]ir.Type, error) {
	t := n.Input(0).Type()
	if err := floats.check(t.DType); err != nil {
		return nil, err
	}
	return []ir.Type{t}, checkAxes([]int{n.Attrs().(*AxisAttrs).Axis}, len(t.Shape))
}

// withoutDim returns s without the given axis.
func withoutDim(s ir.Shape, axis int) ir.Shape { return pick(s, permute.Others(len(s), []int{axis})) }

// finiteMax returns the maximum along an axis, kept with size 1, or 0 where it is -Inf, so
// that subtracting it keeps -Inf. It has no gradient, since it cancels out.
func finiteMax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return zeroForNone(b, ExpandDims(b, ReduceMax(b, StopGradient(b, x), axis), axis))
}

// zeroForNone replaces -Inf in x by 0. NaN propagates.
func zeroForNone(b *ir.Builder, x ir.Value) ir.Value {
	return Select(b, Lt(b, x, ConstLike(b, x, -x.DType().MaxFloat())), ZerosLike(b, x), x)
}

// positiveSum returns the sum along an axis, kept with size 1, or 1 where it is 0. At
// least one element is 1, or all are 0; NaN propagates.
func positiveSum(b *ir.Builder, e ir.Value, axis int) ir.Value {
	s := ExpandDims(b, ReduceSum(b, e, axis), axis)
	return Select(b, Eq(b, s, ZerosLike(b, s)), OnesLike(b, s), s)
}

// jvpSoftmax needs only the result y: its tangent is y·(t - Σ y·t).
func jvpSoftmax(b *ir.Builder, n *ir.Node, _, out, t []ir.Value) []ir.Value {
	axis, y := n.Attrs().(*AxisAttrs).Axis, wide(b, out[0])
	ty := MulZero(b, wide(b, t[0]), y)
	mean := ExpandDims(b, ReduceSum(b, ty, axis), axis)
	return []ir.Value{Convert(b, Sub(b, ty, MulZero(b, mean, y)), out[0].DType())}
}

func jvpLogSoftmax(b *ir.Builder, n *ir.Node, _, out, t []ir.Value) []ir.Value {
	axis := n.Attrs().(*AxisAttrs).Axis
	tx := wide(b, t[0])
	mean := ReduceSum(b, MulZero(b, tx, Exp(b, wide(b, out[0]))), axis)
	return []ir.Value{Convert(b, Sub(b, tx, ExpandDims(b, mean, axis)), out[0].DType())}
}

func jvpLogSumExp(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	axis, lse := n.Attrs().(*AxisAttrs).Axis, zeroForNone(b, wide(b, out[0]))
	weights := Exp(b, Sub(b, wide(b, in[0]), ExpandDims(b, lse, axis)))
	return []ir.Value{Convert(b, ReduceSum(b, MulZero(b, wide(b, t[0]), weights), axis), out[0].DType())}
}
