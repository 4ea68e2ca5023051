package ops

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Conversions of the element type.
const (
	OpConvert ir.Op = "convert"
	OpBitcast ir.Op = "bitcast"
)

func newDTypeAttrs() ir.Attrs { return &DTypeAttrs{} }

func resultDType(n *ir.Node) ir.DType { return n.Attrs().(*DTypeAttrs).DType }

func init() {
	defineConvert()
	defineBitcast()
}

func defineConvert() {
	define(&ir.Def{
		Op: OpConvert, Operands: []string{"x"}, NewAttrs: newDTypeAttrs,
		Doc: "x converted to another element type. Floats round to nearest, ties to even, and overflow to infinity, or NaN in f8e4m3fn; " +
			"floats convert to integers by truncation, saturating, with 0 for NaN; integers wrap; " +
			"bool is x ≠ 0, and converts to 0 or 1. " +
			"It is differentiable between floats of at least 16 bits and between complex types.",
		Constraints: numbered(
			"both element types are "+(plain&^complexes).String()+", or both are complex",
			"the result has the shape of the operand",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			from, to := n.Input(0).DType(), resultDType(n)
			if (classOf(from) == complexes) != (classOf(to) == complexes) {
				return nil, ir.DTypef("dtype is %s, to which x, %s, cannot be converted: both must be complex, or neither", to, from)
			}
			if err := plain.check(from); err != nil {
				return nil, err
			}
			return []ir.Type{{DType: to, Shape: n.Input(0).Shape()}}, plain.checkAttr(to)
		},
		Eval: evalResult(evalConvert),
		JVP: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			to := resultDType(n)
			if classOf(to)&(floats|complexes) == 0 {
				return []ir.Value{{}}
			}
			return []ir.Value{Convert(b, t[0], to)}
		},
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return Convert(b, ct, n.Input(0).DType())
		}),
		Batch:  batchElementwise,
		Scalar: func(n *ir.Node, x []scalar.Expr) scalar.Expr { return scalar.Convert(x[0], resultDType(n)) },
	})
}

func evalConvert(n *ir.Node, in []*ir.Array, out *ir.Array) {
	x := in[0]
	copy(out.C, x.C)
	for i := range out.F {
		out.F[i] = x.Float(i)
	}
	for i := range out.I {
		switch {
		case x.I != nil:
			out.I[i] = x.I[i]
		case out.DType.IsBool() && x.F[i] != 0:
			out.I[i] = 1
		case !out.DType.IsBool():
			out.I[i] = floatToInt(out.DType, x.F[i])
		}
	}
}

// floatToInt truncates x to an integer or boolean type, saturating.
func floatToInt(d ir.DType, x float64) int64 {
	x = math.Trunc(x)
	lo, hi, ok := d.IntRange()
	switch {
	case math.IsNaN(x):
		return 0
	case !ok && x >= 1<<64: // u64, held as a bit pattern
		return -1
	case !ok:
		return int64(uint64(max(x, 0)))
	case x >= float64(hi):
		return hi
	case x <= float64(lo):
		return lo
	}
	return int64(x)
}

func defineBitcast() {
	define(&ir.Def{
		Op: OpBitcast, Operands: []string{"x"}, NewAttrs: newDTypeAttrs,
		Doc: "The bits of x reinterpreted as another element type of the same width.",
		Constraints: numbered(
			"both element types are "+reals.String()+", of the same width",
			"the result has the shape of the operand",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			from, to := n.Input(0).DType(), resultDType(n)
			if err := cmp.Or(reals.checkOperand(n, 0), reals.checkAttr(to)); err != nil {
				return nil, err
			}
			if from.Size() != to.Size() {
				return nil, ir.DTypef("dtype is %s, not of the width of x, %s", to, from)
			}
			return []ir.Type{{DType: to, Shape: n.Input(0).Shape()}}, nil
		},
		Eval: func(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out, err := ir.ArrayOf(n.Types()[0], in[0].Bytes())
			return []*ir.Array{out}, err
		},
		NoGrad: "bits are not numbers",
		Batch:  batchElementwise,
		Scalar: func(n *ir.Node, x []scalar.Expr) scalar.Expr { return scalar.Bitcast(x[0], resultDType(n)) },
	})
}

// Convert returns x converted to element type d, or x itself if it has that type. Floats
// round to nearest even; floats convert to integers by truncation, saturating; integers
// wrap.
func Convert(b *ir.Builder, x ir.Value, d ir.DType) ir.Value {
	if x.Valid() && x.DType() == d {
		return x
	}
	return b.Add1(OpConvert, &DTypeAttrs{d}, x)
}

// ConvertSaturating is [Convert] to an 8-bit float, with numbers beyond its largest finite one, also
// infinite ones, replaced by that, as ONNX's Cast does by default. NaN stays. [Convert] makes them infinite, or NaN
// where the type has no infinity. Another type is an error of kind [ir.ErrDType] in b.
func ConvertSaturating(b *ir.Builder, x ir.Value, d ir.DType) ir.Value {
	const op ir.Op = "convert_saturating"
	if !b.Require(op, "operand", x.Valid()) {
		return ir.Value{}
	}
	if !d.IsFloat8() || !x.DType().IsFloat() || x.DType().IsFloat8() {
		b.Failf(op, []ir.Value{x}, ir.DTypef("x is %s and the type %s: they must be a float of 16 bits or more and an 8-bit float", x.Type(), d))
		return ir.Value{}
	}
	largest := d.MaxFloat()
	return Convert(b, Clamp(b, x, ConstLike(b, x, -largest), ConstLike(b, x, largest)), d)
}

// Bitcast returns the bits of x reinterpreted as an element type of the same width.
func Bitcast(b *ir.Builder, x ir.Value, d ir.DType) ir.Value {
	return b.Add1(OpBitcast, &DTypeAttrs{d}, x)
}
