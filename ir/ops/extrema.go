package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Elementwise maximum and minimum.
const (
	OpMax ir.Op = "max"
	OpMin ir.Op = "min"
)

func init() {
	defineBinary(binary{
		op: OpMax, doc: "The larger of x and y, NaN if one is NaN. Where they are equal each has derivative 1/2.",
		types: reals, scalar: scalar.Max,
		meaning: meaning{
			float: float2(larger),
			integer: func(d ir.DType, x []int64) int64 {
				if compareInts(d, x[0], x[1]) > 0 {
					return x[0]
				}
				return x[1]
			},
		},
		slopes: [2]slope2{
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, x, y) },
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, y, x) },
		},
	})
	defineBinary(binary{
		op: OpMin, doc: "The smaller of x and y, NaN if one is NaN. Where they are equal each has derivative 1/2.",
		types: reals, scalar: scalar.Min,
		meaning: meaning{
			float: float2(smaller),
			integer: func(d ir.DType, x []int64) int64 {
				if compareInts(d, x[0], x[1]) < 0 {
					return x[0]
				}
				return x[1]
			},
		},
		slopes: [2]slope2{
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, y, x) },
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, x, y) },
		},
	})
}

// larger and smaller give NaN if one is NaN. Those of package math take an
// infinity over a NaN.
func larger(x, y float64) float64  { return max(x, y) }
func smaller(x, y float64) float64 { return min(x, y) }

// share returns ∂max(x, y)/∂x: 1 where x is larger, 1/2 at ties, 0 where y is larger, and
// NaN where the result is.
func share(b *ir.Builder, x, y ir.Value) ir.Value {
	level := func(v float64) ir.Value { return ConstLike(b, x, v) }
	lost := Select(b, Lt(b, x, y), level(0), level(math.NaN()))
	return Select(b, Gt(b, x, y), level(1), Select(b, Eq(b, x, y), level(0.5), lost))
}

// compareInts returns -1, 0 or 1 as x is less than, equal to or greater than y as integers
// of type d.
func compareInts(d ir.DType, x, y int64) int {
	below := x < y
	if d == ir.U64 {
		below = uint64(x) < uint64(y)
	}
	switch {
	case x == y:
		return 0
	case below:
		return -1
	}
	return 1
}

// Max returns the larger of x and y, broadcast; NaN propagates. Ties have derivative 1/2
// each.
func Max(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpMax, nil, x, y) }

// Min returns the smaller of x and y, broadcast; NaN propagates. Ties have derivative 1/2
// each.
func Min(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpMin, nil, x, y) }
