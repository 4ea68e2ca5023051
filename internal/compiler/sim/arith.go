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

// rounder returns the rounding of the active values to float type t, nil where none is needed.
func rounder(t dtype.DType) func(o []float64, active []int32) {
	switch t {
	case dtype.F32:
		return func(o []float64, active []int32) {
			for _, t := range active {
				o[t] = float64(float32(o[t]))
			}
		}
	case dtype.F64:
		return nil
	}
	return func(o []float64, active []int32) {
		for _, i := range active {
			o[i] = t.Round(o[i])
		}
	}
}

// floatStep is a faster path for common operations on floats, nil for others.
func floatStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].f, args[1].f, args[2].f, out.f
	switch e.Op {
	case scalar.OpFma:
		return rounded(e.Type, o, func(active []int32) {
			for _, t := range active {
				o[t] = math.FMA(a[t], b[t], c[t])
			}
		})
	case scalar.OpSelect:
		return selectStep(args[0].i, b, c, o)
	case scalar.OpNeg:
		return func(active []int32) {
			for _, t := range active {
				o[t] = -a[t]
			}
		}
	case scalar.OpConvert:
		if e.Type.IsFloat() {
			return rounded(e.Type, o, func(active []int32) { out.copyFrom(args[0], active) })
		}
	}
	if f := floatBinary[e.Op]; f != nil {
		return rounded(e.Type, o, func(active []int32) { f(o, a, b, active) })
	}
	if f := floatCompare[e.Op]; f != nil {
		return func(active []int32) { f(out.i, a, b, active) }
	}
	return nil
}

// rounded appends the rounding to type t of o to a step.
func rounded(t dtype.DType, o []float64, s step) step {
	round := rounder(t)
	if round == nil {
		return s
	}
	return func(active []int32) {
		s(active)
		round(o, active)
	}
}

// selectStep sets o to b where the condition holds, and to c elsewhere.
func selectStep[T float64 | int64](cond []int64, b, c, o []T) step {
	return func(active []int32) {
		for _, t := range active {
			if o[t] = c[t]; cond[t] != 0 {
				o[t] = b[t]
			}
		}
	}
}

// The tables below hold a loop for each operation, not a function of two values: most time of a
// simulation is spent here, and a call for each value takes several times as long.

// floatBinary holds operations on floats in 64 bits, whose results are then rounded to the type.
var floatBinary = map[scalar.Op]func(o, a, b []float64, active []int32){
	scalar.OpAdd: sum[float64],
	scalar.OpSub: difference[float64],
	scalar.OpMul: product[float64],
	scalar.OpDiv: func(o, a, b []float64, active []int32) {
		for _, t := range active {
			o[t] = a[t] / b[t]
		}
	},
	scalar.OpMin: smaller[float64],
	scalar.OpMax: larger[float64],
}

// floatCompare holds comparisons of floats.
var floatCompare = map[scalar.Op]func(o []int64, a, b []float64, active []int32){
	scalar.OpEq: equal[float64],
	scalar.OpNe: unequal[float64],
	scalar.OpLt: less[float64],
	scalar.OpLe: lessEqual[float64],
	scalar.OpGt: greater[float64],
	scalar.OpGe: greaterEqual[float64],
}

// wrapper returns the wrapping of the active values to integer type t, nil where none is needed.
func wrapper(t dtype.DType) func(o []int64, active []int32) {
	switch t {
	case dtype.Bool, dtype.I64:
		return nil // comparisons give 0 and 1
	case dtype.I32:
		return func(o []int64, active []int32) {
			for _, t := range active {
				o[t] = int64(int32(o[t]))
			}
		}
	case dtype.U32:
		return func(o []int64, active []int32) {
			for _, t := range active {
				o[t] = int64(uint32(o[t]))
			}
		}
	}
	return func(o []int64, active []int32) {
		for _, i := range active {
			o[i] = t.Wrap(o[i])
		}
	}
}

// intStep is a faster path for common operations on integers other than u64, nil for others.
func intStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	wrap := wrapper(e.Type)
	var s step
	switch f := intBinary[e.Op]; {
	case e.Op == scalar.OpSelect:
		return selectStep(a, b, c, o)
	case e.Op == scalar.OpConvert && e.Type.IsInteger():
		s = func(active []int32) { out.copyFrom(args[0], active) }
	case e.Op == scalar.OpConvert && e.Type == dtype.F32:
		return func(active []int32) {
			for _, t := range active {
				out.f[t] = float64(float32(a[t]))
			}
		}
	case f != nil:
		s = func(active []int32) { f(o, a, b, active) }
	}
	if s == nil || wrap == nil || staysInRange[e.Op] {
		return s
	}
	return func(active []int32) {
		s(active)
		wrap(o, active)
	}
}

// staysInRange marks operations whose results are in the range of the type where the operands are.
var staysInRange = map[scalar.Op]bool{
	scalar.OpMin: true, scalar.OpMax: true, scalar.OpAnd: true, scalar.OpOr: true, scalar.OpXor: true,
	scalar.OpRem: true, scalar.OpMod: true,
}

// boolStep is a faster path for common operations on bools, nil for others.
func boolStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	switch f := intBinary[e.Op]; e.Op {
	case scalar.OpSelect:
		return selectStep(a, b, c, o)
	case scalar.OpAnd, scalar.OpOr:
		return func(active []int32) { f(o, a, b, active) }
	}
	return nil
}

// intBinary holds operations on integers in 64 bits, whose results are then wrapped to the
// type. A zero divisor counts as one.
var intBinary = map[scalar.Op]func(o, a, b []int64, active []int32){
	scalar.OpAdd: sum[int64],
	scalar.OpSub: difference[int64],
	scalar.OpMul: product[int64],
	scalar.OpMin: smaller[int64],
	scalar.OpMax: larger[int64],
	scalar.OpAnd: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			o[t] = a[t] & b[t]
		}
	},
	scalar.OpOr: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			o[t] = a[t] | b[t]
		}
	},
	scalar.OpXor: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			o[t] = a[t] ^ b[t]
		}
	},
	scalar.OpDiv: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			if o[t] = a[t]; b[t] != 0 {
				o[t] = a[t] / b[t]
			}
		}
	},
	scalar.OpRem: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			if o[t] = 0; b[t] != 0 {
				o[t] = a[t] % b[t]
			}
		}
	},
	scalar.OpFloorDiv: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			if o[t] = a[t]; b[t] != 0 {
				if o[t] = a[t] / b[t]; o[t]*b[t] != a[t] && (a[t] < 0) != (b[t] < 0) {
					o[t]--
				}
			}
		}
	},
	scalar.OpMod: func(o, a, b []int64, active []int32) {
		for _, t := range active {
			if o[t] = 0; b[t] != 0 {
				if o[t] = a[t] % b[t]; o[t] != 0 && (o[t] < 0) != (b[t] < 0) {
					o[t] += b[t]
				}
			}
		}
	},
	scalar.OpEq: equal[int64],
	scalar.OpNe: unequal[int64],
	scalar.OpLt: less[int64],
	scalar.OpLe: lessEqual[int64],
	scalar.OpGt: greater[int64],
	scalar.OpGe: greaterEqual[int64],
}

func sum[T float64 | int64](o, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = a[t] + b[t]
	}
}

func difference[T float64 | int64](o, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = a[t] - b[t]
	}
}

func product[T float64 | int64](o, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = a[t] * b[t]
	}
}

func smaller[T float64 | int64](o, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = min(a[t], b[t])
	}
}

func larger[T float64 | int64](o, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = max(a[t], b[t])
	}
}

func equal[T float64 | int64](o []int64, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = bit(a[t] == b[t])
	}
}

func unequal[T float64 | int64](o []int64, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = bit(a[t] != b[t])
	}
}

func less[T float64 | int64](o []int64, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = bit(a[t] < b[t])
	}
}

func lessEqual[T float64 | int64](o []int64, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = bit(a[t] <= b[t])
	}
}

func greater[T float64 | int64](o []int64, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = bit(a[t] > b[t])
	}
}

func greaterEqual[T float64 | int64](o []int64, a, b []T, active []int32) {
	for _, t := range active {
		o[t] = bit(a[t] >= b[t])
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
