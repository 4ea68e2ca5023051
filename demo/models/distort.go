package models

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Maximum distortions: a fraction of the size, pixels, pixels per row.
const (
	maxScale = 0.1
	maxShift = 0.5
	maxShear = 0.15
)

// distort returns pictures, f32[batch,64], each randomly stretched, moved and sheared a little
// along both axes. The training digits are by few writers, and the test digits by others.
func distort(b *ir.Builder, key, images ir.Value) ir.Value {
	batch := images.Type().Shape[0]
	x := ops.Reshape(b, images, batch, ir.N(Side), ir.N(Side))
	keys := ops.SplitKey(b, key, ir.N(2))
	for axis := range 2 {
		rows := stretchRows(b, ops.Squeeze(b, ops.SliceAxis(b, keys, 0, ir.N(axis), ir.N(1)), 0), x)
		x = ops.Transpose(b, rows, 0, 2, 1)
	}
	return ops.Reshape(b, x, batch, ir.N(Pixels))
}

// stretchRows returns pictures, f32[batch,8,8], with pixel c of row r sampled at c + c·scale +
// shift + r·shear of the row. c and r count from the centre, and the numbers differ by picture. It
// interpolates between pixels, and returns 0 outside a row.
func stretchRows(b *ir.Builder, key, x ir.Value) ir.Value {
	batch := x.Type().Shape[0]
	number := func(v float64) ir.Value { return ops.Const(b, ir.F32, v) }
	u := ops.Sub(b, ops.Mul(b, ops.Uniform(b, key, ir.F32, ir.N(3), batch, ir.N(1), ir.N(1)), number(2)), number(1))
	random := func(i int, most float64) ir.Value {
		return ops.Mul(b, ops.Squeeze(b, ops.SliceAxis(b, u, 0, ir.N(i), ir.N(1)), 0), number(most))
	}
	along := func(axis int) ir.Value {
		shape := ir.Dims(1, 1, 1)
		shape[axis] = ir.N(Side)
		return ops.Sub(b, ops.Iota(b, ir.F32, axis, shape...), number((Side-1)/2.))
	}
	moved := ops.Add(b, ops.Add(b, ops.Mul(b, along(2), random(0, maxScale)), random(1, maxShift)), ops.Mul(b, along(1), random(2, maxShear)))
	// No pixel moves farther, so both neighbours are within reach.
	reach := int(math.Ceil((maxScale+maxShear)*(Side-1)/2 + maxShift))
	padded := ops.Pad(b, x, number(0), []int{0, 0, reach}, []int{0, 0, reach}, nil)
	var sum ir.Value
	for d := -reach; d <= reach; d++ {
		weight := ops.Relu(b, ops.Sub(b, number(1), ops.Abs(b, ops.Sub(b, moved, number(float64(d))))))
		term := ops.Mul(b, weight, ops.SliceAxis(b, padded, 2, ir.N(d+reach), ir.N(Side)))
		if d == -reach {
			sum = term
		} else {
			sum = ops.Add(b, sum, term)
		}
	}
	return sum
}
