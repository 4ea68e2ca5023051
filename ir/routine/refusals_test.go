package routine_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

func TestRefusalsCompareByProducts(t *testing.T) {
	of := func(m int) routine.Product {
		return routine.Product{Operand: dtype.F32, Result: dtype.F32, Batch: 1, M: m, N: 2, K: 3}
	}
	var none *routine.Refusals
	one := none.With(of(1))
	both, turned := one.With(of(2)), none.With(of(2)).With(of(1))
	if none.Has(of(1)) || !one.Has(of(1)) || one.Has(of(2)) || !both.Has(of(1)) || !both.Has(of(2)) {
		t.Error("refusals do not hold the products that they were made with, or hold others")
	}
	if both.String() != turned.String() || both.String() == one.String() || none.String() == one.String() {
		t.Errorf("texts %q, %q, %q, %q", none, one, both, turned)
	}
	type target struct{ Refused *routine.Refusals }
	if got := fmt.Sprintf("%+v", target{one}); got != fmt.Sprintf("{Refused:%s}", one) {
		t.Errorf("a target with refusals is written %s, which is another text in another process", got)
	}
	if got := fmt.Sprintf("%+v", target{}); got != "{Refused:none}" {
		t.Errorf("a target without refusals is written %s", got)
	}
}
