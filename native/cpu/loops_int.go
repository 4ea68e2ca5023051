package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

func boolOp(f *files, in *instr) op {
	d, a := f.ints[in.dst.index], f.ints[in.args[0].index]
	switch in.node.Op {
	case scalar.OpNot:
		return mapLanes(d, a, func(x int32) int32 { return x ^ 1 })
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		return bitwise(in.node.Op, d, a, f.ints[in.args[1].index])
	}
	return nil
}

func bitwise[T int32 | uint32 | int64](op scalar.Op, d, a, b []T) op {
	switch op {
	case scalar.OpAnd:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = a[i] & b[i]
			}
		}
	case scalar.OpOr:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = a[i] | b[i]
			}
		}
	}
	return func(n int) {
		d, a, b := d[:n], a[:n], b[:n]
		for i := range d {
			d[i] = a[i] ^ b[i]
		}
	}
}

// intOp covers integers; u64, whose order is not that of int64, for the
// operations that do not depend on it.
func intOp[T int32 | uint32 | int64](f *files, in *instr, from ir.DType) op {
	op := in.node.Op
	if op >= scalar.OpEq && op <= scalar.OpGe {
		if from == ir.U64 {
			return nil
		}
		return compareOp[T](f, in)
	}
	if op.Arity() != 2 {
		return nil
	}
	d, a, b := lanesOf[T](f, in.dst), lanesOf[T](f, in.args[0]), lanesOf[T](f, in.args[1])
	switch op {
	case scalar.OpAdd, scalar.OpSub, scalar.OpMul:
		return arithmetic(op, d, a, b)
	case scalar.OpAnd, scalar.OpOr, scalar.OpXor:
		return bitwise(op, d, a, b)
	case scalar.OpShl, scalar.OpShr:
		return shift(op, d, a, b, from)
	}
	if from == ir.U64 {
		return nil
	}
	if op == scalar.OpDiv || op == scalar.OpRem {
		return divide(op, d, a, b)
	}
	return arithmetic(op, d, a, b) // min and max; others are left to the evaluator
}

func shift[T int32 | uint32 | int64](op scalar.Op, d, a, b []T, t ir.DType) op {
	mask := T(t.Bits() - 1)
	switch {
	case op == scalar.OpShl:
		return func(n int) {
			for i, x := range a[:n] {
				d[i] = x << (b[i] & mask)
			}
		}
	case t == ir.U64:
		return func(n int) {
			for i, x := range a[:n] {
				d[i] = T(uint64(x) >> (b[i] & mask))
			}
		}
	}
	return func(n int) {
		for i, x := range a[:n] {
			d[i] = x >> (b[i] & mask)
		}
	}
}

// divide covers quotients and remainders.
func divide[T int32 | uint32 | int64](op scalar.Op, d, a, b []T) op {
	rem := op == scalar.OpRem
	return func(n int) {
		for i, x := range a[:n] {
			if rem {
				d[i] = x % divisor(b[i])
			} else {
				d[i] = x / divisor(b[i])
			}
		}
	}
}
