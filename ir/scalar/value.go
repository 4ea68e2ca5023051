package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Value is the value of an expression. The type of the expression selects the field: F for floats,
// I for integers and Bool (0 or 1; a u64 is its bit pattern), C for complex numbers.
type Value struct {
	F float64
	I int64
	C complex128
}

// Rounding is the rounding mode of Eval.
type Rounding uint8

const (
	// Exact rounds the result of every operation to its type, as a device does.
	Exact Rounding = iota
	// Reference computes every float and complex operation in 64-bit parts, also conversions
	// between float types. Only Bitcast rounds to the type, since it needs the bits.
	Reference
)

var negZero = math.Copysign(0, -1)

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// boolean returns b as a Value.
func boolean(b bool) Value {
	if b {
		return Value{I: 1}
	}
	return Value{}
}

// round rounds v to type t in the given mode. Integers wrap in both modes.
func (v Value) round(t dtype.DType, mode Rounding) Value {
	switch {
	case t.IsInteger():
		v.I = t.Wrap(v.I)
	case mode == Reference:
	case t == dtype.F32:
		v.F = float64(float32(v.F))
	case t.IsFloat():
		v.F = t.Round(v.F)
	case t == dtype.C64:
		v.C = complex128(complex64(v.C))
	}
	return v
}

// represents reports whether type wide represents every value of type small.
func represents(wide, small dtype.DType) bool {
	w, s := kindOf(wide), kindOf(small)
	switch {
	case wide == small || s == kBool:
		return true
	case w == kInt && s == kInt:
		if wide.IsUnsigned() {
			return small.IsUnsigned() && wide.Size() >= small.Size()
		}
		return wide.Size() > small.Size() || small.IsSigned() && wide.Size() == small.Size()
	case w == kFloat && s == kFloat:
		return wide.Epsilon() <= small.Epsilon() && wide.MaxFloat() >= small.MaxFloat() &&
			wide.SmallestNormal() <= small.SmallestNormal()
	case w == kComplex && s == kComplex:
		return wide.Size() >= small.Size()
	case w == kFloat && s == kInt:
		return small.Size() <= 2 && wide.Size() >= 4 || small.Size() == 4 && wide == dtype.F64
	}
	return false
}

// convert returns v, of type from, converted to type to.
func convert(v Value, from, to dtype.DType, mode Rounding) Value {
	switch kindOf(to) {
	case kBool:
		return boolean(v.F != 0 || v.I != 0 || v.C != 0)
	case kInt:
		if from.IsFloat() {
			return Value{I: saturate(v.F, to)}
		}
		return Value{I: to.Wrap(v.I)}
	case kFloat:
		if !from.IsFloat() {
			v = Value{F: toFloat(v.I, from, to, mode)}
		}
		return v.round(to, mode)
	}
	if from.IsComplex() {
		return v.round(to, mode)
	}
	re := convert(v, from, to.Real(), mode)
	return Value{C: complex(re.F, 0)}
}

// toFloat returns the integer x as a float. For f32 it rounds once, not through float64, which may
// not hold a 64-bit integer.
func toFloat(x int64, from, to dtype.DType, mode Rounding) float64 {
	narrow := to == dtype.F32 && mode == Exact
	switch {
	case from == dtype.U64 && narrow:
		return float64(float32(uint64(x)))
	case from == dtype.U64:
		return float64(uint64(x))
	case narrow:
		return float64(float32(x))
	}
	return float64(x)
}

// saturate truncates x toward zero to integer type t, clamps it to the range of t, and maps NaN to
// 0.
func saturate(x float64, t dtype.DType) int64 {
	if math.IsNaN(x) {
		return 0
	}
	if t == dtype.U64 {
		switch {
		case x <= 0:
			return 0
		case x >= 0x1p64:
			return -1 // all ones
		}
		return int64(uint64(x))
	}
	lo, hi, _ := t.IntRange()
	switch {
	case x <= float64(lo):
		return lo
	case x >= float64(hi):
		return hi
	}
	return int64(x)
}

// bitcast returns the bits of v, of type from, as type to.
func bitcast(v Value, from, to dtype.DType) Value {
	bits := uint64(v.I)
	if from.IsFloat() {
		bits = from.FloatBits(v.F)
	}
	if to.IsFloat() {
		return Value{F: to.FloatFromBits(bits)}
	}
	return Value{I: to.Wrap(int64(bits))}
}
