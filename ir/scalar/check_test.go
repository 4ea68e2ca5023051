package scalar

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

func TestCheckRecordsItsCodeWhereTheConditionIsFalse(t *testing.T) {
	i := NewVar("i", dtype.I32, 0, 9)
	e := Add(Check(i, Lt(i, ConstI(dtype.I32, 5)), 7), ConstI(dtype.I32, 1))
	for _, f := range []func(Expr) Expr{
		func(e Expr) Expr { return e },
		Simplify,
		func(e Expr) Expr { return Substitute(e, func(Expr) (Expr, bool) { return nil, false }) },
	} {
		for x := range int64(10) {
			var codes, want []int
			env := &Env{Vars: map[string]Value{"i": {I: x}}, Failed: func(c int) { codes = append(codes, c) }}
			v, err := Eval(f(e), env)
			if x >= 5 {
				want = []int{7}
			}
			if err != nil || v.I != x+1 || !slices.Equal(codes, want) {
				t.Errorf("i = %d: value %d, codes %v, error %v; want %d, %v", x, v.I, codes, err, x+1, want)
			}
		}
	}
}

func TestCheckIsKeptWhereItsValueIsConstant(t *testing.T) {
	zero := ConstI(dtype.I32, 0)
	i := FreeVar("i", dtype.I32)
	if e := Simplify(Check(zero, Lt(i, zero), 3)); e.Op != OpCheck {
		t.Errorf("simplified to %s", e)
	}
	if e := Check(i, ConstBool(true), 3); e != i {
		t.Errorf("a condition that always holds gives %s", e)
	}
}

func TestCheckRefusesAConditionThatIsNotBool(t *testing.T) {
	i := FreeVar("i", dtype.I32)
	if _, err := Catch(func() Expr { return Check(i, i, 3) }); err == nil {
		t.Error("no error")
	}
}
