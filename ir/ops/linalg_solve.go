package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// Linear systems, inverses and determinants, by LU factors.
const (
	OpSolve   ir.Op = "solve"
	OpInv     ir.Op = "inv"
	OpSlogdet ir.Op = "slogdet"
)

// SolveAttrs choose the system.
type SolveAttrs struct {
	// TransposeA solves with aᵀ.
	TransposeA bool
}

// Visit shows the attributes.
func (a *SolveAttrs) Visit(v ir.AttrVisitor) { v.Bool("transpose_a", &a.TransposeA) }

func init() {
	defineMatrixOp(matrixOp{
		op: OpSolve, operands: []string{"a", "b"}, newAttrs: func() ir.Attrs { return &SolveAttrs{} },
		doc:         "The solution x of a·x = b, or of aᵀ·x = b with transpose_a, by LU. A singular a gives infinities or NaN.",
		constraints: []string{"the matrices of a are square, with the number of rows of those of b", "they have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			if err := squareMatrix(in[0]); err != nil {
				return nil, err
			}
			if in[0].rows != in[1].rows {
				return nil, ir.Shapef("a has %s rows and b has %s", in[0].rows, in[1].rows)
			}
			_, _, err := sizedMatrix(in[0])
			return []ir.Type{trailing(n.Input(0).DType(), in[1].rows, in[1].cols)}, err
		},
		meaning: meaningSolve,
		body:    solveBody,
		jvp: func(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
			a, rest := *n.Attrs().(*SolveAttrs), t[1]
			if t[0].Valid() {
				da := t[0]
				if a.TransposeA {
					da = adjoint(b, da)
				}
				rest = addTangents(b, rest, Neg(b, MatMul(b, da, out[0])))
			}
			return []ir.Value{b.Add1(OpSolve, &a, in[0], rest)}
		},
		transpose: func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
			out := make([]ir.Value, 2)
			if onlyLinear(b, n, linear, 1) && ct[0].Valid() {
				out[1] = b.Add1(OpSolve, &SolveAttrs{!n.Attrs().(*SolveAttrs).TransposeA}, in[0], ct[0])
			}
			return out
		},
	})
	defineComposite(composite{
		op: OpInv, doc: "The inverses of square matrices; infinities or NaN for a singular one.",
		types: floats, constraints: matrixConstraints, check: checkSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return Solve(b, in[0], identityLike(b, in[0]), SolveAttrs{})
		},
	})
	defineMatrixOp(slogdet())
}

// checkSquare refuses operands that are not square matrices of f32 or f64.
func checkSquare(n *ir.Node) error {
	t := n.Input(0).Type()
	if err := checkMatrices(t); err != nil {
		return err
	}
	return squareMatrix(sizeOfMatrix(t))
}

// Solve returns the solution x of a·x = y, or of aᵀ·x = y, for a [..., n, n] and y [...,
// n, k] of f32 or f64; a y of rank 1 is one column, as is then the result. The batch axes
// are broadcast. A singular a gives infinities or NaN.
func Solve(b *ir.Builder, a, y ir.Value, attrs SolveAttrs) ir.Value {
	if b.Err() == nil && y.Rank() == 1 {
		return Squeeze(b, Solve(b, a, column(b, y), attrs), -1)
	}
	in := broadcastLead(b, OpSolve, a, y)
	return b.Add1(OpSolve, &attrs, in...)
}

// Inv returns the inverses of square matrices, [..., n, n] of f32 or f64; infinities or
// NaN for singular ones.
func Inv(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpInv, nil, x) }

// Slogdet returns the signs of the determinants of square matrices, [..., n, n] of f32 or
// f64, and the logarithms of their absolute values, both [...]: 0 and −Inf for singular
// matrices.
func Slogdet(b *ir.Builder, x ir.Value) (sign, logabsdet ir.Value) {
	out := several(2, b.Add(OpSlogdet, nil, x))
	return out[0], out[1]
}

func meaningSolve(n *ir.Node, in []matrix) []matrix {
	if !withReferences {
		return nil
	}
	a := in[0]
	if n.Attrs().(*SolveAttrs).TransposeA {
		a = a.transposed()
	}
	f := plainLU(a.clone())
	y := in[1].clone()
	for i, from := range f[2].x {
		copy(y.x[i*y.cols:(i+1)*y.cols], in[1].x[int(from)*y.cols:])
	}
	l := f[0].clone()
	for i := range l.rows {
		l.set(i, i, 1)
	}
	return []matrix{substitute(f[0], substitute(l, y, true), false)}
}

// solveBody solves by the factors of a, also for the transpose, so that a value and its
// derivatives share them.
func solveBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	lu, _, order := LU(b, in[0])
	lower := TriangularAttrs{LeftSide: true, Lower: true, UnitDiagonal: true}
	upper := TriangularAttrs{LeftSide: true}
	if !n.Attrs().(*SolveAttrs).TransposeA {
		x := TriangularSolve(b, lu, takeRows(b, in[1], order), lower)
		return []ir.Value{TriangularSolve(b, lu, x, upper)}
	}
	lower.TransposeA, upper.TransposeA = true, true
	x := TriangularSolve(b, lu, TriangularSolve(b, lu, in[1], upper), lower)
	return []ir.Value{takeRows(b, x, ArgSort(b, order, SortAttrs{Axis: -1}))}
}

// slogdet has the derivative tr(x⁻¹ dx) of the logarithm, and none of the sign.
func slogdet() matrixOp {
	return matrixOp{
		op:          OpSlogdet,
		doc:         "The signs of the determinants of square matrices, and the logarithms of their absolute values: 0 and -Inf for a singular one.",
		constraints: []string{"the matrices are square and have no symbolic size"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			if err := squareMatrix(in[0]); err != nil {
				return nil, err
			}
			_, _, err := sizedMatrix(in[0])
			t := trailing(n.Input(0).DType())
			return []ir.Type{t, t}, err
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
			lu, pivots, _ := LU(b, in[0])
			d := Diagonal(b, lu, 0)
			sign := Mul(b, exchangeSign(b, pivots, d.DType()), ReduceProd(b, Sign(b, d), -1))
			return []ir.Value{sign, ReduceSum(b, Log(b, Abs(b, d)), -1)}
		},
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			return []ir.Value{{}, Trace(b, Solve(b, in[0], t[0], SolveAttrs{}), 0)}
		},
	}
}

// exchangeSign returns the sign of the row permutation.
func exchangeSign(b *ir.Builder, pivots ir.Value, d ir.DType) ir.Value {
	moved := Ne(b, pivots, Iota(b, ir.I32, -1, pivots.Shape()...))
	count := ReduceSum(b, Convert(b, moved, ir.I32), -1)
	odd := Ne(b, Rem(b, count, int32Like(b, count, 2)), int32Like(b, count, 0))
	one := Ones(b, d, odd.Shape()...)
	return Select(b, odd, Neg(b, one), one)
}
