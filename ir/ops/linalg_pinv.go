package ops

import (
	"github.com/rlx-go/rlx/ir"
)

// Pseudo-inverse, least squares and rank, by singular values.
const (
	OpPinv       ir.Op = "pinv"
	OpLstsq      ir.Op = "lstsq"
	OpMatrixRank ir.Op = "matrix_rank"
	OpCofactor   ir.Op = "cofactor"
	OpDet        ir.Op = "det"
)

// CutoffAttrs hold the relative cutoff below which singular values count as 0: cutoff
// times the largest one. A negative number stands for 10·max(m, n)·ε.
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
	sized := []string{"the operands are f32 or f64, of rank 2 or more, and have no symbolic size"}
	defineComposite(composite{
		op: OpPinv, doc: "The Moore-Penrose inverses of matrices. Singular values up to cutoff times the largest one count as 0; the derivative assumes constant rank.",
		types: floats, constraints: sized, newAttrs: newCutoff, check: checkSized,
		body: pinvBody, jvp: jvpPinv,
	})
	defineComposite(composite{
		op: OpLstsq, operands: []string{"a", "b"},
		doc:   "The minimum-norm least-squares solution x of a·x = b, column by column. Singular values of a up to cutoff times the largest one count as 0.",
		types: floats, constraints: append(sized[:1:1], "the matrices of a and b have the same number of rows"), newAttrs: newCutoff,
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
		types: floats, constraints: sized, newAttrs: newCutoff, check: checkSized, noGrad: "integer result",
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
