package ops

import (
	"slices"

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
	v.Bool("unordered", &a.Unordered)
}

// indexConstraints hold for all ops with index tuples.
var indexConstraints = []string{
	"indices are integers of rank 1 or more, whose last axis has one entry for each of axes",
	"axes and operand_batch are distinct axes of the operand, index_batch distinct axes of the positions",
	"paired batch axes have the same size",
	"a negative index is outside the bounds",
	"with unique, no two in-bounds index tuples are equal",
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
func (a *IndexedAxes) window(rank int) []int { return otherAxes(rank, a.Axes, a.OperandBatch) }

// check returns the shape of the gather of x at indices.
func (a *IndexedAxes) check(x, indices ir.Type, outside ...string) (ir.Shape, error) {
	if !indices.DType.IsInteger() {
		return nil, ir.DTypef("indices are %s, not integers", indices)
	}
	if !slices.Contains(outside, a.Outside) {
		return nil, ir.Attrf("outside is %q, not one of %v", a.Outside, outside)
	}
	positions := len(indices.Shape) - 1
	if positions < 0 || !indices.Shape[positions].Is(len(a.Axes)) {
		return nil, ir.Shapef("the last axis of indices %s has not the size %d of an index tuple", indices.Shape, len(a.Axes))
	}
	if err := checkAxes(slices.Concat(a.Axes, a.OperandBatch), len(x.Shape)); err != nil {
		return nil, err
	}
	if err := checkAxes(a.IndexBatch, positions); err != nil {
		return nil, err
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
	if operand >= 0 && indices >= 0 {
		a.OperandBatch = slices.Concat(a.OperandBatch, []int{operand})
		a.IndexBatch = slices.Concat(a.IndexBatch, []int{indices})
	}
	return a
}

// address returns the position in an operand of the given sizes that the indices (operand
// 1) hold for a point of positions and window, and the condition that it is in bounds
// (nil: always). The position is clamped to the operand unless that is empty.
func (a *IndexedAxes) address(n *ir.Node, dims []int, p, w ir.Index, load ir.Load) (ir.Index, scalar.Expr) {
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
