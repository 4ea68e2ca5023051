package ops

import (
	"slices"

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
		Eval:      evalDot,
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
		return ir.Attrf("%s has %d axes and %s %d, not as many", left, len(lhs), right, len(rhs))
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
		lhsFree: otherAxes(len(x), a.LhsBatch, a.LhsContract),
		rhsFree: otherAxes(len(y), a.RhsBatch, a.RhsContract),
	}
}

func evalDot(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a := n.Attrs().(*DotAttrs)
	d := dotDimsOf(a, n.Input(0).Shape(), n.Input(1).Shape())
	x, y := in[0], in[1]
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
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
	return []*ir.Array{c.Round(out)}, nil
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
			return placeIndex(len(x), a.LhsBatch, batch, d.lhsFree, free, a.LhsContract, k), nil
		},
		B: func(batch, free, k ir.Index) (ir.Index, scalar.Expr) {
			return placeIndex(len(y), a.RhsBatch, batch, d.rhsFree, free, a.RhsContract, k), nil
		},
		Out: func(batch, m, n ir.Index) ir.Index { return slices.Concat(batch, m, n) },
		Acc: sumType(n.Types()[0].DType),
	}
}

// placeIndex scatters the coordinates of three groups of axes to the axes' positions.
func placeIndex(rank int, a []int, ai ir.Index, b []int, bi ir.Index, c []int, ci ir.Index) ir.Index {
	at := make(ir.Index, rank)
	for i, axis := range a {
		at[axis] = ai[i]
	}
	for i, axis := range b {
		at[axis] = bi[i]
	}
	for i, axis := range c {
		at[axis] = ci[i]
	}
	return at
}
