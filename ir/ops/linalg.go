package ops

import (
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
	types func(n *ir.Node, in []matrixSize) ([]ir.Type, error)
	// meaning is the reference implementation for one matrix of each operand.
	meaning     func(n *ir.Node, in []matrix) []matrix
	body        func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value
	jvp         jvpRule
	transpose   transposeRule
	noGrad      string
	noTranspose string
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
	if m.transpose == nil && m.noTranspose == "" {
		m.noTranspose = notLinear
	}
	d := &ir.Def{
		Op: m.op, Doc: m.doc, Operands: m.operands, NewAttrs: m.newAttrs,
		Constraints: numbered(slices.Concat(matrixConstraints, m.constraints)...),
		Infer:       m.infer,
		JVP:         m.jvp, NoGrad: m.noGrad,
		Transpose: m.transpose, NoTranspose: m.noTranspose,
		Batch: batchMatrices,
		Body:  m.body,
	}
	switch {
	case m.kernels != nil:
		d.Lower = &ir.KernelsLowering{Kernels: m.kernels}
	case m.routine:
		d.Lower = &ir.RoutineLowering{}
	}
	if withReferences && m.meaning != nil { // the reference implementations are as large as the bodies
		d.Eval = m.eval
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
			return nil, nil, ir.DTypef("operand %d is %s, not %s as operand 0 is", i, t.DType, first.DType)
		}
		if lead = t.Shape[:len(t.Shape)-2]; !lead.Equal(first.Shape[:len(first.Shape)-2]) {
			return nil, nil, ir.Shapef("the matrices of operand %d, %s, are not as many as those of operand 0, %s", i, t.Shape, first.Shape)
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

// batchMatrices is the Batch rule: the batch axis becomes the first.
func batchMatrices(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	wide := make([]ir.Value, len(in))
	for i, x := range in {
		wide[i] = BatchAt(b, x, axes[i], 0, size)
	}
	out := b.Add(n.Op(), n.Attrs(), wide...)
	return out, make([]int, len(out))
}

// eval applies the reference implementation to each matrix of the batch.
func (m matrixOp) eval(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out := make([]*ir.Array, n.NumResults())
	for r := range out {
		var err error
		if out[r], err = resultArray(n, r); err != nil {
			return nil, err
		}
	}
	batch := product(in[0].Dims[:len(in[0].Dims)-2])
	for i := range batch {
		one := make([]matrix, len(in))
		for k, a := range in {
			one[k] = matrixAt(a, i)
		}
		for r, x := range m.meaning(n, one) {
			for e, v := range x.x {
				at := i*len(x.x) + e
				if out[r].F != nil {
					out[r].F[at] = v
				} else {
					out[r].I[at] = int64(v)
				}
			}
		}
	}
	for r := range out {
		out[r] = c.Round(out[r])
	}
	return out, nil
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
