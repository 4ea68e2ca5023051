package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// votesOfDigits returns the elements that a member reads contiguously along the outer coordinates of a group, negative for
// the inner ones, where their position along the last axis is the lowest digit of a coordinate, as in a reshape. It adds
// the values to those that are counted.
func votesOfDigits(g *Group, m *Member, counted *[]ir.Value) (votes int) {
	if !withTensorCores || !g.partition.options.TensorCores {
		return 0
	}
	s := g.partition.spaces.of(m.Node)
	for _, a := range s.reads {
		v := s.valueOf(a)
		axis := len(a.at) - 1
		for axis >= 0 && (v.Dim(axis).Is(1) || !isInnermost(g.partition, v, axis)) {
			axis--
		}
		if axis < 0 || g.member(v) != nil || slices.Contains(*counted, v) {
			continue
		}
		if stepOf(g, m, s.nodeSpace, a.at[axis]) < 0 {
			votes += votesOfDigit(m, s, v, a.at, axis, len(g.Outer))
			*counted = append(*counted, v)
		}
	}
	return votes
}

// votesOfDigit is votesOfDigits for a value, whose adjacent elements are along an axis. A short run of them counts in
// part. The digits of the axes before continue it.
func votesOfDigit(m *Member, s ownSpace, v ir.Value, at ir.Index, axis, outer int) int {
	e, run := digitOf(at[axis])
	if run == 0 {
		return 0
	}
	own, ok := s.axisOf(e)
	if !ok || m.coordOf(own) < 0 {
		return 0
	}
	for n, _ := v.Dim(axis).Const(); run == n && axis > 0; {
		axis--
		more, constant := v.Dim(axis).Const()
		if higher, by := quotientOf(at[axis]); !constant || by != run || higher.Name != e.Name {
			break
		}
		n, run = n*more, run*more
	}
	part := sizeOf(v.Type()) / minDigit * min(run, minDigit)
	if m.coordOf(own) < outer {
		return part
	}
	return -part
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
