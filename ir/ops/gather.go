package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpGather reads at positions given by data; its transpose is scatter_add.
const OpGather ir.Op = "gather"

// What gather and the scatters do about an index outside its axis.
const (
	// OutsideFill makes gather give the fill value.
	OutsideFill = "fill"
	// OutsideDrop makes a scatter leave the update out.
	OutsideDrop = "drop"
	// OutsideClip takes the nearest index inside. Along an empty axis there is
	// none: gather gives the fill value and a scatter leaves the update out.
	OutsideClip = "clip"
	// OutsideWrap makes [Take] and [TakeAlongAxis] count on from the other end:
	// -1 is the last element, and so is that after the size of the axis less 1.
	OutsideWrap = "wrap"
)

// IndexedAxes say how index tuples address an operand. The last axis of the
// indices holds the tuples, one entry for each of Axes; the other axes of the
// indices are the positions. Axis OperandBatch[i] of the operand runs along
// with axis IndexBatch[i] of the indices. The remaining axes of the operand are
// the window: each index tuple stands for all of it.
type IndexedAxes struct {
	Axes                     []int
	OperandBatch, IndexBatch []int
	Outside                  string
	// Unique promises that no two index tuples inside name one place, along
	// with the batch axes: updates then go straight where they belong. Where the
	// promise is broken a scatter, or the derivative of a gather, is wrong.
	Unique bool
}

// Visit shows the attributes.
func (a *IndexedAxes) Visit(v ir.AttrVisitor) {
	v.Ints("axes", &a.Axes)
	v.Ints("operand_batch", &a.OperandBatch)
	v.Ints("index_batch", &a.IndexBatch)
	v.Text("outside", &a.Outside)
	v.Bool("unique", &a.Unique)
}

// GatherAttrs are those of gather: Fill is what an index outside gives.
type GatherAttrs struct {
	IndexedAxes
	Fill float64
}

// Visit shows the attributes.
func (a *GatherAttrs) Visit(v ir.AttrVisitor) {
	a.IndexedAxes.Visit(v)
	v.Float("fill", &a.Fill)
}

// indexConstraints hold for all ops with index tuples.
var indexConstraints = []string{
	"indices are integers of rank 1 or more, whose last axis has one entry for each of axes",
	"axes and operand_batch are distinct axes of the operand, index_batch distinct axes of the positions",
	"paired batch axes have the same size",
	"a negative index lies outside",
	"with unique, no two index tuples that lie inside name one place",
}

func init() {
	define(&ir.Def{
		Op: OpGather,
		Doc: "Reads the operand at index tuples. The result has the positions (the axes of indices but for the " +
			"last) and then the window (the axes of the operand that are neither indexed nor batch axes).",
		Constraints: numbered(append(slices.Clone(indexConstraints), `outside is "fill" or "clip"`)...),
		Operands:    []string{"operand", "indices"},
		NewAttrs:    func() ir.Attrs { return &GatherAttrs{} },
		Infer:       inferGather,
		Eval:        evalGather,
		JVP:         jvpGather,
		Transpose:   transposeEach(transposeGather),
		Batch:       batchGather,
		Lower:       &ir.MapLowering{Element: gatherElement},
		Samples:     gatherSamples,
	})
}

// Gather returns the elements, or windows, of x at the index tuples in indices.
// Negative axes count from the last; an empty a.Outside means [OutsideFill].
func Gather(b *ir.Builder, x, indices ir.Value, a GatherAttrs) ir.Value {
	a.IndexedAxes = a.IndexedAxes.normal(x, indices, OutsideFill)
	return b.Add1(OpGather, &a, x, indices)
}

func (a IndexedAxes) normal(x, indices ir.Value, outside string) IndexedAxes {
	a.Axes, a.OperandBatch = fromFront(a.Axes, x.Rank()), fromFront(a.OperandBatch, x.Rank())
	a.IndexBatch = fromFront(a.IndexBatch, indices.Rank())
	if a.Outside == "" {
		a.Outside = outside
	}
	return a
}

// Take returns x with one axis replaced by the axes of indices: the slices of x
// at the indices. An index outside gives what outside says ([OutsideFill] with
// zeros, [OutsideClip], [OutsideWrap]).
func Take(b *ir.Builder, x, indices ir.Value, axis int, outside string) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if axis < 0 {
		axis += x.Rank()
	}
	indices, outside = wrapped(b, x, indices, axis, outside)
	y := Gather(b, x, ExpandDims(b, indices, -1), GatherAttrs{IndexedAxes: IndexedAxes{Axes: []int{axis}, Outside: outside}})
	if axis == 0 || b.Err() != nil {
		return y
	}
	// The positions come first: move the axes of x before the axis in front.
	r := indices.Rank()
	return Transpose(b, y, slices.Concat(counting(r, axis), counting(0, r), counting(r+axis, x.Rank()-1-axis))...)
}

// TakeAlongAxis returns for each index the element of x at that place of the
// axis, and at the index's own place along all other axes. x and indices have
// one shape but for the axis.
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

// wrapped returns what stands for [OutsideWrap] with indices inside: those that
// leave the size of the axis the same rest.
func wrapped(b *ir.Builder, x, indices ir.Value, axis int, outside string) (ir.Value, string) {
	if outside != OutsideWrap || axis < 0 || axis >= x.Rank() {
		return indices, outside
	}
	indices = Convert(b, indices, ir.I32)
	return Mod(b, indices, DimSize(b, ir.I32, x.Dim(axis))), OutsideFill
}

// window returns the axes of an operand of some rank that index tuples leave
// whole.
func (a *IndexedAxes) window(rank int) []int { return otherAxes(rank, a.Axes, a.OperandBatch) }

// check returns the shape of what is read for an operand and indices.
func (a *IndexedAxes) check(x, indices ir.Type, outside ...string) (ir.Shape, error) {
	if !indices.DType.IsInteger() {
		return nil, ir.DTypef("indices %s are no integers", indices)
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
	if err := checkPairedAxes("batch", a.OperandBatch, a.IndexBatch, x.Shape, indices.Shape); err != nil {
		return nil, err
	}
	return slices.Concat(indices.Shape[:positions], pick(x.Shape, a.window(len(x.Shape)))), nil
}

func inferGather(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*GatherAttrs), n.Input(0).Type()
	shape, err := a.check(x, n.Input(1).Type(), OutsideFill, OutsideClip)
	if err == nil {
		_, err = number(x.DType, a.Fill)
	}
	return []ir.Type{{DType: x.DType, Shape: shape}}, err
}

// targets calls f for each element that the index tuples stand for: its place
// among them in row-major order, and its place in an operand of the given
// sizes, or -1 where that is outside.
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

// unsignedIndices returns indices as numbers: those of u64 above the largest
// int64, kept as negative numbers, become that largest one.
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

func jvpGather(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return []ir.Value{{}}
	}
	a := *n.Attrs().(*GatherAttrs)
	a.Fill = 0
	return []ir.Value{Gather(b, t[0], in[1], a)}
}

// transposeGather is exact for a gather that fills with zero, which is the
// linear one.
func transposeGather(b *ir.Builder, n *ir.Node, _ int, in []ir.Value, ct ir.Value) ir.Value {
	a := n.Attrs().(*GatherAttrs)
	s := ScatterAttrs{a.IndexedAxes}
	if s.Outside == OutsideFill {
		s.Outside = OutsideDrop
	}
	return ScatterAdd(b, Zeros(b, ct.DType(), n.Input(0).Shape()...), in[1], ct, s)
}

// batched returns the axes for an operand and indices with batch axes, and
// where positions or window of the result have it.
func (a IndexedAxes) batched(operand, indices int) IndexedAxes {
	a.Axes, a.OperandBatch = shiftedBy(a.Axes, operand), shiftedBy(a.OperandBatch, operand)
	a.IndexBatch = shiftedBy(a.IndexBatch, indices)
	if operand >= 0 && indices >= 0 {
		a.OperandBatch = slices.Concat(a.OperandBatch, []int{operand})
		a.IndexBatch = slices.Concat(a.IndexBatch, []int{indices})
	}
	return a
}

// batchGather makes the batch axis one of the window, of the positions, or, of
// operand and indices that both have it, a pair of batch axes. The tuples stay
// last.
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

// address returns the position in an operand of the given sizes that the
// indices operand (operand 1) holds for a point of positions and window, and
// the condition that it lies inside (nil: it always does). The position lies
// inside in any case, unless the operand is empty.
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
		index := wideIndex(load(1, slices.Concat(p, ir.Index{int32Const(i)})))
		t := index.Type
		zero, last := scalar.ConstI(t, 0), scalar.ConstI(t, int64(dims[axis]-1))
		switch {
		case dims[axis] == 0:
			at[axis], inside = int32Const(0), both(inside, scalar.ConstBool(false))
			continue
		case a.Outside == OutsideClip:
			index = scalar.Clamp(index, zero, last)
		default:
			ok := scalar.And(scalar.Ge(index, zero), scalar.Le(index, last))
			inside, index = both(inside, ok), scalar.Select(ok, index, zero)
		}
		at[axis] = scalar.Convert(index, ir.I32)
	}
	return at, inside
}

// wideIndex converts an index of a type narrower than 32 bits, which cannot
// hold the size of every axis, to I32.
func wideIndex(x scalar.Expr) scalar.Expr {
	if x.Type.Size() < 4 {
		return scalar.Convert(x, ir.I32)
	}
	return x
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

func gatherSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	sample := func(name string, x []int, indices *ir.Array, a GatherAttrs) ir.Sample {
		if a.Outside == "" {
			a.Outside = OutsideFill
		}
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, x...), indices}}
	}
	rows := IndexedAxes{Axes: []int{0}}
	clip := IndexedAxes{Axes: []int{1}, Outside: OutsideClip}
	outside := ir.Ints(ir.I32, []int64{-1, 0, 5, 2, 4}, 5, 1)
	return []ir.Sample{
		sample("rows", []int{5, 3}, ir.Ints(ir.I32, []int64{4, 0, 4, 2}, 2, 2, 1), GatherAttrs{IndexedAxes: rows}),
		sample("fill outside", []int{5, 3}, outside, GatherAttrs{IndexedAxes: rows, Fill: -7}),
		sample("clip outside", []int{2, 5, 3}, outside, GatherAttrs{IndexedAxes: clip}),
		sample("points", []int{3, 4}, ir.Ints(ir.U8, []int64{2, 3, 0, 1}, 2, 2), GatherAttrs{IndexedAxes: IndexedAxes{Axes: []int{0, 1}}}),
		sample("along an axis", []int{3, 4}, ir.Ints(ir.I32, []int64{3, 0, 1, 2, 2, 9}, 3, 2, 1),
			GatherAttrs{IndexedAxes: IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}}),
		sample("one tuple", []int{7, 2}, ir.Ints(ir.I32, []int64{6}, 1), GatherAttrs{IndexedAxes: rows}),
		sample("empty tuples", []int{2, 2}, ir.NewArray(ir.I32, 3, 0), GatherAttrs{}),
		sample("no positions", []int{5, 3}, ir.NewArray(ir.I32, 0, 1), GatherAttrs{IndexedAxes: rows}),
		sample("empty operand", []int{0, 3}, ir.Ints(ir.I32, []int64{0, 1}, 2, 1), GatherAttrs{IndexedAxes: rows, Fill: 2}),
		sample("scalar window", []int{70}, ir.Ints(ir.U32, []int64{69, 1 << 31}, 2, 1), GatherAttrs{IndexedAxes: rows}),
	}
}

// spread returns n indices below a bound, in no order.
func spread(n, bound int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i*7+3) % int64(bound)
	}
	return out
}
