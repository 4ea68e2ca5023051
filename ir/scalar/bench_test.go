package scalar

import (
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// A convolution's index: five digits of a flat number, recombined with other strides.
func convIndex() Expr {
	c := int32s
	p := ivar("p", 0, 32*64*28*28*9-1)
	kx, ky := Rem(p, c(3)), Rem(Div(p, c(3)), c(3))
	x, y := Rem(Div(p, c(9)), c(28)), Rem(Div(p, c(9*28)), c(28))
	ch, n := Rem(Div(p, c(9*28*28)), c(64)), Div(p, c(9*28*28*64))
	return Add(Mul(Add(Mul(Add(Mul(n, c(64)), ch), c(30)), Add(y, ky)), c(30)), Add(x, kx))
}

func BenchmarkSimplify(b *testing.B) {
	e := convIndex()
	for b.Loop() {
		Simplify(e)
	}
}

func BenchmarkExpand(b *testing.B) {
	x := Arg(0, dtype.F32)
	for b.Loop() {
		Expand(Exp(x), Portable)
	}
}

func BenchmarkBindShared(b *testing.B) {
	e := Expand(Sin(Arg(0, dtype.F32)), Portable)
	for b.Loop() {
		BindShared("v", e)
	}
}
