package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Rounding to integers. Derivatives are 0, also at the jumps.
const (
	OpFloor ir.Op = "floor"
	OpCeil  ir.Op = "ceil"
	OpRound ir.Op = "round"
	OpTrunc ir.Op = "trunc"
)

func init() {
	for _, r := range []struct {
		op     ir.Op
		doc    string
		float  func(float64) float64
		scalar func(scalar.Expr) scalar.Expr
	}{
		{OpFloor, "⌊x⌋, the largest integer not above x.", math.Floor, scalar.Floor},
		{OpCeil, "⌈x⌉, the smallest integer not below x.", math.Ceil, scalar.Ceil},
		{OpRound, "The integer nearest to x, ties to even.", math.RoundToEven, scalar.Round},
		{OpTrunc, "x rounded toward zero.", math.Trunc, scalar.Trunc},
	} {
		defineUnary(unary{
			op: r.op, doc: r.doc + " The derivative is 0, also at the jumps.",
			types: floats, scalar: r.scalar, meaning: meaning{float: float1(r.float)},
		})
	}
}

// Floor returns the largest integer not above x.
func Floor(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpFloor, nil, x) }

// Ceil returns the smallest integer not below x.
func Ceil(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCeil, nil, x) }

// Round returns the integer nearest to x, ties to even.
func Round(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRound, nil, x) }

// Trunc returns x rounded toward zero.
func Trunc(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpTrunc, nil, x) }
