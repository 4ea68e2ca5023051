package scalar

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

func ivar(name string, lo, hi int64) Expr { return NewVar(name, dtype.I32, lo, hi) }

func int32s(x int64) Expr { return ConstI(dtype.I32, x) }

func TestSimplifyRewritesIndexArithmetic(t *testing.T) {
	i, j, k := ivar("i", 0, 9), ivar("j", 0, 3), ivar("k", 0, 15)
	x := ivar("x", 0, 1000)
	c := int32s
	flat := Add(Mul(i, c(4)), j)
	nested := Add(Mul(Add(Mul(i, c(4)), j), c(16)), k)
	for _, tt := range []struct {
		name string
		in   Expr
		want string
	}{
		{"quotient of a row-major index", FloorDiv(flat, c(4)), "i:i32[0..9]"},
		{"remainder of a row-major index", Mod(flat, c(4)), "j:i32[0..3]"},
		{"truncating quotient", Div(flat, c(4)), "i:i32[0..9]"},
		{"truncating remainder", Rem(flat, c(4)), "j:i32[0..3]"},
		{"middle digit", Mod(FloorDiv(nested, c(16)), c(4)), "j:i32[0..3]"},
		{"first digit", FloorDiv(nested, c(64)), "i:i32[0..9]"},
		{"split and joined", Add(Mul(Div(x, c(7)), c(7)), Rem(x, c(7))), "x:i32[0..1000]"},
		{"split in three and joined", Add(Add(Mul(Div(x, c(12)), c(12)), Mul(Rem(Div(x, c(4)), c(3)), c(4))), Rem(x, c(4))), "x:i32[0..1000]"},
		{"joined with a reduced remainder", Add(Mul(Div(Add(Mul(i, c(32)), x), c(5)), c(10)), Mul(Rem(Add(Mul(i, c(2)), x), c(5)), c(2))), "add(mul(i:i32[0..9], 64:i32), mul(x:i32[0..1000], 2:i32))"},
		{"not joined with another remainder", Add(Mul(Div(Add(Mul(i, c(3)), x), c(2)), c(2)), Rem(x, c(2))), "add(mul(floordiv(add(mul(i:i32[0..9], 3:i32), x:i32[0..1000]), 2:i32), 2:i32), mod(x:i32[0..1000], 2:i32))"},
		{"nested quotients", Div(Div(x, c(4)), c(3)), "div(x:i32[0..1000], 12:i32)"},
		{"nested remainders", Rem(Rem(x, c(12)), c(4)), "mod(x:i32[0..1000], 4:i32)"},
		{"flooring becomes truncating", Mod(x, c(5)), "rem(x:i32[0..1000], 5:i32)"},
		{"remainder lifted above zero", Mod(Sub(x, c(1)), c(5)), "rem(add(x:i32[0..1000], 4:i32), 5:i32)"},
		{"flooring stays for negatives", Mod(Sub(x, i), c(5)), "mod(sub(x:i32[0..1000], i:i32[0..9]), 5:i32)"},
		{"common factor of a quotient", Div(Mul(x, c(4)), c(12)), "div(x:i32[0..1000], 3:i32)"},
		{"common factor of a remainder", Rem(Mul(x, c(4)), c(12)), "mul(rem(x:i32[0..1000], 3:i32), 4:i32)"},
		{"dividend kept from falling below zero", Div(Sub(Mul(ivar("r", 1, 9), c(8)), j), c(8)), "floordiv(sub(mul(r:i32[1..9], 8:i32), j:i32[0..3]), 8:i32)"},
		{"terms cancel", Sub(Add(i, x), i), "x:i32[0..1000]"},
		{"terms in one order", Add(Add(j, c(3)), Add(Mul(i, c(4)), j)), "add(add(mul(i:i32[0..9], 4:i32), mul(j:i32[0..3], 2:i32)), 3:i32)"},
		{"bound that always holds", Select(Lt(flat, c(40)), x, c(0)), "x:i32[0..1000]"},
		{"bound that never holds", Ge(flat, c(40)), "false"},
		{"bound that may hold", Lt(flat, c(39)), "lt(add(mul(i:i32[0..9], 4:i32), j:i32[0..3]), 39:i32)"},
		{"held inside one place", Select(Le(c(0), Sub(j, c(3))), Sub(j, c(3)), c(0)), "0:i32"},
		{"held inside one place from both sides", Select(And(Le(c(0), Sub(j, c(1))), Le(Sub(j, c(1)), c(0))), Sub(j, c(1)), c(0)), "0:i32"},
		{"held inside two places", Select(Le(c(0), Sub(j, c(2))), Sub(j, c(2)), c(0)), "t0 = sub(j:i32[0..3], 2:i32)\nselect(le(0:i32, t0), t0, 0:i32)"},
		{"difference decides", Lt(x, Add(x, c(1))), "true"},
		{"conjunction of a true bound", And(Ge(i, c(0)), Lt(i, j)), "lt(i:i32[0..9], j:i32[0..3])"},
		{"negated bound", Not(Lt(i, j)), "le(j:i32[0..3], i:i32[0..9])"},
		{"clamp of what is inside", Clamp(i, c(0), c(9)), "i:i32[0..9]"},
		{"min by range", Min(i, c(9)), "i:i32[0..9]"},
		{"single iteration", Add(ivar("n", 5, 5), i), "add(i:i32[0..9], 5:i32)"},
		{"there and back", Convert(Convert(i, dtype.U32), dtype.I32), "i:i32[0..9]"},
	} {
		if got := Print(Simplify(tt.in)); got != tt.want {
			t.Errorf("%s: Simplify(%s)\n got %s\nwant %s", tt.name, Print(tt.in), got, tt.want)
		}
	}
}

func TestSimplifyKeepsWrappingSumsShared(t *testing.T) {
	// A sum that may wrap is not decomposed, so a chain that uses each sum twice keeps its length.
	x, y := Arg(0, dtype.U32), Arg(1, dtype.U32)
	for range 20 {
		x = Add(x, y)
		y = Xor(Mul(y, ConstI(dtype.U32, 3)), x)
	}
	if got, want := Count(Simplify(x)), Count(x); got > want {
		t.Errorf("Count grew from %d to %d", want, got)
	}
}

func TestSimplifyKeepsDividendsInsideTheType(t *testing.T) {
	// x - 7k + y fits a u8; x + y, which has the same remainder by 7, does not.
	v := func(name string, lo, hi int64) Expr { return NewVar(name, dtype.U8, lo, hi) }
	x, y, k := v("x", 240, 250), v("y", 0, 200), v("k", 30, 34)
	seven := ConstI(dtype.U8, 7)
	sum := Add(Sub(x, Mul(k, seven)), y)
	for _, e := range []Expr{Rem(sum, seven), Div(sum, seven)} {
		checkSimplify(t, &grower{vars: []Expr{x, y, k}, typ: dtype.U8}, e)
	}
}

func TestSimplifyPreservesComparisonsWithNaN(t *testing.T) {
	x, y := Arg(0, dtype.F32), Arg(1, dtype.F32)
	for _, e := range []Expr{Not(Lt(x, y)), Not(Le(x, y)), Not(Eq(x, y)), Not(Ge(x, y)), Eq(x, x), Ne(x, x), Le(x, x)} {
		for _, v := range someValues(dtype.F32) {
			env := &Env{Args: []Value{v, {F: 1}}}
			want, _ := Eval(e, env)
			if got, _ := Eval(Simplify(e), env); got != want {
				t.Errorf("%v at %v: %v, simplified to %v: %v", e, v.F, want.I, Simplify(e), got.I)
			}
		}
	}
}

// checkSimplify compares an expression with its simplified form on every
// assignment of its variables.
func checkSimplify(t *testing.T, g *grower, e Expr) {
	t.Helper()
	s := Simplify(e)
	lo, hi, ok := Range(e)
	before, after := Compile(e), Compile(s)
	var m1, m2 []Value
	g.values(func(env *Env) {
		m1, _ = before.Run(env, m1)
		m2, _ = after.Run(env, m2)
		if m1[0].I != m2[0].I {
			t.Fatalf("%v: %d became %d\n%s\nsimplified to\n%s", env.Vars, m1[0].I, m2[0].I, Print(e), Print(s))
		}
		if ok && (m1[0].I < lo || m1[0].I > hi) {
			t.Fatalf("%v: %d outside Range [%d, %d]\n%s", env.Vars, m1[0].I, lo, hi, Print(e))
		}
	})
	if again := Simplify(s); g.typ == dtype.I32 && !Equal(s, again) {
		t.Fatalf("simplified again: %s\n%s\nbecame\n%s", Print(e), Print(s), Print(again))
	}
}

func TestSimplifyKeepsValues(t *testing.T) {
	for seed := range int64(6000) {
		g := newGrower(pickRandom(seed), intTypes[seed%int64(len(intTypes))])
		e := g.grow(2 + int(seed%11))
		checkSimplify(t, g, e)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzSimplify(f *testing.F) {
	f.Add([]byte{0, 4, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Fuzz(func(t *testing.T, data []byte) {
		pick := pickBytes(data)
		g := newGrower(pick, intTypes[pick(len(intTypes))])
		checkSimplify(t, g, g.grow(min(len(data)/4, 30)))
	})
}

// TestSelectSumIsASelect compares sums with common terms, selected as wholes and by [Simplifier.SelectSum].
func TestSelectSumIsASelect(t *testing.T) {
	i, j, k := NewVar("i", dtype.I32, 0, 9), NewVar("j", dtype.I32, 0, 9), NewVar("k", dtype.I32, 0, 9)
	n := func(c int64) Expr { return ConstI(dtype.I32, c) }
	eight := Mul(i, n(8))
	for _, c := range []struct {
		a, b Expr
		want string
	}{
		{Add(eight, j), Add(Add(eight, k), n(2)), "add(add(mul(i:i32[0..9], 8:i32), select(lt(j:i32[0..9], 3:i32), sub(j:i32[0..9], 2:i32), k:i32[0..9])), 2:i32)"},
		{Add(j, n(7)), Sub(j, n(1)), "sub(add(j:i32[0..9], select(lt(j:i32[0..9], 3:i32), 8:i32, 0:i32)), 1:i32)"},
		{Sub(k, eight), Sub(n(5), eight), ""},
		{eight, Mul(i, n(4)), ""},
		{j, j, "j:i32[0..9]"},
	} {
		s, p := NewSimplifier(), Lt(j, n(3))
		got := s.SelectSum(p, c.a, c.b)
		if c.want != "" && got.String() != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		for at := range int64(1000) {
			values := map[string]Expr{"i": n(at / 100), "j": n(at / 10 % 10), "k": n(at % 10)}
			have, _ := Simplify(SubstituteVars(got, values)).IntConst()
			want, known := Simplify(SubstituteVars(Select(p, c.a, c.b), values)).IntConst()
			if have != want || !known {
				t.Fatalf("%s is %d at %d, want %d", got, have, at, want)
			}
		}
	}
}
