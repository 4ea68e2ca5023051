package scalar_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestOverflowingArithmeticIsUnsigned(t *testing.T) {
	x, y := scalar.Arg(0, dtype.I32), scalar.Arg(1, dtype.I32)
	i, one := scalar.NewVar("i", dtype.I32, 0, 1000), scalar.ConstI(dtype.I32, 1)
	long := scalar.Arg(0, dtype.I64)
	row := scalar.Add(scalar.Mul(i, scalar.ConstI(dtype.I32, 4096)), one)
	for _, c := range []struct {
		e    scalar.Expr
		want string
	}{
		{scalar.Add(x, one), "convert.i32(add(convert.u32(%0:i32), 1:u32))"},
		{scalar.Mul(scalar.Sub(x, one), y), "convert.i32(mul(sub(convert.u32(%0:i32), 1:u32), convert.u32(%1:i32)))"},
		{scalar.Neg(x), "convert.i32(sub(0:u32, convert.u32(%0:i32)))"},
		{scalar.Abs(x), "select(lt(%0:i32, 0:i32), convert.i32(sub(0:u32, convert.u32(%0:i32))), %0:i32)"},
		{scalar.Shl(x, one), "convert.i32(shl(convert.u32(%0:i32), 1:u32))"},
		{scalar.Add(long, scalar.Arg(1, dtype.I64)), "convert.i64(add(convert.u64(%0:i64), convert.u64(%1:i64)))"},
		{row, row.String()},
		{scalar.Shl(i, one), "shl(i:i32[0..1000], 1:i32)"},
		{scalar.Div(x, scalar.ConstI(dtype.I32, 3)), "div(%0:i32, 3:i32)"},
		{scalar.Abs(scalar.Shr(x, one)), "abs(shr(%0:i32, 1:i32))"},
		{scalar.Add(scalar.Arg(0, dtype.F32), scalar.Arg(1, dtype.F32)), "add(%0:f32, %1:f32)"},
	} {
		got := scalar.NewSimplifier().Wrapping(c.e)
		if got.String() != c.want {
			t.Errorf("%s becomes %s, want %s", c.e, got, c.want)
		}
		if !c.e.Type.IsSigned() {
			continue
		}
		ends := []int64{math.MinInt32, math.MinInt32 + 1, -1, 0, 1, math.MaxInt32}
		for _, a := range ends {
			for _, b := range ends {
				env := &scalar.Env{Args: []scalar.Value{{I: a}, {I: b}}, Vars: map[string]scalar.Value{"i": {I: 7}}}
				v, err := scalar.Eval(c.e, env)
				w, err2 := scalar.Eval(got, env)
				if v != w || err != nil || err2 != nil {
					t.Errorf("%s at %d, %d is %d, was %d (%v, %v)", got, a, b, w.I, v.I, err, err2)
				}
			}
		}
	}
}
