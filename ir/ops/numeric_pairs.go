package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Functions of two or three operands.
const (
	OpHypot       ir.Op = "hypot"
	OpLogAddExp   ir.Op = "logaddexp"
	OpXLogY       ir.Op = "xlogy"
	OpXLog1pY     ir.Op = "xlog1py"
	OpCopySign    ir.Op = "copysign"
	OpMod         ir.Op = "mod"
	OpFloorDivide ir.Op = "floor_divide"
	OpNextAfter   ir.Op = "nextafter"
	OpFma         ir.Op = "fma"
)

// paired describes a composite of two operands that are broadcast against each
// other.
type paired struct {
	op    ir.Op
	doc   string
	types domain
	body  func(b *ir.Builder, x, y ir.Value) ir.Value
	// slopes are the derivatives by each operand, for which the body's are not
	// right everywhere. All operands have one shape there.
	slopes   [2]slope2
	from, to [2]float64
	cases    []pair
}

func init() {
	inf := math.Inf(1)
	for _, p := range []paired{
		{
			op: OpHypot, doc: "√(x² + y²), which does not overflow where the result does not. The derivatives at the origin are 0.",
			types: floats, body: hypot,
			slopes: [2]slope2{
				func(b *ir.Builder, x, _, z ir.Value) ir.Value { return orZeroAtZero(b, x, z) },
				func(b *ir.Builder, _, y, z ir.Value) ir.Value { return orZeroAtZero(b, y, z) },
			},
			cases: []pair{
				{name: "large and small", x: []float64{3e30, -3e-30, 0}, y: []float64{4e30, 4e-30, 2}, noGrad: "beyond finite differences"},
				{name: "origin and infinities", x: []float64{0, inf, 1}, y: []float64{0, 1, -inf}, noGrad: "no derivative here"},
			},
		},
		{
			op: OpLogAddExp, doc: "log(e^x + e^y), which does not overflow. Its derivatives are the sigmoids of ±(x − y), smooth also where x = y.",
			types: floats, body: logAddExp,
			slopes: [2]slope2{
				func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return Sigmoid(b, difference(b, x, y)) },
				func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return Sigmoid(b, difference(b, y, x)) },
			},
			cases: []pair{
				{name: "equal", x: []float64{1, -2, 0}, y: []float64{1, -2, 0}},
				{name: "far apart", x: []float64{100, -100, 3}, y: []float64{-100, 100, -40}},
				{name: "infinities", x: []float64{-inf, inf, -inf, inf}, y: []float64{-inf, inf, 1, -inf}, noGrad: "infinite operands"},
			},
		},
		{
			op: OpXLogY, doc: "x·log(y), and 0 where x is 0.", types: floats,
			body: func(b *ir.Builder, x, y ir.Value) ir.Value { return MulZero(b, x, Log(b, y)) },
			from: [2]float64{-2, 0.2}, to: [2]float64{2, 3},
			cases: []pair{
				{name: "zeros", x: []float64{0, 0, 2}, y: []float64{0, 3, 1}, noGrad: "the edge of the domain"},
				{name: "x of 0", x: []float64{0, 0}, y: []float64{0.5, 3}},
			},
		},
		{
			op: OpXLog1pY, doc: "x·log(1 + y), and 0 where x is 0.", types: floats,
			body: func(b *ir.Builder, x, y ir.Value) ir.Value { return MulZero(b, x, Log1p(b, y)) },
			from: [2]float64{-2, -0.7}, to: [2]float64{2, 3},
			cases: []pair{{name: "zeros", x: []float64{0, 0, 2}, y: []float64{-1, 3, 0}, noGrad: "the edge of the domain"}},
		},
		{
			op: OpCopySign, doc: "|x| with the sign of y, that of a zero included. The derivative by y is 0.", types: floats, body: copySign,
			cases: []pair{{name: "zeros", x: []float64{1, -2, 3, -4, 0}, y: []float64{0, math.Copysign(0, -1), -inf, inf, -1}, noGrad: "kinks"}},
		},
		{
			op: OpMod, doc: "What the quotient x / y rounded down leaves: a number with the sign of y, as NumPy's remainder and ONNX's Mod have it. " +
				"(rem has the sign of x, as C's fmod.) For integers x mod 0 is 0.",
			types: reals, body: floorMod,
			from: [2]float64{2.1, 1.5}, to: [2]float64{2.9, 1.95},
			cases: signCases,
		},
		{
			op: OpFloorDivide, doc: "The quotient x / y rounded down. For integers x / 0 is x. The derivative is 0, also at the jumps.",
			types: reals, body: floorDivide,
			from: [2]float64{2.1, 1.5}, to: [2]float64{2.9, 1.95},
			cases: signCases,
		},
	} {
		definePaired(p)
	}
	defineFma()
	defineNextAfter()
}

var signCases = []pair{
	{name: "signs", x: []float64{5, -5, 5, -5}, y: []float64{3, 3, -3, -3}},
	{name: "multiples", x: []float64{6, -6, 6, -6, 0}, y: []float64{3, 3, -3, -3, 2}, noGrad: "jumps at multiples"},
}

func definePaired(p paired) {
	c := composite{
		op: p.op, doc: p.doc, types: p.types, operands: []string{"x", "y"},
		constraints: []string{"the operands have one element type, and are broadcast against each other"},
		check:       oneDType,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			in = Broadcast(b, n.Op(), in...)
			if b.Err() != nil {
				return ir.Value{}
			}
			x, y := wideFloat(b, in[0]), wideFloat(b, in[1])
			return Convert(b, p.body(b, x, y), in[0].DType())
		},
		samples: func() []ir.Sample { return pairedSamples(p) },
	}
	if p.slopes[0] != nil {
		c.jvp = func(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
			d := in[0].DType()
			x := Broadcast(b, n.Op(), wide(b, in[0]), wide(b, in[1]), wide(b, out[0]))
			var sum ir.Value
			for i, slope := range p.slopes {
				if t[i].Valid() {
					tangent := Broadcast(b, n.Op(), wide(b, t[i]), x[2])[0]
					sum = addTangents(b, sum, scale(b, tangent, slope(b, x[0], x[1], x[2])))
				}
			}
			if sum.Valid() {
				sum = Convert(b, sum, d)
			}
			return []ir.Value{sum}
		}
	}
	defineComposite(c)
}

// wideFloat is [wide] for floats, and leaves integers as they are.
func wideFloat(b *ir.Builder, x ir.Value) ir.Value {
	if x.DType().IsFloat() {
		return wide(b, x)
	}
	return x
}

func pairedSamples(p paired) []ir.Sample {
	if !withSamples {
		return nil
	}
	if p.to == [2]float64{} {
		p.from, p.to = [2]float64{-2, -2}, [2]float64{2, 2}
	}
	var out []ir.Sample
	add := func(name string, x, y *ir.Array, noGrad string) {
		out = append(out, ir.Sample{Name: name, NoGrad: noGrad, In: []*ir.Array{x, y}})
	}
	two := func(d ir.DType, xs, ys []int) (x, y *ir.Array) {
		return draw(3, d, p.from[0], p.to[0], xs...), draw(4, d, p.from[1], p.to[1], ys...)
	}
	for _, c := range []struct {
		name   string
		d      ir.DType
		xs, ys []int
	}{
		{"scalars", ir.F32, nil, nil},
		{"empty", ir.F32, []int{0, 3}, []int{3}},
		{"matrix", ir.F32, []int{9, 13}, []int{9, 13}},
		{"broadcast", ir.F32, []int{4, 1}, []int{3}},
		{"f16", ir.F16, []int{5}, []int{5}},
		{"f64", ir.F64, []int{5}, []int{5}},
	} {
		x, y := two(c.d, c.xs, c.ys)
		add(c.name, x, y, "")
	}
	if p.types&integers != 0 {
		for _, d := range []ir.DType{ir.I32, ir.U32, ir.I8} {
			add(d.String(), draw(5, d, -9, 9, 11), draw(6, d, -4, 4, 11), "")
		}
	}
	for _, c := range p.cases {
		add(c.name, ir.Floats(ir.F32, c.x), ir.Floats(ir.F32, c.y), c.noGrad)
	}
	return out
}

// hypot divides by the larger operand, which may be infinite or 0.
func hypot(b *ir.Builder, x, y ir.Value) ir.Value {
	x, y = Abs(b, x), Abs(b, y)
	high, low := Max(b, x, y), Min(b, x, y)
	plainCase := And(b, Gt(b, high, ZerosLike(b, x)), IsFinite(b, high))
	ratio := Div(b, low, Select(b, plainCase, high, OnesLike(b, x)))
	z := Mul(b, high, Sqrt(b, Add(b, Mul(b, ratio, ratio), OnesLike(b, x))))
	return Select(b, plainCase, z, high)
}

// orZeroAtZero returns x / z, and 0 where z is 0.
func orZeroAtZero(b *ir.Builder, x, z ir.Value) ir.Value {
	zero := ZerosLike(b, z)
	at := Eq(b, z, zero)
	return Select(b, at, zero, Div(b, x, Select(b, at, OnesLike(b, z), z)))
}

func logAddExp(b *ir.Builder, x, y ir.Value) ir.Value {
	return Add(b, Max(b, x, y), Log1p(b, Exp(b, Neg(b, Abs(b, difference(b, x, y))))))
}

// difference returns x − y, and 0 where both are the same infinity.
func difference(b *ir.Builder, x, y ir.Value) ir.Value {
	same := And(b, Eq(b, x, y), Not(b, IsFinite(b, x)))
	return Select(b, same, ZerosLike(b, x), Sub(b, x, y))
}

// copySign reads the sign of y from its bits: a zero has one too.
func copySign(b *ir.Builder, x, y ir.Value) ir.Value {
	d := ir.I32
	if y.DType() == ir.F64 {
		d = ir.I64
	}
	sign := Bitcast(b, StopGradient(b, y), d)
	a := Abs(b, x)
	return Select(b, Lt(b, sign, ZerosLike(b, sign)), Neg(b, a), a)
}

// floorMod corrects the remainder of the truncated quotient where its sign is
// not that of y.
func floorMod(b *ir.Builder, x, y ir.Value) ir.Value {
	r := Rem(b, x, y)
	return Select(b, signsDiffer(b, r, y), Add(b, r, y), r)
}

func floorDivide(b *ir.Builder, x, y ir.Value) ir.Value {
	if x.DType().IsFloat() {
		// Exact multiples: the quotient of what mod leaves is whole up to rounding.
		return Round(b, Div(b, Sub(b, x, floorMod(b, x, y)), y))
	}
	q := Div(b, x, y)
	return Select(b, signsDiffer(b, Rem(b, x, y), y), Sub(b, q, OnesLike(b, q)), q)
}

// signsDiffer returns whether r is not 0 and on the other side of it than y.
func signsDiffer(b *ir.Builder, r, y ir.Value) ir.Value {
	zero := ZerosLike(b, r)
	return And(b, Ne(b, r, zero), Xor(b, Lt(b, r, zero), Lt(b, y, zero)))
}

func defineFma() {
	defineElementwise(elementwise{
		op: OpFma, doc: "x·y + z, by one instruction where the device has it: whether the product is rounded before the sum is up to the device.",
		operands: []string{"x", "y", "z"}, types: floats,
		meaning: meaning{float: func(x []float64) float64 { return math.FMA(x[0], x[1], x[2]) }},
		scalar:  func(x []scalar.Expr) scalar.Expr { return scalar.Fma(x[0], x[1], x[2]) },
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			product := addTangents(b, scale(b, t[0], in[1]), scale(b, t[1], in[0]))
			return []ir.Value{addTangents(b, product, t[2])}
		},
		noTranspose: "its derivative is made of products and sums",
		samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			var out []ir.Sample
			for _, dims := range sampleShapes {
				out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
					draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
				}})
			}
			for _, d := range typesIn(floats)[1:] {
				out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{draw(1, d, -2, 2, 5), draw(2, d, -2, 2, 5), draw(3, d, -2, 2, 5)}})
			}
			return out
		},
	})
}

func defineNextAfter() {
	define(&ir.Def{
		Op: OpNextAfter, Operands: []string{"x", "y"},
		Doc: "The number of the element type that is next to x on the way to y, y itself where they are equal, NaN if one is NaN. " +
			"A device that has no denormal numbers goes from the least normal one to 0.",
		Constraints: numbered("the operands have one type, whose elements are f32 or f64", "the result has that type"),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, floats)
			if err == nil && t.DType.Size() < 4 {
				err = ir.DTypef("%s is not f32 or f64", t.DType)
			}
			return []ir.Type{t}, err
		},
		Eval: func(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
			out, err := resultArray(n, 0)
			if err != nil {
				return nil, err
			}
			for i := range out.F {
				if x, y := in[0].F[i], in[1].F[i]; out.DType == ir.F32 {
					out.F[i] = float64(math.Nextafter32(float32(x), float32(y)))
				} else {
					out.F[i] = math.Nextafter(x, y)
				}
			}
			return []*ir.Array{out}, nil
		},
		NoGrad: "a step between neighbours in a type is no number's", NoTranspose: "not linear in any operand",
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return nextAfter(x[0], x[1]) },
		Samples: func() []ir.Sample {
			if !withSamples {
				return nil
			}
			var out []ir.Sample
			for _, dims := range sampleShapes {
				out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...)}})
			}
			x, y := []float64{1, 1, -1, -1, 2, 3, math.NaN(), 1}, []float64{2, 0, 0, -2, 2, math.Inf(1), 1, math.NaN()}
			return append(out,
				ir.Sample{Name: "directions", In: []*ir.Array{ir.Floats(ir.F32, x), ir.Floats(ir.F32, y)}},
				ir.Sample{Name: "f64", In: []*ir.Array{ir.Floats(ir.F64, x), ir.Floats(ir.F64, y)}})
		},
	})
}

// nextAfter steps through the bits, in whose order positive floats are.
func nextAfter(x, y scalar.Expr) scalar.Expr {
	bits := ir.I32
	if x.Type == ir.F64 {
		bits = ir.I64
	}
	zero, one := scalar.ConstF(x.Type, 0), scalar.ConstI(bits, 1)
	away := scalar.Eq(scalar.Gt(y, x), scalar.Gt(x, zero))
	at := scalar.Bitcast(x, bits)
	next := scalar.Bitcast(scalar.Select(away, scalar.Add(at, one), scalar.Sub(at, one)), x.Type)
	least := scalar.Bitcast(one, x.Type)
	next = scalar.Select(scalar.Eq(x, zero), scalar.Select(scalar.Gt(y, zero), least, scalar.Neg(least)), next)
	next = scalar.Select(scalar.Eq(x, y), y, next)
	return scalar.Select(scalar.Or(scalar.IsNaN(x), scalar.IsNaN(y)), scalar.ConstF(x.Type, math.NaN()), next)
}

// Hypot returns √(x² + y²).
func Hypot(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpHypot, nil, x, y) }

// LogAddExp returns log(e^x + e^y).
func LogAddExp(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpLogAddExp, nil, x, y) }

// XLogY returns x·log(y), and 0 where x is 0.
func XLogY(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpXLogY, nil, x, y) }

// XLog1pY returns x·log(1 + y), and 0 where x is 0.
func XLog1pY(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpXLog1pY, nil, x, y) }

// CopySign returns |x| with the sign of y.
func CopySign(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpCopySign, nil, x, y) }

// Mod returns what the quotient x / y rounded down leaves: it has the sign of
// y, that of [Rem] has the sign of x.
func Mod(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpMod, nil, x, y) }

// FloorDivide returns the quotient x / y rounded down.
func FloorDivide(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpFloorDivide, nil, x, y) }

// NextAfter returns the number next to x on the way to y.
func NextAfter(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpNextAfter, nil, x, y) }

// Fma returns x·y + z.
func Fma(b *ir.Builder, x, y, z ir.Value) ir.Value { return broadcasting(b, OpFma, nil, x, y, z) }
