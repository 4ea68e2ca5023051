package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Extreme returns the largest value of a real type if sign is positive and the smallest one if it
// is negative: an infinity of floats, true and false for Bool.
func Extreme(d dtype.DType, sign int) Expr {
	if d.IsFloat() {
		return ConstF(d, math.Inf(sign))
	}
	if d.IsBool() {
		return ConstBool(sign > 0)
	}
	lo, hi, ok := d.IntRange()
	if !ok {
		lo, hi = 0, -1 // u64, by bit pattern
	}
	if sign > 0 {
		return ConstI(d, hi)
	}
	return ConstI(d, lo)
}
