package scalar_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The body of an elementwise kernel is built from its operands, and evaluated
// with each operation rounded as a device does.
func Example() {
	x := scalar.Arg(0, dtype.F32)
	silu := scalar.Mul(x, scalar.Sigmoid(x))

	v, err := scalar.Eval(silu, &scalar.Env{Args: []scalar.Value{{F: 2}}})
	fmt.Println(silu)
	fmt.Println(v.F, err)
	// Output:
	// mul(%0:f32, sigmoid(%0:f32))
	// 1.7615941762924194 <nil>
}

// Ranges of loop variables simplify index arithmetic.
func ExampleSimplify() {
	row := scalar.NewVar("row", dtype.I32, 0, 99)
	col := scalar.NewVar("col", dtype.I32, 0, 63)
	width := scalar.ConstI(dtype.I32, 64)

	flat := scalar.Add(scalar.Mul(row, width), col)
	fmt.Println(scalar.Simplify(scalar.FloorDiv(flat, width)))
	fmt.Println(scalar.Simplify(scalar.Mod(flat, width)))
	fmt.Println(scalar.Simplify(scalar.Lt(flat, scalar.ConstI(dtype.I32, 6400))))
	// Output:
	// row:i32[0..99]
	// col:i32[0..63]
	// true
}

// A printer binds shared parts to local variables.
func ExampleBindShared() {
	x, y := scalar.Arg(0, dtype.F32), scalar.Arg(1, dtype.F32)
	e := scalar.Exp(x)

	s := scalar.BindShared("v", scalar.Div(e, scalar.Add(e, y)))
	for _, b := range s.Locals {
		fmt.Println("let", b.Var, "=", b.Value)
	}
	fmt.Println("return", s.Roots[0])
	// Output:
	// let v0:f32 = exp(%0:f32)
	// return div(v0:f32, add(v0:f32, %1:f32))
}

// A type error in a constructor is a bug; code that builds expressions for
// others turns it into an error.
func ExampleCatch() {
	_, err := scalar.Catch(func() scalar.Expr {
		return scalar.Add(scalar.Arg(0, dtype.F32), scalar.Arg(1, dtype.F16))
	})
	fmt.Println(err)
	// Output:
	// scalar: add(f32, f16): the operands differ in type
}
