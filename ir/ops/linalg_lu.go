package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpLU is the LU factorisation with partial pivoting.
const OpLU ir.Op = "lu"

func init() {
	defineMatrixOp(matrixOp{
		op: OpLU, kernels: luKernels,
		doc: "The LU factorisation with partial pivoting, l·u = x[permutation]. The first result holds u in its " +
			"upper triangle and l, whose diagonal is 1, below it; pivots[i] is the row swapped with row i in step i; pivots and permutation are i32. " +
			"Ties take the first pivot; a zero column is unchanged.",
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			rows, cols, err := sizedMatrix(in[0])
			return []ir.Type{
				trailing(n.Input(0).DType(), in[0].rows, in[0].cols),
				trailing(ir.I32, ir.N(min(rows, cols))), trailing(ir.I32, in[0].rows),
			}, err
		},
		constraints: []string{"the matrices have no symbolic size"},
		body:        luBody,
		jvp:         jvpLU,
	})
}

// LU returns the LU factorisation of matrices, [..., m, n] of f32 or f64, with partial
// pivoting: u in the upper triangle of lu and l, with a unit diagonal, below it; pivots,
// the row swapped with row i in step i; and permutation, with l·u = x[permutation].
func LU(b *ir.Builder, x ir.Value) (lu, pivots, permutation ir.Value) {
	out := several(3, b.Add(OpLU, nil, x))
	return out[0], out[1], out[2]
}

// tallPanel is the width of a panel that is factored by narrower ones, where a kernel
// keeps fewer than matrixBlock columns: the narrow panels then update only the tall one,
// and the whole matrix is updated once for each tall panel.
const tallPanel = 4 * matrixBlock

// luBody eliminates one column in each step of a loop, or, if a matrix exceeds the
// kernel's maximum size, a panel of columns.
func luBody(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
	x := in[0]
	rows, cols := matrixDims(x)
	if width := panelWidth(x.DType(), rows); width < min(rows, cols) && !fitsRegisters(x.DType(), rows, cols, maxLURows) {
		if width < matrixBlock && min(rows, cols) > 2*tallPanel {
			width = tallPanel
		}
		return luPanels(b, x, width)
	}
	lead := leadOf(x)
	order := Iota(b, ir.I32, -1, append(lead.Clone(), ir.N(rows))...)
	if rows*cols == 0 {
		return []ir.Value{x, Zeros(b, ir.I32, append(lead, ir.N(0))...), order}
	}
	carries, ys := Scan(b, Loop{
		Carries: []ir.Value{x, order}, Xs: []ir.Value{steps(b, min(rows, cols))},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			x, order, k := carries[0], carries[1], xs[0]
			place := Iota(b, ir.I32, -1, order.Shape()...)
			size := Abs(b, element(b, x, k, -1))
			best := ArgMax(b, Select(b, Ge(b, place, k), size, ConstLike(b, size, -1)), -1)
			other := column(b, best)
			from := Select(b, Eq(b, place, k), other, Select(b, Eq(b, place, other), k, place))
			return []ir.Value{eliminateBelow(b, takeRows(b, x, from), k), takeOrder(b, order, from, order.Rank()-1)}, []ir.Value{best}
		},
	})
	if b.Err() != nil {
		return make([]ir.Value, 3)
	}
	return []ir.Value{carries[0], MoveAxis(b, ys[0], 0, -1), carries[1]}
}

// luPanels factors a panel of columns in each step, with finished rows as zeros at the
// end, and updates the trailing columns by one product, which solves for the panel's rows
// too.
func luPanels(b *ir.Builder, x ir.Value, width int) []ir.Value {
	rows, cols := matrixDims(x)
	high, wide := roundUp(rows, width), roundUp(cols, width)
	at, count := x.Rank()-2, min(rows, cols)
	order := Iota(b, ir.I32, -1, append(leadOf(x), ir.N(high))...)
	carries, ys := Scan(b, Loop{
		Carries: []ir.Value{padMatrix(b, x, high, wide), order}, Xs: []ir.Value{steps(b, roundUp(count, width)/width)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			x, order, k := carries[0], carries[1], xs[0]
			p := panelOf(b, x, k, width)
			lu, pivots, moved := LU(b, p.live)
			from := Rem(b, Add(b, p.back(moved, -1), p.first), int32Like(b, p.first, high))
			x = takeRows(b, x, from)
			factors := p.back(lu, at)
			right := element(b, splitAxis(b, x, at, ir.N(high/width)), k, at)
			unit := TriangularAttrs{LeftSide: true, Lower: true, UnitDiagonal: true}
			solved := TriangularSolve(b, sliceMatrix(b, lu, width, width), right, unit)
			i, j := places(b, factors)
			below := orZero(b, Gt(b, i, Add(b, j, p.first)), factors)
			rest := Sub(b, x, MatMul(b, below, solved))
			x = p.replace(x, factors, rest)
			return []ir.Value{x, takeOrder(b, order, from, order.Rank()-1)}, []ir.Value{Add(b, pivots, p.first)}
		},
	})
	if b.Err() != nil {
		return make([]ir.Value, 3)
	}
	pivots := mergeAxes(b, MoveAxis(b, ys[0], 0, at), at)
	return []ir.Value{sliceMatrix(b, carries[0], rows, cols), SliceAxis(b, pivots, -1, ir.N(0), ir.N(count)), SliceAxis(b, carries[1], -1, ir.N(0), ir.N(rows))}
}

// eliminateBelow subtracts multiples of row k from the rows below, and keeps the factors
// in column k.
func eliminateBelow(b *ir.Builder, x, k ir.Value) ir.Value {
	below, right := element(b, x, k, -1), element(b, x, k, -2)
	pivot := column(b, element(b, below, k, -1))
	none := Eq(b, pivot, ZerosLike(b, pivot))
	factor := column(b, Div(b, below, Select(b, none, OnesLike(b, pivot), pivot)))
	i, j := places(b, x)
	rest := Select(b, Gt(b, j, k), Sub(b, x, Mul(b, factor, row(b, right))), Select(b, Eq(b, j, k), factor, x))
	return Select(b, Gt(b, i, k), rest, x)
}

// takeRows permutes the rows of each matrix by a vector of indices.
func takeRows(b *ir.Builder, x, order ir.Value) ir.Value {
	batch := counting(0, max(x.Rank()-2, 0))
	return Gather(b, x, column(b, order), GatherAttrs{IndexedAxes: IndexedAxes{
		Axes: []int{-2}, OperandBatch: batch, IndexBatch: batch, Outside: OutsideClip, Unique: true,
	}})
}

// jvpLU: with f = l⁻¹·dx[permutation]·u⁻¹, dl is l times the part of f below the
// diagonal and du the rest of f times u. Where there are more rows or columns than
// pivots, l or u is made square by an identity (de Hoog, Anderssen and Lukas,
// "Differentiation of matrix functionals using triangular factorization", 2011).
func jvpLU(b *ir.Builder, _ *ir.Node, _, out, t []ir.Value) []ir.Value {
	l, u := luFactors(b, out[0])
	if b.Err() != nil {
		return make([]ir.Value, 3)
	}
	left := TriangularSolve(b, l, takeRows(b, t[0], out[2]), TriangularAttrs{LeftSide: true, Lower: true, UnitDiagonal: true})
	f := TriangularSolve(b, u, left, TriangularAttrs{})
	return []ir.Value{Add(b, MatMul(b, l, Tril(b, f, -1)), MatMul(b, Triu(b, f, 0), u)), {}, {}}
}

// luFactors unpacks l and u, made square, from the first result of lu.
func luFactors(b *ir.Builder, lu ir.Value) (l, u ir.Value) {
	rows, cols := matrixDims(lu)
	k := min(rows, cols)
	l = padMatrix(b, Tril(b, sliceMatrix(b, lu, rows, k), -1), rows, rows)
	u = padMatrix(b, Triu(b, sliceMatrix(b, lu, k, cols), 0), cols, cols)
	i, j := places(b, u)
	own := And(b, Eq(b, i, j), Ge(b, i, int32Like(b, i, k)))
	return Add(b, l, identityLike(b, l)), Select(b, own, OnesLike(b, u), u)
}

func defineDeterminant() {
	squares := squareConstraints()
	defineComposite(composite{
		op: OpDet, doc: "The determinants of square matrices. Derivatives of all orders are finite at singular matrices of any rank; for their cost see cofactor.",
		types: floats, constraints: squares, check: checkSizedSquare,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			lu, pivots, _ := LU(b, in[0])
			return Mul(b, exchangeSign(b, pivots, in[0].DType()), ReduceProd(b, Diagonal(b, lu, 0), -1))
		},
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			return []ir.Value{ReduceSum(b, Mul(b, t[0], Cofactor(b, in[0])), -2, -1)}
		},
	})
	defineComposite(composite{
		op: OpCofactor, operands: []string{"x", "along..."},
		doc: "The cofactor matrices of square matrices x, which are the gradients of the determinants; with further matrices, the directional derivative along " +
			"all of them, for singular matrices of any rank too. The derivative along " +
			"one matrix takes O(n³) operations, as the cofactors do; each further one multiplies that by n².",
		types: floats, constraints: append(squares, "all matrices have one type"),
		check: func(n *ir.Node) error {
			for i, v := range n.Inputs()[1:] {
				if x := n.Input(0).Type(); !v.Type().Equal(x) {
					return ir.Shapef("along %d is %s and x is %s", i, v.Type(), x)
				}
			}
			return checkSizedSquare(n)
		},
		body: cofactorBody, jvp: jvpCofactor,
	})
}

// checkSizedSquare refuses operands that are not square matrices of constant size.
func checkSizedSquare(n *ir.Node) error {
	if err := checkSquare(n); err != nil {
		return err
	}
	return checkSized(n)
}

// Det returns the determinants [...] of square matrices, [..., n, n] of f32 or f64.
func Det(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpDet, nil, x) }

// Cofactor returns the cofactor matrices of square matrices, the gradients of their
// determinants; with further matrices of the same type, the directional derivative along
// all of these.
func Cofactor(b *ir.Builder, x ir.Value, along ...ir.Value) ir.Value {
	return b.Add1(OpCofactor, nil, slices.Concat([]ir.Value{x}, along)...)
}

// jvpCofactor uses the symmetry of higher derivatives of the determinant: each is linear
// in its directions, and self-adjoint.
func jvpCofactor(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
	var sum ir.Value
	for i, tangent := range t {
		if !tangent.Valid() {
			continue
		}
		fixed := in
		if i > 0 {
			fixed = slices.Delete(slices.Clone(in), i, i+1)
		}
		types := append(ir.TypesOf(fixed), tangent.Type())
		g := closed(b, "cofactor_tangent", types, func(s *ir.Builder, p []ir.Value) []ir.Value {
			return []ir.Value{Cofactor(s, p[0], p[1:]...)}
		})
		sum = addTangents(b, sum, LinearCall(b, g, g, fixed, []ir.Value{tangent})[0])
	}
	return []ir.Value{sum}
}

func cofactorBody(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	switch rows, _ := matrixDims(in[0]); {
	case rows == 0:
		return in[0]
	case len(in) > 2:
		return cofactorByMinors(b, in)
	}
	u, s, vt := SVD(b, in[0], false)
	before := CumProd(b, s, CumSumAttrs{Axis: -1, Exclusive: true})
	after := CumProd(b, s, CumSumAttrs{Axis: -1, Exclusive: true, Reverse: true})
	var y ir.Value
	if len(in) == 1 {
		y = Mul(b, u, row(b, Mul(b, before, after)))
	} else {
		pairs := productsWithoutPairs(b, s, before, after)
		moved := MatMul(b, MatMul(b, adjoint(b, u), in[1]), adjoint(b, vt))
		y = MatMul(b, u, secondOfDiagonal(b, pairs, moved))
	}
	sign := row(b, column(b, Mul(b, Det(b, u), Det(b, vt))))
	return Mul(b, sign, MatMul(b, y, vt))
}

// productsWithoutPairs returns for each pair of singular values the product of all others,
// and 0 on the diagonal, from prefix and suffix products, without division.
func productsWithoutPairs(b *ir.Builder, s, before, after ir.Value) ir.Value {
	n := s.Dim(-1)
	across := BroadcastTo(b, row(b, s), append(s.Shape().Clone(), n))
	i, j := places(b, across)
	upper := Lt(b, i, j)
	between := CumProd(b, Select(b, upper, across, OnesLike(b, across)), CumSumAttrs{Axis: -1, Exclusive: true})
	half := orZero(b, upper, Mul(b, Mul(b, column(b, before), between), row(b, after)))
	return Add(b, half, adjoint(b, half))
}

// secondOfDiagonal returns the gradient of the second-order term in m of the determinant of a
// diagonal matrix. The term is Σ p[i,k]·(m[i,i]·m[k,k] - m[i,k]·m[k,i]) over pairs, where p[i,k] is
// the product of the diagonal without elements i and k.
func secondOfDiagonal(b *ir.Builder, p, m ir.Value) ir.Value {
	trace := MatMul(b, p, column(b, Diagonal(b, m, 0)))
	return Sub(b, Diag(b, Squeeze(b, trace, -1), 0), Mul(b, p, adjoint(b, m)))
}

// cofactorByMinors differentiates each cofactor, a signed minor, by the op for the minors
// and one direction less.
func cofactorByMinors(b *ir.Builder, in []ir.Value) ir.Value {
	minors := make([]ir.Value, len(in))
	for i, x := range in {
		minors[i] = minorsOf(b, x)
	}
	last := len(in) - 1
	d := ReduceSum(b, Mul(b, minors[last], Cofactor(b, minors[0], minors[1:last]...)), -2, -1)
	i, j := places(b, d)
	odd := Ne(b, And(b, Add(b, i, j), OnesLike(b, i)), ZerosLike(b, i))
	return Select(b, odd, Neg(b, d), d)
}

// minorsOf returns for each element the matrix without its row and column, [..., n, n,
// n-1, n-1].
func minorsOf(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := matrixDims(x)
	place := Iota(b, ir.I32, 1, ir.Dims(n, n-1)...)
	passed := Convert(b, Ge(b, place, Iota(b, ir.I32, 0, ir.Dims(n, n-1)...)), ir.I32)
	others := Add(b, place, passed)
	rank := x.Rank()
	x = Take(b, x, others, rank-1, OutsideClip) // [..., n, n, n-1]
	x = Take(b, x, others, rank-2, OutsideClip) // [..., n, n-1, n, n-1]
	return SwapAxes(b, x, rank-1, rank)
}
