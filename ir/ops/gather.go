package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// IndexedAxes are the dimension numbers of gather and scatter. The last axis of the
// indices holds the index tuples, one entry for each of Axes; the other axes of the
// indices are the positions. Axis OperandBatch[i] of the operand is a batch axis paired
// with axis IndexBatch[i] of the indices. The remaining axes of the operand are the
// window, which each index tuple addresses as a whole.
type IndexedAxes struct {
	Axes                     []int
	OperandBatch, IndexBatch []int
	Outside                  string
	// Unique asserts that no two in-bounds index tuples of a batch are equal: updates are
	// then stored without combining. If the assertion is false, the result of a scatter,
	// or the derivative of a gather, is wrong.
	Unique bool
	// Sorted asserts that the index tuples address rows of the operand in an order that does not
	// decrease, along the positions in row-major order, tuples out of bounds first or last; there
	// are no batch axes. A device then need not sort them to combine updates of one element. If the
	// assertion is false, the result of a scatter, or the derivative of a gather, is wrong.
	Sorted bool
	// Unordered lets a device accumulate f32 updates of one element in any order
	// (atomics), also those of a gather's derivative: faster for many updates, but results
	// differ in their last bits from run to run. Otherwise results are deterministic.
	Unordered bool
}

// Visit shows the attributes.
func (a *IndexedAxes) Visit(v ir.AttrVisitor) {
	v.Ints("axes", &a.Axes)
	v.Ints("operand_batch", &a.OperandBatch)
	v.Ints("index_batch", &a.IndexBatch)
	v.Text("outside", &a.Outside)
	v.Bool("unique", &a.Unique)
	v.Bool("sorted", &a.Sorted)
	v.Bool("unordered", &a.Unordered)
}

// indexConstraints hold for all ops with index tuples.
var indexConstraints = []string{
	"indices are integers of rank 1 or more, whose last axis has one entry for each of axes",
	"axes and operand_batch are distinct axes of the operand, index_batch distinct axes of the positions",
	"paired batch axes have the same size",
	"a negative index is outside the bounds",
	"with unique, no two in-bounds index tuples are equal",
	"with sorted, which excludes batch axes, index tuples do not decrease, and those out of bounds come first or last",
}

func (a IndexedAxes) normal(x, indices ir.Value, outside string) IndexedAxes {
	a.Axes, a.OperandBatch = fromFront(a.Axes, x.Rank()), fromFront(a.OperandBatch, x.Rank())
	a.IndexBatch = fromFront(a.IndexBatch, indices.Rank())
	if a.Outside == "" {
		a.Outside = outside
	}
	return a
}

// window returns the axes of an operand of the given rank that are neither indexed nor
// batch axes.
func (a *IndexedAxes) window(rank int) []int { return permute.Others(rank, a.Axes, a.OperandBatch) }

// check returns the shape of the gather of x at indices.
func (a *IndexedAxes) check(x, indices ir.Type, outside ...string) (ir.Shape, error) {
	if !indices.DType.IsInteger() {
		return nil, ir.DTypef("indices are %s, not integers", indices)
	}
	if !slices.Contains(outside, a.Outside) {
		return nil, ir.Attrf("outside is %q, not one of %q", a.Outside, outside)
	}
	positions := len(indices.Shape) - 1
	if positions < 0 || !indices.Shape[positions].Is(len(a.Axes)) {
		return nil, ir.Shapef("indices are %s, whose last axis is not of size %d, that of axes", indices.Shape, len(a.Axes))
	}
	if err := checkAxes(slices.Concat(a.Axes, a.OperandBatch), len(x.Shape)); err != nil {
		return nil, err
	}
	if err := checkAxes(a.IndexBatch, positions); err != nil {
		return nil, err
	}
	if a.Sorted && len(a.IndexBatch) > 0 {
		return nil, ir.Attrf("sorted indices have %d batch axes, not 0", len(a.IndexBatch))
	}
	if err := checkPairedAxes("operand_batch", "index_batch", a.OperandBatch, a.IndexBatch, x.Shape, indices.Shape); err != nil {
		return nil, err
	}
	return slices.Concat(indices.Shape[:positions], pick(x.Shape, a.window(len(x.Shape)))), nil
}

// targets calls f for each element that the index tuples address: its row-major offset
// among them, and its offset in an operand of the given sizes, or -1 if it is out of
// bounds.
func (a *IndexedAxes) targets(dims []int, indices *ir.Array, f func(i, target int)) {
	last := len(indices.Dims) - 1
	window := a.window(len(dims))
	step := strides(dims)
	inner := offsets(dims, window)
	positions(indices.Dims[:last], func(p int, pos []int) {
		base := 0
		for i, axis := range a.OperandBatch {
			base += pos[a.IndexBatch[i]] * step[axis]
		}
		for i, axis := range a.Axes {
			at := indices.I[p*len(a.Axes)+i]
			if a.Outside == OutsideClip {
				at = max(min(at, int64(dims[axis])-1), 0)
			}
			if at < 0 || at >= int64(dims[axis]) {
				base = -1
				break
			}
			base += int(at) * step[axis]
		}
		for w, o := range inner {
			if base < 0 {
				o = -1
			} else {
				o += base
			}
			f(p*len(inner)+w, o)
		}
	})
}

// unsignedIndices returns indices as int64: values of u64 above the largest int64, stored
// as negative numbers, are clamped to it.
func unsignedIndices(indices *ir.Array) *ir.Array {
	if indices.DType != ir.U64 {
		return indices
	}
	out := indices.Clone()
	for i, x := range out.I {
		if x < 0 {
			out.I[i] = 1<<63 - 1
		}
	}
	return out
}

// batched returns the axes for an operand and indices with batch axes, in the positions or
// the window of the result.
func (a IndexedAxes) batched(operand, indices int) IndexedAxes {
	a.Axes, a.OperandBatch = shiftedBy(a.Axes, operand), shiftedBy(a.OperandBatch, operand)
	a.IndexBatch = shiftedBy(a.IndexBatch, indices)
	a.Sorted = a.Sorted && indices < 0
	if operand >= 0 && indices >= 0 {
		a.OperandBatch = slices.Concat(a.OperandBatch, []int{operand})
		a.IndexBatch = slices.Concat(a.IndexBatch, []int{indices})
	}
	return a
}

// address returns the position in an operand of the given sizes that the indices (operand
// 1) hold for a point of positions and window, and the condition that it is in bounds
// (nil: always). The position is clamped to the operand unless that is empty.
func (a *IndexedAxes) address(dims []int, p, w ir.Index, load ir.Load) (ir.Index, scalar.Expr) {
	at := make(ir.Index, len(dims))
	for i, axis := range a.window(len(dims)) {
		at[axis] = w[i]
	}
	for i, axis := range a.OperandBatch {
		at[axis] = p[a.IndexBatch[i]]
	}
	var inside scalar.Expr
	for i, axis := range a.Axes {
		index := wideIndex(load(1, slices.Concat(p, ir.Index{loop.Int(i)})), dims[axis])
		t := index.Type
		zero, last := scalar.ConstI(t, 0), scalar.ConstI(t, int64(dims[axis]-1))
		switch {
		case dims[axis] == 0:
			at[axis], inside = loop.Int(0), both(inside, scalar.ConstBool(false))
			continue
		case a.Outside == OutsideClip:
			index = scalar.Clamp(index, zero, last)
		default:
			ok := scalar.And(scalar.Ge(index, zero), scalar.Le(index, last))
			inside, index = both(inside, ok), scalar.Select(ok, index, zero)
		}
		if at[axis] = loop.Long(index); dims[axis] <= loop.MaxElements {
			at[axis] = scalar.Convert(index, ir.I32)
		}
	}
	return at, inside
}

// wideIndex converts an index along an axis of the given size from a narrow type to I32,
// or to I64 if the size does not fit in I32.
func wideIndex(x scalar.Expr, size int) scalar.Expr {
	switch {
	case size > loop.MaxElements && x.Type.Size() < 8:
		return loop.Long(x)
	case x.Type.Size() < 4:
		return scalar.Convert(x, ir.I32)
	}
	return x
}

// OpGather reads elements at index tuples; its transpose is scatter_add.
const OpGather ir.Op = "gather"

// Modes of gather and scatter for an index that is out of bounds.
const (
	// OutsideFill makes gather return the fill value.
	OutsideFill = "fill"
	// OutsideDrop makes scatter drop the update.
	OutsideDrop = "drop"
	// OutsideClip clamps the index. An empty axis has no valid index: gather returns the
	// fill value and scatter drops the update.
	OutsideClip = "clip"
	// OutsideWrap makes [Take] and [TakeAlongAxis] use the index modulo the size of the
	// axis: -1 is the last element.
	OutsideWrap = "wrap"
)

// GatherAttrs describe a gather: Fill is the result for an index that is out of bounds.
type GatherAttrs struct {
	IndexedAxes
	Fill float64
}

// Visit shows the attributes.
func (a *GatherAttrs) Visit(v ir.AttrVisitor) {
	a.IndexedAxes.Visit(v)
	v.Float("fill", &a.Fill)
}

func init() {
	define(&ir.Def{
		Op: OpGather,
		Doc: "The elements of the operand at index tuples (XLA's Gather). The result has the positions (the axes of indices except the " +
			"last) and then the window (the axes of the operand that are neither indexed nor batch axes). " +
			"With unordered its derivative may accumulate f32 in any order: faster, but not deterministic.",
		Constraints: numbered(append(slices.Clone(indexConstraints), `outside is "fill" or "clip"`)...),
		Operands:    []string{"operand", "indices"},
		NewAttrs:    func() ir.Attrs { return &GatherAttrs{} },
		Infer:       inferGather,
		Eval:        evalGather,
		JVP:         jvpGather,
		Transpose:   transposeEach(transposeGather),
		Batch:       batchGather,
		Lower:       &ir.MapLowering{Element: gatherElement},
	})
}

// Gather returns the elements, or windows, of x at the index tuples in indices: the result
// has the positions (the axes of indices except the last) and then the window (the axes of
// x that are neither indexed nor batch axes). Negative axes count from the last; an empty
// a.Outside means [OutsideFill].
func Gather(b *ir.Builder, x, indices ir.Value, a GatherAttrs) ir.Value {
	a.IndexedAxes = a.IndexedAxes.normal(x, indices, OutsideFill)
	return b.Add1(OpGather, &a, x, indices)
}

// Take returns the slices of x along axis at integer indices, as numpy.take: the axis is
// replaced by the axes of indices. outside is the mode for an index that is out of bounds:
// [OutsideFill] with zeros, also for "", [OutsideClip] or [OutsideWrap].
func Take(b *ir.Builder, x, indices ir.Value, axis int, outside string) ir.Value {
	return take(b, x, indices, axis, IndexedAxes{Outside: outside})
}

// TakeUnordered is [Take] with a derivative that may accumulate in any order: see
// [IndexedAxes.Unordered].
func TakeUnordered(b *ir.Builder, x, indices ir.Value, axis int, outside string) ir.Value {
	return take(b, x, indices, axis, IndexedAxes{Outside: outside, Unordered: true})
}

func take(b *ir.Builder, x, indices ir.Value, axis int, a IndexedAxes) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if axis < 0 {
		axis += x.Rank()
	}
	indices, a.Outside = wrapped(b, x, indices, axis, a.Outside)
	a.Axes = []int{axis}
	y := Gather(b, x, ExpandDims(b, indices, -1), GatherAttrs{IndexedAxes: a})
	if axis == 0 || b.Err() != nil {
		return y
	}
	// Positions come first in a gather; move the leading axes of x back in front.
	r := indices.Rank()
	return Transpose(b, y, slices.Concat(counting(r, axis), counting(0, r), counting(r+axis, x.Rank()-1-axis))...)
}

// TakeAlongAxis returns the element of x at each index along axis and at the index's own
// position along all other axes, as numpy.take_along_axis. x and indices have equal sizes
// along the other axes; outside is as for [Take].
func TakeAlongAxis(b *ir.Builder, x, indices ir.Value, axis int, outside string) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if axis < 0 {
		axis += x.Rank()
	}
	indices, outside = wrapped(b, x, indices, axis, outside)
	batch := permute.Others(x.Rank(), []int{axis})
	return Gather(b, x, ExpandDims(b, indices, -1), GatherAttrs{IndexedAxes: IndexedAxes{
		Axes: []int{axis}, OperandBatch: batch, IndexBatch: batch, Outside: outside,
	}})
}

// wrapped implements [OutsideWrap]: it returns the indices modulo the size of the axis,
// and the mode to use with them.
func wrapped(b *ir.Builder, x, indices ir.Value, axis int, outside string) (ir.Value, string) {
	if outside != OutsideWrap || axis < 0 || axis >= x.Rank() {
		return indices, outside
	}
	indices = Convert(b, indices, ir.I32)
	return Mod(b, indices, DimSize(b, ir.I32, x.Dim(axis))), OutsideFill
}

func inferGather(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*GatherAttrs), n.Input(0).Type()
	shape, err := a.check(x, n.Input(1).Type(), OutsideFill, OutsideClip)
	if err == nil {
		_, err = number(x.DType, a.Fill)
	}
	return []ir.Type{{DType: x.DType, Shape: shape}}, err
}

func evalGather(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a := n.Attrs().(*GatherAttrs)
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	fill, err := number(out.DType, a.Fill)
	if err != nil {
		return nil, err
	}
	a.targets(in[0].Dims, unsignedIndices(in[1]), func(i, target int) {
		if target < 0 {
			copyElement(out, i, fill, 0)
			return
		}
		copyElement(out, i, in[0], target)
	})
	return []*ir.Array{out}, nil
}

func jvpGather(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	a := *n.Attrs().(*GatherAttrs)
	a.Fill = 0
	return []ir.Value{Gather(b, t[0], in[1], a)}
}

// transposeGather is exact for a gather that fills with zero, the linear one.
func transposeGather(b *ir.Builder, n *ir.Node, _ int, in []ir.Value, ct ir.Value) ir.Value {
	a := n.Attrs().(*GatherAttrs)
	s := ScatterAttrs{a.IndexedAxes}
	if s.Outside == OutsideFill {
		s.Outside = OutsideDrop
	}
	return ScatterAdd(b, Zeros(b, ct.DType(), n.Input(0).Shape()...), in[1], ct, s)
}

// batchGather makes the batch axis a window axis, a position axis, or, if operand and
// indices both have it, a pair of batch axes. The tuples stay last.
func batchGather(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
	a := *n.Attrs().(*GatherAttrs)
	x, indices, at := in[0], in[1], axes[1]
	if at >= 0 {
		indices, at = MoveAxis(b, indices, at, 0), 0
	}
	a.IndexedAxes = a.batched(axes[0], at)
	if at < 0 {
		at = indices.Rank() - 1 + slices.Index(a.window(x.Rank()), axes[0])
	}
	return []ir.Value{Gather(b, x, indices, a)}, []int{at}
}

func gatherElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	a := n.Attrs().(*GatherAttrs)
	split := n.Input(1).Rank() - 1
	pos, inside := a.address(sizes(n.Input(0).Shape()), at[:split], at[split:], load)
	fill := scalar.Const(n.Input(0).DType(), a.Fill)
	if inside == nil {
		return load(0, pos)
	}
	if v, ok := inside.IntConst(); ok && v == 0 {
		return fill
	}
	return scalar.Select(inside, load(0, pos), fill)
}
