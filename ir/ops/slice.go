package ops

import (
	"slices"

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
// stands for 1 everywhere. Slices are given by size, not end, so that the shape of the
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
