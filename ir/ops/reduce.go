package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Reductions over axes.
const (
	OpReduceSum  ir.Op = "reduce_sum"
	OpReduceProd ir.Op = "reduce_prod"
	OpReduceMax  ir.Op = "reduce_max"
	OpReduceMin  ir.Op = "reduce_min"
)

// reduction describes an op that combines all elements along some axes, which the result
// lacks.
type reduction struct {
	op        ir.Op
	doc       string
	types     domain
	reference scalarReference // the binary operator
	identity  func(d ir.DType) scalar.Expr
	combine   func(x, y scalar.Expr) scalar.Expr
	jvp       jvpRule
	transpose transposeRule
}

func axesOf(n *ir.Node) []int { return n.Attrs().(*AxesAttrs).Axes }

// keptAxes returns the axes of the operand that are not reduced.
func keptAxes(n *ir.Node) []int { return permute.Others(n.Input(0).Rank(), axesOf(n)) }

func init() {
	defineReduce(reduction{
		op: OpReduceSum, types: numbers,
		doc:       "The sum of the elements along some axes, 0 for no elements. f16 and bf16 accumulate in f32; integers wrap.",
		reference: addition,
		identity:  func(d ir.DType) scalar.Expr { return scalar.Const(d, 0) },
		combine:   scalar.Add,
		jvp:       linearJVP,
		transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return BroadcastInDim(b, ct, n.Input(0).Shape(), keptAxes(n))
		}),
	})
	defineReduce(reduction{
		op: OpReduceProd, types: numbers,
		doc: "The product of the elements along some axes, 1 for no elements. f16 and bf16 accumulate in f32; integers wrap. " +
			"The derivative of every order is exact with any number of zeros; it takes n² multiplications for n elements.",
		reference: multiplication,
		identity:  func(d ir.DType) scalar.Expr { return scalar.Const(d, 1) },
		combine:   scalar.Mul,
		jvp:       jvpProduct,
	})
	defineReduce(extremum(OpReduceMax, "largest", "−∞", -1, scalar.Max, larger))
	defineReduce(extremum(OpReduceMin, "smallest", "∞", 1, scalar.Min, smaller))
}

func extremum(op ir.Op, what, empty string, sign int, combine func(x, y scalar.Expr) scalar.Expr, float func(x, y float64) float64) reduction {
	return reduction{
		op: op, types: reals,
		doc: "The " + what + " element along some axes, NaN if one is NaN; of none it is " + empty +
			" for floats and the limit of the range for integers. Tied elements share the derivative equally.",
		reference: scalarReference{
			float: float2(float),
			integer: func(d ir.DType, x []int64) int64 {
				if compareInts(d, x[0], x[1])*sign < 0 {
					return x[0]
				}
				return x[1]
			},
		},
		identity: func(d ir.DType) scalar.Expr { return scalar.Extreme(d, sign) },
		combine:  combine,
		jvp:      jvpExtremum,
	}
}

func defineReduce(r reduction) {
	define(&ir.Def{
		Op: r.op, Doc: r.doc, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &AxesAttrs{} },
		Constraints: numbered(
			"the element type is "+r.types.String(),
			"the axes are distinct axes of x; the result has the others, in order",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0)
			if err := r.types.check(x.DType()); err != nil {
				return nil, err
			}
			if err := checkAxes(axesOf(n), x.Rank()); err != nil {
				return nil, err
			}
			return []ir.Type{{DType: x.DType(), Shape: pick(x.Shape(), keptAxes(n))}}, nil
		},
		Reduces: namedAxes,
		Eval:    evalResult(r.eval),
		JVP:     r.jvp, Transpose: r.transpose,
		Batch: batchReduce,
		Lower: r.lowering(),
	})
}

// eval folds the elements in row-major order from the identity element and rounds once, at
// the end.
func (r reduction) eval(n *ir.Node, in []*ir.Array, out *ir.Array) {
	start, _ := r.identity(out.DType).Value()
	for i := range out.Len() {
		out.SetElement(i, start)
	}
	kept := keptAxes(n)
	positions(in[0].Dims, func(i int, pos []int) {
		to := offset(out.Dims, pick(pos, kept))
		switch {
		case out.F != nil:
			out.F[to] = r.reference.float([]float64{out.F[to], in[0].F[i]})
		case out.C != nil:
			out.C[to] = r.reference.complex([]complex128{out.C[to], in[0].C[i]})
		default:
			out.I[to] = r.reference.integer(out.DType, []int64{out.I[to], in[0].I[i]})
		}
	})
}

// sumType returns the accumulation type for elements of type d: f32 for narrower floats,
// so that sums neither lose digits nor overflow early.
func sumType(d ir.DType) ir.DType {
	switch d {
	case ir.F16, ir.BF16:
		return ir.F32
	case ir.I8, ir.I16:
		return ir.I32
	case ir.U8, ir.U16:
		return ir.U32
	}
	return d
}

func (r reduction) lowering() *ir.ReduceLowering {
	typeOf := func(n *ir.Node) ir.DType { return n.Input(0).DType() }
	return &ir.ReduceLowering{
		Space: reduceSpace,
		Accumulators: func(n *ir.Node) []ir.Accumulator {
			d := typeOf(n)
			init := scalar.Convert(r.identity(d), sumType(d))
			return []ir.Accumulator{{DType: sumType(d), Init: init}}
		},
		Element: func(n *ir.Node, at, p ir.Index, load ir.Load) []scalar.Expr {
			x := load(0, reducedPosition(n, at, p))
			return []scalar.Expr{scalar.Convert(x, sumType(typeOf(n)))}
		},
		Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{r.combine(x[0], y[0])}
		},
		Finish: func(n *ir.Node, _ ir.Index, acc []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(acc[0], typeOf(n))}
		},
	}
}

// reduceSpace returns the sizes of the axes that are reduced.
func reduceSpace(n *ir.Node) []int { return pick(sizes(n.Input(0).Shape()), axesOf(n)) }

// reducedPosition returns the position in the operand of a point of the
// reduced space of a result element.
func reducedPosition(n *ir.Node, at, p ir.Index) ir.Index {
	out := make(ir.Index, n.Input(0).Rank())
	for i, a := range keptAxes(n) {
		out[a] = at[i]
	}
	for i, a := range axesOf(n) {
		out[a] = p[i]
	}
	return out
}

// reduced adds a reduction over the given axes, or over all axes if none is given.
func reduced(b *ir.Builder, op ir.Op, x ir.Value, axes []int) ir.Value {
	at := fromFront(axes, x.Rank())
	if len(axes) == 0 {
		at = counting(0, x.Rank())
	}
	return b.Add1(op, &AxesAttrs{at}, x)
}

// sumOver returns the sum of x over axes, or x itself if there are none.
func sumOver(b *ir.Builder, x ir.Value, axes []int) ir.Value {
	if len(axes) == 0 {
		return x
	}
	return b.Add1(OpReduceSum, &AxesAttrs{axes}, x)
}

// ReduceSum returns the sum of the elements of x, of a numeric type, along the given axes,
// which the result lacks, or along all axes if none is given. The sum of no elements is 0;
// f16 and bf16 accumulate in f32, integers wrap.
func ReduceSum(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceSum, x, axes)
}

// ReduceProd returns the product of the elements of x along the given axes, as [ReduceSum]
// does the sum. The product of no elements is 1.
func ReduceProd(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceProd, x, axes)
}

// ReduceMax returns the largest element of x along the given axes, which the result lacks,
// or along all axes if none is given. NaN propagates; the maximum of no elements is -Inf,
// or the least integer of the type.
func ReduceMax(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceMax, x, axes)
}

// ReduceMin returns the smallest element of x along the given axes, which the result
// lacks, or along all axes if none is given. NaN propagates; the minimum of no elements is
// +Inf, or the greatest integer of the type.
func ReduceMin(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceMin, x, axes)
}

func batchReduce(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	at := axes[0]
	reduced := shifted(axesOf(n), at)
	out := at
	for _, a := range reduced {
		if a < at {
			out--
		}
	}
	return b.Add(n.Op(), &AxesAttrs{reduced}, in[0]), []int{out}
}

// jvpProduct computes Σᵢ tᵢ·Πⱼ≠ᵢ xⱼ without division, so zeros are harmless at any order:
// the products run along a second copy of the reduced axes, in which element i is replaced
// by 1.
func jvpProduct(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	kept, reduced := keptAxes(n), axesOf(n)
	x := mergeReduced(b, in[0], kept, reduced)
	tangent := mergeReduced(b, t[0], kept, reduced)
	i := x.Rank() - 1 // the merged reduced axis
	count := x.Dim(i)
	square := append(x.Shape().Clone(), count)
	self := Eq(b, Iota(b, ir.I32, i, square...), Iota(b, ir.I32, i+1, square...))
	wide := BroadcastInDim(b, x, square, withoutAxis(i+2, i))
	others := ReduceProd(b, Select(b, self, OnesLike(b, wide), wide), i+1)
	return []ir.Value{ReduceSum(b, scale(b, tangent, others), i)}
}

// mergeReduced moves the reduced axes to the end and merges them.
func mergeReduced(b *ir.Builder, x ir.Value, kept, reduced []int) ir.Value {
	shape := pick(x.Shape(), kept)
	count := ir.Shape(pick(x.Shape(), reduced)).Size()
	return Reshape(b, Transpose(b, x, slices.Concat(kept, reduced)...), append(shape, count)...)
}

// jvpExtremum shares the tangent equally among the elements that attain the extremum. No
// element equals NaN, so a NaN result has the tangent 0/0, NaN.
func jvpExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	x, axes := in[0], axesOf(n)
	wide := func(v ir.Value) ir.Value { return BroadcastInDim(b, v, x.Shape(), keptAxes(n)) }
	attained := Convert(b, Eq(b, x, wide(out[0])), sumType(x.DType()))
	shares := Div(b, attained, wide(sumOver(b, attained, axes)))
	return []ir.Value{sumOver(b, scale(b, t[0], Convert(b, shares, x.DType())), axes)}
}

// OpMean is the mean over axes.
const OpMean ir.Op = "mean"

func init() {
	define(&ir.Def{
		Op: OpMean, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &AxesAttrs{} },
		Doc: "The mean of the elements along some axes, NaN for no elements. f16 and bf16 accumulate in f32.",
		Constraints: numbered(
			"the element type is "+(floats|complexes).String(),
			"the axes are distinct axes of x; the result has the others, in order",
		),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0)
			if err := (floats | complexes).check(x.DType()); err != nil {
				return nil, err
			}
			return []ir.Type{{DType: x.DType(), Shape: pick(x.Shape(), keptAxes(n))}}, checkAxes(axesOf(n), x.Rank())
		},
		Reduces: namedAxes,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			d := in[0].DType()
			x := Convert(b, in[0], sumType(d))
			count := DimSize(b, x.DType(), pick(x.Shape(), axesOf(n))...)
			return []ir.Value{Convert(b, Div(b, sumOver(b, x, axesOf(n)), count), d)}
		},
	})
}

// Mean returns the mean of the elements of x, of a float or complex type, along the given
// axes, which the result lacks, or along all axes if none is given. The mean of no
// elements is NaN; f16 and bf16 accumulate in f32.
func Mean(b *ir.Builder, x ir.Value, axes ...int) ir.Value { return reduced(b, OpMean, x, axes) }

// OpSumAll is the sum of all elements of any number of values.
const OpSumAll ir.Op = "sum_all"

func init() {
	define(&ir.Def{
		Op: OpSumAll,
		Doc: "The sum of all elements of all operands, which may differ in shape; 0 for no elements. f16 and bf16 accumulate " +
			"in f32. The order of summation depends on the shapes alone.",
		Constraints: numbered("there is at least one operand; all have one element type, which is " + floats.String()),
		Operands:    []string{"operands..."},
		Infer:       inferSumAll,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			d := in[0].DType()
			sums := make([]ir.Value, len(in))
			for i, x := range in {
				sums[i] = ReduceSum(b, Convert(b, x, sumType(d)))
			}
			return []ir.Value{Convert(b, derive.Sum(b, sums), d)}
		},
		Lower: &ir.TotalLowering{Sum: func(n *ir.Node) ir.DType { return sumType(n.Input(0).DType()) }},
	})
}

func inferSumAll(n *ir.Node) ([]ir.Type, error) {
	if len(n.Inputs()) == 0 {
		return nil, ir.Shapef("there is nothing to add up")
	}
	d := n.Input(0).DType()
	if err := floats.check(d); err != nil {
		return nil, err
	}
	for i, v := range n.Inputs() {
		if v.DType() != d {
			return nil, ir.DTypef("operand %d is %s, not %s as operand 0 is", i, v.DType(), d)
		}
	}
	return []ir.Type{{DType: d}}, nil
}

// SumAll returns the sum, of rank 0, of all elements of the operands, which have one float
// type and any shapes. At least one operand is required. f16 and bf16 accumulate in f32.
func SumAll(b *ir.Builder, in ...ir.Value) ir.Value { return b.Add1(OpSumAll, nil, in...) }
