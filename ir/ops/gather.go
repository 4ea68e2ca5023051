package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

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
	batch := otherAxes(x.Rank(), []int{axis})
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
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
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
	pos, inside := a.address(n, sizes(n.Input(0).Shape()), at[:split], at[split:], load)
	fill := scalar.Const(n.Input(0).DType(), a.Fill)
	if inside == nil {
		return load(0, pos)
	}
	if v, ok := inside.IntConst(); ok && v == 0 {
		return fill
	}
	return scalar.Select(inside, load(0, pos), fill)
}
