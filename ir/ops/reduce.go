package ops

import (
	"math"
	"slices"

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

// reduction describes an op that combines all elements along some axes, which
// the result does not have.
type reduction struct {
	op        ir.Op
	doc       string
	types     domain
	meaning   meaning // of two elements
	neutral   func(d ir.DType) scalar.Expr
	combine   func(x, y scalar.Expr) scalar.Expr
	jvp       jvpRule
	transpose transposeRule
	// noEmptyGrad says why samples without elements are left out of gradient
	// checks, if they are.
	noEmptyGrad string
	samples     func() []ir.Sample
}

func axesOf(n *ir.Node) []int { return n.Attrs().(*AxesAttrs).Axes }

// keptAxes returns the axes of the operand that a reduction leaves.
func keptAxes(n *ir.Node) []int { return otherAxes(n.Input(0).Rank(), axesOf(n)) }

func init() {
	defineReduce(reduction{
		op: OpReduceSum, types: numbers,
		doc:     "The sum of the elements along some axes, 0 of none. Sums of f16 and bf16 are taken in f32; integers wrap.",
		meaning: addition,
		neutral: func(d ir.DType) scalar.Expr { return scalar.Const(d, 0) },
		combine: scalar.Add,
		jvp:     linearJVP,
		transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return BroadcastInDim(b, ct, n.Input(0).Shape(), keptAxes(n))
		}),
	})
	defineReduce(reduction{
		op: OpReduceProd, types: numbers,
		doc: "The product of the elements along some axes, 1 of none. Products of f16 and bf16 are taken in f32; integers wrap. " +
			"The derivative is right with any number of zeros, at any order; it takes n² multiplications for n elements.",
		meaning: multiplication,
		neutral: func(d ir.DType) scalar.Expr { return scalar.Const(d, 1) },
		combine: scalar.Mul,
		jvp:     jvpProduct,
		samples: productSamples,
	})
	defineReduce(extremum(OpReduceMax, "largest", "−∞", -1, scalar.Max, larger))
	defineReduce(extremum(OpReduceMin, "smallest", "∞", 1, scalar.Min, smaller))
}

func extremum(op ir.Op, what, empty string, sign int, combine func(x, y scalar.Expr) scalar.Expr, float func(x, y float64) float64) reduction {
	return reduction{
		op: op, types: reals,
		doc: "The " + what + " element along some axes, NaN if one is NaN; of none it is " + empty +
			" for floats and the far end of the range for integers. Elements that tie share the derivative equally.",
		meaning: meaning{
			float: float2(float),
			integer: func(d ir.DType, x []int64) int64 {
				if compareInts(d, x[0], x[1])*sign < 0 {
					return x[0]
				}
				return x[1]
			},
		},
		neutral: func(d ir.DType) scalar.Expr { return scalar.Extreme(d, sign) },
		combine: combine,
		jvp:     jvpExtremum,

		noEmptyGrad: "infinite result",
		samples:     extremumSamples,
	}
}

func defineReduce(r reduction) {
	noTranspose := ""
	if r.transpose == nil {
		noTranspose = notLinear
	}
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
		Eval:    r.eval,
		JVP:     r.jvp, Transpose: r.transpose, NoTranspose: noTranspose,
		Batch:   batchReduce,
		Lower:   r.lowering(),
		Samples: func() []ir.Sample { return reduceSamples(r) },
	})
}

// eval combines the elements in row-major order, starting from the neutral
// element, and rounds at the end only.
func (r reduction) eval(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	start, _ := r.neutral(out.DType).Value()
	for i := range out.Len() {
		out.SetElement(i, start)
	}
	kept := keptAxes(n)
	positions(in[0].Dims, func(i int, pos []int) {
		to := offset(out.Dims, pick(pos, kept))
		switch {
		case out.F != nil:
			out.F[to] = r.meaning.float([]float64{out.F[to], in[0].F[i]})
		case out.C != nil:
			out.C[to] = r.meaning.complex([]complex128{out.C[to], in[0].C[i]})
		default:
			out.I[to] = r.meaning.integer(out.DType, []int64{out.I[to], in[0].I[i]})
		}
	})
	return []*ir.Array{c.Round(out)}, nil
}

// sumType is the element type in which many elements of a type are summed up:
// one that neither loses digits at once nor overflows before the result does,
// and that all devices compute in.
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
			init := scalar.Convert(r.neutral(d), sumType(d))
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

// jvpProduct is Σᵢ tᵢ·Πⱼ≠ᵢ xⱼ with the products of the others taken as they
// stand: for each i, along a second copy of the reduced axes, in which element
// i is replaced by 1. No division, so zeros do no harm at any order.
func jvpProduct(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	kept, reduced := keptAxes(n), axesOf(n)
	x := mergeReduced(b, in[0], kept, reduced)
	tangent := mergeReduced(b, t[0], kept, reduced)
	i := x.Rank() - 1 // the axis of all reduced elements
	count := x.Dim(i)
	square := append(x.Shape().Clone(), count)
	self := Eq(b, Iota(b, ir.I32, i, square...), Iota(b, ir.I32, i+1, square...))
	wide := BroadcastInDim(b, x, square, withoutAxis(i+2, i))
	others := ReduceProd(b, Select(b, self, OnesLike(b, wide), wide), i+1)
	return []ir.Value{ReduceSum(b, scale(b, tangent, others), i)}
}

// mergeReduced moves the reduced axes to the end and makes one axis of them.
func mergeReduced(b *ir.Builder, x ir.Value, kept, reduced []int) ir.Value {
	shape := pick(x.Shape(), kept)
	count := ir.Shape(pick(x.Shape(), reduced)).Size()
	return Reshape(b, Transpose(b, x, slices.Concat(kept, reduced)...), append(shape, count)...)
}

// jvpExtremum gives each element that attains the extremum an equal share of
// the derivative. A NaN is attained nowhere, and 0/0 makes the derivative NaN.
func jvpExtremum(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	x, axes := in[0], axesOf(n)
	wide := func(v ir.Value) ir.Value { return BroadcastInDim(b, v, x.Shape(), keptAxes(n)) }
	attained := Convert(b, Eq(b, x, wide(out[0])), sumType(x.DType()))
	shares := Div(b, attained, wide(sumOver(b, attained, axes)))
	return []ir.Value{sumOver(b, scale(b, t[0], Convert(b, shares, x.DType())), axes)}
}

func reduceSamples(r reduction) []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	add := func(x *ir.Array, axes ...int) {
		a := &AxesAttrs{axes}
		s := ir.Sample{Name: x.Type().String() + ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{x}}
		if x.Len() == 0 {
			s.NoGrad = r.noEmptyGrad
		}
		out = append(out, s)
	}
	add(draw(1, ir.F32, -2, 2))
	add(draw(2, ir.F32, -2, 2, 7), 0)
	add(draw(3, ir.F32, -2, 2, 0), 0)
	add(draw(4, ir.F32, -2, 2, 3, 0), 1)
	add(draw(5, ir.F32, -2, 2, 3, 0), 0)
	add(draw(6, ir.F32, -2, 2, 1, 1), 0, 1)
	add(distinct(-4, 4, 67, 131), 1)
	add(distinct(-4, 4, 67, 131), 0)
	add(distinct(-1.5, 1.5, 13, 5), 1, 0)
	add(distinct(-1.5, 1.5, 2, 3, 4, 2), 2, 0)
	add(draw(11, ir.F32, -2, 2, 2, 3))
	for _, d := range typesIn(r.types)[1:] {
		add(draw(12, d, -2, 3, 4, 3), 0)
		add(draw(13, d, -2, 3, 0, 3), 0)
	}
	if r.samples != nil {
		out = append(out, r.samples()...)
	}
	return out
}

func productSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	x := ir.Floats(ir.F32, []float64{2, 0, 3, 0, 0, 5, 1, 2, 3, 0, 0, 0}, 4, 3)
	return []ir.Sample{{Name: "zeros", Attrs: &AxesAttrs{[]int{1}}, In: []*ir.Array{x}}}
}

func extremumSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	row := func(name, noGrad string, x ...float64) ir.Sample {
		return ir.Sample{Name: name, NoGrad: noGrad, Attrs: &AxesAttrs{[]int{0}}, In: []*ir.Array{ir.Floats(ir.F32, x, len(x))}}
	}
	return []ir.Sample{
		row("ties", "ties share the gradient", 1, 3, 3, -1, 3, -1),
		row("all alike", "ties share the gradient", 2, 2, 2),
		row("infinities", "infinite elements", math.Inf(1), 0, math.Inf(-1)),
		row("nan", "NaN element", 1, math.NaN(), 3),
		row("nan and infinities", "NaN element", math.Inf(1), math.NaN(), math.Inf(-1)),
	}
}

// reduced adds a reduction over the given axes, or over all where none is
// given.
func reduced(b *ir.Builder, op ir.Op, x ir.Value, axes []int) ir.Value {
	at := fromFront(axes, x.Rank())
	if len(axes) == 0 {
		at = counting(0, x.Rank())
	}
	return b.Add1(op, &AxesAttrs{at}, x)
}

// sumOver returns the sum over the given axes, x itself where there are none.
func sumOver(b *ir.Builder, x ir.Value, axes []int) ir.Value {
	if len(axes) == 0 {
		return x
	}
	return b.Add1(OpReduceSum, &AxesAttrs{axes}, x)
}

// ReduceSum returns the sum of the elements of x along some axes, which the
// result does not have. No axes at all stand for all of them.
func ReduceSum(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceSum, x, axes)
}

// ReduceProd returns the product of the elements of x along some axes; no axes
// stand for all.
func ReduceProd(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceProd, x, axes)
}

// ReduceMax returns the largest element of x along some axes; no axes stand
// for all.
func ReduceMax(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceMax, x, axes)
}

// ReduceMin returns the smallest element of x along some axes; no axes stand
// for all.
func ReduceMin(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return reduced(b, OpReduceMin, x, axes)
}
