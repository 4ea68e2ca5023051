package jit

import (
	"math"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Operation is an operation on lanes: of f32, i32, u32 or bool, or of f64, i64, u64 or bool.
type Operation struct {
	Op       scalar.Op
	From, To dtype.DType // types of the last operand and of the result
}

// integerOps are the operations on integers of either sign.
var integerOps = []scalar.Op{
	scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMin, scalar.OpMax, scalar.OpAnd, scalar.OpOr, scalar.OpXor,
	scalar.OpShl, scalar.OpShr, scalar.OpNot,
}

var comparisonOps = []scalar.Op{scalar.OpEq, scalar.OpNe, scalar.OpLt, scalar.OpLe, scalar.OpGt, scalar.OpGe}

// operations is a list of operations.
type operations []Operation

func (l *operations) add(from, to dtype.DType, ops ...scalar.Op) {
	for _, op := range ops {
		*l = append(*l, Operation{op, from, to})
	}
}

// Operations returns the operations on 32-bit numbers and booleans that kernels support. Those
// on narrower types are built from them.
func Operations() []Operation {
	var l operations
	l.add(dtype.F32, dtype.F32, floatOperations...)
	l.add(dtype.F32, dtype.F32, scalar.OpExp, scalar.OpExpm1, scalar.OpLog, scalar.OpLog1p, scalar.OpPow,
		scalar.OpSinh, scalar.OpCosh, scalar.OpTanh, scalar.OpSigmoid, scalar.OpErf, scalar.OpErfc,
		scalar.OpAsin, scalar.OpAcos, scalar.OpAtan, scalar.OpAtan2, scalar.OpSin, scalar.OpCos, scalar.OpTan)
	l.add(dtype.F32, dtype.Bool, scalar.OpIsNaN, scalar.OpIsFinite)
	l.add(dtype.Bool, dtype.Bool, scalar.OpAnd, scalar.OpOr, scalar.OpXor, scalar.OpNot, scalar.OpEq, scalar.OpNe)
	for _, t := range []dtype.DType{dtype.I8, dtype.I16, dtype.I32, dtype.U8, dtype.U16, dtype.U32} {
		l.add(dtype.F32, t, scalar.OpConvert)
	}
	l.add(dtype.I32, dtype.F32, scalar.OpConvert)
	l.add(dtype.U32, dtype.F32, scalar.OpConvert)
	l.integers(dtype.I32, dtype.U32)
	l.add(dtype.I32, dtype.I32, scalar.OpDiv, scalar.OpRem)
	l.choices(dtype.F32, dtype.I32, dtype.U32)
	l.bits(dtype.F32, dtype.I32, dtype.U32)
	return l
}

// LongOperations returns the operations on 64-bit numbers that long kernels support, other
// than functions.
func LongOperations() []Operation {
	var l operations
	l.add(dtype.F64, dtype.F64, floatOperations...)
	l.add(dtype.F64, dtype.Bool, scalar.OpIsNaN, scalar.OpIsFinite)
	l.add(dtype.F64, dtype.I64, scalar.OpConvert)
	l.integers(dtype.I64, dtype.U64)
	l.choices(dtype.F64, dtype.I64, dtype.U64)
	l.bits(dtype.F64, dtype.I64, dtype.U64)
	return append(l, widthOperations()...)
}

// bits adds the bitcasts between types of one width.
func (l *operations) bits(types ...dtype.DType) {
	for _, from := range types {
		for _, to := range types {
			if from != to {
				l.add(from, to, scalar.OpBitcast)
			}
		}
	}
}

// floatOperations are those that processors have as instructions, or nearly.
var floatOperations = []scalar.Op{
	scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMulZero, scalar.OpDiv, scalar.OpMin, scalar.OpMax,
	scalar.OpNeg, scalar.OpAbs, scalar.OpSign, scalar.OpFloor, scalar.OpCeil, scalar.OpRound, scalar.OpTrunc,
	scalar.OpSqrt, scalar.OpRsqrt, scalar.OpRecip,
}

// integers adds the operations on integers of one width.
func (l *operations) integers(signed, unsigned dtype.DType) {
	l.add(signed, signed, integerOps...)
	l.add(signed, signed, scalar.OpNeg, scalar.OpAbs, scalar.OpSign)
	l.add(unsigned, unsigned, integerOps...)
	l.add(signed, unsigned, scalar.OpConvert)
	l.add(unsigned, signed, scalar.OpConvert)
}

// choices adds comparisons, selects and conversions from and to bool.
func (l *operations) choices(types ...dtype.DType) {
	for _, t := range types {
		l.add(t, dtype.Bool, comparisonOps...)
		l.add(t, t, scalar.OpSelect)
		l.add(dtype.Bool, t, scalar.OpConvert)
		l.add(t, dtype.Bool, scalar.OpConvert)
	}
}

// widthOperations returns the conversions between 32 and 64 bits. Long kernels load and store
// 32-bit numbers as they do f16.
func widthOperations() []Operation {
	out := []Operation{{scalar.OpConvert, dtype.F32, dtype.F64}, {scalar.OpConvert, dtype.F64, dtype.F32}}
	for _, long := range []dtype.DType{dtype.I64, dtype.U64} {
		out = append(out, Operation{scalar.OpConvert, long, dtype.F64}, Operation{scalar.OpConvert, long, dtype.F32})
		for _, word := range []dtype.DType{dtype.I32, dtype.U32} {
			out = append(out, Operation{scalar.OpConvert, word, long}, Operation{scalar.OpConvert, long, word})
		}
	}
	return append(out, Operation{scalar.OpConvert, dtype.I32, dtype.F64}, Operation{scalar.OpConvert, dtype.U32, dtype.F64},
		Operation{scalar.OpConvert, dtype.F64, dtype.I32}, Operation{scalar.OpConvert, dtype.F32, dtype.I64})
}

// template is the expansion of an operation. In its steps, values from 0 up are results of
// earlier steps, and negative ones are operands: -1 is the first.
type template struct {
	steps []step
	root  Value
}

// templates returns the templates, each of which is built at its first use.
var templates = sync.OnceValue(func() map[Operation]func() *template {
	all := map[Operation]func() *template{}
	for _, o := range slices.Concat(Operations(), LongOperations()) {
		all[o] = sync.OnceValue(func() *template { return newTemplate(scalar.Simplify(o.Expr())) })
	}
	written := func(t dtype.DType, list map[scalar.Op]func(b *builder, x argument) argument) {
		for op, write := range list {
			all[Operation{op, t, t}] = once(t, write)
		}
	}
	for _, t := range []dtype.DType{dtype.F32, dtype.F64} {
		written(t, extremes)
		written(t, map[scalar.Op]func(b *builder, x argument) argument{scalar.OpRem: remainder})
	}
	written(dtype.F32, functions)
	written(dtype.F64, doubleFunctions)
	written(dtype.F64, map[scalar.Op]func(b *builder, x argument) argument{scalar.OpPow: doublePow, scalar.OpAtan2: doubleAtan2})
	return all
})

// once returns a function's template, which its first use builds.
func once(t dtype.DType, write func(b *builder, x argument) argument) func() *template {
	return sync.OnceValue(func() *template {
		b := &builder{typ: t}
		root := write(b, argument{value: -1})
		return &template{steps: b.steps, root: root.value}
	})
}

// templateOf returns the template of an operation, nil where there is none. f16 and bf16 are
// computed in f32 and rounded: for sums, products, quotients and roots that equals rounding
// once, as f32 has more than twice the digits (S. A. Figueroa, When is double rounding
// innocuous?, 1995). Integers of 8 or 16 bits are computed in i32 and wrapped.
func templateOf(o Operation) *template {
	if make := templates()[o]; make != nil {
		return make()
	}
	if o.Op == scalar.OpBitcast {
		return nil // of narrow types, which lanes hold widened
	}
	wide := Operation{o.Op, widened(o.From), widened(o.To)}
	switch {
	case wide.From == dtype.F32 && o.To.IsInteger():
		wide.To = o.To // the conversion wraps
	case o.Op == scalar.OpConvert && o.From.Size() == 4 && o.From.IsInteger() && o.To.IsFloat():
		return nil // double rounding may differ
	}
	t := &template{root: -1}
	switch {
	case wide == o, o.From.Size() == 8 && o.To != wide.To: // long kernels convert to 32 bits only
		return nil
	case isNarrow(o.To) && (o.Op == scalar.OpShl || o.Op == scalar.OpShr):
		t = narrowShift(o)
	case o.Op != scalar.OpConvert || wide.From != wide.To:
		make := templates()[wide]
		if make == nil {
			return nil
		}
		t = make()
	}
	if o.To == wide.To || keepsWidth[o.Op] && (o.To.IsFloat() || o.Op != scalar.OpNeg && o.Op != scalar.OpAbs) {
		return t
	}
	b := &builder{typ: dtype.F32, steps: slices.Clone(t.steps)}
	root := b.roundNarrow(argument{value: t.root}, o.To)
	return &template{steps: b.steps, root: root.value}
}

// keepsWidth are operations whose result is an operand up to its sign.
var keepsWidth = map[scalar.Op]bool{
	scalar.OpSelect: true, scalar.OpMin: true, scalar.OpMax: true, scalar.OpNeg: true, scalar.OpAbs: true,
}

// widened returns the type in which a narrow one is computed.
func widened(t dtype.DType) dtype.DType {
	switch {
	case t == dtype.F16 || t == dtype.BF16:
		return dtype.F32
	case isNarrow(t):
		return dtype.I32
	}
	return t
}

// isNarrow reports whether a type is an integer of 8 or 16 bits.
func isNarrow(t dtype.DType) bool { return t.IsInteger() && t.Bits() < 32 }

// narrowShift masks the shift count to the bits of the narrow type.
func narrowShift(o Operation) *template {
	b := &builder{typ: dtype.I32}
	mask := argument{bits: uint64(o.From.Bits() - 1), constant: true}
	root := b.real(o.Op, argument{value: -1}, b.real(scalar.OpAnd, argument{value: -2}, mask))
	return &template{steps: b.steps, root: root.value}
}

func newTemplate(root scalar.Expr) *template {
	t := &template{}
	at := map[scalar.Expr]Value{}
	scalar.Walk(root, func(x scalar.Expr) {
		switch x.Op {
		case scalar.OpConst:
			return
		case scalar.OpArg:
			at[x] = Value(-x.Ref - 1)
			return
		}
		s := step{op: x.Op, typ: x.Type, from: x.Args[len(x.Args)-1].Type}
		for _, a := range x.Args {
			if a.Op == scalar.OpConst {
				s.args = append(s.args, argument{bits: wordOf(a), constant: true})
			} else {
				s.args = append(s.args, argument{value: at[a]})
			}
		}
		at[x] = Value(len(t.steps))
		t.steps = append(t.steps, s)
	})
	t.root = at[root]
	return t
}

// wordOf returns the bits of a constant.
func wordOf(x scalar.Expr) uint64 {
	v, _ := x.Value()
	switch {
	case x.Type == dtype.F64:
		return math.Float64bits(v.F)
	case x.Type.IsFloat():
		return uint64(math.Float32bits(float32(v.F)))
	}
	if x.Type.Size() == 8 {
		return uint64(v.I)
	}
	return uint64(uint32(v.I))
}

// Expr returns the expansion of an operation on operands 0, 1 and 2, with the error bounds
// that package scalar documents.
func (o Operation) Expr() scalar.Expr {
	x, y := scalar.Arg(0, o.From), scalar.Arg(1, o.From)
	switch o.Op {
	case scalar.OpSelect:
		return scalar.Select(scalar.Arg(0, dtype.Bool), scalar.Arg(1, o.From), scalar.Arg(2, o.From))
	case scalar.OpMin, scalar.OpMax:
		switch {
		case o.From.IsFloat():
			return minMaxNaN(o.Op, x, y)
		case o.From.Size() == 8: // not an instruction of all processors
			return scalar.Select(better(o.Op, x, y), x, y)
		}
	case scalar.OpAbs:
		if o.From == dtype.I64 {
			return scalar.Select(scalar.Lt(x, scalar.ConstI(o.From, 0)), scalar.Neg(x), x)
		}
	case scalar.OpDiv, scalar.OpRem:
		if o.From == dtype.I32 {
			quotient, rest := divideInts(x, y)
			if o.Op == scalar.OpDiv {
				return quotient
			}
			return rest
		}
	case scalar.OpIsNaN:
		return scalar.Ne(x, x)
	case scalar.OpIsFinite:
		return scalar.Le(scalar.Abs(x), scalar.ConstF(o.From, o.From.MaxFloat()))
	case scalar.OpRsqrt:
		return scalar.Div(scalar.ConstF(o.From, 1), scalar.Sqrt(x))
	case scalar.OpRound:
		return scalar.Round(x)
	case scalar.OpBitcast:
		return scalar.Bitcast(x, o.To)
	case scalar.OpConvert:
		switch {
		case o.To.IsBool():
			return scalar.Ne(x, scalar.Const(o.From, 0))
		case o.To == dtype.F64 && o.From.IsInteger():
			return doubleOf(scalar.Arg(0, dtype.U64), o.From.IsSigned())
		case o.To == dtype.F32 && o.From.IsInteger() && o.From.Size() == 8:
			return singleOf(scalar.Arg(0, dtype.U64), o.From.IsSigned())
		case o.To == dtype.I64 && o.From.IsFloat():
			return longOf(scalar.Convert(x, dtype.F64))
		case o.To == dtype.I32 && o.From == dtype.F64:
			return scalar.Convert(saturatedLong(x, wholeNumber(scalar.Trunc(x)), math.MinInt32, math.MaxInt32), dtype.I32)
		}
		if o.To == dtype.I32 && o.From == dtype.F32 {
			return saturatedInt(x)
		}
		return rewrite(scalar.Expand(scalar.Convert(x, o.To), scalar.Portable), convertViaI32)
	}
	if o.Op.Arity() == 1 {
		return rewrite(scalar.Expand(scalar.New(o.Op, x), scalar.Portable), convertViaI32, contractFMA)
	}
	return rewrite(scalar.Expand(scalar.New(o.Op, x, y), scalar.Portable), convertViaI32, equalBools)
}

// saturatedInt converts an f32 to i32. What the instruction returns for numbers above the range and for NaN depends on
// the processor; for those below the range it is the least i32.
func saturatedInt(x scalar.Expr) scalar.Expr {
	r := scalar.Select(scalar.Ge(x, scalar.ConstF(dtype.F32, 1<<31)), scalar.ConstI(dtype.I32, math.MaxInt32), scalar.Convert(x, dtype.I32))
	return scalar.Select(scalar.Ne(x, x), scalar.ConstI(dtype.I32, 0), r)
}

// minMaxNaN is a minimum or maximum that is NaN where an operand is.
func minMaxNaN(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	return scalar.Select(scalar.Or(better(op, x, y), scalar.Ne(x, x)), x, y)
}

// better compares two numbers for a minimum or a maximum: it is true where the first is the
// result.
func better(op scalar.Op, x, y scalar.Expr) scalar.Expr {
	if op == scalar.OpMax {
		return scalar.Gt(x, y)
	}
	return scalar.Lt(x, y)
}

// rewrite applies rules to each node of e, operands first.
func rewrite(e scalar.Expr, rules ...func(n scalar.Expr) scalar.Expr) scalar.Expr {
	done := map[scalar.Expr]scalar.Expr{}
	var visit func(n scalar.Expr) scalar.Expr
	visit = func(n scalar.Expr) scalar.Expr {
		if r, ok := done[n]; ok || len(n.Args) == 0 {
			if !ok {
				r = n
			}
			return r
		}
		args := make([]scalar.Expr, len(n.Args))
		for i, a := range n.Args {
			args[i] = visit(a)
		}
		r := scalar.Rebuild(n, args...)
		for _, rule := range rules {
			r = rule(r)
		}
		done[n] = r
		return r
	}
	return visit(e)
}

// contractFMA replaces a product plus a term by a fused multiply-add, which expansions of one
// operand allow.
func contractFMA(n scalar.Expr) scalar.Expr {
	if n.Op != scalar.OpAdd || n.Type != dtype.F32 {
		return n
	}
	a, b := n.Args[0], n.Args[1]
	switch {
	case a.Op == scalar.OpMul:
		return scalar.Fma(a.Args[0], a.Args[1], b)
	case b.Op == scalar.OpMul:
		return scalar.Fma(b.Args[0], b.Args[1], a)
	}
	return n
}

// equalBools expresses equality of booleans by operations that masks have.
func equalBools(n scalar.Expr) scalar.Expr {
	if n.Op == scalar.OpEq && n.Args[0].Type.IsBool() {
		return scalar.Not(scalar.Xor(n.Args[0], n.Args[1]))
	}
	return n
}

// convertViaI32 expresses conversions between f32 and integers other than i32 by those that
// all processors have: a u32 becomes f32 as two halves, whose sum rounds once; f32 becomes a
// narrower integer through i32.
func convertViaI32(n scalar.Expr) scalar.Expr {
	if n.Op != scalar.OpConvert {
		return n
	}
	x := n.Args[0]
	float := func(u scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Convert(u, dtype.I32), dtype.F32) }
	switch {
	case n.Type == dtype.F32 && x.Type == dtype.U32:
		high := float(scalar.Shr(x, scalar.ConstI(dtype.U32, 16)))
		low := float(scalar.And(x, scalar.ConstI(dtype.U32, 0xffff)))
		return scalar.Fma(high, scalar.ConstF(dtype.F32, 65536), low)
	case n.Type == dtype.U32 && x.Type == dtype.F32:
		large := scalar.Ge(x, scalar.ConstF(dtype.F32, 1<<31))
		rest := scalar.Select(large, scalar.Sub(x, scalar.ConstF(dtype.F32, 1<<31)), x)
		u := scalar.Convert(scalar.Convert(rest, dtype.I32), dtype.U32)
		return scalar.Xor(u, scalar.Select(large, scalar.ConstI(dtype.U32, 1<<31), scalar.ConstI(dtype.U32, 0)))
	case n.Type.IsInteger() && n.Type != dtype.I32 && x.Type == dtype.F32:
		return scalar.Convert(scalar.Convert(x, dtype.I32), n.Type)
	}
	return n
}

// doubleOf converts the bits of a 64-bit integer, or of a 32-bit one in a long lane, to f64. Their
// halves are inserted in the low bits of two large numbers, whose sum minus the large numbers
// rounds once.
func doubleOf(u scalar.Expr, signed bool) scalar.Expr {
	const (
		low  = 1 << 52 // has an ulp of 1
		high = 1 << 84 // has an ulp of 2³²
	)
	t, added := dtype.U64, high+float64(low)
	top := math.Float64bits(high)
	if signed {
		top |= 1 << 31 // as if 2⁶³ were added to x
		added += 1 << 63
	}
	word := func(bits uint64) scalar.Expr { return scalar.ConstI(t, int64(bits)) }
	upper := scalar.Bitcast(scalar.Xor(scalar.Shr(u, word(32)), word(top)), dtype.F64)
	lower := scalar.Bitcast(scalar.Or(scalar.And(u, word(math.MaxUint32)), word(math.Float64bits(low))), dtype.F64)
	return scalar.Add(scalar.Sub(upper, scalar.ConstF(dtype.F64, added)), lower)
}

// singleOf converts the bits of a 64-bit integer to f32, through f64. The bits of a large one below the digits of f64
// become one odd bit, which f32 rounds as it would round them.
func singleOf(u scalar.Expr, signed bool) scalar.Expr {
	const exact, below = 1 << 53, 1<<11 - 1
	word := func(bits uint64) scalar.Expr { return scalar.ConstI(dtype.U64, int64(bits)) }
	isLarge := scalar.Gt(u, word(exact))
	if signed {
		isLarge = scalar.Gt(scalar.Add(u, word(exact)), word(2*exact))
	}
	odd := scalar.And(scalar.Or(u, scalar.Add(scalar.And(u, word(below)), word(below))), word(^uint64(below)))
	return scalar.Convert(doubleOf(scalar.Select(isLarge, odd, u), signed), dtype.F32)
}

// longOf converts an f64 to i64: the halves of its whole part are numbers that f64 holds exactly.
func longOf(x scalar.Expr) scalar.Expr {
	number := func(x float64) scalar.Expr { return scalar.ConstF(dtype.F64, x) }
	whole := scalar.Trunc(x)
	high := scalar.Floor(scalar.Mul(whole, number(0x1p-32)))
	low := wholeNumber(scalar.Fma(high, number(-1<<32), whole))
	r := scalar.Add(scalar.Shl(wholeNumber(high), scalar.ConstI(dtype.I64, 32)), low)
	return saturatedLong(x, r, math.MinInt64, math.MaxInt64)
}

// wholeNumber converts a whole f64 below 2⁵¹ to i64: added to a large number, it is the low bits of the sum.
func wholeNumber(x scalar.Expr) scalar.Expr {
	const large = 3 << 51 // has an ulp of 1
	sum := scalar.Bitcast(scalar.Add(x, scalar.ConstF(dtype.F64, large)), dtype.I64)
	return scalar.Sub(sum, scalar.ConstI(dtype.I64, int64(math.Float64bits(large))))
}

// saturatedLong is r, the i64 of an f64 in a range, and a bound of the range for other numbers, 0 for NaN.
func saturatedLong(x, r scalar.Expr, least, most int64) scalar.Expr {
	r = scalar.Select(scalar.Ge(x, scalar.ConstF(dtype.F64, float64(most))), scalar.ConstI(dtype.I64, most), r)
	r = scalar.Select(scalar.Le(x, scalar.ConstF(dtype.F64, float64(least))), scalar.ConstI(dtype.I64, least), r)
	return scalar.Select(scalar.Ne(x, x), scalar.ConstI(dtype.I64, 0), r)
}

// divideInts returns the quotient of two i32 and the rest, as package scalar defines them. The quotient of the numbers
// in f32 is off by up to 2⁹, that of the rest and the divisor by one. Sums wrap, as do quotients out of range.
func divideInts(x, y scalar.Expr) (quotient, rest scalar.Expr) {
	zero, one := scalar.ConstI(dtype.I32, 0), scalar.ConstI(dtype.I32, 1)
	least := func(x scalar.Expr) scalar.Expr { return scalar.Min(x, scalar.Neg(x)) } // -|x|, which is in range
	y = scalar.Select(scalar.Eq(y, zero), one, y)
	quotient, rest = zero, x
	for range 2 {
		part := scalar.Convert(scalar.Div(scalar.Convert(rest, dtype.F32), scalar.Convert(y, dtype.F32)), dtype.I32)
		quotient, rest = scalar.Add(quotient, part), scalar.Sub(rest, scalar.Mul(part, y))
	}
	opposite := scalar.And(scalar.Ne(rest, zero), scalar.Lt(scalar.Xor(rest, x), zero))
	tooLarge := scalar.Le(least(rest), least(y))
	toZero := scalar.Select(scalar.Lt(scalar.Xor(x, y), zero), one, scalar.ConstI(dtype.I32, -1)) // changes the quotient
	by := scalar.Select(opposite, toZero, scalar.Select(tooLarge, scalar.Neg(toZero), zero))
	return scalar.Add(quotient, by), scalar.Sub(rest, scalar.Mul(by, y))
}
