package ops

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Binary search, segment reductions, unique values and quantiles.
const (
	OpSearchSorted  ir.Op = "searchsorted"
	OpSegmentReduce ir.Op = "segment_reduce"
	OpUnique        ir.Op = "unique"
	OpQuantile      ir.Op = "quantile"
)

// SearchAttrs choose the insertion point: after equal elements if Right, otherwise before.
type SearchAttrs struct{ Right bool }

// Visit shows the attributes.
func (a *SearchAttrs) Visit(v ir.AttrVisitor) { v.Bool("right", &a.Right) }

// SegmentAttrs hold the number of segments and the reduction: "sum" (also ""), "mean",
// "prod", "max" or "min".
type SegmentAttrs struct {
	Segments  ir.Dim
	Reduction string
}

// Visit shows the attributes.
func (a *SegmentAttrs) Visit(v ir.AttrVisitor) {
	visitDim(v, "segments", &a.Segments)
	v.Text("reduction", &a.Reduction)
}

// SizeAttrs hold the number of elements of a result.
type SizeAttrs struct{ Size ir.Dim }

// Visit shows the attributes.
func (a *SizeAttrs) Visit(v ir.AttrVisitor) { visitDim(v, "size", &a.Size) }

// QuantileAttrs hold the axis and the quantile q in [0, 1].
type QuantileAttrs struct {
	AxisAttrs
	Q float64
}

// Visit shows the attributes.
func (a *QuantileAttrs) Visit(v ir.AttrVisitor) {
	a.AxisAttrs.Visit(v)
	v.Float("q", &a.Q)
}

func init() {
	defineComposite(composite{
		op: OpSearchSorted, operands: []string{"sorted", "values"}, types: reals, newAttrs: func() ir.Attrs { return &SearchAttrs{} },
		doc: "The insertion point, i32, of each value in a sorted vector: before equal elements, or after them with right (numpy.searchsorted). NaNs " +
			"sort last. It is a binary search.",
		constraints: []string{"sorted is a vector of constant size; both operands have one element type"}, noGrad: "integer result",
		check: func(n *ir.Node) error {
			if _, ok := n.Input(0).Dim(0).Const(); n.Input(0).Rank() != 1 || !ok {
				return ir.Shapef("sorted is %s, not of rank 1 and constant size", n.Input(0).Type())
			}
			return oneDType(n)
		},
		body: searchSorted,
	})
	defineComposite(composite{
		op: OpSegmentReduce, operands: []string{"x", "ids"}, types: reals,
		newAttrs: func() ir.Attrs { return &SegmentAttrs{Reduction: "sum"} },
		doc: "The slices of x along its first axis reduced by segment: row i of the result combines the slices with id i; ids outside the segments are dropped. " +
			`reduction is "sum", "mean", "prod", "max" or "min". A segment of no elements has what its reduction gives of none, and a mean 0.`,
		constraints: []string{"ids are integers, one for each element of the first axis of x", "a mean is one of floats"},
		check:       checkSegments,
		body:        segmentReduce,
	})
	defineComposite(composite{
		op: OpUnique, types: reals, newAttrs: func() ir.Attrs { return &SizeAttrs{} },
		doc: "The distinct elements of x in ascending order; for each element of x its index among them, i32 in the shape of x; and the count of each, i32 (jnp.unique). " +
			"If there are more than size, the largest are dropped; if fewer, the smallest one pads the result with count 0. All NaNs count as one.",
		constraints: []string{"x has a constant number of elements; size is not negative"},
		check: func(n *ir.Node) error {
			if _, ok := n.Input(0).Shape().Size().Const(); !ok || !n.Attrs().(*SizeAttrs).Size.Valid() {
				return ir.Shapef("size is %s, not from 0 to the number of elements of %s", n.Attrs().(*SizeAttrs).Size, n.Input(0).Type())
			}
			return nil
		},
		bodies: unique,
	})
	defineComposite(composite{
		op: OpQuantile, types: floats, newAttrs: func() ir.Attrs { return &QuantileAttrs{Q: 0.5} },
		doc:         "The q-quantile of x along an axis, linearly interpolated between the two nearest elements: for q = 0.5 the median. NaN propagates.",
		constraints: []string{"axis is an axis of x of constant size, not empty; the result has the others", "q is in [0, 1]"}, reduces: namedAxes,
		check: func(n *ir.Node) error {
			a, x := n.Attrs().(*QuantileAttrs), n.Input(0)
			if err := checkAxes([]int{a.Axis}, x.Rank()); err != nil {
				return err
			}
			if size, ok := x.Dim(a.Axis).Const(); !ok || size == 0 {
				return ir.Shapef("axis %d of size %s", a.Axis, x.Dim(a.Axis))
			}
			if !(a.Q >= 0 && a.Q <= 1) {
				return ir.Attrf("q is %v, not in [0, 1]", a.Q)
			}
			return nil
		},
		body: quantile,
	})
}

func checkSegments(n *ir.Node) error {
	a, x, ids := n.Attrs().(*SegmentAttrs), n.Input(0).Type(), n.Input(1).Type()
	if _, ok := segmentRules[a.Reduction]; !ok || !a.Segments.Valid() {
		return ir.Attrf("reduction is %q and segments %s: reduction must be one of \"sum\", \"mean\", \"prod\", \"max\" and \"min\", and segments not negative", a.Reduction, a.Segments)
	}
	if a.Reduction == "mean" && !x.DType.IsFloat() {
		return ir.DTypef("x is %s, not float, as a mean needs", x)
	}
	if err := integers.checkOperand(n, 1); err != nil {
		return err
	}
	if len(x.Shape) == 0 || !ids.Shape.Equal(x.Shape[:1]) {
		return ir.Shapef("ids are %s, not the first axis of x, %s", ids.Shape, x.Shape)
	}
	return nil
}

// sortsBefore returns whether x precedes y in ascending order, NaNs last.
func sortsBefore(b *ir.Builder, x, y ir.Value) ir.Value {
	before := Lt(b, x, y)
	if x.DType().IsFloat() {
		before = Or(b, before, And(b, IsNaN(b, y), Not(b, IsNaN(b, x))))
	}
	return before
}

// searchSorted is a binary search for all values at once.
func searchSorted(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	sorted, v := in[0], in[1]
	size, _ := sorted.Dim(0).Const()
	at := Zeros(b, ir.I32, v.Shape()...)
	length := ConstLike(b, at, float64(size))
	step := 1
	for 2*step <= size {
		step *= 2
	}
	for ; size > 0 && step > 0; step /= 2 {
		next := Add(b, at, ConstLike(b, at, float64(step)))
		element := Take(b, sorted, minus(b, next, 1), 0, OutsideClip)
		before := sortsBefore(b, element, v)
		if n.Attrs().(*SearchAttrs).Right {
			before = Not(b, sortsBefore(b, v, element))
		}
		at = Select(b, And(b, Le(b, next, length), before), next, at)
	}
	return at
}

// segmentRule is a segment reduction: a scatter into the value of an empty segment.
type segmentRule struct {
	op   ir.Op
	none float64
}

var segmentRules = map[string]segmentRule{
	"sum": {OpScatterAdd, 0}, "mean": {OpScatterAdd, 0}, "prod": {OpScatterMul, 1},
	"max": {OpScatterMax, math.Inf(-1)}, "min": {OpScatterMin, math.Inf(1)},
}

func segmentReduce(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*SegmentAttrs), in[0]
	rule, d := segmentRules[a.Reduction], x.DType()
	none := rule.none
	if math.IsInf(none, 0) && !d.IsFloat() {
		low, high, _ := d.IntRange()
		if none = float64(low); rule.none > 0 {
			none = float64(high)
		}
	}
	shape := append(ir.Shape{a.Segments}, x.Shape()[1:]...)
	at := &ScatterAttrs{IndexedAxes{Axes: []int{0}, Outside: OutsideDrop}}
	ids := ExpandDims(b, in[1], -1)
	into := func(op ir.Op, none float64, shape ir.Shape, v ir.Value) ir.Value {
		return b.Add1(op, at, Const(b, v.DType(), none, shape...), ids, v)
	}
	if a.Reduction != "mean" {
		return into(rule.op, none, shape, x)
	}
	x = wide(b, x)
	count := into(rule.op, 0, shape[:1], OnesLike(b, Convert(b, in[1], x.DType())))
	count = Reshape(b, Max(b, count, OnesLike(b, count)), append(ir.Shape{a.Segments}, ir.Dims(repeatInt(1, x.Rank()-1)...)...)...)
	return Convert(b, Div(b, into(rule.op, 0, shape, x), count), d)
}

func unique(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	x, size := flattened(b, in[0]), n.Attrs().(*SizeAttrs).Size
	if x.Dim(0).Is(0) || b.Err() != nil {
		return []ir.Value{Zeros(b, x.DType(), size), Zeros(b, ir.I32, in[0].Shape()...), Zeros(b, ir.I32, size)}
	}
	order := ArgSort(b, x, SortAttrs{})
	sorted := takeOrder(b, x, order, 0)
	last := Concatenate(b, 0, SliceAxis(b, sorted, 0, ir.N(0), ir.N(1)), SliceAxis(b, sorted, 0, ir.N(0), x.Dim(0).Sub(ir.N(1))))
	place := Iota(b, ir.I32, 0, x.Dim(0))
	first := Or(b, sortsBefore(b, last, sorted), Eq(b, place, ConstLike(b, place, 0)))
	number := minus(b, CumSum(b, Convert(b, first, ir.I32), CumSumAttrs{}), 1)
	to := func(into, at, v ir.Value, op ir.Op, once bool) ir.Value {
		a := &ScatterAttrs{IndexedAxes{Axes: []int{0}, Outside: OutsideDrop, Unique: once}}
		return b.Add1(op, a, into, ExpandDims(b, at, -1), v)
	}
	smallest := BroadcastTo(b, SliceAxis(b, sorted, 0, ir.N(0), ir.N(1)), ir.Shape{size})
	values := to(smallest, Select(b, first, number, ConstLike(b, number, -1)), sorted, OpScatter, true)
	inverse := to(Zeros(b, ir.I32, x.Dim(0)), order, number, OpScatter, true)
	counts := to(Zeros(b, ir.I32, size), number, OnesLike(b, number), OpScatterAdd, false)
	return []ir.Value{values, Reshape(b, inverse, in[0].Shape()...), counts}
}

func quantile(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, d := n.Attrs().(*QuantileAttrs), in[0].DType()
	x := Sort(b, SortAttrs{Axis: a.Axis}, wide(b, in[0]))[0]
	size, _ := x.Dim(a.Axis).Const()
	at := a.Q * float64(size-1)
	element := func(i float64) ir.Value {
		return Squeeze(b, SliceAxis(b, x, a.Axis, ir.N(int(i)), ir.N(1)), a.Axis)
	}
	y := element(math.Floor(at))
	if share := at - math.Floor(at); share > 0 { // a share of 0 of an infinite element would be NaN
		high := element(math.Ceil(at))
		y = Add(b, Mul(b, y, ConstLike(b, y, 1-share)), Mul(b, high, ConstLike(b, high, share)))
	}
	largest := element(float64(size - 1))
	return Convert(b, Select(b, IsNaN(b, largest), largest, y), d)
}

// SearchSorted returns the insertion point, i32, of each value in the sorted vector
// sorted: before equal elements, or after them if right, as numpy.searchsorted. sorted has
// constant size; both operands have one type.
func SearchSorted(b *ir.Builder, sorted, values ir.Value, right bool) ir.Value {
	return b.Add1(OpSearchSorted, &SearchAttrs{right}, sorted, values)
}

// SegmentReduce returns the slices of x along its first axis reduced by segment: row i of
// the result, [a.Segments, ...], combines the slices whose ids, integers [first axis of
// x], are i. Ids outside [0, a.Segments) are dropped.
func SegmentReduce(b *ir.Builder, x, ids ir.Value, a SegmentAttrs) ir.Value {
	a.Reduction = cmp.Or(a.Reduction, "sum")
	return b.Add1(OpSegmentReduce, &a, x, ids)
}

// Unique returns the distinct elements of x in ascending order, [size]; inverse, the index
// of each element of x among them, i32 in the shape of x; and counts, i32[size]. If there
// are more than size distinct elements, the largest are dropped; if fewer, the smallest
// one pads values with count 0, as in jnp.unique.
func Unique(b *ir.Builder, x ir.Value, size ir.Dim) (values, inverse, counts ir.Value) {
	out := several(3, b.Add(OpUnique, &SizeAttrs{size}, x))
	return out[0], out[1], out[2]
}

// Quantile returns the q-quantile of x, of a float type, along axis, which the result
// lacks, linearly interpolated between the two nearest elements. q is in [0, 1]; NaN
// propagates.
func Quantile(b *ir.Builder, x ir.Value, q float64, axis int) ir.Value {
	return b.Add1(OpQuantile, &QuantileAttrs{*axisAttrs(x, axis), q}, x)
}

// Median returns the median of x along axis: the 0.5-[Quantile].
func Median(b *ir.Builder, x ir.Value, axis int) ir.Value { return Quantile(b, x, 0.5, axis) }
