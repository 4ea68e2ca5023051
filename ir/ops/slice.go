package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Slicing and reversing.
const (
	OpSlice   ir.Op = "slice"
	OpReverse ir.Op = "reverse"
)

// SliceAttrs hold the start, size and stride of a slice along each axis.
type SliceAttrs struct {
	Start, Size []ir.Dim
	Stride      []int
}

// Visit shows the attributes.
func (a *SliceAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("start", &a.Start)
	v.Dims("size", &a.Size)
	v.Ints("stride", &a.Stride)
}

func init() {
	defineSlice()
	defineReverse()
}

func defineSlice() {
	defineMove(move{
		op: OpSlice, doc: "A strided slice of x: element k of an axis of the result is element start + k·stride of that axis of x.",
		constraints: []string{
			"start, size and stride have an entry for each axis of x; strides are positive",
			"the last element taken lies inside x; a symbolic axis is checked once its symbols are bound",
		},
		newAttrs: func() ir.Attrs { return &SliceAttrs{} },
		shape:    sliceShape,
		source: func(n *ir.Node, at, from []int) []int {
			a := n.Attrs().(*SliceAttrs)
			for i, first := range sizes(a.Start) {
				from[i] = first + at[i]*a.Stride[i]
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			a := n.Attrs().(*SliceAttrs)
			out := make(ir.Index, len(at))
			dims := sizes(n.Input(0).Shape())
			for i, first := range sizes(a.Start) {
				out[i] = scalar.Add(scalar.Mul(along(dims[i], at[i]), loop.Int(a.Stride[i])), loop.Int(first))
			}
			return out
		},
		transpose: transposeSlice,
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, size ir.Dim) ir.Value {
			a := n.Attrs().(*SliceAttrs)
			return Slice(b, x, slices.Insert(slices.Clone(a.Start), 0, ir.N(0)),
				slices.Insert(slices.Clone(a.Size), 0, size), slices.Insert(slices.Clone(a.Stride), 0, 1))
		},
	})
}

func sliceShape(n *ir.Node) (ir.Shape, error) {
	a, x := n.Attrs().(*SliceAttrs), n.Input(0).Shape()
	if len(a.Start) != len(x) || len(a.Size) != len(x) || len(a.Stride) != len(x) {
		return nil, ir.Attrf("start, size and stride have %d, %d and %d entries, not one for each of %d axes", len(a.Start), len(a.Size), len(a.Stride), len(x))
	}
	for i, d := range x {
		if a.Stride[i] < 1 {
			return nil, ir.Attrf("stride is %d on axis %d, less than 1", a.Stride[i], i)
		}
		if !a.Start[i].Valid() || !a.Size[i].Valid() {
			return nil, ir.Attrf("start or size of axis %d is negative", i)
		}
		end := a.Start[i].Add(dilated(a.Size[i], a.Stride[i]))
		if !d.Sub(end).Valid() {
			return nil, ir.Shapef("axis %d of size %s ends before element %s, of which a slice needs all", i, d, end)
		}
	}
	return a.Size, nil
}

func transposeSlice(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
	a, x := n.Attrs().(*SliceAttrs), n.Input(0).Shape()
	high, interior := make([]ir.Dim, len(x)), make([]int, len(x))
	for i, d := range x {
		high[i] = d.Sub(a.Start[i]).Sub(dilated(a.Size[i], a.Stride[i]))
		interior[i] = a.Stride[i] - 1
	}
	return PadDims(b, ct, Zeros(b, ct.DType()), a.Start, high, interior)
}

func defineReverse() {
	defineMove(move{
		op: OpReverse, doc: "x with the order of its elements reversed along some axes.",
		constraints: []string{"the axes are distinct axes of x"},
		newAttrs:    func() ir.Attrs { return &AxesAttrs{} },
		shape: func(n *ir.Node) (ir.Shape, error) {
			return n.Input(0).Shape(), checkAxes(axesOf(n), n.Input(0).Rank())
		},
		source: func(n *ir.Node, at, from []int) []int {
			copy(from, at)
			for _, a := range axesOf(n) {
				d, _ := n.Input(0).Dim(a).Const()
				from[a] = d - 1 - at[a]
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			out := slices.Clone(at)
			for _, a := range axesOf(n) {
				d, _ := n.Input(0).Dim(a).Const()
				out[a] = scalar.Sub(loop.Int(d-1), at[a])
			}
			return out
		},
		transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpReverse, n.Attrs(), ct) },
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, _ ir.Dim) ir.Value {
			return b.Add1(OpReverse, &AxesAttrs{shifted(axesOf(n), 0)}, x)
		},
	})
}

// Slice returns size elements along each axis of x, from start, stride apart; nil stride
// means 1 everywhere. Slices are given by size, not end, so that the shape of the
// result stays exact with symbolic axes. A slice out of bounds is an error.
func Slice(b *ir.Builder, x ir.Value, start, size []ir.Dim, stride []int) ir.Value {
	if stride == nil {
		stride = repeatInt(1, x.Rank())
	}
	return b.Add1(OpSlice, &SliceAttrs{slices.Clone(start), slices.Clone(size), slices.Clone(stride)}, x)
}

// SliceAxis returns size elements of x along one axis from start, and all along the
// others; x itself if that is all of it.
func SliceAxis(b *ir.Builder, x ir.Value, axis int, start, size ir.Dim) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	axis = fromFront([]int{axis}, x.Rank())[0]
	if err := checkAxes([]int{axis}, x.Rank()); err != nil {
		b.Failf(OpSlice, []ir.Value{x}, err)
		return ir.Value{}
	}
	if start.Is(0) && size == x.Dim(axis) {
		return x
	}
	from, to := ir.Dims(repeatInt(0, x.Rank())...), x.Shape().Clone()
	from[axis], to[axis] = start, size
	return Slice(b, x, from, to, nil)
}

// Reverse returns x with the order of its elements reversed along the given axes.
func Reverse(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return b.Add1(OpReverse, &AxesAttrs{fromFront(axes, x.Rank())}, x)
}

// Slices at computed positions.
const (
	OpDynamicSlice       ir.Op = "dynamic_slice"
	OpDynamicUpdateSlice ir.Op = "dynamic_update_slice"
)

// DynamicSliceAttrs hold the sizes of the slice, one for each axis.
type DynamicSliceAttrs struct{ Sizes []ir.Dim }

// Visit shows the attributes.
func (a *DynamicSliceAttrs) Visit(v ir.AttrVisitor) { v.Dims("sizes", &a.Sizes) }

func init() {
	const clampedDoc = "start is i32[rank of x], clamped so that the slice is in bounds"
	defineComposite(composite{
		op: OpDynamicSlice, doc: "The slice of x of the given sizes that begins at start (XLA's DynamicSlice). It reads only that slice.",
		operands: []string{"x", "start"}, types: plain, newAttrs: func() ir.Attrs { return &DynamicSliceAttrs{} },
		constraints: []string{clampedDoc, "sizes has an entry for each axis, not larger than it"},
		check: func(n *ir.Node) error {
			return checkPart(n.Input(0).Shape(), n.Attrs().(*DynamicSliceAttrs).Sizes, n.Input(1).Type())
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			at := placePart(b, in[0], in[1], n.Attrs().(*DynamicSliceAttrs).Sizes)
			if len(at.axes) == 0 {
				return in[0]
			}
			return placeAxes(b, Gather(b, in[0], at.indices, GatherAttrs{IndexedAxes: at.indexed(OutsideClip)}), at.order)
		},
	})
	defineComposite(composite{
		op: OpDynamicUpdateSlice, doc: "x with the slice that begins at start replaced by update (XLA's DynamicUpdateSlice). On a state it runs in place, at the cost of the slice: " +
			"this extends a KV cache.",
		operands: []string{"x", "update", "start"}, types: plain,
		constraints: []string{"update has the element type and the rank of x and is not larger along any axis", clampedDoc},
		check: func(n *ir.Node) error {
			x, u := n.Input(0).Type(), n.Input(1).Type()
			if x.DType != u.DType {
				return ir.DTypef("the update is %s, not of the type of x, %s", u, x)
			}
			return checkPart(x.Shape, u.Shape, n.Input(2).Type())
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			at := placePart(b, in[0], in[2], in[1].Shape())
			if len(at.axes) == 0 {
				return in[1]
			}
			update := Transpose(b, in[1], at.order...)
			return Scatter(b, in[0], at.indices, update, ScatterAttrs{at.indexed(OutsideDrop)})
		},
	})
}

// checkPart reports an error unless a slice of the given sizes fits into x.
func checkPart(x ir.Shape, sizes []ir.Dim, start ir.Type) error {
	if len(sizes) != len(x) {
		return ir.Shapef("sizes has %d entries, not one for each of %d axes", len(sizes), len(x))
	}
	if want := ir.TypeOf(ir.I32, ir.N(len(x))); !start.Equal(want) {
		return ir.Shapef("start is %s, not %s", start, want)
	}
	for i, d := range sizes {
		if !d.Valid() || !x[i].Sub(d).Valid() {
			return ir.Shapef("a part of %s elements along axis %d of size %s", d, i, x[i])
		}
	}
	return nil
}

// part is the location of a slice: the index tuple of each position along the axes that it
// does not cover.
type part struct {
	indices ir.Value
	axes    []int // those along which the slice is shorter
	order   []int // these axes and then the others
}

func (p part) indexed(outside string) IndexedAxes {
	return IndexedAxes{Axes: p.axes, Outside: outside, Unique: true}
}

// placePart returns the location of the slice of x of the given sizes that begins at
// start.
func placePart(b *ir.Builder, x, start ir.Value, sizes []ir.Dim) part {
	var p part
	for a, d := range sizes {
		if d != x.Dim(a) {
			p.axes = append(p.axes, a)
		}
	}
	p.order = slices.Concat(p.axes, permute.Others(x.Rank(), p.axes))
	short := ir.Shape(pick(sizes, p.axes))
	var tuple []ir.Value
	for i, a := range p.axes {
		room := DimSize(b, ir.I32, x.Dim(a).Sub(sizes[a]))
		first := Clamp(b, Reshape(b, SliceAxis(b, start, 0, ir.N(a), ir.N(1))), Const(b, ir.I32, 0), room)
		tuple = append(tuple, Add(b, Iota(b, ir.I32, i, short...), first))
	}
	if len(tuple) > 0 {
		p.indices = Stack(b, -1, tuple...)
	}
	return p
}

// DynamicSlice returns the slice of x of the given sizes that begins at start, i32[rank],
// clamped so that the slice is in bounds.
func DynamicSlice(b *ir.Builder, x, start ir.Value, sizes ...ir.Dim) ir.Value {
	return b.Add1(OpDynamicSlice, &DynamicSliceAttrs{slices.Clone(sizes)}, x, start)
}

// DynamicUpdateSlice returns x with the slice that begins at start, i32[rank], replaced by
// update, of the type and rank of x. start is clamped so that the slice is in bounds.
func DynamicUpdateSlice(b *ir.Builder, x, update, start ir.Value) ir.Value {
	return b.Add1(OpDynamicUpdateSlice, nil, x, update, start)
}
