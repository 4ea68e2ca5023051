package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Norms of matrices.
const (
	OpMatrixNorm ir.Op = "matrix_norm"
	OpCondNumber ir.Op = "cond_number"
)

// The orders of a matrix norm.
const (
	NormFrobenius = "fro"  // the root of the sum of squares
	NormNuclear   = "nuc"  // the sum of the singular values
	NormSpectral  = "2"    // the largest singular value
	NormSmallest  = "-2"   // the smallest singular value
	NormColumns   = "1"    // the largest sum of the absolute values of a column
	NormRows      = "inf"  // the largest sum of the absolute values of a row
	normColumn    = "-1"   // the smallest of those of columns
	normRow       = "-inf" // the smallest of those of rows
)

var matrixNorms = []string{NormFrobenius, NormNuclear, NormSpectral, NormSmallest, NormColumns, NormRows, normColumn, normRow}

// MatrixNormAttrs hold the order of a norm.
type MatrixNormAttrs struct{ Order string }

// Visit shows the attributes.
func (a *MatrixNormAttrs) Visit(v ir.AttrVisitor) { v.Text("order", &a.Order) }

func init() {
	constraints := []string{
		"x is f32 or f64, of rank 2 or more, and has no symbolic size",
		`order is "fro" (the root of the sum of squares), "nuc" (the sum of the singular values), "2" or "-2" (the largest and the smallest of them), ` +
			`"1" or "-1" (the largest and the smallest sum of absolute values in a column), or "inf" or "-inf" (in a row)`,
	}
	known := func(n *ir.Node) error {
		if order := n.Attrs().(*MatrixNormAttrs).Order; !slices.Contains(matrixNorms, order) {
			return ir.Attrf("order is %q, not one of %q", order, matrixNorms)
		}
		return nil
	}
	defineComposite(composite{
		op: OpMatrixNorm, doc: "The norms of matrices, by the orders of numpy.linalg.norm. The norm of an empty matrix is 0; the orders of a minimum need elements.",
		types: floats, constraints: constraints, newAttrs: func() ir.Attrs { return &MatrixNormAttrs{NormFrobenius} },
		check: func(n *ir.Node) error {
			if err := checkSized(n); err != nil {
				return err
			}
			return known(n)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return matrixNorm(b, in[0], n.Attrs().(*MatrixNormAttrs).Order)
		},
	})
	defineComposite(composite{
		op: OpCondNumber, doc: "The condition numbers of square matrices: the norm of x times that of its inverse, Inf or NaN for a singular matrix.",
		types: floats, constraints: append(constraints[:2:2], "the matrices are square and have elements"),
		newAttrs: func() ir.Attrs { return &MatrixNormAttrs{NormSpectral} },
		check: func(n *ir.Node) error {
			if err := checkSizedSquare(n); err != nil {
				return err
			}
			if n.Input(0).Dim(-1).Is(0) {
				return ir.Shapef("%s has no elements", n.Input(0).Type())
			}
			return known(n)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			order := n.Attrs().(*MatrixNormAttrs).Order
			if order == NormSpectral || order == NormSmallest {
				most, least := matrixNorm(b, in[0], NormSpectral), matrixNorm(b, in[0], NormSmallest)
				if order == NormSmallest {
					most, least = least, most
				}
				return Div(b, most, least)
			}
			return Mul(b, matrixNorm(b, in[0], order), matrixNorm(b, Inv(b, in[0]), order))
		},
	})
}

// MatrixNorm returns the norms [...] of matrices, [..., m, n] of f32 or f64, of an order
// such as [NormFrobenius] or [NormSpectral].
func MatrixNorm(b *ir.Builder, x ir.Value, order string) ir.Value {
	return b.Add1(OpMatrixNorm, &MatrixNormAttrs{order}, x)
}

// CondNumber returns the condition numbers [...] of square matrices in the norm of the
// given order.
func CondNumber(b *ir.Builder, x ir.Value, order string) ir.Value {
	return b.Add1(OpCondNumber, &MatrixNormAttrs{order}, x)
}

func matrixNorm(b *ir.Builder, x ir.Value, order string) ir.Value {
	rows, cols := matrixDims(x)
	switch order {
	case NormFrobenius:
		return Norm(b, x, 2, -2, -1)
	case NormColumns, normColumn, NormRows, normRow:
		along, left := -2, cols
		if order == NormRows || order == normRow {
			along, left = -1, rows
		}
		sums := ReduceSum(b, Abs(b, x), along)
		if order == normColumn || order == normRow {
			return ReduceMin(b, sums, -1)
		}
		if left == 0 {
			return Zeros(b, x.DType(), leadOf(x)...)
		}
		return ReduceMax(b, sums, -1)
	}
	_, s, _ := SVD(b, x, false)
	k := min(rows, cols)
	switch {
	case order == NormNuclear:
		return ReduceSum(b, s, -1)
	case order == NormSmallest:
		return Squeeze(b, SliceAxis(b, s, -1, ir.N(max(k-1, 0)), ir.N(1)), -1)
	case k == 0:
		return Zeros(b, x.DType(), leadOf(x)...)
	}
	return Squeeze(b, SliceAxis(b, s, -1, ir.N(0), ir.N(1)), -1)
}
