package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// MatMul returns the matrix product as NumPy defines it: over the last two axes of x [...,
// m, k] and y [..., k, n], with the leading axes broadcast. A vector on the left is a row
// and one on the right a column, whose axis the result lacks. x and y have one numeric
// type; f16 and bf16 accumulate in f32. An operand of rank 0 is an error of kind
// [ir.ErrShape].
func MatMul(b *ir.Builder, x, y ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	column := max(y.Rank()-2, 0)
	if err := checkMatMul(x.Type(), y.Type(), column); err != nil {
		b.Failf(opMatMul, []ir.Value{x, y}, err)
		return ir.Value{}
	}
	if y.Rank() <= 2 || x.Rank() == 1 && y.Rank() == 2 {
		return DotGeneral(b, x, y, DotAttrs{LhsContract: []int{-1}, RhsContract: []int{column}})
	}
	if x.Rank() == 1 {
		return DotGeneral(b, x, y, DotAttrs{LhsContract: []int{0}, RhsContract: []int{column}})
	}
	return batchMatMul(b, x, y)
}

// opMatMul is the name of a matrix product in errors.
const opMatMul ir.Op = "matmul"

// checkMatMul reports, in terms of matrices, why x and y cannot be multiplied. column is
// the contracted axis of y.
func checkMatMul(x, y ir.Type, column int) error {
	switch {
	case len(x.Shape) == 0 || len(y.Shape) == 0:
		return ir.Shapef("a matrix product of %s and %s needs operands of rank 1 or more", x, y)
	case x.DType != y.DType:
		return ir.DTypef("the factors are %s and %s, not of one type", x.DType, y.DType)
	case !x.DType.IsNumeric():
		return ir.DTypef("the factors are %s, of which there are no products", x.DType)
	}
	if k, l := x.Shape[len(x.Shape)-1], y.Shape[column]; k != l {
		return ir.Shapef("rows of %s have %s elements, columns of %s have %s", x.Shape, k, y.Shape, l)
	}
	return nil
}

// batchMatMul multiplies x of rank 2 or more by y of rank 3 or more, after broadcasting
// their leading axes.
func batchMatMul(b *ir.Builder, x, y ir.Value) ir.Value {
	xs, ys := x.Shape(), y.Shape()
	lead, err := BroadcastShapes(xs[:len(xs)-2], ys[:len(ys)-2])
	if err != nil {
		b.Failf(opMatMul, []ir.Value{x, y}, err)
		return ir.Value{}
	}
	x = BroadcastTo(b, x, slices.Concat(lead, xs[len(xs)-2:]))
	y = BroadcastTo(b, y, slices.Concat(lead, ys[len(ys)-2:]))
	batch := counting(0, len(lead))
	return DotGeneral(b, x, y, DotAttrs{
		LhsContract: []int{-1}, RhsContract: []int{len(lead)}, LhsBatch: batch, RhsBatch: batch,
	})
}
