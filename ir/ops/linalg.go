package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Linear algebra on batches of matrices, the last two axes of the operands. On a device
// without a library factorisations are loops of other ops; each has its own derivative
// rule, so the loop is never differentiated.

// matrixSize is the size of one matrix of an operand.
type matrixSize struct{ rows, cols ir.Dim }

func sizeOfMatrix(t ir.Type) matrixSize {
	rank := len(t.Shape)
	return matrixSize{t.Shape[rank-2], t.Shape[rank-1]}
}

// matrixOp describes an op on batches of matrices: its operands have one element type and
// equal batch axes, those before the last two.
type matrixOp struct {
	op          ir.Op
	doc         string
	constraints []string
	operands    []string // "x" where nil
	newAttrs    func() ir.Attrs
	// types returns the types of the results for one matrix of each operand.
	types     func(n *ir.Node, in []matrixSize) ([]ir.Type, error)
	body      func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value
	jvp       jvpRule
	transpose transposeRule
	noGrad    string
	// routine is true if libraries have the op; kernels are the GPU implementation.
	routine bool
	kernels func(n *ir.Node, caps loop.Caps) *ir.Algorithm
}

// matrixConstraints hold for every op on matrices.
var matrixConstraints = []string{
	"the operands have one element type, which is f32 or f64",
	"the operands have rank 2 or more and the same axes before the last two",
}

func defineMatrixOp(m matrixOp) {
	if m.operands == nil {
		m.operands = []string{"x"}
	}
	d := &ir.Def{
		Op: m.op, Doc: m.doc, Operands: m.operands, NewAttrs: m.newAttrs,
		Constraints: numbered(slices.Concat(matrixConstraints, m.constraints)...),
		Infer:       m.infer,
		JVP:         m.jvp, NoGrad: m.noGrad,
		Transpose: m.transpose,
		Batch:     batchFirst,
		Body:      m.body,
		Eval:      reference(m.op),
	}
	switch {
	case m.kernels != nil:
		d.Lower = &ir.KernelsLowering{Kernels: func(n *ir.Node, caps loop.Caps) *ir.Algorithm {
			if a := libraryFactor(n, caps); a != nil {
				return a
			}
			return m.kernels(n, caps)
		}}
	case m.routine:
		d.Lower = &ir.RoutineLowering{Calls: libraryFactor}
	}
	define(d)
}

func (m matrixOp) infer(n *ir.Node) ([]ir.Type, error) {
	lead, sizes, err := matricesOf(n)
	if err != nil {
		return nil, err
	}
	out, err := m.types(n, sizes)
	for i := range out {
		out[i].Shape = slices.Concat(lead, out[i].Shape)
	}
	return out, err
}

// matricesOf checks the constraints on the operands of every matrix op, and returns the
// batch axes and the size of each matrix.
func matricesOf(n *ir.Node) (lead ir.Shape, sizes []matrixSize, err error) {
	first := n.Input(0).Type()
	for i, t := range n.InTypes() {
		if err := checkMatrices(t); err != nil {
			return nil, nil, err
		}
		if t.DType != first.DType {
			return nil, nil, notAsFirst(n, i, t.DType, first.DType)
		}
		if lead = t.Shape[:len(t.Shape)-2]; !lead.Equal(first.Shape[:len(first.Shape)-2]) {
			return nil, nil, ir.Shapef("%s is %s, not of the axes before the last two of %s, %s", operandName(n, i), t.Shape, operandName(n, 0), first.Shape)
		}
		sizes = append(sizes, sizeOfMatrix(t))
	}
	return lead, sizes, nil
}

// checkMatrices refuses operands that are not matrices of f32 or f64.
func checkMatrices(t ir.Type) error {
	if err := floats.check(t.DType); err != nil {
		return err
	}
	if t.DType.Size() < 4 {
		return ir.DTypef("the matrix is %s, not f32 or f64", t.DType)
	}
	if len(t.Shape) < 2 {
		return ir.Shapef("the operand is %s: it must have rank 2 or more", t)
	}
	return nil
}

// squareMatrix refuses matrices that are not square.
func squareMatrix(m matrixSize) error {
	if m.rows != m.cols {
		return ir.Shapef("a matrix of %s by %s is not square", m.rows, m.cols)
	}
	return nil
}

// sizedMatrix returns the size of a matrix, which must be constant.
func sizedMatrix(m matrixSize) (rows, cols int, err error) {
	rows, ok := m.rows.Const()
	cols, ok2 := m.cols.Const()
	if !ok || !ok2 {
		err = ir.Shapef("a matrix of %s by %s has a symbolic size", m.rows, m.cols)
	}
	return rows, cols, err
}

// trailing returns the type of a result of one matrix.
func trailing(d ir.DType, shape ...ir.Dim) ir.Type { return ir.Type{DType: d, Shape: shape} }

// leadOf returns the batch axes of matrices.
func leadOf(x ir.Value) ir.Shape { return x.Shape()[:max(x.Rank()-2, 0)].Clone() }

// matrixDims returns the sizes of the matrices of a value of constant shape.
func matrixDims(x ir.Value) (rows, cols int) {
	rows, _ = x.Dim(-2).Const()
	cols, _ = x.Dim(-1).Const()
	return rows, cols
}

// adjoint returns the matrices of x transposed.
func adjoint(b *ir.Builder, x ir.Value) ir.Value { return SwapAxes(b, x, -2, -1) }

// symmetricPart returns (x + xᵀ)/2.
func symmetricPart(b *ir.Builder, x ir.Value) ir.Value {
	sum := Add(b, x, adjoint(b, x))
	return Mul(b, sum, ConstLike(b, sum, 0.5))
}

// identityLike returns identity matrices of the shape of x.
func identityLike(b *ir.Builder, x ir.Value) ir.Value {
	row, col := places(b, x)
	return Convert(b, Eq(b, row, col), x.DType())
}

// places returns the row and column index of each element.
func places(b *ir.Builder, x ir.Value) (row, col ir.Value) {
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return Iota(b, ir.I32, -2, x.Shape()...), Iota(b, ir.I32, -1, x.Shape()...)
}

// orZero returns x where the condition holds and 0 elsewhere.
func orZero(b *ir.Builder, where, x ir.Value) ir.Value { return Select(b, where, x, ZerosLike(b, x)) }

// column makes vectors along the last axis columns.
func column(b *ir.Builder, x ir.Value) ir.Value { return ExpandDims(b, x, -1) }
func row(b *ir.Builder, x ir.Value) ir.Value    { return ExpandDims(b, x, -2) }

// element returns the slice of x along an axis at an index of rank 0, without the axis.
func element(b *ir.Builder, x, at ir.Value, axis int) ir.Value {
	return Take(b, x, at, axis, OutsideClip)
}

// steps returns 0, 1, …, n-1: the step numbers of a loop.
func steps(b *ir.Builder, n int) ir.Value { return Iota(b, ir.I32, 0, ir.N(n)) }

func int32Like(b *ir.Builder, x ir.Value, v int) ir.Value { return ConstLike(b, x, float64(v)) }

// repeated runs a loop of n steps with one carry.
func repeated(b *ir.Builder, n int, x ir.Value, consts []ir.Value, step func(b *ir.Builder, k, x ir.Value, consts []ir.Value) ir.Value) ir.Value {
	carries, _ := Scan(b, Loop{
		Carries: []ir.Value{x}, Consts: consts, Xs: []ir.Value{steps(b, n)},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{step(b, xs[0], carries[0], consts)}, nil
		},
	})
	return carries[0]
}

// Shared by eigenvectors and singular vectors: the sign convention, and the reference
// implementation.

// signWeights returns the weights 1/(i+√2) of the sign convention: the weighted sum of a
// vector is not negative. It is far from 0 for vectors of small integers.
func signWeights(b *ir.Builder, x ir.Value) ir.Value {
	i, _ := places(b, x)
	return Div(b, OnesLike(b, x), Add(b, Convert(b, i, x.DType()), ConstLike(b, x, math.Sqrt2)))
}

// columnSigns returns the factor -1 or 1 of each column.
func columnSigns(b *ir.Builder, x ir.Value) ir.Value {
	sum := ReduceSum(b, Mul(b, x, signWeights(b, x)), -2)
	one := OnesLike(b, sum)
	return Select(b, Lt(b, sum, ZerosLike(b, sum)), Neg(b, one), one)
}

// panel is the block of columns of one step of a blocked factorisation. The rows above its
// triangle are finished.
type panel struct {
	b     *ir.Builder
	first ir.Value // its first column, and its first unfinished row
	width int
	// live holds its rows from first on, padded with zero rows.
	live ir.Value
}

// panelWidth returns the width of a panel: the maximum that a kernel keeps in registers,
// up to matrixBlock.
func panelWidth(d ir.DType, rows int) int {
	width := matrixBlock
	for width > 8 && rows*width*d.Size() > 4*256*tileRegisters {
		width /= 2
	}
	return width
}

// roundUp returns n rounded up to a multiple of by.
func roundUp(n, by int) int { return (n + by - 1) / by * by }

// panelOf returns panel k of matrices whose sizes are multiples of width.
func panelOf(b *ir.Builder, x, k ir.Value, width int) panel {
	rows, cols := matrixDims(x)
	p := panel{b: b, first: Mul(b, k, int32Like(b, k, width)), width: width}
	columns := element(b, splitAxis(b, x, x.Rank()-1, ir.N(cols/width)), k, x.Rank()-1)
	i := steps(b, rows)
	from := Rem(b, Add(b, i, p.first), int32Like(b, i, rows))
	columns = Take(b, columns, from, -2, OutsideClip)
	row, _ := places(b, columns)
	p.live = orZero(b, Lt(b, row, Sub(b, int32Like(b, p.first, rows), p.first)), columns)
	return p
}

// back moves values for the rows of the live part, along an axis, to the matrix's row
// order.
func (p panel) back(x ir.Value, axis int) ir.Value {
	b := p.b
	if b.Err() != nil {
		return x
	}
	rows, _ := x.Dim(axis).Const()
	i := steps(b, rows)
	from := Rem(b, Add(b, i, Sub(b, int32Like(b, p.first, rows), p.first)), int32Like(b, i, rows))
	return Take(b, x, from, axis, OutsideClip)
}

// replace returns x with the panel from its first row on and with rest as the columns
// after it.
func (p panel) replace(x, panel, rest ir.Value) ir.Value {
	b := p.b
	if b.Err() != nil {
		return x
	}
	_, cols := matrixDims(x)
	own := Sub(b, steps(b, cols), p.first)
	panel = Take(b, panel, own, -1, OutsideClip)
	i, j := places(b, x)
	live := And(b, Ge(b, i, p.first), Ge(b, j, p.first))
	after := Ge(b, j, Add(b, p.first, int32Like(b, p.first, p.width)))
	return Select(b, live, Select(b, after, rest, panel), x)
}
