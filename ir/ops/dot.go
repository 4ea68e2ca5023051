package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpDotGeneral is the general dot product: contraction over paired axes.
const OpDotGeneral ir.Op = "dot_general"

// DotAttrs are the dimension numbers of dot_general: axis LhsContract[i] of lhs is
// contracted with axis RhsContract[i] of rhs, and LhsBatch[i] is a batch axis paired with
// RhsBatch[i]. All other axes are free.
type DotAttrs struct {
	LhsContract, RhsContract []int
	LhsBatch, RhsBatch       []int
}

// Visit shows the attributes.
func (a *DotAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("lhs_contract", &a.LhsContract)
	v.Ints("rhs_contract", &a.RhsContract)
	v.Ints("lhs_batch", &a.LhsBatch)
	v.Ints("rhs_batch", &a.RhsBatch)
}

func init() {
	define(&ir.Def{
		Op: OpDotGeneral,
		Doc: "The sum of products over the contracted axes (XLA's DotGeneral). The result has the batch axes in the order given, " +
			"then the free axes of lhs, then those of rhs. f16 and bf16 accumulate in f32.",
		Constraints: numbered(
			"lhs and rhs have one numeric element type.",
			"lhs_contract and rhs_contract have one length, and so do lhs_batch and rhs_batch.",
			"no axis of an operand is named twice.",
			"paired axes have the same size.",
		),
		Operands:  []string{"lhs", "rhs"},
		NewAttrs:  func() ir.Attrs { return &DotAttrs{} },
		Infer:     inferDot,
		Eval:      evalResult(evalDot),
		JVP:       bilinearJVP,
		Transpose: transposeDot,
		Batch:     batchDot,
		Lower:     &ir.ContractLowering{Spec: dotContraction},
	})
}

// DotGeneral returns the contraction of x with y over the axes that d pairs: [batch
// axes..., free axes of x..., free axes of y...]. x and y have one numeric type; f16 and
// bf16 accumulate in f32. Negative axes count from the last.
func DotGeneral(b *ir.Builder, x, y ir.Value, d DotAttrs) ir.Value {
	return b.Add1(OpDotGeneral, &DotAttrs{
		LhsContract: fromFront(d.LhsContract, x.Rank()),
		RhsContract: fromFront(d.RhsContract, y.Rank()),
		LhsBatch:    fromFront(d.LhsBatch, x.Rank()),
		RhsBatch:    fromFront(d.RhsBatch, y.Rank()),
	}, x, y)
}

func inferDot(n *ir.Node) ([]ir.Type, error) {
	a := n.Attrs().(*DotAttrs)
	x, y := n.Input(0).Type(), n.Input(1).Type()
	if x.DType != y.DType || !x.DType.IsNumeric() {
		return nil, ir.DTypef("%s and %s are not of one numeric type", x, y)
	}
	if err := checkPairedAxes("lhs_contract", "rhs_contract", a.LhsContract, a.RhsContract, x.Shape, y.Shape); err != nil {
		return nil, err
	}
	if err := checkPairedAxes("lhs_batch", "rhs_batch", a.LhsBatch, a.RhsBatch, x.Shape, y.Shape); err != nil {
		return nil, err
	}
	if err := checkAxes(slices.Concat(a.LhsBatch, a.LhsContract), x.Shape.Rank()); err != nil {
		return nil, err
	}
	if err := checkAxes(slices.Concat(a.RhsBatch, a.RhsContract), y.Shape.Rank()); err != nil {
		return nil, err
	}
	d := dotDimsOf(a, x.Shape, y.Shape)
	return []ir.Type{{DType: x.DType, Shape: slices.Concat(pick(x.Shape, a.LhsBatch), pick(x.Shape, d.lhsFree), pick(y.Shape, d.rhsFree))}}, nil
}

// checkPairedAxes reports an error unless the axis lists, which errors call left and
// right, have one length and paired axes have equal sizes.
func checkPairedAxes(left, right string, lhs, rhs []int, x, y ir.Shape) error {
	if len(lhs) != len(rhs) {
		return ir.Attrf("%s has %d axes and %s %d, not the same number", left, len(lhs), right, len(rhs))
	}
	for i := range lhs {
		if lhs[i] < 0 || lhs[i] >= len(x) || rhs[i] < 0 || rhs[i] >= len(y) {
			return ir.Attrf("%s has axis %d and %s axis %d, of operands of rank %d and %d", left, lhs[i], right, rhs[i], len(x), len(y))
		}
		if x[lhs[i]] != y[rhs[i]] {
			return ir.Shapef("axis %d of %s has size %s and axis %d of %s size %s, not the same", lhs[i], left, x[lhs[i]], rhs[i], right, y[rhs[i]])
		}
	}
	return nil
}

// dotDims are the free axes of a contraction: those neither contracted nor batched.
type dotDims struct{ lhsFree, rhsFree []int }

func dotDimsOf(a *DotAttrs, x, y ir.Shape) dotDims {
	return dotDims{
		lhsFree: permute.Others(len(x), a.LhsBatch, a.LhsContract),
		rhsFree: permute.Others(len(y), a.RhsBatch, a.RhsContract),
	}
}

func evalDot(n *ir.Node, in []*ir.Array, out *ir.Array) {
	a := n.Attrs().(*DotAttrs)
	d := dotDimsOf(a, n.Input(0).Shape(), n.Input(1).Shape())
	x, y := in[0], in[1]
	p := dotOffsets{
		lhsBatch: offsets(x.Dims, a.LhsBatch), rhsBatch: offsets(y.Dims, a.RhsBatch),
		lhsFree: offsets(x.Dims, d.lhsFree), rhsFree: offsets(y.Dims, d.rhsFree),
		lhsSum: offsets(x.Dims, a.LhsContract), rhsSum: offsets(y.Dims, a.RhsContract),
	}
	switch {
	case x.DType.IsFloat():
		sumProducts(out.F, x.F, y.F, &p)
	case x.DType.IsComplex():
		sumProducts(out.C, x.C, y.C, &p)
	default:
		sumProducts(out.I, x.I, y.I, &p)
	}
}

// dotOffsets are the row-major offsets into lhs and rhs of each point of the batch, free
// and contracted index spaces.
type dotOffsets struct{ lhsBatch, rhsBatch, lhsFree, rhsFree, lhsSum, rhsSum []int }

func sumProducts[T float64 | int64 | complex128](out, x, y []T, p *dotOffsets) {
	i := 0
	for k := range p.lhsBatch {
		for _, l := range p.lhsFree {
			for _, r := range p.rhsFree {
				var sum T
				for s, ls := range p.lhsSum {
					sum += x[p.lhsBatch[k]+l+ls] * y[p.rhsBatch[k]+r+p.rhsSum[s]]
				}
				out[i] = sum
				i++
			}
		}
	}
}

func dotContraction(n *ir.Node) ir.Contraction {
	a := n.Attrs().(*DotAttrs)
	x, y := n.Input(0).Shape(), n.Input(1).Shape()
	d := dotDimsOf(a, x, y)
	return ir.Contraction{
		Batch: sizes(pick(x, a.LhsBatch)),
		M:     sizes(pick(x, d.lhsFree)),
		N:     sizes(pick(y, d.rhsFree)),
		K:     sizes(pick(x, a.LhsContract)),
		A: func(batch, free, k ir.Index) (ir.Index, scalar.Expr) {
			return placeIndex(len(x), coordinates{a.LhsBatch, batch}, coordinates{d.lhsFree, free}, coordinates{a.LhsContract, k}), nil
		},
		B: func(batch, free, k ir.Index) (ir.Index, scalar.Expr) {
			return placeIndex(len(y), coordinates{a.RhsBatch, batch}, coordinates{d.rhsFree, free}, coordinates{a.RhsContract, k}), nil
		},
		Out: func(batch, m, n ir.Index) ir.Index { return slices.Concat(batch, m, n) },
		Acc: sumType(n.Types()[0].DType),
	}
}

// coordinates are those of some axes.
type coordinates struct {
	axes []int
	at   ir.Index
}

// placeIndex scatters the coordinates of groups of axes, which are rank in all, to the axes' positions.
func placeIndex(rank int, groups ...coordinates) ir.Index {
	out := make(ir.Index, rank)
	for _, g := range groups {
		for i, axis := range g.axes {
			out[axis] = g.at[i]
		}
	}
	return out
}

// transposeDot contracts the cotangent with the other operand over the other operand's
// free axes. The contraction has the batch axes, the free axes and the contracted axes of
// the operand whose cotangent is computed, in this order.
func transposeDot(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	a := n.Attrs().(*DotAttrs)
	d := dotDimsOf(a, n.Input(0).Shape(), n.Input(1).Shape())
	nb, nl := len(a.LhsBatch), len(d.lhsFree)
	if !ct[0].Valid() || !onlyLinear(b, n, linear, 0, 1) {
		return make([]ir.Value, 2)
	}
	batch := counting(0, nb)
	ctLhs, ctRhs := counting(nb, nl), counting(nb+nl, len(d.rhsFree))
	out := make([]ir.Value, 2)
	if linear[0] {
		g := DotGeneral(b, ct[0], in[1], DotAttrs{LhsContract: ctRhs, RhsContract: d.rhsFree, LhsBatch: batch, RhsBatch: a.RhsBatch})
		out[0] = placeAxes(b, g, slices.Concat(a.LhsBatch, d.lhsFree, alongside(a.RhsContract, a.LhsContract)))
	}
	if linear[1] {
		// With lhs first a plain matrix product needs no transpose of its result.
		g := DotGeneral(b, in[0], ct[0], DotAttrs{LhsContract: d.lhsFree, RhsContract: ctLhs, LhsBatch: a.LhsBatch, RhsBatch: batch})
		out[1] = placeAxes(b, g, slices.Concat(a.RhsBatch, alongside(a.LhsContract, a.RhsContract), d.rhsFree))
	}
	return out
}

// alongside returns values permuted by the order that sorts keys.
func alongside(keys, values []int) []int {
	sorted := slices.Sorted(slices.Values(keys))
	out := make([]int, len(keys))
	for i, k := range keys {
		out[slices.Index(sorted, k)] = values[i]
	}
	return out
}

// bilinearJVP is the JVP rule of an op that is linear in each of two operands.
func bilinearJVP(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	var terms [2]ir.Value
	if t[0].Valid() {
		terms[0] = b.Add1(n.Op(), n.Attrs(), t[0], in[1])
	}
	if t[1].Valid() {
		terms[1] = b.Add1(n.Op(), n.Attrs(), in[0], t[1])
	}
	return []ir.Value{addTangents(b, terms[0], terms[1])}
}

// batchDot makes the batch axis another batch axis of the contraction where both operands
// have it, and a free axis where only one has.
func batchDot(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	a := n.Attrs().(*DotAttrs)
	d := DotAttrs{
		LhsContract: shiftedBy(a.LhsContract, axes[0]), LhsBatch: shiftedBy(a.LhsBatch, axes[0]),
		RhsContract: shiftedBy(a.RhsContract, axes[1]), RhsBatch: shiftedBy(a.RhsBatch, axes[1]),
	}
	if axes[0] >= 0 && axes[1] >= 0 {
		d.LhsBatch, d.RhsBatch = slices.Concat([]int{axes[0]}, d.LhsBatch), slices.Concat([]int{axes[1]}, d.RhsBatch)
		return []ir.Value{DotGeneral(b, in[0], in[1], d)}, []int{0}
	}
	free := dotDimsOf(&d, in[0].Shape(), in[1].Shape())
	at := len(d.LhsBatch)
	if axes[0] >= 0 {
		at += slices.Index(free.lhsFree, axes[0])
	} else {
		at += len(free.lhsFree) + slices.Index(free.rhsFree, axes[1])
	}
	return []ir.Value{DotGeneral(b, in[0], in[1], d)}, []int{at}
}

// MatMul returns the matrix product as NumPy defines it: over the last two axes of x [...,
// m, k] and y [..., k, n], with the leading axes broadcast. A vector on the left is a row
// and one on the right a column, whose axis the result lacks. x and y have one numeric
// type; f16 and bf16 accumulate in f32. An operand of rank 0 is an error of kind
// [ir.ErrShape].
func MatMul(b *ir.Builder, x, y ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	column := max(y.Rank()-2, 0)
	if err := checkMatMul(x.Type(), y.Type(), column); err != nil {
		b.Failf(opMatMul, []ir.Value{x, y}, err)
		return ir.Value{}
	}
	if y.Rank() <= 2 || x.Rank() == 1 && y.Rank() == 2 {
		return DotGeneral(b, x, y, DotAttrs{LhsContract: []int{-1}, RhsContract: []int{column}})
	}
	if x.Rank() == 1 {
		return DotGeneral(b, x, y, DotAttrs{LhsContract: []int{0}, RhsContract: []int{column}})
	}
	return batchMatMul(b, x, y)
}

// opMatMul is the name of a matrix product in errors.
const opMatMul ir.Op = "matmul"

// checkMatMul reports, in terms of matrices, why x and y cannot be multiplied. column is
// the contracted axis of y.
func checkMatMul(x, y ir.Type, column int) error {
	switch {
	case len(x.Shape) == 0 || len(y.Shape) == 0:
		return ir.Shapef("a matrix product of %s and %s needs operands of rank 1 or more", x, y)
	case x.DType != y.DType:
		return ir.DTypef("the factors are %s and %s, not of one type", x.DType, y.DType)
	case !x.DType.IsNumeric():
		return ir.DTypef("the factors are %s, which have no products", x.DType)
	}
	if k, l := x.Shape[len(x.Shape)-1], y.Shape[column]; k != l {
		return ir.Shapef("rows of %s have %s elements, columns of %s have %s", x.Shape, k, y.Shape, l)
	}
	return nil
}

// batchMatMul multiplies x of rank 2 or more by y of rank 3 or more, after broadcasting
// their leading axes.
func batchMatMul(b *ir.Builder, x, y ir.Value) ir.Value {
	xs, ys := x.Shape(), y.Shape()
	lead, err := BroadcastShapes(xs[:len(xs)-2], ys[:len(ys)-2])
	if err != nil {
		b.Failf(opMatMul, []ir.Value{x, y}, err)
		return ir.Value{}
	}
	x = BroadcastTo(b, x, slices.Concat(lead, xs[len(xs)-2:]))
	y = BroadcastTo(b, y, slices.Concat(lead, ys[len(ys)-2:]))
	batch := counting(0, len(lead))
	return DotGeneral(b, x, y, DotAttrs{
		LhsContract: []int{-1}, RhsContract: []int{len(lead)}, LhsBatch: batch, RhsBatch: batch,
	})
}

// Products of vectors, matrices and tensors.
const (
	OpKron  ir.Op = "kron"
	OpOuter ir.Op = "outer"
	OpVdot  ir.Op = "vdot"
)

func init() {
	sameType := []string{"x and y have one element type"}
	operands := []string{"x", "y"}
	defineComposite(composite{
		op: OpKron, doc: "The Kronecker product: each element of x times all of y, as blocks. The operand of lower rank gets leading axes of size 1.",
		operands: operands, types: numbers, constraints: sameType, check: oneDType, body: kron,
	})
	defineComposite(composite{
		op: OpOuter, doc: "The products of all elements of x with all of y: a matrix [size of x, size of y].",
		operands: operands, types: numbers, constraints: sameType, check: oneDType,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return DotGeneral(b, flattened(b, in[0]), flattened(b, in[1]), DotAttrs{})
		},
	})
	defineComposite(composite{
		op: OpVdot, doc: "The sum of the products of the elements of x, conjugated if they are complex, and of y, in row-major order.",
		operands: operands, types: numbers, constraints: append(slices.Clone(sameType), "x and y have the same number of elements"), check: oneDType,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			x := in[0]
			if x.DType().IsComplex() {
				x = Conj(b, x)
			}
			return DotGeneral(b, flattened(b, x), flattened(b, in[1]), DotAttrs{LhsContract: []int{0}, RhsContract: []int{0}})
		},
	})
}

func flattened(b *ir.Builder, x ir.Value) ir.Value { return Reshape(b, x, x.Shape().Size()) }

// kron interleaves axes of size 1: after each axis of x and before each axis of y.
func kron(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
	rank := max(in[0].Rank(), in[1].Rank())
	var interleaved [2]ir.Value
	var merged ir.Shape
	for side, v := range in {
		full := slices.Concat(ir.Shape(ir.Dims(repeatInt(1, rank-v.Rank())...)), v.Shape())
		var shape ir.Shape
		for i, d := range full {
			pair := []ir.Dim{d, ir.N(1)}
			if side == 1 {
				pair = []ir.Dim{ir.N(1), d}
				merged[i] = merged[i].Mul(d)
			} else {
				merged = append(merged, d)
			}
			shape = append(shape, pair...)
		}
		interleaved[side] = Reshape(b, v, shape...)
	}
	return Reshape(b, Mul(b, interleaved[0], interleaved[1]), merged...)
}

// Kron returns the Kronecker product of x and y: each element of x times all of y, as
// blocks. The operand of lower rank gets leading axes of size 1; axis i of the result has
// the product of the sizes of axis i of both.
func Kron(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpKron, nil, x, y) }

// Outer returns the outer product of x and y, flattened: [size of x, size of y].
func Outer(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpOuter, nil, x, y) }

// Vdot returns the sum of conj(x)·y over all elements in row-major order, of rank 0. x and
// y have the same number of elements.
func Vdot(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpVdot, nil, x, y) }

// TensorDot returns the contraction of the last axes of x with the first axes of y, as
// numpy.tensordot(x, y, axes) does: paired axes have equal sizes. axes is neither negative
// nor above either rank.
func TensorDot(b *ir.Builder, x, y ir.Value, axes int) ir.Value {
	if b.Err() == nil && (axes < 0 || axes > min(x.Rank(), y.Rank())) {
		b.Failf(OpDotGeneral, []ir.Value{x, y}, ir.Attrf("count, of axes, is %d: it must be neither negative nor above the ranks of the operands, %d and %d", axes, x.Rank(), y.Rank()))
	}
	if b.Err() != nil {
		return ir.Value{}
	}
	return DotGeneral(b, x, y, DotAttrs{LhsContract: counting(x.Rank()-axes, axes), RhsContract: counting(0, axes)})
}
