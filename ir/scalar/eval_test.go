package scalar

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Each row is a meaning that the package's comment or a constructor's states,
// with the value worked out by hand.
func TestEvalReference(t *testing.T) {
	i32s := func(x int64) Expr { return ConstI(dtype.I32, x) }
	u8 := func(x int64) Expr { return ConstI(dtype.U8, x) }
	f := func(x float64) Expr { return ConstF(dtype.F32, x) }
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		name string
		e    Expr
		want Value
	}{
		{"signed sum wraps", Add(i32s(math.MaxInt32), i32s(1)), Value{I: math.MinInt32}},
		{"unsigned difference wraps", Sub(u8(3), u8(5)), Value{I: 254}},
		{"div truncates", Div(i32s(-7), i32s(2)), Value{I: -3}},
		{"rem has the sign of the dividend", Rem(i32s(-7), i32s(2)), Value{I: -1}},
		{"floordiv rounds down", FloorDiv(i32s(-7), i32s(2)), Value{I: -4}},
		{"mod is not negative", Mod(i32s(-7), i32s(2)), Value{I: 1}},
		{"mod has the sign of the divisor", Mod(i32s(7), i32s(-2)), Value{I: -1}},
		{"zero divides as one", Div(i32s(7), i32s(0)), Value{I: 7}},
		{"remainder by zero", Rem(i32s(7), i32s(0)), Value{I: 0}},
		{"floordiv by zero", FloorDiv(i32s(-7), i32s(0)), Value{I: -7}},
		{"smallest by minus one", Div(i32s(math.MinInt32), i32s(-1)), Value{I: math.MinInt32}},
		{"u64 divides unsigned", Div(ConstI(dtype.U64, -2), ConstI(dtype.U64, 2)), Value{I: math.MaxInt64}},
		{"u64 compares unsigned", Lt(ConstI(dtype.U64, -1), ConstI(dtype.U64, 1)), Value{I: 0}},
		{"signed shift repeats the sign", Shr(i32s(-8), i32s(1)), Value{I: -4}},
		{"unsigned shift does not", Shr(u8(0x80), u8(7)), Value{I: 1}},
		{"shift count modulo the width", Shl(u8(3), u8(9)), Value{I: 6}},
		{"complement of u8", Not(u8(1)), Value{I: 254}},
		{"dot product of signed bytes", Dot4(i32s(0x01ff7f80), i32s(0x05020380), i32s(-7)), Value{I: 5 - 2 + 3*127 + 128*128 - 7}},
		{"dot product that wraps", Dot4(i32s(1), i32s(1), i32s(math.MaxInt32)), Value{I: math.MinInt32}},
		{"popcount of a negative", PopCount(i32s(-1)), Value{I: 32}},
		{"negation of a bool", Not(ConstBool(true)), Value{I: 0}},
		{"round half to even", Round(f(2.5)), Value{F: 2}},
		{"rem of floats", Rem(f(-5.5), f(2)), Value{F: -1.5}},
		{"max of NaN", Max(f(inf), f(nan)), Value{F: nan}},
		{"min of NaN", Min(f(nan), f(1)), Value{F: nan}},
		{"clamp", Clamp(f(9), f(0), f(6)), Value{F: 6}},
		{"sign keeps NaN", Sign(f(nan)), Value{F: nan}},
		{"zero tangent of an infinite coefficient", MulZero(f(0), f(inf)), Value{F: 0}},
		{"sigmoid far out", Sigmoid(f(-200)), Value{F: 0}},
		{"pow of a negative", Pow(f(-2), f(3)), Value{F: -8}},
		{"pow that is undefined", Pow(f(-2), f(0.5)), Value{F: nan}},
		{"pow at exponent 0", Pow(f(nan), f(0)), Value{F: 1}},
		{"convert saturates", Convert(f(1e10), dtype.I32), Value{I: math.MaxInt32}},
		{"convert truncates", Convert(f(-2.9), dtype.I32), Value{I: -2}},
		{"convert NaN to an integer", Convert(f(nan), dtype.U8), Value{I: 0}},
		{"convert a negative to unsigned", Convert(f(-3), dtype.U32), Value{I: 0}},
		{"convert integers wraps", Convert(i32s(300), dtype.U8), Value{I: 44}},
		{"convert to bool", Convert(f(0.25), dtype.Bool), Value{I: 1}},
		{"convert u64 to float", Convert(ConstI(dtype.U64, -1), dtype.F64), Value{F: 0x1p64}},
		{"convert rounds once", Convert(ConstI(dtype.I64, 1<<60+1<<36+1), dtype.F32), Value{F: 0x1p60 + 0x1p37}},
		{"bits of a float", Bitcast(f(1), dtype.I32), Value{I: 0x3f800000}},
		{"float of bits", Bitcast(ConstI(dtype.U16, 0x3c00), dtype.F16), Value{F: 1}},
		{"modulus", Abs(ConstC(dtype.C64, 3-4i)), Value{F: 5}},
		{"complex product", Mul(ConstC(dtype.C64, 1+2i), ConstC(dtype.C64, 3-1i)), Value{C: 5 + 5i}},
		{"complex quotient", Div(ConstC(dtype.C64, 5+5i), ConstC(dtype.C64, 3-1i)), Value{C: 1 + 2i}},
		{"conjugate", Conj(ConstC(dtype.C128, 1+2i)), Value{C: 1 - 2i}},
		{"real to complex", Convert(f(2), dtype.C64), Value{C: 2}},
	} {
		// Constants fold, so this is also the result of the constructors.
		got, err := Eval(tt.e, &Env{})
		if err != nil || !same(tt.e.Type, got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestEvalModes(t *testing.T) {
	third := Div(Arg(0, dtype.F32), Arg(1, dtype.F32))
	half := Convert(third, dtype.F16)
	for _, tt := range []struct {
		e    Expr
		mode Rounding
		want float64
	}{
		{third, Exact, float64(float32(1) / 3)},
		{third, Reference, 1.0 / 3},
		{half, Exact, 0.333251953125},
		{half, Reference, 1.0 / 3},
		{Bitcast(Bitcast(third, dtype.I32), dtype.F32), Exact, float64(float32(1) / 3)},
	} {
		got, err := Eval(tt.e, &Env{Args: []Value{{F: 1}, {F: 3}}, Rounding: tt.mode})
		if err != nil || got.F != tt.want {
			t.Errorf("mode %d: %v = %v, %v; want %v", tt.mode, tt.e, got.F, err, tt.want)
		}
	}
	bits := Bitcast(third, dtype.U32)
	got, err := Eval(bits, &Env{Args: []Value{{F: 1}, {F: 3}}, Rounding: Reference})
	if want := int64(math.Float32bits(float32(1) / 3)); err != nil || got.I != want {
		t.Errorf("bits in reference mode %#x, %v; want %#x", got.I, err, want)
	}
}

func TestEvalOfLeaves(t *testing.T) {
	i := NewVar("i", dtype.I32, 0, 9)
	e := Add(LoadAt(3, dtype.F32, Add(i, ConstI(dtype.I32, 1))), Arg(1, dtype.F32))
	full := Env{
		Args: []Value{{}, {F: 0.5}},
		Vars: map[string]Value{"i": {I: 4}},
		Load: func(slot int, typ dtype.DType, index int64) (Value, error) {
			return Value{F: float64(100*slot) + float64(index)}, nil
		},
	}
	if got, err := Eval(e, &full); err != nil || got.F != 305.5 {
		t.Errorf("got %v, %v; want 305.5", got, err)
	}

	broken := errors.New("broken")
	for name, change := range map[string]func(env *Env){
		"variable i":    func(env *Env) { env.Vars = nil },
		"buffer slot 3": func(env *Env) { env.Load = nil },
		"argument 1":    func(env *Env) { env.Args = env.Args[:1] },
		"broken": func(env *Env) {
			env.Load = func(int, dtype.DType, int64) (Value, error) { return Value{}, broken }
		},
	} {
		env := full
		change(&env)
		_, err := Eval(e, &env)
		var leaf *EvalError
		if missing := errors.As(err, &leaf) && leaf.Leaf == name; !missing && !errors.Is(err, broken) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestProgramsTakeVariablesByNumberAndReuseMemory(t *testing.T) {
	i, j := FreeVar("i", dtype.I32), FreeVar("j", dtype.I32)
	p := Compile(Mul(j, i), Sub(i, j), i)
	names := p.Vars()
	if len(names) != 2 || names[0] != "j" || names[1] != "i" {
		t.Fatalf("Vars() = %v, want [j i]", names)
	}
	env := &Env{Slots: []Value{{I: 7}, {I: 10}}}
	out, err := p.Run(env, nil)
	if err != nil || len(out) != 3 || out[0].I != 70 || out[1].I != 3 || out[2].I != 10 {
		t.Fatalf("Run = %v, %v", out, err)
	}
	if n := testing.AllocsPerRun(10, func() { out, _ = p.Run(env, out) }); n != 0 {
		t.Errorf("a repeated run allocates %v times", n)
	}
	env.Slots = env.Slots[:1]
	if _, err := p.Run(env, out); err == nil {
		t.Error("a missing variable is no error")
	}
}

func BenchmarkRun(b *testing.B) {
	p := Compile(Expand(Tanh(Arg(0, dtype.F32)), Portable))
	env := &Env{Args: []Value{{F: 0.7}}}
	var out []Value
	for b.Loop() {
		out, _ = p.Run(env, out)
	}
	b.ReportMetric(float64(len(p.code)), "ops")
}
