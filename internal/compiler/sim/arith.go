package sim

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// applyStep executes any operation, as package scalar defines it.
func applyStep(e scalar.Expr, args [3]column, out column) step {
	n := len(e.Args)
	return func(active []int32) {
		for _, t := range active {
			var v [3]scalar.Value
			for i, a := range args[:n] {
				v[i] = a.value(t)
			}
			out.set(t, scalar.Apply(e, v))
		}
	}
}

// rounder returns the rounding to float type t.
func rounder(t dtype.DType) func(float64) float64 {
	switch t {
	case dtype.F32:
		return func(x float64) float64 { return float64(float32(x)) }
	case dtype.F64:
		return func(x float64) float64 { return x }
	}
	return t.Round
}

// floatStep is a faster path for common operations on floats, nil for others.
func floatStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].f, args[1].f, args[2].f, out.f
	round := rounder(e.Type)
	switch e.Op {
	case scalar.OpFma:
		return func(active []int32) {
			for _, t := range active {
				o[t] = round(math.FMA(a[t], b[t], c[t]))
			}
		}
	case scalar.OpSelect:
		cond := args[0].i
		return func(active []int32) {
			for _, t := range active {
				if o[t] = c[t]; cond[t] != 0 {
					o[t] = b[t]
				}
			}
		}
	}
	if f := floatBinary[e.Op]; f != nil {
		return func(active []int32) {
			for _, t := range active {
				o[t] = round(f(a[t], b[t]))
			}
		}
	}
	if f := floatCompare[e.Op]; f != nil {
		return func(active []int32) {
			for _, t := range active {
				if out.i[t] = 0; f(a[t], b[t]) {
					out.i[t] = 1
				}
			}
		}
	}
	return nil
}

var floatBinary = map[scalar.Op]func(a, b float64) float64{
	scalar.OpAdd: func(a, b float64) float64 { return a + b },
	scalar.OpSub: func(a, b float64) float64 { return a - b },
	scalar.OpMul: func(a, b float64) float64 { return a * b },
	scalar.OpDiv: func(a, b float64) float64 { return a / b },
	scalar.OpMin: func(a, b float64) float64 { return min(a, b) },
	scalar.OpMax: func(a, b float64) float64 { return max(a, b) },
}

var floatCompare = map[scalar.Op]func(a, b float64) bool{
	scalar.OpEq: func(a, b float64) bool { return a == b },
	scalar.OpNe: func(a, b float64) bool { return a != b },
	scalar.OpLt: func(a, b float64) bool { return a < b },
	scalar.OpLe: func(a, b float64) bool { return a <= b },
	scalar.OpGt: func(a, b float64) bool { return a > b },
	scalar.OpGe: func(a, b float64) bool { return a >= b },
}

// intStep is a faster path for common operations on integers other than u64, nil for others.
func intStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	wrap := e.Type.Wrap
	switch e.Op {
	case scalar.OpSelect:
		return func(active []int32) {
			for _, t := range active {
				if o[t] = c[t]; a[t] != 0 {
					o[t] = b[t]
				}
			}
		}
	case scalar.OpConvert:
		if e.Type.IsInteger() {
			return func(active []int32) {
				for _, t := range active {
					o[t] = wrap(a[t])
				}
			}
		}
	}
	f := intBinary[e.Op]
	if f == nil {
		return nil
	}
	return func(active []int32) {
		for _, t := range active {
			o[t] = wrap(f(a[t], b[t]))
		}
	}
}

// intBinary holds operations on integers in 64 bits, whose results are then wrapped to the
// type. A zero divisor counts as one.
var intBinary = map[scalar.Op]func(a, b int64) int64{
	scalar.OpAdd: func(a, b int64) int64 { return a + b },
	scalar.OpSub: func(a, b int64) int64 { return a - b },
	scalar.OpMul: func(a, b int64) int64 { return a * b },
	scalar.OpMin: func(a, b int64) int64 { return min(a, b) },
	scalar.OpMax: func(a, b int64) int64 { return max(a, b) },
	scalar.OpAnd: func(a, b int64) int64 { return a & b },
	scalar.OpOr:  func(a, b int64) int64 { return a | b },
	scalar.OpXor: func(a, b int64) int64 { return a ^ b },
	scalar.OpDiv: func(a, b int64) int64 {
		if b == 0 {
			return a
		}
		return a / b
	},
	scalar.OpRem: func(a, b int64) int64 {
		if b == 0 {
			return 0
		}
		return a % b
	},
	scalar.OpEq: func(a, b int64) int64 { return bit(a == b) },
	scalar.OpNe: func(a, b int64) int64 { return bit(a != b) },
	scalar.OpLt: func(a, b int64) int64 { return bit(a < b) },
	scalar.OpLe: func(a, b int64) int64 { return bit(a <= b) },
	scalar.OpGt: func(a, b int64) int64 { return bit(a > b) },
	scalar.OpGe: func(a, b int64) int64 { return bit(a >= b) },
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
