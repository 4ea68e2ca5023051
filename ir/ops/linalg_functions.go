package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Functions of matrices.
const (
	OpMatrixPower ir.Op = "matrix_power"
	OpExpm        ir.Op = "expm"
)

// MatrixPowerAttrs hold the exponent.
type MatrixPowerAttrs struct{ Exponent int }

// Visit shows the attributes.
func (a *MatrixPowerAttrs) Visit(v ir.AttrVisitor) { v.Int("exponent", &a.Exponent) }

func init() {
	squares := squareConstraints()
	defineComposite(composite{
		op: OpMatrixPower, doc: "Integer powers of square matrices by repeated squaring: powers of the inverse for a negative exponent, the identity for 0.",
		types: floats, constraints: squares, check: checkSizedSquare, newAttrs: func() ir.Attrs { return &MatrixPowerAttrs{1} },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return matrixPower(b, in[0], n.Attrs().(*MatrixPowerAttrs).Exponent)
		},
	})
	defineComposite(composite{
		op: OpExpm, doc: "The exponentials of square matrices by scaling and squaring with the Padé approximant of degree 13 (Higham), with at most 16 squarings: NaN if the 1-norm exceeds 3.5e5.",
		types: floats, constraints: squares, check: checkSizedSquare, body: expmBody,
	})
}

// MatrixPower returns integer powers of square matrices, [..., n, n]: powers of the
// inverse for a negative exponent.
func MatrixPower(b *ir.Builder, x ir.Value, exponent int) ir.Value {
	return b.Add1(OpMatrixPower, &MatrixPowerAttrs{exponent}, x)
}

// Expm returns the exponentials of square matrices, [..., n, n], by scaling and squaring
// (Higham, 2005). It is NaN if the 1-norm of x exceeds 3.5e5.
func Expm(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpExpm, nil, x) }

func matrixPower(b *ir.Builder, x ir.Value, p int) ir.Value {
	if p < 0 {
		x = Inv(b, x)
	}
	var out ir.Value
	for rest := uint(max(p, -p)); rest > 0; rest >>= 1 {
		switch {
		case rest&1 != 0 && out.Valid():
			out = MatMul(b, out, x)
		case rest&1 != 0:
			out = x
		}
		if rest > 1 {
			x = MatMul(b, x, x)
		}
	}
	if p == 0 {
		return identityLike(b, x)
	}
	return out
}

// Of the Padé approximant of degree 13 (Higham, "The scaling and squaring method
// for the matrix exponential revisited", 2005): the greatest norm for which it is
// exact in f64, and its coefficients.
const padeNorm = 5.371920351148152

var pade = [14]float64{
	64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
	670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
}

const maxSquarings = 16

func expmBody(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	x := in[0]
	if rows, _ := matrixDims(x); rows == 0 {
		return x
	}
	norm := StopGradient(b, matrixNorm(b, x, NormColumns))
	times := Ceil(b, Log2(b, Div(b, norm, ConstLike(b, norm, padeNorm))))
	times = row(b, column(b, Clamp(b, times, Zeros(b, x.DType()), Const(b, x.DType(), maxSquarings))))
	y := padeExp(b, Mul(b, x, Exp2(b, Neg(b, times))))
	y = repeated(b, maxSquarings, y, []ir.Value{times}, func(b *ir.Builder, k, y ir.Value, consts []ir.Value) ir.Value {
		more := Lt(b, Convert(b, k, y.DType()), consts[0])
		return Select(b, more, MatMul(b, y, y), y)
	})
	near := Le(b, norm, ConstLike(b, norm, padeNorm*(1<<maxSquarings)))
	return Select(b, row(b, column(b, near)), y, Const(b, x.DType(), math.NaN()))
}

// padeExp is (v - u)⁻¹·(v + u), where u has the odd powers of x and v the even
// ones. All coefficients are divided by the first one to fit in f32.
func padeExp(b *ir.Builder, x ir.Value) ir.Value {
	x2 := MatMul(b, x, x)
	x4 := MatMul(b, x2, x2)
	x6 := MatMul(b, x4, x2)
	powers := []ir.Value{identityLike(b, x), x2, x4, x6}
	sum := func(first, from int) ir.Value { // the polynomial in x² up to x⁶ with every other coefficient, from first on
		var out ir.Value
		for i := from; i < len(powers); i++ {
			out = addTangents(b, out, Mul(b, powers[i], ConstLike(b, x, pade[first+2*(i-from)]/pade[0])))
		}
		return out
	}
	u := MatMul(b, x, Add(b, MatMul(b, x6, sum(9, 1)), sum(1, 0)))
	v := Add(b, MatMul(b, x6, sum(8, 1)), sum(0, 0))
	return Solve(b, Sub(b, v, u), Add(b, v, u), SolveAttrs{})
}

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
				largest, smallest := matrixNorm(b, in[0], NormSpectral), matrixNorm(b, in[0], NormSmallest)
				if order == NormSmallest {
					largest, smallest = smallest, largest
				}
				return Div(b, largest, smallest)
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
