package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// scalars adds the nodes of scalar expressions over tensors: arg returns the tensor of an argument.
type scalars struct {
	e    modelMoves
	arg  func(number int) tensorRef
	done map[scalar.Expr]tensorRef
}

func (e modelMoves) scalars(arg func(number int) tensorRef) *scalars {
	return &scalars{e, arg, map[scalar.Expr]tensorRef{}}
}

// elementwise adds a node by its scalar rule. Operands that ONNX repeats stay small.
func (e *exporter) elementwise(n *ir.Node, in []exported) exported {
	args := make([]scalar.Expr, len(in))
	for i := range in {
		args[i] = scalar.Arg(i, n.Input(i).DType())
	}
	p := e.scalars(func(i int) tensorRef { return in[i].tensorRef })
	return exported{p.print(n.Def().Scalar(n, args)), n.Types()[0].Shape}
}

// narrow cuts the values of a held type to those of the type itself: integers wrap, floats round.
func (e modelMoves) narrow(t tensorRef, to ir.DType) tensorRef {
	switch to {
	case ir.U8, ir.U16:
		return e.binary("BitwiseAnd", t, e.integer(t.dtype, 1<<to.Bits()-1))
	case ir.I8, ir.I16:
		half := int64(1) << (to.Bits() - 1)
		t = e.binary("BitwiseAnd", e.binary("Add", t, e.integer(t.dtype, half)), e.integer(t.dtype, 2*half-1))
		return e.binary("Sub", t, e.integer(t.dtype, half))
	case ir.U32:
		return e.binary("BitwiseAnd", t, e.integer(ir.I64, math.MaxUint32))
	case ir.BF16, ir.F8E4M3, ir.F8E5M2:
		return e.cast(e.cast(t, to), ir.F32)
	}
	return t
}

// floatOps maps operations to ONNX's ops for floats, and for integers where the definition is the
// same.
var floatOps = map[scalar.Op]string{
	scalar.OpAbs: "Abs", scalar.OpSign: "Sign", scalar.OpFloor: "Floor", scalar.OpCeil: "Ceil", scalar.OpRound: "Round",
	scalar.OpExp: "Exp", scalar.OpLog: "Log", scalar.OpSqrt: "Sqrt", scalar.OpRecip: "Reciprocal", scalar.OpNeg: "Neg",
	scalar.OpSin: "Sin", scalar.OpCos: "Cos", scalar.OpTan: "Tan", scalar.OpAsin: "Asin", scalar.OpAcos: "Acos", scalar.OpAtan: "Atan",
	scalar.OpSinh: "Sinh", scalar.OpCosh: "Cosh", scalar.OpTanh: "Tanh", scalar.OpSigmoid: "Sigmoid", scalar.OpErf: "Erf",
	scalar.OpAdd: "Add", scalar.OpSub: "Sub", scalar.OpMul: "Mul", scalar.OpDiv: "Div", scalar.OpPow: "Pow",
	scalar.OpMin: "Min", scalar.OpMax: "Max",
}

var compareOps = map[scalar.Op]string{
	scalar.OpEq: "Equal", scalar.OpLt: "Less", scalar.OpLe: "LessOrEqual", scalar.OpGt: "Greater", scalar.OpGe: "GreaterOrEqual",
}

var bitOps = map[scalar.Op][2]string{ // of bools, of integers
	scalar.OpAnd: {"And", "BitwiseAnd"}, scalar.OpOr: {"Or", "BitwiseOr"}, scalar.OpXor: {"Xor", "BitwiseXor"}, scalar.OpNot: {"Not", "BitwiseNot"},
}

func (p *scalars) print(x scalar.Expr) tensorRef {
	if r, ok := p.done[x]; ok || p.e.err != nil {
		return r
	}
	r := p.one(x)
	p.done[x] = r
	return r
}

// one adds an expression that is not there yet.
func (p *scalars) one(x scalar.Expr) tensorRef {
	switch x.Op {
	case scalar.OpConst:
		return p.constant(x)
	case scalar.OpArg:
		return p.arg(x.Ref)
	case scalar.OpCheck:
		return p.print(x.Args[0]) // a model has no checks
	case scalar.OpConvert:
		return p.convert(p.print(x.Args[0]), x.Args[0].Type, x.Type)
	case scalar.OpBitcast:
		return p.bitcast(p.print(x.Args[0]), x.Args[0].Type, x.Type)
	}
	if y := plain.Rewrite(x); y != nil {
		return p.print(y)
	}
	args := make([]tensorRef, len(x.Args))
	for i, a := range x.Args {
		args[i] = p.print(a)
	}
	if p.e.err != nil {
		return tensorRef{}
	}
	return p.apply(x, args)
}

func (p *scalars) constant(x scalar.Expr) tensorRef {
	v, _ := x.Value()
	if x.Type.IsFloat() {
		return p.e.number(held(x.Type), v.F)
	}
	return p.e.integer(held(x.Type), v.I)
}

// apply exports an operation on exported operands.
func (p *scalars) apply(x scalar.Expr, args []tensorRef) tensorRef {
	e, of := p.e, x.Args[len(x.Args)-1].Type
	if names, ok := bitOps[x.Op]; ok {
		name := names[1]
		if of == ir.Bool {
			name = names[0]
		}
		return e.narrow(e.op(name, args[0].dtype, repeatedAll(args), args), x.Type)
	}
	switch x.Op {
	case scalar.OpSelect:
		return e.choose(args[0], args[1], args[2])
	case scalar.OpNe:
		return e.unary("Not", e.compare("Equal", args[0], args[1]))
	case scalar.OpIsNaN:
		return e.isNaN(args[0])
	case scalar.OpRsqrt:
		return e.narrow(e.unary("Reciprocal", e.unary("Sqrt", args[0])), x.Type)
	case scalar.OpFma:
		return e.narrow(e.binary("Add", e.binary("Mul", args[0], args[1]), args[2]), x.Type)
	case scalar.OpShl, scalar.OpShr:
		return p.shift(x, args[0], args[1])
	}
	if name, ok := compareOps[x.Op]; ok {
		return p.compare(name, x, args)
	}
	if !of.IsFloat() {
		return p.integers(x, args)
	}
	if x.Op == scalar.OpRem {
		return e.narrow(e.binary("Mod", args[0], args[1], attrInt("fmod", 1)), x.Type)
	}
	return p.named(x, args)
}

// named adds an operation that ONNX has under a name.
func (p *scalars) named(x scalar.Expr, args []tensorRef) tensorRef {
	name, ok := floatOps[x.Op]
	if !ok {
		p.e.unsupported("ONNX has no operation %s on %s", x.Op, x.Type)
		return tensorRef{}
	}
	return p.e.narrow(p.e.op(name, args[0].dtype, repeatedAll(args), args), x.Type)
}

func repeatedAll(args []tensorRef) ir.Shape {
	dims := args[0].dims
	for _, a := range args[1:] {
		dims = repeatedDims(dims, a.dims)
	}
	return dims
}

// compare exports a comparison. Bools compare as 0 and 1, u64 as i64 with the sign bit flipped.
func (p *scalars) compare(name string, x scalar.Expr, args []tensorRef) tensorRef {
	e := p.e
	switch of := x.Args[0].Type; {
	case of == ir.Bool && x.Op != scalar.OpEq:
		args = []tensorRef{e.cast(args[0], ir.I32), e.cast(args[1], ir.I32)}
	case of == ir.U64 && x.Op != scalar.OpEq:
		args = []tensorRef{e.flipSign(args[0]), e.flipSign(args[1])}
	}
	return e.compare(name, args[0], args[1])
}

func (e modelMoves) isNaN(t tensorRef) tensorRef {
	return e.op("IsNaN", ir.Bool, t.dims, []tensorRef{t})
}

// flipSign inverts the highest bit of an i64.
func (e modelMoves) flipSign(t tensorRef) tensorRef {
	return e.binary("BitwiseXor", t, e.integer(ir.I64, math.MinInt64))
}

// integers adds an operation on integers. Division by 0, which stops a process, is by 1.
func (p *scalars) integers(x scalar.Expr, args []tensorRef) tensorRef {
	e := p.e
	switch x.Op {
	case scalar.OpDiv, scalar.OpRem, scalar.OpMod, scalar.OpFloorDiv:
		if x.Type == ir.U64 {
			e.unsupported("ONNX has no quotient of %s", x.Type)
			return tensorRef{}
		}
		if v, ok := x.Args[1].IntConst(); !ok || v == 0 {
			args[1] = e.choose(e.compare("Equal", args[1], e.number(args[1].dtype, 0)), e.number(args[1].dtype, 1), args[1])
		}
	case scalar.OpMin, scalar.OpMax:
		if x.Type == ir.U64 {
			name := "Less"
			if x.Op == scalar.OpMax {
				name = "Greater"
			}
			return e.choose(e.compare(name, e.flipSign(args[0]), e.flipSign(args[1])), args[0], args[1])
		}
	}
	switch x.Op {
	case scalar.OpAbs, scalar.OpSign:
		if x.Type == ir.U64 {
			return p.unsigned(x, args[0])
		}
	case scalar.OpRem:
		return e.binary("Mod", args[0], args[1], attrInt("fmod", 1))
	case scalar.OpMod:
		return e.binary("Mod", args[0], args[1], attrInt("fmod", 0))
	case scalar.OpFloorDiv:
		rest := e.binary("Mod", args[0], args[1], attrInt("fmod", 0))
		return e.narrow(e.binary("Div", e.binary("Sub", args[0], rest), args[1]), x.Type)
	case scalar.OpPopCount:
		return p.popCount(x, args[0])
	}
	return p.named(x, args)
}

// unsigned is the magnitude or the sign of a u64, which an i64 holds by its bits.
func (p *scalars) unsigned(x scalar.Expr, a tensorRef) tensorRef {
	if x.Op == scalar.OpAbs {
		return a
	}
	return p.e.cast(p.e.unary("Not", p.e.compare("Equal", a, p.e.number(ir.I64, 0))), ir.I64)
}

// popCount adds up the bits.
func (p *scalars) popCount(x scalar.Expr, a tensorRef) tensorRef {
	e, sum := p.e, tensorRef{}
	for i := range x.Type.Bits() {
		bit := p.shift(scalar.Shr(x.Args[0], scalar.Const(x.Type, float64(i))), a, e.number(a.dtype, float64(i)))
		bit = e.binary("BitwiseAnd", bit, e.number(a.dtype, 1))
		if i == 0 {
			sum = bit
		} else {
			sum = e.binary("Add", sum, bit)
		}
	}
	return sum
}

// shift shifts by the count modulo the width of the type. BitShift takes unsigned numbers alone: to the left
// the bits are those of signed ones too; to the right a signed number is divided by a power of two, rounded
// down.
func (p *scalars) shift(x scalar.Expr, a, count tensorRef) tensorRef {
	e, d := p.e, x.Type
	count = e.binary("BitwiseAnd", count, e.integer(count.dtype, int64(d.Bits()-1)))
	shifted := func(v tensorRef, direction string) tensorRef {
		r := e.binary("BitShift", e.cast(v, ir.U64), e.cast(count, ir.U64), attrText("direction", direction))
		r.dtype = ir.U64
		return e.narrow(e.cast(r, held(d)), d)
	}
	switch {
	case x.Op == scalar.OpShl:
		return shifted(a, "LEFT")
	case d.IsUnsigned():
		return shifted(a, "RIGHT")
	}
	// The sign bit moves to the bottom by hand: q = (a ^ m) >> n ^ m for m = a >> 63.
	wide := e.cast(a, ir.I64)
	mask := e.choose(e.compare("Less", wide, e.number(ir.I64, 0)), e.integer(ir.I64, -1), e.number(ir.I64, 0))
	bits := e.binary("BitShift", e.cast(e.binary("BitwiseXor", wide, mask), ir.U64), e.cast(count, ir.U64), attrText("direction", "RIGHT"))
	bits.dtype = ir.U64
	return e.cast(e.binary("BitwiseXor", e.cast(bits, ir.I64), mask), held(d))
}

// convert converts numbers as rlx does: floats become integers by cutting, with the nearest integer for those
// out of range and 0 for NaN.
func (p *scalars) convert(t tensorRef, from, to ir.DType) tensorRef {
	e := p.e
	switch {
	case to == ir.Bool && from != ir.Bool:
		return e.unary("Not", e.compare("Equal", t, e.number(t.dtype, 0)))
	case from.IsFloat() && to.IsInteger():
		return e.cut(t, to)
	case from == ir.U64 && to.IsFloat():
		return e.narrow(e.cast(e.cast(t, ir.U64), held(to)), to)
	case from.IsFloat() && to.IsFloat():
		return e.narrow(e.cast(t, held(to)), to)
	}
	return e.narrow(e.cast(t, held(to)), to)
}

// cut converts floats to integers of a type.
func (e modelMoves) cut(t tensorRef, to ir.DType) tensorRef {
	if t.dtype == ir.F16 {
		t = e.cast(t, ir.F32)
	}
	lo, hi, ok := to.IntRange()
	low, top := float64(lo), float64(hi)
	if !ok || to == ir.U64 {
		low, top = 0, math.MaxUint64
	}
	t = e.choose(e.isNaN(t), e.number(t.dtype, 0), t)
	if to.Size() < 8 {
		t = e.binary("Min", e.binary("Max", t, e.number(t.dtype, low)), e.number(t.dtype, top))
		// The largest number may be none of the floats: it is cut again as an integer.
		r := e.binary("Min", e.cast(t, ir.I64), e.integer(ir.I64, hi))
		return e.cast(r, held(to))
	}
	below := math.Nextafter(top, 0)
	if t.dtype == ir.F32 {
		below = float64(math.Nextafter32(float32(top), 0))
	}
	inside := e.binary("Min", e.binary("Max", t, e.number(t.dtype, low)), e.number(t.dtype, below))
	largest := e.integer(ir.I64, math.MaxInt64)
	if to == ir.U64 {
		inside, largest = e.cast(e.cast(inside, ir.U64), ir.I64), e.integer(ir.I64, -1)
	}
	return e.choose(e.compare("Less", t, e.number(t.dtype, top)), e.cast(inside, ir.I64), largest)
}

// bitcast reinterprets bits as another type.
func (p *scalars) bitcast(t tensorRef, from, to ir.DType) tensorRef {
	e := p.e
	if from == to {
		return t
	}
	switch {
	case from.IsInteger():
	case from == ir.F32:
		t, from = e.bitsOf(t), ir.U32
	default:
		e.unsupported("ONNX has no bitcast from %s to %s", from, to)
		return tensorRef{}
	}
	bits := e.narrow(e.cast(t, ir.I64), from.Unsigned())
	switch to {
	case ir.F32:
		return e.cast(e.floatOf(bits, 23, 8), ir.F32)
	case ir.F16:
		return e.cast(e.floatOf(bits, 10, 5), ir.F16)
	case ir.BF16:
		return e.cast(e.floatOf(bits, 7, 8), ir.F32)
	}
	if !to.IsInteger() {
		e.unsupported("ONNX has no bitcast from %s to %s", from, to)
		return tensorRef{}
	}
	if to == ir.I32 { // in range: ONNX Runtime fuses consecutive casts, and the fused one does not wrap
		half := e.integer(ir.I64, 1<<31)
		t = e.binary("Sub", e.binary("BitwiseAnd", e.binary("Add", bits, half), e.integer(ir.I64, math.MaxUint32)), half)
	}
	return e.narrow(e.cast(t, held(to)), to)
}

// floatOf computes, as f64, the float with the bits of an i64, given the bit counts of mantissa and
// exponent.
func (e modelMoves) floatOf(bits tensorRef, mantissa, exponent int) tensorRef {
	field := func(shift, width int) tensorRef {
		x := bits
		if shift > 0 {
			x = e.binary("Div", x, e.integer(ir.I64, 1<<shift))
		}
		return e.binary("BitwiseAnd", x, e.integer(ir.I64, 1<<width-1))
	}
	top, bias := int64(1)<<exponent-1, int64(1)<<(exponent-1)-1
	low, power := field(0, mantissa), field(mantissa, exponent)
	zero := e.number(ir.I64, 0)
	one := e.choose(e.compare("Greater", power, zero), e.integer(ir.I64, 1<<mantissa), zero)
	scale := e.binary("Sub", e.binary("Max", power, e.number(ir.I64, 1)), e.integer(ir.I64, bias+int64(mantissa)))
	size := e.binary("Mul", e.cast(e.binary("Add", low, one), ir.F64), e.binary("Pow", e.number(ir.F64, 2), e.cast(scale, ir.F64)))
	special := e.choose(e.compare("Equal", low, zero), e.number(ir.F64, math.Inf(1)), e.number(ir.F64, math.NaN()))
	size = e.choose(e.compare("Equal", power, e.integer(ir.I64, top)), special, size)
	return e.choose(e.compare("Greater", field(mantissa+exponent, 1), zero), e.unary("Neg", size), size)
}

// bitsOf computes the bits of an f32 as an i64. In f64 the number times 2¹⁴⁹ is whole, and its exponent is found
// by halving: by 2²⁵⁶ if it is as large, then 2¹²⁸, and so on.
func (e modelMoves) bitsOf(t tensorRef) tensorRef {
	f64 := func(x float64) tensorRef { return e.number(ir.F64, x) }
	size := e.unary("Abs", e.cast(t, ir.F64))
	finite := e.compare("LessOrEqual", size, f64(math.MaxFloat32))
	scaled := e.binary("Mul", e.choose(finite, size, f64(0)), f64(0x1p149))
	head, exponent := scaled, f64(0)
	for k := 256; k >= 1; k /= 2 {
		large := e.compare("GreaterOrEqual", head, f64(math.Ldexp(1, k)))
		head = e.choose(large, e.binary("Mul", head, f64(math.Ldexp(1, -k))), head)
		exponent = e.binary("Add", exponent, e.choose(large, f64(float64(k)), f64(0)))
	}
	// A normal number is (1 + m)·2ˣ; one below 2⁻¹²⁶ is its own bits.
	field := e.binary("Mul", e.binary("Add", e.binary("Sub", exponent, f64(23)), head), f64(1<<23))
	bits := e.choose(e.compare("GreaterOrEqual", exponent, f64(23)), field, scaled)
	bits = e.choose(finite, bits, f64(0x7f800000))
	bits = e.choose(e.isNaN(t), f64(0x7fc00000), bits)
	negative := e.print(plain.Negative(scalar.Arg(0, ir.F32)), []tensorRef{t})
	return e.cast(e.binary("Add", bits, e.choose(negative, f64(1<<31), f64(0))), ir.I64)
}
