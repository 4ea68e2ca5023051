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

// number is the type of the values of a column, and kind the types that they are rounded or
// wrapped to.
type (
	number interface{ float64 | int64 }
	kind   interface {
		float32 | float64 | int32 | uint32 | int64
	}
)

// The functions below that return a step have a loop each, not a function of two values: most time
// of a simulation is spent here, and a call for each value takes several times as long. For the same
// reason most compute the values of all threads between the first and the last of the active ones:
// o is a temporary column, which no other thread reads before it writes it.

// between returns the threads from the first to the last of the active ones.
func between(active []int32) (from, to int32) { return active[0], active[len(active)-1] + 1 }

// floatStep is a faster path for common operations on floats, nil for others.
func floatStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].f, args[1].f, args[2].f, out.f
	switch e.Op {
	case scalar.OpSelect:
		return selectStep(args[0].i, b, c, o)
	case scalar.OpNeg:
		return negation(o, a)
	case scalar.OpMin:
		return smaller(o, a, b)
	case scalar.OpMax:
		return larger(o, a, b)
	}
	if f := floatCompare[e.Op]; f != nil {
		return f(out.i, a, b)
	}
	if !e.Type.IsFloat() {
		return nil
	}
	if e.Type == dtype.F32 {
		return floatArithmetic[float32](e.Op, o, a, b, c)
	}
	s := floatArithmetic[float64](e.Op, o, a, b, c)
	if s == nil || e.Type == dtype.F64 {
		return s
	}
	return func(active []int32) {
		s(active)
		for _, t := range active {
			o[t] = e.Type.Round(o[t])
		}
	}
}

// floatArithmetic returns the step of an operation whose results are rounded to R, nil for others.
func floatArithmetic[R float32 | float64](op scalar.Op, o, a, b, c []float64) step {
	switch op {
	case scalar.OpAdd:
		return sum[R](o, a, b)
	case scalar.OpSub:
		return difference[R](o, a, b)
	case scalar.OpMul:
		return product[R](o, a, b)
	case scalar.OpDiv:
		return quotient[R](o, a, b)
	case scalar.OpFma:
		return fused[R](o, a, b, c)
	case scalar.OpConvert:
		return converted[R](o, a)
	}
	return nil
}

// floatCompare holds comparisons of floats.
var floatCompare = map[scalar.Op]func(o []int64, a, b []float64) step{
	scalar.OpEq: equal[float64],
	scalar.OpNe: unequal[float64],
	scalar.OpLt: less[float64],
	scalar.OpLe: lessEqual[float64],
	scalar.OpGt: func(o []int64, a, b []float64) step { return less(o, b, a) },
	scalar.OpGe: func(o []int64, a, b []float64) step { return lessEqual(o, b, a) },
}

// intStep is a faster path for common operations on integers other than u64, nil for others.
func intStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	switch {
	case e.Op == scalar.OpSelect:
		return selectStep(a, b, c, o)
	case e.Op == scalar.OpConvert && e.Type == dtype.F32:
		return converted[float32](out.f, a)
	case e.Op == scalar.OpConvert && !e.Type.IsInteger():
		return nil
	case intInRange[e.Op] != nil:
		return intInRange[e.Op](o, a, b)
	}
	switch e.Type {
	case dtype.I32:
		return intArithmetic[int32](e.Op, o, a, b)
	case dtype.U32:
		return intArithmetic[uint32](e.Op, o, a, b)
	}
	s := intArithmetic[int64](e.Op, o, a, b)
	if s == nil || e.Type == dtype.I64 {
		return s
	}
	return func(active []int32) {
		s(active)
		for _, t := range active {
			o[t] = e.Type.Wrap(o[t])
		}
	}
}

// intArithmetic returns the step of an operation whose results are wrapped to W, nil for others.
func intArithmetic[W int32 | uint32 | int64](op scalar.Op, o, a, b []int64) step {
	switch op {
	case scalar.OpAdd:
		return sum[W](o, a, b)
	case scalar.OpSub:
		return difference[W](o, a, b)
	case scalar.OpMul:
		return product[W](o, a, b)
	case scalar.OpDiv:
		return wholeQuotient[W](o, a, b)
	case scalar.OpFloorDiv:
		return floorQuotient[W](o, a, b)
	case scalar.OpConvert:
		return converted[W](o, a)
	}
	return nil
}

// intInRange holds operations on integers whose results are in the range of the type where the
// operands are. A zero divisor counts as one.
var intInRange = map[scalar.Op]func(o, a, b []int64) step{
	scalar.OpMin: smaller[int64],
	scalar.OpMax: larger[int64],
	scalar.OpAnd: conjunction,
	scalar.OpOr:  disjunction,
	scalar.OpXor: func(o, a, b []int64) step {
		return func(active []int32) {
			from, to := between(active)
			o, a, b := o[from:to], a[from:to], b[from:to]
			for t := range o {
				o[t] = a[t] ^ b[t]
			}
		}
	},
	scalar.OpRem: func(o, a, b []int64) step {
		return func(active []int32) {
			for _, t := range active {
				if o[t] = 0; b[t] != 0 {
					o[t] = a[t] % b[t]
				}
			}
		}
	},
	scalar.OpMod: func(o, a, b []int64) step {
		return func(active []int32) {
			for _, t := range active {
				if o[t] = 0; b[t] != 0 {
					if o[t] = a[t] % b[t]; o[t] != 0 && (o[t] < 0) != (b[t] < 0) {
						o[t] += b[t]
					}
				}
			}
		}
	},
	scalar.OpEq: equal[int64],
	scalar.OpNe: unequal[int64],
	scalar.OpLt: less[int64],
	scalar.OpLe: lessEqual[int64],
	scalar.OpGt: func(o, a, b []int64) step { return less(o, b, a) },
	scalar.OpGe: func(o, a, b []int64) step { return lessEqual(o, b, a) },
}

// boolStep is a faster path for common operations on bools, nil for others.
func boolStep(e scalar.Expr, args [3]column, out column) step {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	switch e.Op {
	case scalar.OpSelect:
		return selectStep(a, b, c, o)
	case scalar.OpAnd:
		return conjunction(o, a, b)
	case scalar.OpOr:
		return disjunction(o, a, b)
	}
	return nil
}

// selectStep sets o to b where the condition holds, and to c elsewhere.
func selectStep[T number](cond []int64, b, c, o []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, b, c, cond := o[from:to], b[from:to], c[from:to], cond[from:to]
		for t := range o {
			if o[t] = c[t]; cond[t] != 0 {
				o[t] = b[t]
			}
		}
	}
}

func converted[R kind, T, F number](o []T, a []F) step {
	return func(active []int32) {
		from, to := between(active)
		o, a := o[from:to], a[from:to]
		for t := range o {
			o[t] = T(R(a[t]))
		}
	}
}

func negation(o, a []float64) step {
	return func(active []int32) {
		from, to := between(active)
		o, a := o[from:to], a[from:to]
		for t := range o {
			o[t] = -a[t]
		}
	}
}

func fused[R kind](o, a, b, c []float64) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b, c := o[from:to], a[from:to], b[from:to], c[from:to]
		for t := range o {
			o[t] = float64(R(math.FMA(a[t], b[t], c[t])))
		}
	}
}

func wholeQuotient[W kind](o, a, b []int64) step {
	return func(active []int32) {
		for _, t := range active {
			if o[t] = a[t]; b[t] != 0 {
				o[t] = int64(W(a[t] / b[t]))
			}
		}
	}
}

func floorQuotient[W kind](o, a, b []int64) step {
	return func(active []int32) {
		for _, t := range active {
			if o[t] = a[t]; b[t] != 0 {
				q := a[t] / b[t]
				if q*b[t] != a[t] && (a[t] < 0) != (b[t] < 0) {
					q--
				}
				o[t] = int64(W(q))
			}
		}
	}
}

func sum[R kind, T number](o, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = T(R(a[t] + b[t]))
		}
	}
}

func difference[R kind, T number](o, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = T(R(a[t] - b[t]))
		}
	}
}

func product[R kind, T number](o, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = T(R(a[t] * b[t]))
		}
	}
}

func quotient[R kind](o, a, b []float64) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = float64(R(a[t] / b[t]))
		}
	}
}

func smaller[T number](o, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = min(a[t], b[t])
		}
	}
}

func larger[T number](o, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = max(a[t], b[t])
		}
	}
}

func conjunction(o, a, b []int64) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = a[t] & b[t]
		}
	}
}

func disjunction(o, a, b []int64) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = a[t] | b[t]
		}
	}
}

func equal[T number](o []int64, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = bit(a[t] == b[t])
		}
	}
}

func unequal[T number](o []int64, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = bit(a[t] != b[t])
		}
	}
}

func less[T number](o []int64, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = bit(a[t] < b[t])
		}
	}
}

func lessEqual[T number](o []int64, a, b []T) step {
	return func(active []int32) {
		from, to := between(active)
		o, a, b := o[from:to], a[from:to], b[from:to]
		for t := range o {
			o[t] = bit(a[t] <= b[t])
		}
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
