//go:build !js

package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// lowestDigit returns the axis of the coordinate of which a position along an axis of a value is the lowest digit, as in
// a reshape, and how many adjacent positions it runs through; 0 if there is none. The digits of the axes before continue
// it.
func (s *nodeSpace) lowestDigit(v ir.Value, at ir.Index, axis int) (own, run int) {
	e, run := digitOf(at[axis])
	if run == 0 {
		return 0, 0
	}
	own, ok := s.axisOf(e)
	if !ok {
		return 0, 0
	}
	for n, _ := v.Dim(axis).Const(); run == n && axis > 0; {
		axis--
		more, constant := v.Dim(axis).Const()
		if higher, by := quotientOf(at[axis]); !constant || by != run || higher.Name != e.Name {
			break
		}
		n, run = n*more, run*more
	}
	return own, run
}

// maxRepeats is how many neighbours may have one position, and the others elsewhere, as where pixels are made of
// channels: a warp then still accesses several adjacent elements at each of these places.
const maxRepeats = 4

// digitOf returns the variable whose lowest digit a position is, and the number of its values: v mod n, v / n for
// a small n, or v after multiples of that number, where neighbours along the other coordinate are as far apart. It
// is 0 for other positions.
func digitOf(e scalar.Expr) (v scalar.Expr, run int) {
	if e.Op == scalar.OpVar && e.Lo == 0 {
		return e, int(e.Hi) + 1
	}
	if len(e.Args) != 2 {
		return nil, 0
	}
	n, constant := e.Args[1].IntConst()
	switch {
	case (e.Op == scalar.OpMod || e.Op == scalar.OpRem) && constant:
		v, run = digitOf(e.Args[0])
		return v, min(run, int(n))
	case (e.Op == scalar.OpFloorDiv || e.Op == scalar.OpDiv) && constant && n <= maxRepeats:
		v, run = digitOf(e.Args[0])
		return v, run / int(n)
	case e.Op == scalar.OpAdd && e.Args[0].Op == scalar.OpMul && e.Args[0].Args[0].Op == scalar.OpVar:
		v, run = digitOf(e.Args[1])
		if times, ok := e.Args[0].Args[1].IntConst(); ok && int(times) == run {
			return v, run
		}
	}
	return nil, 0
}

// quotientOf returns the variable and the divisor of v / n or of that modulo a number. The divisor is 0 for other positions.
func quotientOf(e scalar.Expr) (v scalar.Expr, by int) {
	if len(e.Args) != 2 {
		return e, 0
	}
	if e.Op == scalar.OpMod || e.Op == scalar.OpRem {
		return quotientOf(e.Args[0])
	}
	n, constant := e.Args[1].IntConst()
	if !constant || e.Op != scalar.OpFloorDiv && e.Op != scalar.OpDiv || e.Args[0].Op != scalar.OpVar {
		return e, 0
	}
	return e.Args[0], int(n)
}
