package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// number is a type with specialised arithmetic loops.
type number interface {
	float32 | float64 | int32 | uint32 | int64
}

// fastOp returns the specialised loop of an operation, nil where the evaluator of package scalar is
// used. Both return the same values, up to the last digit of f32 functions.
func fastOp(f *files, in *instr) op {
	from := in.node.Args[len(in.node.Args)-1].Type
	to := in.node.Type
	switch {
	case in.node.Op == scalar.OpSelect:
		return f.of(in.dst).choose(in.dst.index, in.args[1].index, in.args[2].index, f.ints[in.args[0].index], in.uniform)
	case in.node.Op == scalar.OpConvert:
		return convertOp(f, in, from, to)
	case from == ir.F32:
		return floatOp[float32](f, in)
	case from == ir.F64:
		return floatOp[float64](f, in)
	case from == ir.Bool:
		return boolOp(f, in)
	case from == ir.U32:
		return intOp[uint32](f, in, from)
	case from == ir.I64 || from == ir.U64:
		return intOp[int64](f, in, from)
	case from.IsInteger():
		return wrapped(intOp[int32](f, in, from), f, in.dst, to)
	}
	return nil
}

func floatOp[T float32 | float64](f *files, in *instr) op {
	op := in.node.Op
	if op >= scalar.OpEq && op <= scalar.OpGe {
		return compareOp[T](f, in)
	}
	switch op {
	case scalar.OpIsNaN:
		return testLanes(f, in, func(x T) bool { return x != x })
	case scalar.OpIsFinite:
		return testLanes(f, in, func(x T) bool { return x-x == 0 })
	}
	if in.dst.class != in.args[0].class {
		return nil
	}
	d, a := lanesOf[T](f, in.dst), lanesOf[T](f, in.args[0])
	if op.Arity() == 1 {
		return floatUnary(op, d, a)
	}
	b := lanesOf[T](f, in.args[1])
	if o := arithmetic(op, d, a, b); o != nil {
		return o
	}
	switch op {
	case scalar.OpDiv:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = a[i] / b[i]
			}
		}
	case scalar.OpMulZero:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				if a[i] == 0 || b[i] == 0 {
					d[i] = 0
				} else {
					d[i] = a[i] * b[i]
				}
			}
		}
	case scalar.OpPow:
		pow := elementary.Pow
		if _, short := any(T(0)).(float32); short {
			pow = math.Pow // accurate enough for f32, in a third of the time
		}
		return func(n int) {
			for i, x := range a[:n] {
				d[i] = T(pow(float64(x), float64(b[i])))
			}
		}
	}
	return nil
}

func floatUnary[T float32 | float64](code scalar.Op, d, a []T) op {
	switch code {
	case scalar.OpNeg:
		return mapLanes(d, a, func(x T) T { return -x })
	case scalar.OpAbs:
		return mapLanes(d, a, func(x T) T { return T(math.Abs(float64(x))) })
	case scalar.OpSqrt:
		return mapLanes(d, a, func(x T) T { return T(math.Sqrt(float64(x))) })
	case scalar.OpRsqrt:
		return mapLanes(d, a, func(x T) T { return T(1 / math.Sqrt(float64(x))) })
	case scalar.OpRecip:
		return mapLanes(d, a, func(x T) T { return 1 / x })
	case scalar.OpFloor:
		return mapLanes(d, a, func(x T) T { return T(math.Floor(float64(x))) })
	}
	if fn := functions[code]; fn != nil {
		return func(n int) {
			d := d[:n]
			for i, x := range a[:n] {
				d[i] = T(fn(float64(x)))
			}
		}
	}
	return nil
}

// functions are called for each lane.
var functions = map[scalar.Op]func(float64) float64{
	scalar.OpCeil: math.Ceil, scalar.OpRound: math.RoundToEven, scalar.OpTrunc: math.Trunc,
	scalar.OpExp: elementary.Exp, scalar.OpExpm1: math.Expm1, scalar.OpLog: elementary.Log, scalar.OpLog1p: math.Log1p,
	scalar.OpSin: elementary.Sin, scalar.OpCos: elementary.Cos, scalar.OpTan: elementary.Tan,
	scalar.OpAsin: elementary.Asin, scalar.OpAcos: elementary.Acos, scalar.OpAtan: math.Atan,
	scalar.OpSinh: elementary.Sinh, scalar.OpCosh: elementary.Cosh, scalar.OpTanh: math.Tanh,
	scalar.OpErf: math.Erf, scalar.OpErfc: math.Erfc, scalar.OpSigmoid: elementary.Sigmoid,
}

func mapLanes[T lane](d, a []T, f func(T) T) op {
	return func(n int) {
		d := d[:n]
		for i, x := range a[:n] {
			d[i] = f(x)
		}
	}
}

// testLanes returns the loop of a property of numbers.
func testLanes[T float32 | float64](f *files, in *instr, test func(T) bool) op {
	d, a := f.ints[in.dst.index], lanesOf[T](f, in.args[0])
	return func(n int) {
		for i, x := range a[:n] {
			d[i] = bit(test(x))
		}
	}
}

// arithmetic returns loops that floats and integers share.
func arithmetic[T number](op scalar.Op, d, a, b []T) op {
	switch op {
	case scalar.OpAdd:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = a[i] + b[i]
			}
		}
	case scalar.OpSub:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = a[i] - b[i]
			}
		}
	case scalar.OpMul:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = a[i] * b[i]
			}
		}
	case scalar.OpMin:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = min(a[i], b[i])
			}
		}
	case scalar.OpMax:
		return func(n int) {
			d, a, b := d[:n], a[:n], b[:n]
			for i := range d {
				d[i] = max(a[i], b[i])
			}
		}
	}
	return nil
}

// compareOp returns the loops of the six comparisons.
func compareOp[T number](f *files, in *instr) op {
	d, a, b := f.ints[in.dst.index], lanesOf[T](f, in.args[0]), lanesOf[T](f, in.args[1])
	if in.node.Op == scalar.OpGt || in.node.Op == scalar.OpGe {
		a, b = b, a
	}
	switch in.node.Op {
	case scalar.OpEq:
		return func(n int) {
			for i, x := range a[:n] {
				d[i] = bit(x == b[i])
			}
		}
	case scalar.OpNe:
		return func(n int) {
			for i, x := range a[:n] {
				d[i] = bit(x != b[i])
			}
		}
	case scalar.OpLt, scalar.OpGt:
		return func(n int) {
			for i, x := range a[:n] {
				d[i] = bit(x < b[i])
			}
		}
	}
	return func(n int) {
		for i, x := range a[:n] {
			d[i] = bit(x <= b[i])
		}
	}
}

func bit(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// convertOp returns the loops of common conversions.
func convertOp(f *files, in *instr, from, to ir.DType) op {
	switch {
	case to == ir.F32 && (from == ir.F16 || from == ir.BF16):
		return f.of(in.dst).move(in.dst.index, in.args[0].index)
	case to == ir.BF16 && from == ir.F32:
		return mapLanes(lanesOf[float32](f, in.dst), lanesOf[float32](f, in.args[0]), func(x float32) float32 { return roundTo(ir.BF16, x) })
	case to == ir.F64 && from == ir.F32:
		return castLanes[float64, float32](f, in)
	case to == ir.F32 && from == ir.F64:
		return castLanes[float32, float64](f, in)
	case from == ir.U64 && !to.IsInteger() || !from.IsInteger() && from != ir.Bool:
		return nil
	case from == ir.U32:
		return integerTo[uint32](f, in, to)
	case in.args[0].class == classLong:
		return integerTo[int64](f, in, to)
	}
	return integerTo[int32](f, in, to)
}

// integerTo converts integers.
func integerTo[S number](f *files, in *instr, to ir.DType) op {
	switch {
	case to == ir.F32:
		return castLanes[float32, S](f, in)
	case to == ir.F64:
		return castLanes[float64, S](f, in)
	case in.dst.class == classLong:
		return castLanes[int64, S](f, in)
	case to.IsInteger():
		return wrapped(castLanes[int32, S](f, in), f, in.dst, to)
	}
	return nil
}

func castLanes[D, S number](f *files, in *instr) op {
	d, a := lanesOf[D](f, in.dst), lanesOf[S](f, in.args[0])
	return func(n int) {
		d := d[:n]
		for i, x := range a[:n] {
			d[i] = D(x)
		}
	}
}

// wrapped wraps the result of an operation to the width of an integer type.
func wrapped(o op, f *files, dst register, t ir.DType) op {
	if o == nil || dst.class != classInt {
		return o
	}
	d := f.ints[dst.index]
	switch t {
	case ir.I16:
		return wrapLanes[int16](o, d)
	case ir.U16:
		return wrapLanes[uint16](o, d)
	case ir.I8:
		return wrapLanes[int8](o, d)
	case ir.U8:
		return wrapLanes[uint8](o, d)
	}
	return o
}

func wrapLanes[T int8 | int16 | uint8 | uint16](o op, d []int32) op {
	return func(n int) {
		o(n)
		d := d[:n]
		for i, x := range d {
			d[i] = int32(T(x))
		}
	}
}

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

// intOp returns loops for integers. Those of u64, computed as int64, are limited to operations
// that ignore the sign.
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
	return arithmetic(op, d, a, b) // min and max; the evaluator does the others
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

// divide returns the loops of quotients and remainders.
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

// scalarOp returns the closure of an operation on uniform integers and booleans, the
// arithmetic of indices; nil for any other. A block may have many of these, so each is as
// short as possible.
func scalarOp(f *files, in *instr) op {
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
		return scalarBool(node.Op, d, args)
	}
	if node.Type != ir.I32 {
		return nil
	}
	return scalarInt(node.Op, d, args)
}

func scalarInt(code scalar.Op, d *int32, args [3]*int32) op {
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

func scalarBool(code scalar.Op, d *int32, args [3]*int32) op {
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

// divisor returns x, or 1 for 0, as package scalar defines division by zero.
func divisor[T int32 | uint32 | int64](x T) T {
	if x == 0 {
		return 1
	}
	return x
}
