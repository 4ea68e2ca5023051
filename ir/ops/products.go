package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Products of vectors, matrices and tensors.
const (
	OpKron  ir.Op = "kron"
	OpOuter ir.Op = "outer"
	OpVdot  ir.Op = "vdot"
)

func init() {
	sameType := []string{"x and y have one element type"}
	operands := []string{"x", "y"}
	defineComposite(composite{
		op: OpKron, doc: "The Kronecker product: each element of x times all of y, as blocks. The operand of lower rank gets leading axes of size 1.",
		operands: operands, types: numbers, constraints: sameType, check: oneDType, body: kron,
	})
	defineComposite(composite{
		op: OpOuter, doc: "The products of all elements of x with all of y: a matrix [size of x, size of y].",
		operands: operands, types: numbers, constraints: sameType, check: oneDType,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return DotGeneral(b, flattened(b, in[0]), flattened(b, in[1]), DotAttrs{})
		},
	})
	defineComposite(composite{
		op: OpVdot, doc: "The sum of the products of the elements of x, conjugated if they are complex, and of y, in row-major order.",
		operands: operands, types: numbers, constraints: append(slices.Clone(sameType), "x and y have the same number of elements"), check: oneDType,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			x := in[0]
			if x.DType().IsComplex() {
				x = Conj(b, x)
			}
			return DotGeneral(b, flattened(b, x), flattened(b, in[1]), DotAttrs{LhsContract: []int{0}, RhsContract: []int{0}})
		},
	})
}

func flattened(b *ir.Builder, x ir.Value) ir.Value { return Reshape(b, x, x.Shape().Size()) }

// kron interleaves axes of size 1: after each axis of x and before each axis of y.
func kron(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	rank := max(in[0].Rank(), in[1].Rank())
	var apart [2]ir.Value
	var merged ir.Shape
	for side, v := range in {
		full := slices.Concat(ir.Shape(ir.Dims(repeatInt(1, rank-v.Rank())...)), v.Shape())
		var shape ir.Shape
		for i, d := range full {
			pair := []ir.Dim{d, ir.N(1)}
			if side == 1 {
				pair = []ir.Dim{ir.N(1), d}
				merged[i] = merged[i].Mul(d)
			} else {
				merged = append(merged, d)
			}
			shape = append(shape, pair...)
		}
		apart[side] = Reshape(b, v, shape...)
	}
	return Reshape(b, Mul(b, apart[0], apart[1]), merged...)
}

// Kron returns the Kronecker product of x and y: each element of x times all of y, as
// blocks. The operand of lower rank gets leading axes of size 1; axis i of the result has
// the product of the sizes of axis i of both.
func Kron(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpKron, nil, x, y) }

// Outer returns the outer product of x and y, flattened: [size of x, size of y].
func Outer(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpOuter, nil, x, y) }

// Vdot returns the sum of conj(x)·y over all elements in row-major order, of rank 0. x and
// y have the same number of elements.
func Vdot(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpVdot, nil, x, y) }

// TensorDot returns the contraction of the last axes of x with the first axes of y, as
// numpy.tensordot(x, y, axes) does: paired axes have equal sizes. axes is neither negative
// nor above either rank.
func TensorDot(b *ir.Builder, x, y ir.Value, axes int) ir.Value {
	if b.Err() == nil && (axes < 0 || axes > min(x.Rank(), y.Rank())) {
		b.Failf(OpDotGeneral, []ir.Value{x, y}, ir.Attrf("count, of axes, is %d: it must be neither negative nor above the ranks of the operands, %d and %d", axes, x.Rank(), y.Rank()))
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	return DotGeneral(b, x, y, DotAttrs{LhsContract: counting(x.Rank()-axes, axes), RhsContract: counting(0, axes)})
}
