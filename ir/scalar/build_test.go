package scalar

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// someValues returns values of type t that identities could get wrong.
func someValues(t dtype.DType) []Value {
	var vs []Value
	switch {
	case t.IsBool():
		return []Value{{I: 0}, {I: 1}}
	case t.IsInteger():
		for _, x := range []int64{0, 1, -1, 2, 7, -8, 100, math.MaxInt64, math.MinInt64, 1 << 31, 1 << 7, 255} {
			vs = append(vs, Value{I: t.Wrap(x)})
		}
		return vs
	}
	for _, x := range []float64{0, negZero, 1, -1, 2, -3, 0.5, 3.5, 1e-3, 1e30, math.Inf(1), math.Inf(-1), math.NaN()} {
		x = t.Real().Round(x)
		vs = append(vs, Value{F: x})
		if t.IsComplex() {
			vs[len(vs)-1] = Value{C: complex(x, t.Real().Round(1-x))}
			vs = append(vs, Value{C: complex(x, 0)})
		}
	}
	return vs
}

// same reports whether two values of type t are the same, signs of zero
// included, all NaN alike.
func same(t dtype.DType, a, b Value) bool {
	eq := func(x, y float64) bool {
		return x == y && math.Signbit(x) == math.Signbit(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	if t.IsComplex() {
		return eq(real(a.C), real(b.C)) && eq(imag(a.C), imag(b.C))
	}
	return eq(a.F, b.F) && a.I == b.I
}

// operandTypes returns the types of the operands of op on type t.
func operandTypes(op Op, t dtype.DType) []dtype.DType {
	types := []dtype.DType{t, t, t}[:op.Arity()]
	if op == OpSelect {
		types = []dtype.DType{dtype.Bool, t, t}
	}
	return types
}

// TestConstructorsKeepValues applies every operation to constants and arguments
// in all combinations, and compares what its constructor makes of them with the
// operation itself.
func TestConstructorsKeepValues(t *testing.T) {
	types := []dtype.DType{dtype.Bool, dtype.I8, dtype.I32, dtype.U32, dtype.U64, dtype.F16, dtype.F32, dtype.F64, dtype.C64}
	for op := range opCount {
		for _, typ := range types {
			if op.info().result == ofNode || kindOf(typ)&op.info().operands == 0 || op == OpMakeComplex && typ == dtype.F16 {
				continue
			}
			ts := operandTypes(op, typ)
			eachValues(ts, func(v [3]Value) {
				for constants := range 1 << len(ts) {
					checkConstructor(t, op, ts, v, constants)
				}
			})
		}
	}
}

// eachValues calls visit with all combinations of values of the types.
func eachValues(types []dtype.DType, visit func(v [3]Value)) {
	var v [3]Value
	var set func(i int)
	set = func(i int) {
		if i == len(types) {
			visit(v)
			return
		}
		vs := someValues(types[i])
		if i == 2 {
			vs = vs[:min(4, len(vs))]
		}
		for _, v[i] = range vs {
			set(i + 1)
		}
	}
	set(0)
}

// checkConstructor builds op with the operands in the bit set constants as
// constants and the others as arguments, the first two the same argument if
// their values are.
func checkConstructor(t *testing.T, op Op, types []dtype.DType, v [3]Value, constants int) {
	t.Helper()
	args := make([]Expr, len(types))
	for i, typ := range types {
		switch {
		case constants>>i&1 == 1:
			args[i] = constant(typ, v[i])
		case i == 1 && types[0] == typ && same(typ, v[0], v[1]) && constants&1 == 0:
			args[i] = args[0]
		default:
			args[i] = Arg(i, typ)
		}
	}
	e := New(op, args...)
	raw := &Node{Op: op, Type: e.Type, Args: args}
	got, err := Eval(e, &Env{Args: v[:]})
	want := apply(raw, v, Exact)
	if op == OpMulZero && want.F == 0 {
		got.F, want.F = got.F+0, want.F+0 // signs of zero are left open
	}
	if err != nil || !same(e.Type, got, want) {
		t.Fatalf("%v of %v with operands %v (constants %b) is %v = %v, %v; want %v", op, types, v[:len(types)], constants, e, got, err, want)
	}
}

func TestPairsOfUnaryOperationsKeepValues(t *testing.T) {
	for outer := range opCount {
		for inner := range opCount {
			for _, typ := range []dtype.DType{dtype.Bool, dtype.I8, dtype.U8, dtype.F32, dtype.C64} {
				checkPair(t, outer, inner, typ)
			}
		}
	}
}

func checkPair(t *testing.T, outer, inner Op, typ dtype.DType) {
	if outer.Arity() != 1 || inner.Arity() != 1 || outer.info().result == ofNode || inner.info().result == ofNode {
		return
	}
	x := Arg(0, typ)
	e, err := Catch(func() Expr { return New(outer, New(inner, x)) })
	if err != nil {
		return // not defined for the type
	}
	mid := &Node{Op: inner, Type: New(inner, x).Type, Args: []Expr{x}}
	raw := &Node{Op: outer, Type: e.Type, Args: []Expr{mid}}
	for _, v := range someValues(typ) {
		got, _ := Eval(e, &Env{Args: []Value{v}})
		want := apply(raw, [3]Value{apply(mid, [3]Value{v}, Exact)}, Exact)
		if !same(e.Type, got, want) {
			t.Errorf("%v(%v(%v)) of %v is %v = %v, want %v", outer, inner, v, typ, e, got, want)
		}
	}
}

func TestConversionsThereAndBackKeepValues(t *testing.T) {
	types := []dtype.DType{
		dtype.Bool, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64,
		dtype.F16, dtype.BF16, dtype.F32, dtype.F64,
	}
	for _, from := range types {
		for _, by := range types {
			x := Arg(0, from)
			mid := &Node{Op: OpConvert, Type: by, Args: []Expr{x}}
			e := Convert(Convert(x, by), from)
			for _, v := range someValues(from) {
				got, _ := Eval(e, &Env{Args: []Value{v}})
				want := v
				if from != by {
					m := apply(mid, [3]Value{v}, Exact)
					want = convert(m, by, from, Exact)
				}
				if !same(from, got, want) {
					t.Errorf("%v to %v and back: %v became %v, want %v (%v)", from, by, v, got, want, e)
				}
			}
		}
	}
}

func TestAlgebraicIdentities(t *testing.T) {
	x, y, i, b := Arg(0, dtype.F32), Arg(1, dtype.F32), Arg(2, dtype.I32), Arg(3, dtype.Bool)
	f, c := func(v float64) Expr { return ConstF(dtype.F32, v) }, func(v int64) Expr { return ConstI(dtype.I32, v) }
	for _, tt := range []struct {
		got  Expr
		want string
	}{
		{Mul(x, f(1)), "%0:f32"},
		{Mul(f(-1), x), "neg(%0:f32)"},
		{Mul(x, f(0)), "mul(%0:f32, 0:f32)"},
		{Add(x, f(0)), "add(%0:f32, 0:f32)"},
		{Add(x, f(negZero)), "%0:f32"},
		{Sub(x, f(0)), "%0:f32"},
		{Sub(x, x), "sub(%0:f32, %0:f32)"},
		{Sub(i, i), "0:i32"},
		{Neg(Neg(x)), "%0:f32"},
		{Pow(x, f(2)), "mul(%0:f32, %0:f32)"},
		{Pow(x, f(0)), "1:f32"},
		{MulZero(x, f(3)), "mul(%0:f32, 3:f32)"},
		{MulZero(x, f(math.Inf(1))), "mul_zero(%0:f32, +inf:f32)"},
		{MulZero(f(0), x), "0:f32"},
		{MulZero(f(2), x), "mul(2:f32, %0:f32)"},
		{Select(ConstBool(true), x, y), "%0:f32"},
		{Select(Not(b), x, y), "select(%3:bool, %1:f32, %0:f32)"},
		{Select(b, x, x), "%0:f32"},
		{And(b, ConstBool(true)), "%3:bool"},
		{And(ConstBool(false), b), "false"},
		{Or(b, ConstBool(true)), "true"},
		{Xor(b, ConstBool(true)), "not(%3:bool)"},
		{Mul(i, c(0)), "0:i32"},
		{And(c(-1), i), "%2:i32"},
		{Add(c(2), c(3)), "5:i32"},
		{Div(f(1), f(0)), "+inf:f32"},
		{Sqrt(f(2)), "1.4142135:f32"},
		{ConstF(dtype.F32, 0.1), "0.1:f32"},
		{Convert(Convert(i, dtype.F64), dtype.I32), "%2:i32"},
		{Convert(Convert(i, dtype.F32), dtype.I32), "convert.i32(convert.f32(%2:i32))"},
		{Bitcast(Bitcast(x, dtype.U32), dtype.F32), "%0:f32"},
		{Real(MakeComplex(x, y)), "%0:f32"},
	} {
		if got := Print(tt.got); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	z := Arg(4, dtype.C64)
	if e := MakeComplex(Real(z), Imag(z)); e != z {
		t.Errorf("the parts of a complex number put together are %s", e)
	}
}

func TestConstOfEveryType(t *testing.T) {
	for typ, want := range map[dtype.DType]string{
		dtype.Bool: "true", dtype.I8: "2:i8", dtype.U64: "2:u64", dtype.F16: "2.5:f16", dtype.F64: "2.5:f64",
		dtype.C64: "complex(2.5:f32, 0:f32)",
	} {
		if got := Print(Const(typ, 2.5)); got != want {
			t.Errorf("Const(%v, 2.5) = %s, want %s", typ, got, want)
		}
	}
}

func TestTypeErrorsAreCaught(t *testing.T) {
	x, h, i, b, z := Arg(0, dtype.F32), Arg(0, dtype.F16), Arg(0, dtype.I32), Arg(0, dtype.Bool), Arg(0, dtype.C64)
	for name, build := range map[string]func() Expr{
		"operands of different types":       func() Expr { return Add(x, h) },
		"arithmetic of bools":               func() Expr { return Add(b, b) },
		"function of an integer":            func() Expr { return Exp(i) },
		"bits of a float":                   func() Expr { return And(x, x) },
		"order of complex numbers":          func() Expr { return Lt(z, z) },
		"condition that is not a bool":      func() Expr { return Select(i, x, x) },
		"branches of different types":       func() Expr { return Select(b, x, h) },
		"nil operand":                       func() Expr { return Neg(nil) },
		"wrong number of operands":          func() Expr { return New(OpAdd, x) },
		"operation without New":             func() Expr { return New(OpLoad, i) },
		"operation that does not exist":     func() Expr { return New(opCount, x) },
		"leaf by New":                       func() Expr { return New(OpArg) },
		"load with a float index":           func() Expr { return LoadAt(0, dtype.F32, x) },
		"load of a packed type":             func() Expr { return LoadAt(0, dtype.Q4_0, i) },
		"argument without a type":           func() Expr { return Arg(0, dtype.Invalid) },
		"bitcast to another width":          func() Expr { return Bitcast(x, dtype.I64) },
		"conversion to a packed type":       func() Expr { return Convert(x, dtype.Q8_0) },
		"conversion of complex to real":     func() Expr { return Convert(z, dtype.F32) },
		"complex of halves":                 func() Expr { return MakeComplex(h, h) },
		"float constant of an integer type": func() Expr { return ConstF(dtype.I32, 1) },
	} {
		e, err := Catch(build)
		var want *TypeError
		if !errors.As(err, &want) || want.Error() == "" || e != nil {
			t.Errorf("%s: %v, %v; want a TypeError", name, e, err)
		}
	}
	if e, err := Catch(func() Expr { return Add(x, x) }); err != nil || e.Op != OpAdd {
		t.Errorf("Catch of a good expression: %v, %v", e, err)
	}
}

func TestCheckedArithmeticIsExact(t *testing.T) {
	xs := []int64{0, 1, -1, 2, 3, -7, 1 << 31, 1 << 32, -1 << 32, 1 << 62, -1 << 62, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 3037000500}
	for _, a := range xs {
		for _, b := range xs {
			for _, op := range []struct {
				name  string
				do    func(a, b int64) (int64, bool)
				exact func(z, a, b *big.Int) *big.Int
			}{{"+", add, (*big.Int).Add}, {"-", sub, (*big.Int).Sub}, {"·", mul, (*big.Int).Mul}} {
				want := op.exact(new(big.Int), big.NewInt(a), big.NewInt(b))
				got, ok := op.do(a, b)
				if ok != want.IsInt64() || ok && got != want.Int64() {
					t.Errorf("%d %s %d = %d, %v; want %v", a, op.name, b, got, ok, want)
				}
			}
		}
	}
}
