package ops

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Sorting and selection along an axis.
const (
	OpArgSort ir.Op = "argsort"
	OpSort    ir.Op = "sort"
	OpTopK    ir.Op = "top_k"
)

// SortAttrs hold the axis, the order, and how many of the first elements in that order are kept: 0 keeps
// all.
type SortAttrs struct {
	Axis       int
	Descending bool
	First      int
}

// Visit shows the attributes.
func (a *SortAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Bool("descending", &a.Descending)
	v.Int("first", &a.First)
}

// Complete makes the last axis the default.
func (a *SortAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxis(&a.Axis, in, given)
}

// TopKAttrs hold k, the axis, and whether the smallest elements are selected.
type TopKAttrs struct {
	K, Axis  int
	Smallest bool
}

// Visit shows the attributes.
func (a *TopKAttrs) Visit(v ir.AttrVisitor) {
	v.Int("k", &a.K)
	v.Int("axis", &a.Axis)
	v.Bool("smallest", &a.Smallest)
}

// Complete makes the last axis the default.
func (a *TopKAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxis(&a.Axis, in, given)
}

const firstDoc = " If first is not 0, it is the number of elements in that order that are kept."

const firstConstraint = "first is from 0 to the size of that axis"

const sortOrderDoc = " The sort is stable, also for 0 and -0; NaN is larger than all numbers."

func init() {
	const integerResult = "integer result"
	define(&ir.Def{
		Op: OpArgSort, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &SortAttrs{} },
		Doc:         "The indices, i32, that sort x along an axis in ascending or descending order." + firstDoc + sortOrderDoc,
		Constraints: numbered("x is of a real type or bool", "axis is an axis of x", firstConstraint),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			shape, err := sortedShape(n)
			return []ir.Type{{DType: ir.I32, Shape: shape}}, err
		},
		Eval:   evalArgSort,
		NoGrad: integerResult,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			a := *sortAttrs(n)
			a.Axis = shifted([]int{a.Axis}, axes[0])[0]
			return []ir.Value{ArgSort(b, in[0], a)}, axes
		},
		Lower: &ir.SortLowering{
			Axis: func(n *ir.Node) int { return sortAttrs(n).Axis },
			Key:  func(n *ir.Node, x scalar.Expr) scalar.Expr { return sortKey(x, sortAttrs(n).Descending) },
			Bits: func(n *ir.Node) int { return sortBits(n.Input(0).DType()) },
		},
	})
	define(&ir.Def{
		Op: OpSort, Operands: []string{"x", "payloads..."}, NewAttrs: func() ir.Attrs { return &SortAttrs{} },
		Doc: "The elements of x along an axis in ascending or descending order, and each payload permuted in the same way." + firstDoc + sortOrderDoc,
		Constraints: numbered("x is of a real type or bool", "axis is an axis of x", firstConstraint,
			"payloads are of any element type and of the shape of x"),
		Infer: inferSort,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			order := ArgSort(b, in[0], *sortAttrs(n))
			out := make([]ir.Value, len(in))
			for i, x := range in {
				out[i] = takeOrder(b, x, order, sortAttrs(n).Axis)
			}
			return out
		},
	})
	define(&ir.Def{
		Op: OpTopK, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &TopKAttrs{} },
		Doc:         "The k largest, or smallest, elements along an axis, in order, and their indices as i32." + sortOrderDoc,
		Constraints: numbered("x is of a real type or bool", "axis is an axis of x", "k is from 0 to the size of that axis"),
		Infer:       inferTopK,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*TopKAttrs)
			order := ArgSort(b, in[0], SortAttrs{Axis: a.Axis, Descending: !a.Smallest, First: a.K})
			if a.K == 0 {
				order = SliceAxis(b, order, a.Axis, ir.N(0), ir.N(0))
			}
			return []ir.Value{takeOrder(b, in[0], order, a.Axis), order}
		},
	})
}

func sortAttrs(n *ir.Node) *SortAttrs { return n.Attrs().(*SortAttrs) }

func inferSort(n *ir.Node) ([]ir.Type, error) {
	shape, err := sortedShape(n)
	out := make([]ir.Type, len(n.Inputs()))
	for i, t := range n.InTypes() {
		if x := n.Input(0).Type(); !t.Shape.Equal(x.Shape) {
			return nil, ir.Shapef("a payload is %s, x %s", t, x)
		}
		out[i] = ir.Type{DType: t.DType, Shape: shape}
	}
	return out, err
}

// sortedShape returns the shape of the results of a sort.
func sortedShape(n *ir.Node) (ir.Shape, error) {
	a, x := sortAttrs(n), n.Input(0).Type()
	shape, err := firstOf(x, a.Axis, a.First, "first")
	if a.First == 0 {
		shape = x.Shape
	}
	return shape, err
}

// firstOf returns the shape of the given number of elements along an axis of a type that can be sorted;
// name is that of the attribute with the number.
func firstOf(x ir.Type, axis, count int, name string) (ir.Shape, error) {
	if err := cmp.Or((reals | bools).check(x.DType), checkAxes([]int{axis}, len(x.Shape))); err != nil {
		return nil, err
	}
	if size, ok := x.Shape[axis].Const(); count < 0 || ok && count > size {
		return nil, ir.Attrf("%s is %d: it must be from 0 to the elements of axis %d of %s, %s", name, count, axis, x, x.Shape[axis])
	}
	shape := x.Shape.Clone()
	shape[axis] = ir.N(count)
	return shape, nil
}

// ArgSort returns the indices, i32, that sort x along a.Axis, which may count from the
// last, or the first a.First of them. The sort is stable; NaN is larger than all numbers.
func ArgSort(b *ir.Builder, x ir.Value, a SortAttrs) ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return b.Add1(OpArgSort, &a, x)
}

// Sort returns x sorted along a.Axis, which may count from the last, and each payload, of
// the shape of x, permuted in the same way, or the first a.First of each. The sort is
// stable; NaN is larger than all numbers.
func Sort(b *ir.Builder, a SortAttrs, x ir.Value, payloads ...ir.Value) []ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return several(1+len(payloads), b.Add(OpSort, &a, slices.Concat([]ir.Value{x}, payloads)...))
}

// TopK returns the a.K largest elements of x along a.Axis, or the smallest, in order, and
// their indices, i32. A negative axis counts from the last; ties keep the order of x.
func TopK(b *ir.Builder, x ir.Value, a TopKAttrs) (values, indices ir.Value) {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return two(b.Add(OpTopK, &a, x))
}

// several returns the n results of a node, or zero Values after an error.
func several(n int, results []ir.Value) []ir.Value {
	if len(results) != n {
		return make([]ir.Value, n)
	}
	return results
}

// two returns the results of a node that has two, or zero Values after an error.
func two(results []ir.Value) (first, second ir.Value) {
	out := several(2, results)
	return out[0], out[1]
}

// takeOrder returns the elements of x along an axis at distinct indices.
func takeOrder(b *ir.Builder, x, places ir.Value, axis int) ir.Value {
	batch := permute.Others(x.Rank(), []int{axis})
	return Gather(b, x, ExpandDims(b, places, -1), GatherAttrs{IndexedAxes: IndexedAxes{
		Axes: []int{axis}, OperandBatch: batch, IndexBatch: batch, Outside: OutsideClip, Unique: true,
	}})
}

func inferTopK(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*TopKAttrs), n.Input(0).Type()
	shape, err := firstOf(x, a.Axis, a.K, "k")
	return []ir.Type{{DType: x.DType, Shape: shape}, {DType: ir.I32, Shape: shape}}, err
}

func evalArgSort(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, x := n.Attrs().(*SortAttrs), in[0]
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	step, others := strides(x.Dims)[a.Axis], permute.Others(len(x.Dims), []int{a.Axis})
	to := offsets(out.Dims, others)
	for row, base := range offsets(x.Dims, others) {
		places := counting(0, x.Dims[a.Axis])
		slices.SortStableFunc(places, func(i, j int) int { return comparePlaces(x, base+i*step, base+j*step, a.Descending) })
		for i, from := range places[:out.Dims[a.Axis]] {
			out.I[to[row]+i*step] = int64(from)
		}
	}
	return []*ir.Array{c.Round(out)}, nil
}

// comparePlaces returns -1, 0 or 1 as element i sorts before, equal to or after element j.
func comparePlaces(x *ir.Array, i, j int, descending bool) int {
	var c int
	if x.F != nil {
		a, b := x.F[i], x.F[j]
		c = boolInt(a > b || math.IsNaN(a)) - boolInt(a < b || math.IsNaN(b)) // 0 for two NaNs
	} else {
		c = compareInts(x.DType, x.I[i], x.I[j])
	}
	if descending {
		return -c
	}
	return c
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sortBits returns the number of bits of the sort keys of a type.
func sortBits(d ir.DType) int {
	switch {
	case d.IsBool():
		return 1
	case d.IsFloat():
		return max(32, 8*d.Size())
	}
	return 8 * d.Size()
}

// sortKey returns an unsigned integer with the order of the elements: the sign bit of
// signed integers is flipped; negative floats have all bits flipped and others the sign
// bit.
func sortKey(x scalar.Expr, descending bool) scalar.Expr {
	d := x.Type
	if d.IsFloat() {
		return floatKey(x, descending)
	}
	wide, width := ir.U32, sortBits(d)
	if d.Size() == 8 {
		wide = ir.U64
	}
	key := scalar.Convert(x, wide)
	if d.IsSigned() {
		key = scalar.Xor(key, scalar.ConstI(wide, wide.Wrap(1<<(width-1))))
	}
	all := scalar.ConstI(wide, wide.Wrap(int64(uint64(1)<<width-1)))
	if descending {
		key = scalar.Not(key)
	}
	return scalar.And(key, all)
}

// floatKey is sortKey for a float, by integer operations alone: devices may flush
// subnormal numbers in comparisons.
func floatKey(x scalar.Expr, descending bool) scalar.Expr {
	wide, infinite := ir.U32, int64(0x7f800000)
	if x.Type == ir.F64 {
		wide, infinite = ir.U64, 0x7ff<<52
	} else {
		x = scalar.Convert(x, ir.F32)
	}
	constant := func(c int64) scalar.Expr { return scalar.ConstI(wide, wide.Wrap(c)) }
	sign, all := constant(-1<<(8*wide.Size()-1)), constant(-1)
	bits := scalar.Bitcast(x, wide)
	size := scalar.And(bits, scalar.Not(sign))
	negative := scalar.And(scalar.Ge(bits, sign), scalar.Ne(size, constant(0)))
	key := scalar.Select(negative, scalar.Not(bits), scalar.Or(size, sign))
	nan := all
	if descending {
		key, nan = scalar.Not(key), constant(0)
	}
	return scalar.Select(scalar.Gt(size, constant(infinite)), nan, key)
}
