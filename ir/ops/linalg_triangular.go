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
		meaning: meaningTriangular,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{triangularBody(b, in[0], in[1], *n.Attrs().(*TriangularAttrs))}
		},
		jvp: jvpTriangular,
		transpose: func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
			out := make([]ir.Value, 2)
			if onlyLinear(b, n, linear, 1) && ct[0].Valid() {
				a := *n.Attrs().(*TriangularAttrs)
				a.TransposeA = !a.TransposeA
				out[1] = TriangularSolve(b, in[0], ct[0], a)
			}
			return out
		},
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

func meaningTriangular(n *ir.Node, in []matrix) []matrix {
	if !withReferences {
		return nil
	}
	a := n.Attrs().(*TriangularAttrs)
	t, y := in[0].clone(), in[1].clone()
	for i := range t.rows {
		for j := range t.cols {
			if i != j && (i > j) != a.Lower {
				t.set(i, j, 0)
			}
		}
		if a.UnitDiagonal {
			t.set(i, i, 1)
		}
	}
	// x·op(a) = b is op(a)ᵀ·xᵀ = bᵀ
	if !a.LeftSide {
		y = y.transposed()
	}
	lower := a.Lower
	if a.TransposeA == a.LeftSide {
		t, lower = t.transposed(), !lower
	}
	x := substitute(t, y, lower)
	if !a.LeftSide {
		x = x.transposed()
	}
	return []matrix{x}
}

// substitute solves t·x = y for a triangular t.
func substitute(t, y matrix, lower bool) matrix {
	x := y.clone()
	for step := range t.rows {
		i := step
		if !lower {
			i = t.rows - 1 - step
		}
		for c := range x.cols {
			sum := x.at(i, c)
			for k := range t.cols {
				if k < i == lower && k != i {
					sum -= t.at(i, k) * x.at(k, c)
				}
			}
			x.set(i, c, sum/t.at(i, i))
		}
	}
	return x
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
	if !attrs.Lower {
		attrs.Lower = true
		return Reverse(b, triangularBody(b, Reverse(b, a, -2, -1), Reverse(b, y, -2), attrs), -2)
	}
	a = triangleOf(b, a, &attrs)
	if attrs.UnitDiagonal {
		a = Add(b, a, identityLike(b, a))
	}
	n, _ := matrixDims(a)
	if n <= matrixBlock {
		return MatMul(b, invertLower(b, a, n), y)
	}
	return forwardBlocks(b, a, y)
}

// invertLower inverts lower triangular n×n matrices by recursive doubling: from the
// diagonal blocks of size 1 to blocks twice as large by two products.
func invertLower(b *ir.Builder, a ir.Value, n int) ir.Value {
	i, j := places(b, a)
	x := orZero(b, Eq(b, i, j), Div(b, OnesLike(b, a), Select(b, Eq(b, i, j), a, OnesLike(b, a))))
	for size := 1; size < n; size *= 2 {
		// the off-diagonal blocks of the doubled blocks
		part := func(at ir.Value, by int) ir.Value { return Div(b, at, int32Like(b, at, by)) }
		pair := And(b, Eq(b, part(i, 2*size), part(j, 2*size)), Gt(b, part(i, size), part(j, size)))
		x = Sub(b, x, MatMul(b, x, MatMul(b, orZero(b, pair, a), x)))
	}
	return x
}

// forwardBlocks solves a·x = y for lower triangular a by block forward substitution: each
// block of rows is solved with its diagonal block, and the rows below updated by a
// product.
func forwardBlocks(b *ir.Builder, a, y ir.Value) ir.Value {
	n, cols := matrixDims(y)
	size, lead := roundUp(n, matrixBlock), leadOf(y)
	blocks := size / matrixBlock
	at := len(lead)
	a, y = padIdentity(b, a, size), splitAxis(b, padMatrix(b, y, size, cols), at, ir.N(blocks))
	carries, _ := Scan(b, Loop{
		Carries: []ir.Value{y}, // [lead, blocks, block, cols]
		Xs:      []ir.Value{steps(b, blocks), MoveAxis(b, splitAxis(b, a, at+1, ir.N(blocks)), at+1, 0)},
		Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
			k, columns, rest := xs[0], xs[1], carries[0]
			own := element(b, splitAxis(b, columns, at, ir.N(blocks)), k, at)
			x := TriangularSolve(b, own, element(b, rest, k, at), TriangularAttrs{LeftSide: true, Lower: true})
			less := splitAxis(b, MatMul(b, columns, x), at, ir.N(blocks))
			if b.Err() != nil {
				return []ir.Value{rest}, nil
			}
			block := Iota(b, ir.I32, at, rest.Shape()...)
			x = BroadcastTo(b, ExpandDims(b, x, at), rest.Shape())
			return []ir.Value{Select(b, Gt(b, block, k), Sub(b, rest, less), Select(b, Eq(b, block, k), x, rest))}, nil
		},
	})
	return SliceAxis(b, mergeAxes(b, carries[0], at), at, ir.N(0), ir.N(n))
}
