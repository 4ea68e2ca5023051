package sim

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// applyStep executes any operation, as package scalar defines it.
func applyStep(e scalar.Expr, args [3]column, out column) executor {
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

// Most time of a simulation is spent in the loops below. Each is a function of columns, not of two
// values, since a call for each value takes several times as long; and most compute the values of all
// threads between the first and the last of the active ones: o is a temporary column, which no other
// thread reads before it writes it.

// between returns the threads from the first to the last of the active ones.
func between(active []int32) (from, to int32) { return active[0], active[len(active)-1] + 1 }

// pairwise is the executor of a function that sets o to a function of a and b, nil for none.
func pairwise[O, T number](o []O, a, b []T, f func(o []O, a, b []T)) executor {
	if f == nil {
		return nil
	}
	return func(active []int32) {
		from, to := between(active)
		f(o[from:to], a[from:to], b[from:to])
	}
}

// rounded returns s with its results rounded by f, nil for nil.
func rounded[T number](s executor, o []T, f func(T) T) executor {
	if s == nil {
		return nil
	}
	return func(active []int32) {
		s(active)
		for _, t := range active {
			o[t] = f(o[t])
		}
	}
}

// floatStep is a faster path for common operations on floats, nil for others.
func floatStep(e scalar.Expr, args [3]column, out column) executor {
	a, b, c, o := args[0].f, args[1].f, args[2].f, out.f
	switch e.Op {
	case scalar.OpSelect:
		return selectStep(args[0].i, b, c, o)
	case scalar.OpNeg:
		return pairwise(o, a, a, negation)
	case scalar.OpMin:
		return pairwise(o, a, b, smaller[float64])
	case scalar.OpMax:
		return pairwise(o, a, b, larger[float64])
	}
	if f := floatCompare[e.Op]; f != nil {
		return pairwise(out.i, a, b, f)
	}
	switch {
	case !e.Type.IsFloat():
		return nil
	case e.Type == dtype.F32:
		return floatArithmetic[float32](e.Op, o, a, b, c)
	case e.Type == dtype.F64:
		return floatArithmetic[float64](e.Op, o, a, b, c)
	}
	return rounded(floatArithmetic[float64](e.Op, o, a, b, c), o, e.Type.Round)
}

// floatArithmetic returns the executor of an operation whose results are rounded to R, nil for others.
func floatArithmetic[R float32 | float64](op scalar.Op, o, a, b, c []float64) executor {
	var f func(o, a, b []float64)
	switch op {
	case scalar.OpAdd:
		f = sum[R]
	case scalar.OpSub:
		f = difference[R]
	case scalar.OpMul:
		f = product[R]
	case scalar.OpDiv:
		f = quotient[R]
	case scalar.OpConvert:
		return pairwise(o, a, a, converted[R, float64, float64])
	case scalar.OpFma:
		return fused[R](o, a, b, c)
	}
	return pairwise(o, a, b, f)
}

// floatCompare holds comparisons of floats.
var floatCompare = map[scalar.Op]func(o []int64, a, b []float64){
	scalar.OpEq: equal[float64],
	scalar.OpNe: unequal[float64],
	scalar.OpLt: less[float64],
	scalar.OpLe: lessEqual[float64],
	scalar.OpGt: func(o []int64, a, b []float64) { less(o, b, a) },
	scalar.OpGe: func(o []int64, a, b []float64) { lessEqual(o, b, a) },
}

// intStep is a faster path for common operations on integers other than u64, nil for others.
func intStep(e scalar.Expr, args [3]column, out column) executor {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	if e.Op == scalar.OpConvert {
		b = a
	}
	switch {
	case e.Op == scalar.OpSelect:
		return selectStep(a, b, c, o)
	case e.Op == scalar.OpConvert && e.Type == dtype.F32:
		return pairwise(out.f, a, a, converted[float32, float64, int64])
	case e.Op == scalar.OpConvert && !e.Type.IsInteger():
		return nil
	case intInRange[e.Op] != nil:
		return pairwise(o, a, b, intInRange[e.Op])
	case e.Type == dtype.I32:
		return pairwise(o, a, b, intArithmetic[int32](e.Op))
	case e.Type == dtype.U32:
		return pairwise(o, a, b, intArithmetic[uint32](e.Op))
	case e.Type == dtype.I64:
		return pairwise(o, a, b, intArithmetic[int64](e.Op))
	}
	return rounded(pairwise(o, a, b, intArithmetic[int64](e.Op)), o, e.Type.Wrap)
}

// intArithmetic returns an operation whose results are wrapped to W, nil for others.
func intArithmetic[W int32 | uint32 | int64](op scalar.Op) func(o, a, b []int64) {
	switch op {
	case scalar.OpAdd:
		return sum[W, int64]
	case scalar.OpSub:
		return difference[W, int64]
	case scalar.OpMul:
		return product[W, int64]
	case scalar.OpDiv:
		return wholeQuotient[W]
	case scalar.OpFloorDiv:
		return floorQuotient[W]
	case scalar.OpConvert:
		return converted[W, int64, int64]
	}
	return nil
}

// intInRange holds operations on integers whose results are in the range of the type where the
// operands are. A zero divisor counts as one.
var intInRange = map[scalar.Op]func(o, a, b []int64){
	scalar.OpMin: smaller[int64],
	scalar.OpMax: larger[int64],
	scalar.OpAnd: conjunction,
	scalar.OpOr:  disjunction,
	scalar.OpXor: func(o, a, b []int64) {
		for t := range o {
			o[t] = a[t] ^ b[t]
		}
	},
	scalar.OpRem: func(o, a, b []int64) {
		for t := range o {
			if o[t] = 0; b[t] != 0 {
				o[t] = a[t] % b[t]
			}
		}
	},
	scalar.OpMod: func(o, a, b []int64) {
		for t := range o {
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
	scalar.OpGt: func(o, a, b []int64) { less(o, b, a) },
	scalar.OpGe: func(o, a, b []int64) { lessEqual(o, b, a) },
}

// boolStep is a faster path for common operations on bools, nil for others.
func boolStep(e scalar.Expr, args [3]column, out column) executor {
	a, b, c, o := args[0].i, args[1].i, args[2].i, out.i
	switch e.Op {
	case scalar.OpSelect:
		return selectStep(a, b, c, o)
	case scalar.OpAnd:
		return pairwise(o, a, b, conjunction)
	case scalar.OpOr:
		return pairwise(o, a, b, disjunction)
	}
	return nil
}

// selectStep sets o to b where the condition holds, and to c elsewhere.
func selectStep[T number](cond []int64, b, c, o []T) executor {
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

// fused sets o to a·b + c, rounded once.
func fused[R kind](o, a, b, c []float64) executor {
	return func(active []int32) {
		from, to := between(active)
		o, a, b, c := o[from:to], a[from:to], b[from:to], c[from:to]
		for t := range o {
			o[t] = float64(R(math.FMA(a[t], b[t], c[t])))
		}
	}
}

func converted[R kind, T, F number](o []T, a, _ []F) {
	for t, x := range a {
		o[t] = T(R(x))
	}
}

func negation(o, a, _ []float64) {
	for t, x := range a {
		o[t] = -x
	}
}

func sum[R kind, T number](o, a, b []T) {
	for t, x := range a {
		o[t] = T(R(x + b[t]))
	}
}

func difference[R kind, T number](o, a, b []T) {
	for t, x := range a {
		o[t] = T(R(x - b[t]))
	}
}

func product[R kind, T number](o, a, b []T) {
	for t, x := range a {
		o[t] = T(R(x * b[t]))
	}
}

func quotient[R kind](o, a, b []float64) {
	for t, x := range a {
		o[t] = float64(R(x / b[t]))
	}
}

func wholeQuotient[W kind](o, a, b []int64) {
	for t, x := range a {
		if o[t] = x; b[t] != 0 {
			o[t] = int64(W(x / b[t]))
		}
	}
}

func floorQuotient[W kind](o, a, b []int64) {
	for t, x := range a {
		if o[t] = x; b[t] != 0 {
			q := x / b[t]
			if q*b[t] != x && (x < 0) != (b[t] < 0) {
				q--
			}
			o[t] = int64(W(q))
		}
	}
}

func smaller[T number](o, a, b []T) {
	for t, x := range a {
		o[t] = min(x, b[t])
	}
}

func larger[T number](o, a, b []T) {
	for t, x := range a {
		o[t] = max(x, b[t])
	}
}

func conjunction(o, a, b []int64) {
	for t, x := range a {
		o[t] = x & b[t]
	}
}

func disjunction(o, a, b []int64) {
	for t, x := range a {
		o[t] = x | b[t]
	}
}

func equal[T number](o []int64, a, b []T) {
	for t, x := range a {
		o[t] = bit(x == b[t])
	}
}

func unequal[T number](o []int64, a, b []T) {
	for t, x := range a {
		o[t] = bit(x != b[t])
	}
}

func less[T number](o []int64, a, b []T) {
	for t, x := range a {
		o[t] = bit(x < b[t])
	}
}

func lessEqual[T number](o []int64, a, b []T) {
	for t, x := range a {
		o[t] = bit(x <= b[t])
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
