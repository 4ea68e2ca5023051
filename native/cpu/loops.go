package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// number is a type with the arithmetic that loops are written for.
type number interface {
	float32 | float64 | int32 | uint32 | int64
}

// fastOp returns the loop of an operation that is worth one, nil for those that
// the evaluator of package scalar does. Both give the same value, but for the
// last digit of functions of f32.
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

// floatOp covers the floats that have arithmetic of their own.
func floatOp[T float32 | float64](f *files, in *instr) op {
	op := in.node.Op
	if op >= scalar.OpEq && op <= scalar.OpGe {
		return compareOp[T](f, in)
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
			pow = math.Pow // which has the digits of f32, in a third of the time
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

// functions are those of package math that a loop calls for each lane.
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

// arithmetic covers what floats and integers have alike.
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

// compareOp covers the six comparisons.
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
