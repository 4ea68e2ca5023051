package scalar

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// doubled returns a sum of the given number of levels whose operands are one node each: written out it
// would be 2^levels long.
func doubled(x Expr, levels int) Expr {
	for range levels {
		x = Add(x, x)
	}
	return x
}

// TestSharedNodesAreTakenOnce ends only where a shared node is taken a few times at most.
func TestSharedNodesAreTakenOnce(t *testing.T) {
	x := FreeVar("x", dtype.F32)
	e := doubled(x, 100)
	if !Any(e, func(n Expr) bool { return n == x }) {
		t.Error("x is not found")
	}
	if Any(e, func(n Expr) bool { return n.Op == OpMul }) {
		t.Error("a product is found among sums")
	}
	if n := Count(e); n != 100 {
		t.Errorf("%d operations, not 100", n)
	}
	s := NewSimplifier()
	if s.Shared(e) != s.Shared(doubled(FreeVar("x", dtype.F32), 100)) {
		t.Error("equal structures are two nodes")
	}
}

// TestAnySearchesDeepExpressions: a node at the end of a long expression is found.
func TestAnySearchesDeepExpressions(t *testing.T) {
	e := Exp(FreeVar("last", dtype.F32))
	for range 200 {
		e = Add(FreeVar("x", dtype.F32), e)
	}
	if !Any(e, func(n Expr) bool { return n.Op == OpExp }) {
		t.Error("the last node is not found")
	}
}
