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

// matrix is one matrix of a reference implementation, in row-major order; a vector has one
// row.
type matrix struct {
	rows, cols int
	x          []float64
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

// matrixAt returns matrix i of a batch, as a copy.
func matrixAt(a *ir.Array, i int) matrix {
	rank := len(a.Dims)
	m := newMatrix(a.Dims[rank-2], a.Dims[rank-1])
	copy(m.x, a.F[i*len(m.x):])
	return m
}

func (m matrix) at(i, j int) float64     { return m.x[i*m.cols+j] }
func (m matrix) set(i, j int, v float64) { m.x[i*m.cols+j] = v }

func (m matrix) clone() matrix {
	c := newMatrix(m.rows, m.cols)
	copy(c.x, m.x)
	return c
}

func (m matrix) transposed() matrix {
	t := newMatrix(m.cols, m.rows)
	for i := range m.rows {
		for j := range m.cols {
			t.set(j, i, m.at(i, j))
		}
	}
	return t
}

func (m matrix) times(o matrix) matrix {
	p := newMatrix(m.rows, o.cols)
	for i := range m.rows {
		for j := range o.cols {
			sum := 0.0
			for k := range m.cols {
				sum += m.at(i, k) * o.at(k, j)
			}
			p.set(i, j, sum)
		}
	}
	return p
}

// symmetric returns the symmetric part.
func (m matrix) symmetric() matrix {
	s := m.clone()
	for i := range m.rows {
		for j := range m.cols {
			s.set(i, j, (m.at(i, j)+m.at(j, i))/2)
		}
	}
	return s
}

func identity(n int) matrix {
	m := newMatrix(n, n)
	for i := range n {
		m.set(i, i, 1)
	}
	return m
}

// fill sets all elements to v.
func (m matrix) fill(v float64) matrix {
	for i := range m.x {
		m.x[i] = v
	}
	return m
}

// block returns the first rows and columns.
func (m matrix) block(rows, cols int) matrix {
	c := newMatrix(rows, cols)
	for i := range rows {
		copy(c.x[i*cols:(i+1)*cols], m.x[i*m.cols:])
	}
	return c
}

// columnNorm returns the Euclidean norm of a column.
func (m matrix) columnNorm(j int) float64 {
	sum := 0.0
	for i := range m.rows {
		sum = math.Hypot(sum, m.at(i, j))
	}
	return sum
}

// columnsDot returns the dot product of two columns.
func (m matrix) columnsDot(p, q int) float64 {
	sum := 0.0
	for i := range m.rows {
		sum += m.at(i, p) * m.at(i, q)
	}
	return sum
}

// columns returns some of the columns.
func (m matrix) columns(which []int) matrix {
	c := newMatrix(m.rows, len(which))
	for j, from := range which {
		for i := range m.rows {
			c.set(i, j, m.at(i, from))
		}
	}
	return c
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

// orthogonaliseColumns orthogonalises the columns of a matrix in cyclic order, and returns them and
// the orthogonal matrix of the rotations.
func orthogonaliseColumns(x matrix) (turned, by matrix) {
	by = identity(x.cols)
	for range 60 {
		still := true
		for p := range x.cols {
			for q := p + 1; q < x.cols; q++ {
				still = orthogonalisePair(x, by, p, q) && still
			}
		}
		if still {
			break
		}
	}
	return x, by
}

// orthogonalisePair makes two columns of x orthogonal, and reports whether they already were.
func orthogonalisePair(x, by matrix, p, q int) bool {
	a, c, d := x.columnsDot(p, p), x.columnsDot(q, q), x.columnsDot(p, q)
	if math.Abs(d) <= 1e-17*math.Sqrt(a*c) {
		return true
	}
	zeta := (c - a) / (2 * d)
	tan := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
	cos := 1 / math.Hypot(1, tan)
	for _, m := range []matrix{x, by} {
		for i := range m.rows {
			u, v := m.at(i, p), m.at(i, q)
			m.set(i, p, cos*(u-tan*v))
			m.set(i, q, cos*(tan*u+v))
		}
	}
	return false
}

// orient negates the columns that violate the sign convention, in all matrices.
func orient(x matrix, more ...matrix) {
	for j := range x.cols {
		sum := 0.0
		for i := range x.rows {
			sum += x.at(i, j) / (float64(i) + math.Sqrt2)
		}
		if sum >= 0 {
			continue
		}
		for _, m := range append(more, x) {
			for i := range m.rows {
				m.set(i, j, -m.at(i, j))
			}
		}
	}
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
