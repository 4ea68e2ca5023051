package scalar

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

func TestPrint(t *testing.T) {
	x, y := Arg(0, dtype.F32), Arg(1, dtype.F32)
	i := NewVar("i", dtype.I32, 0, 127)
	e := Exp(x)
	for _, tt := range []struct {
		e    Expr
		want string
	}{
		{ConstF(dtype.F32, 0.1), "0.1:f32"},
		{ConstF(dtype.F64, 0.1), "0.1:f64"},
		{ConstF(dtype.F32, negZero), "-0:f32"},
		{ConstF(dtype.F16, math.Inf(-1)), "-inf:f16"},
		{ConstF(dtype.F32, math.NaN()), "nan:f32"},
		{ConstI(dtype.U64, -1), "18446744073709551615:u64"},
		{ConstI(dtype.I8, -1), "-1:i8"},
		{ConstBool(false), "false"},
		{ConstC(dtype.C64, 1-2i), "complex(1:f32, -2:f32)"},
		{i, "i:i32[0..127]"},
		{FreeVar("n", dtype.U32), "n:u32"},
		{LoadAt(2, dtype.F16, i), "load.f16(2, i:i32[0..127])"},
		{Convert(x, dtype.BF16), "convert.bf16(%0:f32)"},
		{Select(Lt(x, y), x, Neg(y)), "select(lt(%0:f32, %1:f32), %0:f32, neg(%1:f32))"},
		{Add(e, Mul(e, y)), "t0 = exp(%0:f32)\nadd(t0, mul(t0, %1:f32))"},
		{Add(Exp(x), FreeVar("t0", dtype.F32)), "add(exp(%0:f32), t0:f32)"},
		{Mul(e, Add(e, FreeVar("t0", dtype.F32))), "t_0 = exp(%0:f32)\nmul(t_0, add(t_0, t0:f32))"},
	} {
		if got := Print(tt.e); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if got := tt.e.String(); got != tt.want {
			t.Errorf("String: %s", got)
		}
	}
}

func TestKeysDistinguishStructures(t *testing.T) {
	x, y := Arg(0, dtype.F32), Arg(1, dtype.F32)
	shared := Mul(x, y)
	distinct := []Expr{
		x, y, Arg(0, dtype.F16), Add(x, y), Add(y, x), Sub(x, y), Add(x, x),
		ConstF(dtype.F32, 0), ConstF(dtype.F32, negZero), ConstF(dtype.F64, 0), ConstI(dtype.I32, 0), ConstBool(false),
		NewVar("i", dtype.I32, 0, 3), NewVar("i", dtype.I32, 0, 4), FreeVar("i", dtype.I32), FreeVar("j", dtype.I32),
		LoadAt(0, dtype.F32, FreeVar("i", dtype.I32)), LoadAt(1, dtype.F32, FreeVar("i", dtype.I32)),
		Convert(x, dtype.F16), Convert(x, dtype.BF16), Add(shared, shared), Add(shared, Mul(y, x)),
		Check(x, Lt(x, y), 1), Check(x, Lt(x, y), 2),
	}
	for i, a := range distinct {
		for j, b := range distinct {
			if Equal(a, b) != (i == j) || (Key(a) == Key(b)) != (i == j) || (Hash(a) == Hash(b)) != (i == j) || (Print(a) == Print(b)) != (i == j) {
				t.Errorf("%v and %v: Equal %v, keys %q %q", a, b, Equal(a, b), Key(a), Key(b))
			}
		}
	}
	// Sharing does not count.
	once, twice := Add(shared, shared), Add(Mul(x, y), Mul(Arg(0, dtype.F32), y))
	if !Equal(once, twice) || Key(once) != Key(twice) || Hash(once) != Hash(twice) {
		t.Errorf("%v and %v differ", once, twice)
	}
}

// deep returns a DAG of 2·n operations whose tree has 2ⁿ leaves.
func deep(n int, leaf Expr) Expr {
	e := leaf
	for range n {
		e = Add(Mul(e, ConstF(dtype.F32, 0.5)), e)
	}
	return e
}

func TestSharedNodesAreVisitedOnce(t *testing.T) {
	x := Arg(0, dtype.F32)
	e := deep(200, x)
	if n := Count(e); n != 400 {
		t.Errorf("Count = %d, want 400", n)
	}
	if n := Count(Simplify(e)); n != 400 {
		t.Errorf("Count of Simplify = %d, want 400", n)
	}
	if n := Count(Expand(e, Portable)); n != 400 {
		t.Errorf("Count of Expand = %d, want 400", n)
	}
	visits := 0
	r := Substitute(e, func(n Expr) (Expr, bool) {
		visits++
		return Arg(1, dtype.F32), n == x
	})
	if visits != 601 || !Equal(r, deep(200, Arg(1, dtype.F32))) {
		t.Errorf("Substitute asked %d times and returned %d operations", visits, Count(r))
	}
	if len(Print(e)) > 40000 || len(Key(e)) > 40000 || !Equal(e, deep(200, x)) {
		t.Error("Print, Key or Equal take the tree apart")
	}
	v, err := Eval(e, &Env{Args: []Value{{F: 1}}, Rounding: Reference})
	if want := math.Pow(1.5, 200); err != nil || !(math.Abs(v.F/want-1) <= 1e-12) {
		t.Errorf("Eval = %v, %v; want %v", v.F, err, want)
	}
}

func TestWalkGoesOperandsFirst(t *testing.T) {
	x, y := Arg(0, dtype.F32), Arg(1, dtype.F32)
	p := Mul(x, y)
	var got []Expr
	Walk(Sub(p, p), func(e Expr) { got = append(got, e) })
	if len(got) != 4 || got[0] != x || got[1] != y || got[2] != p || got[3].Op != OpSub {
		t.Errorf("order %v", got)
	}
}

func TestSubstituteRebuildsByConstructors(t *testing.T) {
	i := FreeVar("i", dtype.I32)
	e := Select(Lt(i, ConstI(dtype.I32, 4)), Add(i, Arg(0, dtype.I32)), ConstI(dtype.I32, 0))
	r := Substitute(e, func(n Expr) (Expr, bool) { return ConstI(dtype.I32, 0), n == i })
	if r.Op != OpArg {
		t.Errorf("got %v, want the argument", r)
	}
	if r := Substitute(e, func(Expr) (Expr, bool) { return nil, false }); r != e {
		t.Errorf("nothing replaced, but %v is new", r)
	}
}
