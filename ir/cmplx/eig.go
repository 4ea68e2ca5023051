package cmplx

import (
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// eigOrders is how many times eigenvalues can be differentiated by the formulas.
const eigOrders = 2

// Eig returns the eigenvalues w, [..., n], of matrices [..., n, n] of f32, f64, c64 or c128, and their
// eigenvectors as the columns of v, [..., n, n], both complex: x·v = v·diag(w). [ops.Eigh] is for symmetric
// matrices, with less work.
//
// Eigenvalues ascend by their real parts, and equal ones by their imaginary parts. Of a real matrix they are
// real or in pairs of conjugates exactly. An eigenvector v has length 1, and the sum of vᵢ/(i+√2) over its
// elements, counted from 0, is real and not negative.
//
// First and second derivatives are those of Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, On the
// Computation of Complex-valued Gradients with Application to Statistically Optimum Beamforming (2017), of
// eigenvectors of this normalization; further ones pass through the steps of the algorithm. Those of repeated
// eigenvalues are infinite. There is no balancing: errors are of the size of the matrix's norm times the
// precision, and of eigenvectors that divided by the distance of the eigenvalues.
//
// An operand of another type is an error of kind [ir.ErrDType] in the builder, one that is no square matrix of kind
// [ir.ErrShape], a symbolic n of kind [ir.ErrSymbol].
func Eig(b *ir.Builder, x ir.Value) (w, v ir.Value) {
	if !isSquare(b, "eig", x) {
		return ir.Value{}, ir.Value{}
	}
	return eig(b, x, eigOrders)
}

// Eigvals returns the eigenvalues of [Eig].
func Eigvals(b *ir.Builder, x ir.Value) ir.Value {
	if !isSquare(b, "eigvals", x) {
		return ir.Value{}
	}
	w, _ := eig(b, x, eigOrders)
	return w
}

func isSquare(b *ir.Builder, op ir.Op, x ir.Value) bool {
	c, ok := argument.Of(b, "cmplx."+op, x)
	ok = ok && c.That(x.DType() == ir.F32 || x.DType() == ir.F64 || x.DType().IsComplex(), func() error {
		return ir.DTypef("the operand is %s: it must be of f32, f64 or a complex type", x.Type())
	})
	if !ok || !c.Shape(x.Rank() >= 2, "the operand is %s: it must be matrices", x.Type()) {
		return false
	}
	n, m := c.Size(x, x.Rank()-1, "the operand"), c.Size(x, x.Rank()-2, "the operand")
	return b.Err() == nil && c.Shape(n == m && n > 0, "the operand is %s: it must be square matrices, not empty", x.Type())
}

// eig is Eig with a number of derivatives. Those of the last order are of results that have one less.
func eig(b *ir.Builder, x ir.Value, orders int) (w, v ir.Value) {
	if orders == 0 {
		return eigen(b, x)
	}
	out := autodiff.CustomJVP(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		w, v := eigen(b, in[0])
		return []ir.Value{w, v}
	}, func(b *ir.Builder, in, t []ir.Value) []ir.Value {
		w, v := eig(b, in[0], orders-1)
		return eigTangents(b, w, v, complexOf(b, t[0]))
	})
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return out[0], out[1]
}

// eigTangents: with p = v⁻¹·dx·v, dw is the diagonal of p and dv = v·(f∘p) + v·diag(c), where f[i,j] =
// 1/(w[j] − w[i]) off the diagonal; c keeps the normalization.
func eigTangents(b *ir.Builder, w, v, dx ir.Value) []ir.Value {
	p := solve(b, v, ops.MatMul(b, dx, v))
	own := onDiagonal(b, v)
	gaps := ops.Sub(b, ops.ExpandDims(b, w, -2), ops.ExpandDims(b, w, -1))
	f := ops.Div(b, p, ops.Select(b, own, ops.OnesLike(b, gaps), gaps))
	u := ops.MatMul(b, v, ops.Select(b, own, ops.ZerosLike(b, f), f))
	length := ops.Real(b, ops.KeepDims(b, ops.ReduceSum, ops.Mul(b, ops.Conj(b, v), u), -2))
	turn := ops.Div(b, ops.Imag(b, weighted(b, u)), ops.Real(b, weighted(b, v)))
	c := ops.Neg(b, ops.Complex(b, length, turn))
	return []ir.Value{ops.Diagonal(b, p, 0), ops.Add(b, u, ops.Mul(b, v, c))}
}

// weighted returns the sums of vᵢ/(i+√2) of columns v, [..., 1, n].
func weighted(b *ir.Builder, v ir.Value) ir.Value {
	n := sizeOf(v)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 / (float64(i) + math.Sqrt2)
	}
	by := complexOf(b, ops.Literal(b, ir.Floats(v.DType().Real(), weights, n, 1)))
	return ops.KeepDims(b, ops.ReduceSum, ops.Mul(b, v, by), -2)
}

// solve returns a⁻¹·y, by a system of real numbers.
func solve(b *ir.Builder, a, y ir.Value) ir.Value {
	re, im := ops.Real(b, a), ops.Imag(b, a)
	both := ops.Concatenate(b, -2, ops.Concatenate(b, -1, re, ops.Neg(b, im)), ops.Concatenate(b, -1, im, re))
	z := ops.Solve(b, both, ops.Concatenate(b, -2, ops.Real(b, y), ops.Imag(b, y)), ops.SolveAttrs{})
	half := ir.N(sizeOf(a))
	return ops.Complex(b, ops.SliceAxis(b, z, -2, ir.N(0), half), ops.SliceAxis(b, z, -2, half, half))
}

// complexOf returns x as a complex value.
func complexOf(b *ir.Builder, x ir.Value) ir.Value {
	if b.Err() != nil || x.DType().IsComplex() {
		return x
	}
	return ops.Complex(b, x, ops.ZerosLike(b, x))
}

// sizeOf returns the last size.
func sizeOf(x ir.Value) int {
	if !x.Valid() {
		return 1
	}
	n, _ := x.Dim(x.Rank() - 1).Const()
	return n
}

// positions returns the row and column numbers of matrices [..., n, m], in their shape.
func positions(b *ir.Builder, x ir.Value) (i, j ir.Value) {
	if b.Err() != nil {
		return x, x
	}
	return ops.Iota(b, ir.I32, x.Rank()-2, x.Shape()...), ops.Iota(b, ir.I32, x.Rank()-1, x.Shape()...)
}

func onDiagonal(b *ir.Builder, x ir.Value) ir.Value {
	i, j := positions(b, x)
	return ops.Eq(b, i, j)
}

// keep returns x where the condition holds, and 0 elsewhere.
func keep(b *ir.Builder, condition, x ir.Value) ir.Value {
	return ops.Select(b, condition, x, ops.ZerosLike(b, x))
}

// size returns |x|.
func size(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Hypot(b, ops.Real(b, x), ops.Imag(b, x))
}

// eigen computes eigenvalues and eigenvectors by a Schur decomposition: x is z·t·zᴴ for a triangular t.
func eigen(b *ir.Builder, x ir.Value) (w, v ir.Value) {
	isReal := b.Err() == nil && !x.DType().IsComplex()
	x = complexOf(b, x)
	largest := ops.KeepDims(b, ops.ReduceMax, size(b, x), -2, -1)
	by := ops.Select(b, ops.Gt(b, largest, ops.ZerosLike(b, largest)), largest, ops.OnesLike(b, largest))
	t, z := schur(b, ops.Div(b, x, complexOf(b, by)))
	w = ops.Diagonal(b, t, 0)
	v = ops.MatMul(b, z, triangularVectors(b, t))
	if isReal {
		w = paired(b, w)
	}
	v = ops.Div(b, v, complexOf(b, ops.Sqrt(b, ops.KeepDims(b, ops.ReduceSum, squares(b, v), -2))))
	sum := weighted(b, v)
	v = ops.Mul(b, v, ops.Conj(b, phase(b, sum)))

	order := ops.ArgSort(b, ops.Imag(b, w), ops.SortAttrs{Axis: -1})
	w = ops.TakeAlongAxis(b, w, order, -1, ops.OutsideClip)
	next := ops.ArgSort(b, ops.Real(b, w), ops.SortAttrs{Axis: -1}) // stable
	w = ops.Mul(b, ops.TakeAlongAxis(b, w, next, -1, ops.OutsideClip), complexOf(b, ops.Squeeze(b, by, -1)))
	order = ops.ExpandDims(b, ops.TakeAlongAxis(b, order, next, -1, ops.OutsideClip), -2)
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return w, ops.TakeAlongAxis(b, v, ops.BroadcastTo(b, order, v.Shape()), -1, ops.OutsideClip)
}

// squares returns |x|².
func squares(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Add(b, ops.Square(b, ops.Real(b, x)), ops.Square(b, ops.Imag(b, x)))
}

// phase returns x/|x|, 1 where x is 0.
func phase(b *ir.Builder, x ir.Value) ir.Value {
	length := size(b, x)
	none := ops.Eq(b, length, ops.ZerosLike(b, length))
	return ops.Select(b, none, ops.OnesLike(b, x), ops.Div(b, x, complexOf(b, ops.Select(b, none, ops.OnesLike(b, length), length))))
}

// paired returns eigenvalues of a real matrix as exact conjugates: each is the mean of itself and of the
// conjugate of that which is the nearest to its conjugate.
func paired(b *ir.Builder, w ir.Value) ir.Value {
	distance := size(b, ops.Sub(b, ops.ExpandDims(b, ops.Conj(b, w), -1), ops.ExpandDims(b, w, -2)))
	other := ops.TakeAlongAxis(b, w, ops.ArgMin(b, distance, -1), -1, ops.OutsideClip)
	sum := ops.Add(b, w, ops.Conj(b, other))
	return ops.Mul(b, sum, complexOf(b, ops.ConstLike(b, ops.Real(b, sum), 0.5)))
}

// triangularVectors returns eigenvectors of triangular matrices t as the columns of a triangular matrix, row
// by row from the last. Columns are scaled down where they would grow.
func triangularVectors(b *ir.Builder, t ir.Value) ir.Value {
	n := sizeOf(t)
	out, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{t}, Carries: []ir.Value{ops.ZerosLike(b, t)}, Xs: []ir.Value{ops.Iota(b, ir.I32, 0, ir.N(n))}, Reverse: true,
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			t, x := consts[0], carries[0]
			i, j := positions(b, t)
			here := ops.Eq(b, i, xs[0])
			row := ops.ReduceSum(b, keep(b, ops.And(b, here, ops.Gt(b, j, i)), t), -2)
			sum := ops.ReduceSum(b, ops.Mul(b, ops.ExpandDims(b, row, -1), x), -2)
			w := ops.Diagonal(b, t, 0)
			own := ops.ReduceSum(b, keep(b, ops.And(b, here, ops.Eq(b, i, j)), t), -2, -1)
			gap := ops.Sub(b, w, ops.ExpandDims(b, own, -1))
			least := ops.ConstLike(b, ops.Real(b, gap), gap.DType().Real().Epsilon()) // of elements up to 1
			gap = ops.Select(b, ops.Lt(b, size(b, gap), least), complexOf(b, least), gap)
			y := ops.Div(b, sum, gap)
			place := ops.Iota(b, ir.I32, y.Rank()-1, y.Shape()...)
			y = ops.Select(b, ops.Eq(b, place, xs[0]), ops.OnesLike(b, y), keep(b, ops.Gt(b, place, xs[0]), y))
			large := size(b, y)
			by := ops.Max(b, large, ops.OnesLike(b, large))
			x = ops.Select(b, here, ops.BroadcastTo(b, ops.ExpandDims(b, y, -2), x.Shape()), x)
			return []ir.Value{ops.Div(b, x, complexOf(b, ops.ExpandDims(b, by, -2)))}, nil
		},
	})
	return out[0]
}
