package ops

import (
	"math"

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
		meaning: func(_ *ir.Node, in []matrix) []matrix {
			if !withReferences {
				return nil
			}
			return plainLU(in[0].clone())
		},
		body: luBody,
		jvp:  jvpLU,
	})
}

// LU returns the LU factorisation of matrices, [..., m, n] of f32 or f64, with partial
// pivoting: u in the upper triangle of lu and l, with a unit diagonal, below it; pivots,
// the row swapped with row i in step i; and permutation, with l·u = x[permutation].
func LU(b *ir.Builder, x ir.Value) (lu, pivots, permutation ir.Value) {
	out := several(3, b.Add(OpLU, nil, x))
	return out[0], out[1], out[2]
}

func plainLU(a matrix) []matrix {
	k := min(a.rows, a.cols)
	pivots, order := newMatrix(1, k), newMatrix(1, a.rows)
	for i := range a.rows {
		order.x[i] = float64(i)
	}
	for j := range k {
		p := j
		for i := j + 1; i < a.rows; i++ {
			if x, best := a.at(i, j), a.at(p, j); math.Abs(x) > math.Abs(best) || x != x && best == best {
				p = i
			}
		}
		pivots.x[j] = float64(p)
		order.x[j], order.x[p] = order.x[p], order.x[j]
		for c := range a.cols {
			above, below := a.at(j, c), a.at(p, c)
			a.set(j, c, below)
			a.set(p, c, above)
		}
		if a.at(j, j) == 0 {
			continue
		}
		for i := j + 1; i < a.rows; i++ {
			a.set(i, j, a.at(i, j)/a.at(j, j))
			for c := j + 1; c < a.cols; c++ {
				a.set(i, c, a.at(i, c)-a.at(i, j)*a.at(j, c))
			}
		}
	}
	return []matrix{a, pivots, order}
}

// luBody eliminates one column in each step of a loop, or, if a matrix exceeds the
// kernel's maximum size, a panel of columns.
func luBody(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value {
	x := in[0]
	rows, cols := matrixDims(x)
	if width := panelWidth(x.DType(), rows); width < min(rows, cols) {
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
			beside := element(b, splitAxis(b, x, at, ir.N(high/width)), k, at)
			unit := TriangularAttrs{LeftSide: true, Lower: true, UnitDiagonal: true}
			solved := TriangularSolve(b, sliceMatrix(b, lu, width, width), beside, unit)
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
	below, beside := element(b, x, k, -1), element(b, x, k, -2)
	pivot := column(b, element(b, below, k, -1))
	none := Eq(b, pivot, ZerosLike(b, pivot))
	factor := column(b, Div(b, below, Select(b, none, OnesLike(b, pivot), pivot)))
	i, j := places(b, x)
	rest := Select(b, Gt(b, j, k), Sub(b, x, Mul(b, factor, row(b, beside))), Select(b, Eq(b, j, k), factor, x))
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
