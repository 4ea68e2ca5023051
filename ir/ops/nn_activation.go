package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Activation functions, composites of elementwise ops.
const (
	OpRelu     ir.Op = "relu"
	OpGelu     ir.Op = "gelu"
	OpGeluTanh ir.Op = "gelu_tanh"
	OpSilu     ir.Op = "silu"
)

// activation describes a composite of one operand.
type activation struct {
	op  ir.Op
	doc string
	// body is given its operand in f32 or f64.
	body  func(b *ir.Builder, x ir.Value) ir.Value
	kinks []float64
}

func init() {
	for _, a := range []activation{
		{
			op: OpRelu, doc: "x where x > 0 and 0 elsewhere, also for a NaN. Its derivative at 0 is 0.",
			body: func(b *ir.Builder, x ir.Value) ir.Value {
				return Select(b, Gt(b, x, ZerosLike(b, x)), x, ZerosLike(b, x))
			},
			kinks: []float64{0},
		},
		{
			op:   OpGelu,
			doc:  "x·Φ(x), where Φ is the distribution function of the standard normal distribution: x/2·(1 + erf(x/√2)).",
			body: gelu,
		},
		{
			op:   OpGeluTanh,
			doc:  "The approximation x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of gelu.",
			body: geluTanh,
		},
		{
			op: OpSilu, doc: "x·sigmoid(x), also called swish.",
			body: func(b *ir.Builder, x ir.Value) ir.Value { return Mul(b, x, Sigmoid(b, x)) },
		},
	} {
		define(&ir.Def{
			Op: a.op, Doc: a.doc, Operands: []string{"x"},
			Constraints: numbered("x is of a float type"),
			Infer:       inferFloat,
			NoTranspose: notLinear,
			Body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
				return []ir.Value{inWide(b, in[0], a.body)}
			},
			Samples: func() []ir.Sample { return activationSamples(a) },
		})
	}
}

// Relu returns x where it is positive, and 0 elsewhere.
func Relu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRelu, nil, x) }

// Gelu returns x·Φ(x) by the error function.
func Gelu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpGelu, nil, x) }

// GeluTanh returns the approximation of x·Φ(x) by tanh.
func GeluTanh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpGeluTanh, nil, x) }

// Silu returns x·sigmoid(x).
func Silu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSilu, nil, x) }

func gelu(b *ir.Builder, x ir.Value) ir.Value {
	e := Erf(b, Mul(b, x, ConstLike(b, x, math.Sqrt2/2)))
	return Mul(b, Mul(b, x, ConstLike(b, x, 0.5)), Add(b, e, OnesLike(b, x)))
}

func geluTanh(b *ir.Builder, x ir.Value) ir.Value {
	cubic := Mul(b, Mul(b, x, x), ConstLike(b, x, 0.044715))
	inner := Mul(b, x, Add(b, cubic, OnesLike(b, x)))
	t := Tanh(b, Mul(b, inner, ConstLike(b, x, math.Sqrt(2/math.Pi))))
	return Mul(b, Mul(b, x, ConstLike(b, x, 0.5)), Add(b, t, OnesLike(b, x)))
}

// inWide returns f of x, computed in f32 where x is narrower and rounded to the
// type of x at the end.
func inWide(b *ir.Builder, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	return Convert(b, f(b, wide(b, x)), x.DType())
}

// wide returns x in the type that sums of its elements are taken in.
func wide(b *ir.Builder, x ir.Value) ir.Value { return Convert(b, x, sumType(x.DType())) }

// inferFloat is the shape rule of ops whose results all have the type of
// operand 0, which is of a float type.
func inferFloat(n *ir.Node) ([]ir.Type, error) {
	t := n.Input(0).Type()
	return []ir.Type{t}, floats.check(t.DType)
}

func activationSamples(a activation) []ir.Sample {
	if !withSamples {
		return nil
	}
	x := drawn(ir.F32, 7, 33)
	out := []ir.Sample{
		{Name: "matrix", In: []*ir.Array{x}},
		{Name: "scalar", In: []*ir.Array{ir.Float(ir.F32, -1.5)}},
		{Name: "empty", In: []*ir.Array{ir.NewArray(ir.F32, 0, 3)}},
		{Name: "far", In: []*ir.Array{ir.Floats(ir.F32, []float64{-40, -9, 9, 40})}},
		{Name: "half", In: []*ir.Array{drawn(ir.F16, 5)}},
	}
	if a.kinks != nil {
		out = append(out, ir.Sample{Name: "kink", In: []*ir.Array{ir.Floats(ir.F32, a.kinks, len(a.kinks))}, NoGrad: "a kink"})
	}
	return out
}
