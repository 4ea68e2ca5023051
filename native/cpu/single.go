package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// singleOp returns the code of an operation on single integers and booleans,
// the arithmetic of indices; nil for any other. There may be many of these for
// each block, so they are kept as short as can be.
func singleOp(f *files, in *instr) op {
	node := in.node
	if node == nil || in.kind != opApply || in.dst.class != classInt {
		return nil
	}
	for _, a := range node.Args {
		if a.Type != ir.I32 && a.Type != ir.Bool {
			return nil
		}
	}
	d, args := &f.ints[in.dst.index][0], [3]*int32{}
	for i := range node.Args {
		args[i] = &f.ints[in.args[i].index][0]
	}
	if node.Type == ir.Bool {
		return singleBool(node.Op, d, args)
	}
	if node.Type != ir.I32 {
		return nil
	}
	return singleInt(node.Op, d, args)
}

func singleInt(code scalar.Op, d *int32, args [3]*int32) op {
	a, b, c := args[0], args[1], args[2]
	switch code {
	case scalar.OpAdd:
		return func(int) { *d = *a + *b }
	case scalar.OpSub:
		return func(int) { *d = *a - *b }
	case scalar.OpMul:
		return func(int) { *d = *a * *b }
	case scalar.OpDiv:
		return func(int) { *d = *a / divisor(*b) }
	case scalar.OpRem:
		return func(int) { *d = *a % divisor(*b) }
	case scalar.OpMin:
		return func(int) { *d = min(*a, *b) }
	case scalar.OpMax:
		return func(int) { *d = max(*a, *b) }
	case scalar.OpSelect:
		return func(int) {
			if *a != 0 {
				*d = *b
			} else {
				*d = *c
			}
		}
	}
	return nil
}

func singleBool(code scalar.Op, d *int32, args [3]*int32) op {
	a, b := args[0], args[1]
	switch code {
	case scalar.OpAnd:
		return func(int) { *d = *a & *b }
	case scalar.OpOr:
		return func(int) { *d = *a | *b }
	case scalar.OpNot:
		return func(int) { *d = *a ^ 1 }
	case scalar.OpEq:
		return func(int) { *d = bit(*a == *b) }
	case scalar.OpNe:
		return func(int) { *d = bit(*a != *b) }
	case scalar.OpLt:
		return func(int) { *d = bit(*a < *b) }
	case scalar.OpLe:
		return func(int) { *d = bit(*a <= *b) }
	case scalar.OpGt:
		return func(int) { *d = bit(*a > *b) }
	case scalar.OpGe:
		return func(int) { *d = bit(*a >= *b) }
	}
	return nil
}

// divisor is 1 for 0, as package scalar has it.
func divisor[T int32 | uint32 | int64](x T) T {
	if x == 0 {
		return 1
	}
	return x
}
