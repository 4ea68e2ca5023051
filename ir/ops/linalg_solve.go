package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// OpTriangularSolve solves triangular systems.
const OpTriangularSolve ir.Op = "triangular_solve"

// TriangularAttrs choose the triangle of a, and the system.
type TriangularAttrs struct {
	// LeftSide has a on the left: a·x = b instead of x·a = b.
	LeftSide bool
	// Lower reads the lower triangle instead of the upper one.
	Lower bool
	// TransposeA solves with aᵀ.
	TransposeA bool
	// UnitDiagonal takes the diagonal for ones without reading it.
	UnitDiagonal bool
}

// Visit shows the attributes.
func (a *TriangularAttrs) Visit(v ir.AttrVisitor) {
	v.Bool("left_side", &a.LeftSide)
	v.Bool("lower", &a.Lower)
	v.Bool("transpose_a", &a.TransposeA)
	v.Bool("unit_diagonal", &a.UnitDiagonal)
}

func init() {
	defineMatrixOp(matrixOp{
		op: OpTriangularSolve, kernels: triangularKernels, operands: []string{"a", "b"}, newAttrs: func() ir.Attrs { return &TriangularAttrs{} },
		doc: "The solution x of a·x = b with left_side, of x·a = b without, for a triangle a of the operand; the other elements " +
			"are not read. With transpose_a the matrix is aᵀ. A zero on the diagonal gives infinities or NaN.",
		constraints: []string{"the matrices of a are square, and fit those of b"},
		types: func(n *ir.Node, in []matrixSize) ([]ir.Type, error) {
			if err := squareMatrix(in[0]); err != nil {
				return nil, err
			}
			rows, side := in[1].rows, "rows"
			if !n.Attrs().(*TriangularAttrs).LeftSide {
				rows, side = in[1].cols, "columns"
			}
			if in[0].rows != rows {
				return nil, ir.Shapef("a is of size %s and b has %s %s", in[0].rows, rows, side)
			}
			return []ir.Type{trailing(n.Input(0).DType(), in[1].rows, in[1].cols)}, nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{triangularBody(b, in[0], in[1], *n.Attrs().(*TriangularAttrs))}
		},
		jvp: jvpTriangular,
		transpose: transposeOperand(1, func(b *ir.Builder, n *ir.Node, in []ir.Value, ct ir.Value) ir.Value {
			a := *n.Attrs().(*TriangularAttrs)
			a.TransposeA = !a.TransposeA
			return TriangularSolve(b, in[0], ct, a)
		}),
	})
}

// TriangularSolve returns the solution x of a·x = y with attrs.LeftSide, of x·a = y
// without, for a triangle of a, [..., n, n] of f32 or f64; its other elements are not
// read. The batch axes are broadcast.
func TriangularSolve(b *ir.Builder, a, y ir.Value, attrs TriangularAttrs) ir.Value {
	in := broadcastLead(b, OpTriangularSolve, a, y)
	return b.Add1(OpTriangularSolve, &attrs, in...)
}

// broadcastLead broadcasts the batch axes of matrices.
func broadcastLead(b *ir.Builder, op ir.Op, in ...ir.Value) []ir.Value {
	out := slices.Clone(in)
	if b.Err() != nil {
		return out
	}
	shapes := make([]ir.Shape, len(in))
	for i, x := range in {
		if x.Rank() < 2 {
			return out // for the shape rule
		}
		shapes[i] = leadOf(x)
	}
	lead, err := BroadcastShapes(shapes...)
	if err != nil {
		b.Failf(op, in, err)
		return out
	}
	for i, x := range in {
		out[i] = BroadcastTo(b, x, slices.Concat(lead, x.Shape()[x.Rank()-2:]))
	}
	return out
}

// triangleOf returns the triangle of x that is read.
func triangleOf(b *ir.Builder, x ir.Value, a *TriangularAttrs) ir.Value {
	i, j := places(b, x)
	if !a.Lower {
		i, j = j, i
	}
	if a.UnitDiagonal {
		return orZero(b, Gt(b, i, j), x)
	}
	return orZero(b, Ge(b, i, j), x)
}

// jvpTriangular is dx = a⁻¹(db − da·x), or (db − x·da)·a⁻¹.
func jvpTriangular(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a := n.Attrs().(*TriangularAttrs)
	rest := t[1]
	if t[0].Valid() {
		da := triangleOf(b, t[0], a)
		if a.TransposeA {
			da = adjoint(b, da)
		}
		moved := ir.Value{}
		if a.LeftSide {
			moved = MatMul(b, da, out[0])
		} else {
			moved = MatMul(b, out[0], da)
		}
		rest = addTangents(b, rest, Neg(b, moved))
	}
	return []ir.Value{TriangularSolve(b, in[0], rest, *a)}
}

// triangularBody transposes and reverses the operands so that a is lower and on the left,
// which moves no data, and solves by blocks.
func triangularBody(b *ir.Builder, a, y ir.Value, attrs TriangularAttrs) ir.Value {
	if !attrs.LeftSide {
		attrs.LeftSide, attrs.TransposeA = true, !attrs.TransposeA
		return adjoint(b, triangularBody(b, a, adjoint(b, y), attrs))
	}
	if attrs.TransposeA {
		attrs.TransposeA, attrs.Lower = false, !attrs.Lower
		return triangularBody(b, adjoint(b, a), y, attrs)
	}
	if n, _ := matrixDims(a); n > matrixBlock {
		return solveByInverses(b, a, y, attrs)
	}
	if !attrs.Lower {
		attrs.Lower = true
		return Reverse(b, triangularBody(b, Reverse(b, a, -2, -1), Reverse(b, y, -2), attrs), -2)
	}
	a = triangleOf(b, a, &attrs)
	if attrs.UnitDiagonal {
		a = Add(b, a, identityLike(b, a))
	}
	return substituted(b, a, y)
}

// partOf returns the rows and columns of matrices from the given ones on.
func partOf(b *ir.Builder, x ir.Value, row, rows, col, cols int) ir.Value {
	return SliceAxis(b, SliceAxis(b, x, -2, ir.N(row), ir.N(rows)), -1, ir.N(col), ir.N(cols))
}

// maxInverse is the number of rows of the largest blocks on a diagonal that are inverted. A solution
// by inverses of blocks has an error as small as one by substitution while the blocks are well
// conditioned (Higham, Accuracy and Stability of Numerical Algorithms, section 8.2). Matrices of more
// than maxBlocks such blocks have larger ones, as the graph grows with their number.
const (
	maxInverse = 256
	maxBlocks  = 64
)

// solveByInverses solves a·x = y for triangles a on the left: it inverts the blocks on the diagonal
// together, and solves by halves down to a block, each a product.
func solveByInverses(b *ir.Builder, a, y ir.Value, attrs TriangularAttrs) ir.Value {
	n, _ := matrixDims(a)
	s := &halvedSolve{b: b, a: a, lower: attrs.Lower, size: 2 * matrixBlock}
	for s.size < min(n, max(maxInverse, n/maxBlocks)) {
		s.size *= 2
	}
	s.inverses = invertDiagonal(b, padIdentity(b, a, roundUp(n, s.size)), s.size, attrs)
	return s.solve(y, 0, n)
}

// halvedSolve solves with a triangle whose blocks of size rows on the diagonal have the given
// inverses, [..., blocks, size, size].
type halvedSolve struct {
	b           *ir.Builder
	a, inverses ir.Value
	lower       bool
	size        int
}

// solve returns the solution for the rows of a from the given one on, and the right side y of these.
func (s *halvedSolve) solve(y ir.Value, first, rows int) ir.Value {
	b := s.b
	if rows <= s.size {
		axis := s.a.Rank() - 2
		block := Squeeze(b, SliceAxis(b, s.inverses, axis, ir.N(first/s.size), ir.N(1)), axis)
		return MatMul(b, sliceMatrix(b, block, rows, rows), y)
	}
	half := roundUp(rows/2, s.size)
	_, cols := matrixDims(y)
	top, bottom := partOf(b, y, 0, half, 0, cols), partOf(b, y, half, rows-half, 0, cols)
	if s.lower {
		top = s.solve(top, first, half)
		bottom = s.solve(Sub(b, bottom, MatMul(b, partOf(b, s.a, first+half, rows-half, first, half), top)), first+half, rows-half)
	} else {
		bottom = s.solve(bottom, first+half, rows-half)
		top = s.solve(Sub(b, top, MatMul(b, partOf(b, s.a, first, half, first+half, rows-half), bottom)), first, half)
	}
	return Concatenate(b, -2, top, bottom)
}

// invertDiagonal returns the inverses of the blocks of size rows on the diagonal of triangles, as
// [..., blocks, size, size]: those of [matrixBlock] rows by substitution, twice as large ones by two
// products. The size is a power of two times matrixBlock and divides the number of rows.
func invertDiagonal(b *ir.Builder, a ir.Value, size int, attrs TriangularAttrs) ir.Value {
	lower := func(blocks ir.Value) ir.Value {
		if attrs.Lower {
			return blocks
		}
		return adjoint(b, blocks)
	}
	blocks := lower(diagonalBlocks(b, a, matrixBlock, 0, 0, matrixBlock))
	attrs = TriangularAttrs{LeftSide: true, Lower: attrs.Lower, UnitDiagonal: attrs.UnitDiagonal}
	solve := attrs
	solve.Lower = true
	x := TriangularSolve(b, blocks, identityLike(b, blocks), solve)
	for rows := matrixBlock; rows < size && b.Err() == nil; rows *= 2 {
		axis := x.Rank() - 3
		pairs, _ := x.Dim(axis).Const()
		pairs /= 2
		split := splitAxis(b, x, axis, ir.N(pairs))
		half := func(i int) ir.Value {
			return Squeeze(b, SliceAxis(b, split, axis+1, ir.N(i), ir.N(1)), axis+1)
		}
		beside := lower(diagonalBlocks(b, a, 2*rows, attrs.row(rows), rows-attrs.row(rows), rows))
		corner := Neg(b, MatMul(b, half(1), MatMul(b, beside, half(0))))
		x = Concatenate(b, -2, Concatenate(b, -1, half(0), ZerosLike(b, corner)), Concatenate(b, -1, corner, half(1)))
	}
	return lower(x)
}

// row is the first row of the off-diagonal part of a triangle, for halves of the given rows.
func (a *TriangularAttrs) row(half int) int {
	if a.Lower {
		return half
	}
	return 0
}

// diagonalBlocks returns a square of each of the blocks of "of" rows on the diagonal of square
// matrices, at a row and a column of the block: [..., blocks, size, size]. They are evenly
// strided in memory.
func diagonalBlocks(b *ir.Builder, x ir.Value, of, row, col, size int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	n, _ := matrixDims(x)
	lead := leadOf(x)
	reshape := func(dims ...int) { x = Reshape(b, x, slices.Concat(lead, ir.Dims(dims...))...) }
	low, high := make([]int, len(lead)+1), make([]int, len(lead)+1)
	high[len(lead)] = n
	reshape(n * n)
	x = Pad(b, x, Zeros(b, x.DType()), low, high, nil)
	reshape(n/of, of*n+of)
	x = SliceAxis(b, x, -1, ir.N(row*n), ir.N(size*n))
	reshape(n/of, size, n)
	return SliceAxis(b, x, -1, ir.N(col), ir.N(size))
}

// substituted solves a·x = y for lower triangular a by forward substitution, column by column: the
// part of each row of x in the rows below is subtracted at once.
func substituted(b *ir.Builder, a, y ir.Value) ir.Value {
	n, _ := matrixDims(a)
	diagonal := column(b, Diagonal(b, a, 0))
	rest := repeated(b, n, y, []ir.Value{a, diagonal}, func(b *ir.Builder, k, rest ir.Value, consts []ir.Value) ir.Value {
		x := Div(b, element(b, rest, k, -2), element(b, consts[1], k, -2))
		less := Sub(b, rest, Mul(b, column(b, element(b, consts[0], k, -1)), row(b, x)))
		i, _ := places(b, rest)
		return Select(b, Gt(b, i, k), less, rest)
	})
	return Div(b, rest, diagonal)
}

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
		body: solveBody,
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
		transpose: transposeOperand(1, func(b *ir.Builder, n *ir.Node, in []ir.Value, ct ir.Value) ir.Value {
			return b.Add1(OpSolve, &SolveAttrs{!n.Attrs().(*SolveAttrs).TransposeA}, in[0], ct)
		}),
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
	return two(b.Add(OpSlogdet, nil, x))
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

// Pseudo-inverse, least squares and rank, by singular values.
const (
	OpPinv       ir.Op = "pinv"
	OpLstsq      ir.Op = "lstsq"
	OpMatrixRank ir.Op = "matrix_rank"
	OpCofactor   ir.Op = "cofactor"
	OpDet        ir.Op = "det"
)

// CutoffAttrs hold the relative cutoff below which singular values count as 0: cutoff
// times the largest one. A negative number means 10·max(m, n)·ε.
type CutoffAttrs struct{ Cutoff float64 }

// Visit shows the attributes.
func (a *CutoffAttrs) Visit(v ir.AttrVisitor) { v.Float("cutoff", &a.Cutoff) }

func newCutoff() ir.Attrs { return &CutoffAttrs{Cutoff: -1} }

// cutoff returns the largest singular value that counts as 0, along an axis of size 1.
func (a *CutoffAttrs) cutoff(b *ir.Builder, x, s ir.Value) ir.Value {
	rows, cols := matrixDims(x)
	share := a.Cutoff
	if share < 0 {
		share = 10 * float64(max(rows, cols)) * x.DType().Epsilon()
	}
	largest := SliceAxis(b, s, -1, ir.N(0), ir.N(1))
	return Mul(b, largest, ConstLike(b, largest, share))
}

func init() {
	sizedDoc := []string{"the operands are f32 or f64, of rank 2 or more, and have no symbolic size"}
	defineComposite(composite{
		op: OpPinv, doc: "The Moore-Penrose inverses of matrices. Singular values up to cutoff times the largest one count as 0; the derivative assumes constant rank.",
		types: floats, constraints: sizedDoc, newAttrs: newCutoff, check: checkSized,
		body: pinvBody, jvp: jvpPinv,
	})
	defineComposite(composite{
		op: OpLstsq, operands: []string{"a", "b"},
		doc:   "The minimum-norm least-squares solution x of a·x = b, column by column. Singular values of a up to cutoff times the largest one count as 0.",
		types: floats, constraints: append(sizedDoc[:1:1], "the matrices of a and b have the same number of rows"), newAttrs: newCutoff,
		check: func(n *ir.Node) error {
			_, m, err := matricesOf(n)
			if err == nil && m[0].rows != m[1].rows {
				err = ir.Shapef("a has %s rows and b has %s", m[0].rows, m[1].rows)
			}
			if err == nil {
				err = checkSized(n)
			}
			return err
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return MatMul(b, b.Add1(OpPinv, n.Attrs(), in[0]), in[1])
		},
	})
	defineComposite(composite{
		op: OpMatrixRank, doc: "The rank of each matrix, i32: the number of singular values above cutoff times the largest one.",
		types: floats, constraints: sizedDoc, newAttrs: newCutoff, check: checkSized, noGrad: "integer result",
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			_, s, _ := SVD(b, in[0], false)
			if rows, cols := matrixDims(in[0]); rows*cols == 0 {
				return Zeros(b, ir.I32, leadOf(in[0])...)
			}
			counts := Gt(b, s, n.Attrs().(*CutoffAttrs).cutoff(b, in[0], s))
			return ReduceSum(b, Convert(b, counts, ir.I32), -1)
		},
	})
	defineDeterminant()
}

// checkSized refuses operands that are not matrices of f32 or f64 of constant size.
func checkSized(n *ir.Node) error {
	t := n.Input(0).Type()
	if err := checkMatrices(t); err != nil {
		return err
	}
	_, _, err := sizedMatrix(sizeOfMatrix(t))
	return err
}

// Pinv returns the Moore-Penrose inverses, [..., n, m], of matrices [..., m, n]. A
// negative cutoff is the default: see [CutoffAttrs].
func Pinv(b *ir.Builder, x ir.Value, cutoff float64) ir.Value {
	return b.Add1(OpPinv, &CutoffAttrs{cutoff}, x)
}

// Lstsq returns the minimum-norm least-squares solutions of a·x = y; y of rank 1 is one
// column. A negative cutoff is the default: see [CutoffAttrs].
func Lstsq(b *ir.Builder, a, y ir.Value, cutoff float64) ir.Value {
	if b.Err() == nil && y.Rank() == 1 {
		return Squeeze(b, Lstsq(b, a, column(b, y), cutoff), -1)
	}
	in := broadcastLead(b, OpLstsq, a, y)
	return b.Add1(OpLstsq, &CutoffAttrs{cutoff}, in...)
}

// MatrixRank returns the ranks of matrices, i32. A negative cutoff is the default: see
// [CutoffAttrs].
func MatrixRank(b *ir.Builder, x ir.Value, cutoff float64) ir.Value {
	return b.Add1(OpMatrixRank, &CutoffAttrs{cutoff}, x)
}

func pinvBody(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	if rows, cols := matrixDims(in[0]); rows*cols == 0 {
		return adjoint(b, in[0])
	}
	u, s, vt := SVD(b, in[0], false)
	small := Le(b, s, n.Attrs().(*CutoffAttrs).cutoff(b, in[0], s)) // false if x has NaN
	one := OnesLike(b, s)
	inverse := Select(b, small, ZerosLike(b, s), Div(b, one, Select(b, small, one, s)))
	return MatMul(b, Mul(b, adjoint(b, vt), row(b, inverse)), adjoint(b, u))
}

// jvpPinv is -p·dx·p + p·pᵀ·dxᵀ·(1 - x·p) + (1 - p·x)·dxᵀ·pᵀ·p (Golub and Pereyra,
// "The differentiation of pseudo-inverses and nonlinear least squares problems
// whose variables separate", 1973). It has no singular vectors, so equal singular values
// are harmless at any order.
func jvpPinv(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
	x, p := in[0], out[0]
	pt, dxt := adjoint(b, p), adjoint(b, t[0])
	pd := MatMul(b, p, t[0])
	less := MatMul(b, pd, p)
	left := MatMul(b, MatMul(b, p, pt), dxt)
	left = Sub(b, left, MatMul(b, MatMul(b, left, x), p))
	right := MatMul(b, dxt, MatMul(b, pt, p))
	right = Sub(b, right, MatMul(b, p, MatMul(b, x, right)))
	return []ir.Value{Sub(b, Add(b, left, right), less)}
}
