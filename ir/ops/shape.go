package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Reshaping.
const (
	OpReshape        ir.Op = "reshape"
	OpTranspose      ir.Op = "transpose"
	OpBroadcastInDim ir.Op = "broadcast_in_dim"
)

// ReshapeAttrs hold the shape of the result.
type ReshapeAttrs struct {
	Shape []ir.Dim
}

// Visit shows the attributes.
func (a *ReshapeAttrs) Visit(v ir.AttrVisitor) { v.Dims("shape", &a.Shape) }

func init() {
	defineReshape()
	defineTranspose()
	defineBroadcastInDim()
}

func defineReshape() {
	defineMove(move{
		op: OpReshape, doc: "The elements of x in row-major order with another shape.",
		constraints: []string{"shape has as many elements as x; with symbolic sizes the products are equal as polynomials"},
		newAttrs:    func() ir.Attrs { return &ReshapeAttrs{} },
		shape: func(n *ir.Node) (ir.Shape, error) {
			to, from := ir.Shape(n.Attrs().(*ReshapeAttrs).Shape), n.Input(0).Shape()
			if to.Size() != from.Size() {
				return nil, ir.Shapef("shape is %s, not of the %s elements of x", to, from.Size())
			}
			return to, nil
		},
		source: func(n *ir.Node, at, from []int) []int {
			place := offset(sizes(n.Types()[0].Shape), at)
			for a, d := range slices.Backward(sizes(n.Input(0).Shape())) {
				from[a], place = place%d, place/d
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			return unflatten(sizes(n.Input(0).Shape()), flatten(sizes(n.Types()[0].Shape), at))
		},
		transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
			return Reshape(b, ct, n.Input(0).Shape()...)
		},
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, size ir.Dim) ir.Value {
			return Reshape(b, x, slices.Insert(n.Types()[0].Shape.Clone(), 0, size)...)
		},
	})
}

// flatten returns the row-major offset of a position.
func flatten(dims []int, at ir.Index) scalar.Expr {
	place, size := loop.Int(0), product(dims)
	for a, d := range dims {
		place = scalar.Add(scalar.Mul(place, loop.Int(d)), along(size, at[a]))
	}
	return place
}

// unflatten returns the position at a row-major offset.
func unflatten(dims []int, place scalar.Expr) ir.Index {
	at := make(ir.Index, len(dims))
	for a := len(dims) - 1; a >= 0; a-- {
		if a == 0 {
			at[a] = place
			break
		}
		at[a] = scalar.Rem(place, loop.Int(dims[a]))
		place = scalar.Div(place, loop.Int(dims[a]))
	}
	return at
}

// Reshape returns the elements of x in row-major order with another shape of the same
// size, or x itself if the shapes are equal. One size may be ir.N(-1): it is inferred from
// the others.
func Reshape(b *ir.Builder, x ir.Value, shape ...ir.Dim) ir.Value {
	if x.Valid() && x.Shape().Equal(shape) {
		return x
	}
	if at := slices.IndexFunc(shape, isRest); at >= 0 && x.Valid() {
		others := slices.Delete(slices.Clone(shape), at, at+1)
		rest, err := x.Shape().Size().Div(ir.Shape(others).Size())
		if err != nil {
			b.Failf(OpReshape, []ir.Value{x}, ir.Shapef("%s elements do not divide into %s", x.Shape().Size(), ir.Shape(others)))
			return ir.Value{}
		}
		return Reshape(b, x, slices.Insert(others, at, rest)...)
	}
	return b.Add1(OpReshape, &ReshapeAttrs{slices.Clone(shape)}, x)
}

func isRest(d ir.Dim) bool { return d.Is(-1) }

// Flatten merges the axes of x from the given one on: Flatten(b, x, 1) keeps the batch
// axis. A value of rank 0 becomes a vector.
func Flatten(b *ir.Builder, x ir.Value, from int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	at := fromFront([]int{from}, x.Rank())[0]
	if at < 0 || at > x.Rank() {
		b.Failf(OpReshape, []ir.Value{x}, ir.Attrf("axis is %d, not from 0 to the rank of x, %d", from, x.Rank()))
		return ir.Value{}
	}
	s := x.Shape()
	return Reshape(b, x, append(s[:at].Clone(), s[at:].Size())...)
}

// Meshgrid returns the coordinate arrays of a grid (numpy.meshgrid with indexing "ij"):
// result k has one axis for each vector, in order, and varies along axis k alone.
func Meshgrid(b *ir.Builder, vectors ...ir.Value) []ir.Value {
	out := make([]ir.Value, len(vectors))
	if b.Err() != nil {
		return out
	}
	shape := make(ir.Shape, len(vectors))
	for k, v := range vectors {
		if v.Rank() != 1 {
			b.Failf(OpBroadcastInDim, vectors, ir.Shapef("operand %d is %s, not of rank 1", k, v.Type()))
			return out
		}
		shape[k] = v.Dim(0)
	}
	for k, v := range vectors {
		out[k] = BroadcastInDim(b, v, shape, []int{k})
	}
	return out
}

// ExpandDims returns x with axes of size 1 inserted; axes are positions in the result.
func ExpandDims(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	rank := x.Rank() + len(axes)
	at := fromFront(axes, rank)
	if err := checkAxes(at, rank); err != nil {
		b.Failf(OpReshape, []ir.Value{x}, err)
		return ir.Value{}
	}
	shape := make(ir.Shape, 0, rank)
	for rest := x.Shape(); len(shape) < rank; {
		if slices.Contains(at, len(shape)) {
			shape = append(shape, ir.N(1))
			continue
		}
		shape, rest = append(shape, rest[0]), rest[1:]
	}
	return Reshape(b, x, shape...)
}

// Squeeze returns x without the given axes, which must have size 1.
func Squeeze(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	drop := fromFront(axes, x.Rank())
	err := checkAxes(drop, x.Rank())
	for i := 0; i < len(drop) && err == nil; i++ {
		if d := x.Dim(drop[i]); !d.Is(1) {
			err = ir.Shapef("axis %d has size %s, not 1", drop[i], d)
		}
	}
	if err != nil {
		b.Failf(OpReshape, []ir.Value{x}, err)
		return ir.Value{}
	}
	return Reshape(b, x, pick(x.Shape(), permute.Others(x.Rank(), drop))...)
}

// Composites of reshapes, slices and the like, for hosts that add ops by name.
const (
	OpFlatten   ir.Op = "flatten"
	OpSwapAxes  ir.Op = "swap_axes"
	OpSplit     ir.Op = "split"
	OpUnstack   ir.Op = "unstack"
	OpMeshgrid  ir.Op = "meshgrid"
	OpTensorDot ir.Op = "tensordot"
)

// FlattenAttrs hold the first axis to merge.
type FlattenAttrs struct{ AxisFrom int }

// Visit shows the attributes.
func (a *FlattenAttrs) Visit(v ir.AttrVisitor) { v.Int("axis_from", &a.AxisFrom) }

// SwapAxesAttrs name two axes.
type SwapAxesAttrs struct{ Axis1, Axis2 int }

// Visit shows the attributes.
func (a *SwapAxesAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis1", &a.Axis1)
	v.Int("axis2", &a.Axis2)
}

// SplitAttrs hold the axis and the sizes of the parts.
type SplitAttrs struct {
	Sizes []ir.Dim
	Axis  int
}

// Visit shows the attributes.
func (a *SplitAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("sizes", &a.Sizes)
	v.Int("axis", &a.Axis)
}

// TensorDotAttrs hold the number of contracted axes.
type TensorDotAttrs struct{ Count int }

// Visit shows the attributes.
func (a *TensorDotAttrs) Visit(v ir.AttrVisitor) { v.Int("count", &a.Count) }

func init() {
	for _, c := range []composite{
		{
			op: OpFlatten, doc: "x with its axes from axis_from on merged. A value of rank 0 becomes a vector.",
			types: plain, newAttrs: func() ir.Attrs { return &FlattenAttrs{} }, constraints: []string{"axis_from is from 0 to the rank of x"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return Flatten(b, in[0], n.Attrs().(*FlattenAttrs).AxisFrom)
			},
		},
		{
			op: OpSwapAxes, doc: "x with two axes swapped.",
			types: plain, newAttrs: func() ir.Attrs { return &SwapAxesAttrs{} }, constraints: []string{"axis1 and axis2 are axes of x"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				a := n.Attrs().(*SwapAxesAttrs)
				return SwapAxes(b, in[0], a.Axis1, a.Axis2)
			},
		},
		{
			op: OpSplit, doc: "Consecutive slices of x along an axis, of the given sizes.",
			types: plain, newAttrs: func() ir.Attrs { return &SplitAttrs{} }, constraints: []string{"axis is an axis of x, and the sizes add up to its size"},
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				a := n.Attrs().(*SplitAttrs)
				return Split(b, in[0], a.Axis, a.Sizes...)
			},
		},
		{
			op: OpUnstack, doc: "The slices of x along an axis, without that axis.",
			types: plain, newAttrs: func() ir.Attrs { return &AxisAttrs{} }, constraints: []string{"axis is an axis of x, of constant size"},
			bodies: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
				return Unstack(b, in[0], n.Attrs().(*AxisAttrs).Axis)
			},
		},
		{
			op: OpMeshgrid, doc: "The coordinate arrays of a grid (numpy.meshgrid with indexing \"ij\"): result k has one axis for each vector and varies along axis k alone.",
			operands: []string{"vectors..."}, types: plain, constraints: []string{"all operands are vectors"},
			bodies: func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value { return Meshgrid(b, in...) },
		},
		{
			op: OpTensorDot, doc: "The contraction of the last count axes of x with the first count axes of y (numpy.tensordot).",
			operands: []string{"x", "y"}, types: numbers, newAttrs: func() ir.Attrs { return &TensorDotAttrs{2} }, check: oneDType,
			constraints: []string{"x and y have one element type", "count is not negative and no larger than a rank; the axes have the same sizes"},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return TensorDot(b, in[0], in[1], n.Attrs().(*TensorDotAttrs).Count)
			},
		},
	} {
		defineComposite(c)
	}
}

// TransposeAttrs hold the permutation: axis i of the result is axis Perm[i] of the
// operand.
type TransposeAttrs struct {
	Perm []int
}

// Visit shows the attributes.
func (a *TransposeAttrs) Visit(v ir.AttrVisitor) { v.Ints("perm", &a.Perm) }

func defineTranspose() {
	defineMove(move{
		op: OpTranspose, doc: "x with its axes permuted: axis i of the result is axis perm[i] of x.",
		constraints: []string{"perm holds every axis of x once"},
		newAttrs:    func() ir.Attrs { return &TransposeAttrs{} },
		shape: func(n *ir.Node) (ir.Shape, error) {
			perm, x := n.Attrs().(*TransposeAttrs).Perm, n.Input(0).Shape()
			if len(perm) != len(x) {
				return nil, ir.Attrf("perm has %d entries, not one for each of %d axes", len(perm), len(x))
			}
			if err := checkAxes(perm, len(x)); err != nil {
				return nil, err
			}
			return pick(x, perm), nil
		},
		source: func(n *ir.Node, at, from []int) []int {
			for i, a := range n.Attrs().(*TransposeAttrs).Perm {
				from[a] = at[i]
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			return pick(at, permute.Inverse(n.Attrs().(*TransposeAttrs).Perm))
		},
		transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
			return Transpose(b, ct, permute.Inverse(n.Attrs().(*TransposeAttrs).Perm)...)
		},
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, _ ir.Dim) ir.Value {
			return Transpose(b, x, slices.Insert(shifted(n.Attrs().(*TransposeAttrs).Perm, 0), 0, 0)...)
		},
	})
}

// SwapAxes returns x with axes i and j swapped.
func SwapAxes(b *ir.Builder, x ir.Value, i, j int) ir.Value {
	return transposeTwo(b, x, i, j, func(i, j int) []int {
		perm := counting(0, x.Rank())
		perm[i], perm[j] = perm[j], perm[i]
		return perm
	})
}

// transposeTwo returns x with its axes permuted by perm of two axes, which it counts from the front and checks.
func transposeTwo(b *ir.Builder, x ir.Value, i, j int, perm func(i, j int) []int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	axes := fromFront([]int{i, j}, x.Rank())
	for _, axis := range axes {
		if err := checkAxes([]int{axis}, x.Rank()); err != nil {
			b.Failf(OpTranspose, []ir.Value{x}, err)
			return ir.Value{}
		}
	}
	return Transpose(b, x, perm(axes[0], axes[1])...)
}

// Transpose returns x with its axes permuted: axis i of the result is axis perm[i] of x.
// With no perm the order is reversed.
func Transpose(b *ir.Builder, x ir.Value, perm ...int) ir.Value {
	p := fromFront(perm, x.Rank())
	if len(perm) == 0 {
		p = counting(0, x.Rank())
		slices.Reverse(p)
	}
	if x.Valid() && slices.Equal(p, counting(0, x.Rank())) {
		return x
	}
	return b.Add1(OpTranspose, &TransposeAttrs{p}, x)
}

// MoveAxis returns x with axis from moved to position to; the others keep their order.
func MoveAxis(b *ir.Builder, x ir.Value, from, to int) ir.Value {
	return transposeTwo(b, x, from, to, func(from, to int) []int {
		return slices.Insert(permute.Others(x.Rank(), []int{from}), to, from)
	})
}
