package ops

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// BroadcastShapes returns the common shape that shapes broadcast to by NumPy's rules: axes
// are aligned from the last, and a missing axis or one of size 1 takes the size of the
// others. The error is of kind [ir.ErrShape].
func BroadcastShapes(shapes ...ir.Shape) (ir.Shape, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make(ir.Shape, rank)
	for i := range out {
		out[i] = ir.N(1)
	}
	by := make([]ir.Shape, rank) // by[i] is the shape that size i was taken from
	for _, s := range shapes {
		for i, d := range s {
			at := rank - len(s) + i
			switch o := out[at]; {
			case o.Is(1):
				out[at], by[at] = d, s
			case !d.Is(1) && d != o:
				return nil, ir.Shapef("%s and %s cannot be broadcast together: axis %d has the sizes %s and %s", by[at], s, i-len(s), o, d)
			}
		}
	}
	return out, nil
}

// Broadcast returns values broadcast to their common shape: see [BroadcastShapes]. op
// names the op in an error.
func Broadcast(b *ir.Builder, op ir.Op, in ...ir.Value) []ir.Value {
	wide := make([]ir.Value, len(in))
	if b.Err() != nil {
		return wide
	}
	shapes := make([]ir.Shape, len(in))
	for i, v := range in {
		shapes[i] = v.Shape()
	}
	shape, err := BroadcastShapes(shapes...)
	if err != nil {
		b.Failf(op, in, err)
		return wide
	}
	for i, v := range in {
		if wide[i] = v; v.Valid() {
			wide[i] = BroadcastTo(b, v, shape)
		}
	}
	return wide
}

// broadcasting broadcasts the operands and adds an elementwise node. Errors name the
// operands before broadcasting.
func broadcasting(b *ir.Builder, op ir.Op, in ...ir.Value) ir.Value {
	wide := Broadcast(b, op, in...)
	if b.Err() != nil {
		return ir.Value{}
	}
	out := b.Add1(op, nil, wide...)
	if e, ok := errors.AsType[*ir.OpError](b.Err()); ok {
		e.In = ir.TypesOf(in)
	}
	return out
}

// BroadcastAttrs hold the shape of the result and, in Axes[i], the result axis of axis i
// of the operand.
type BroadcastAttrs struct {
	Shape []ir.Dim
	Axes  []int
}

// Visit shows the attributes.
func (a *BroadcastAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("shape", &a.Shape)
	v.Ints("axes", &a.Axes)
}

func defineBroadcastInDim() {
	defineMove(move{
		op: OpBroadcastInDim, doc: "x broadcast to another shape (XLA's BroadcastInDim): axis i of x is axis axes[i] of the result, along which it is repeated if " +
			"its size is 1; along the other axes of the result x is repeated.",
		constraints: []string{
			"axes has an entry for each axis of x, increasing",
			"axis i of x has size 1 or that of axis axes[i] of shape",
		},
		newAttrs: func() ir.Attrs { return &BroadcastAttrs{} },
		shape:    broadcastShape,
		source: func(n *ir.Node, at, from []int) []int {
			for i, a := range n.Attrs().(*BroadcastAttrs).Axes {
				from[i] = at[a]
				if n.Input(0).Dim(i).Is(1) {
					from[i] = 0
				}
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			out := pick(at, n.Attrs().(*BroadcastAttrs).Axes)
			for i := range out {
				if n.Input(0).Dim(i).Is(1) {
					out[i] = loop.Int(0)
				}
			}
			return out
		},
		transpose: transposeBroadcast,
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, size ir.Dim) ir.Value {
			a := n.Attrs().(*BroadcastAttrs)
			return BroadcastInDim(b, x, slices.Insert(slices.Clone(a.Shape), 0, size), slices.Insert(shifted(a.Axes, 0), 0, 0))
		},
	})
}

func broadcastShape(n *ir.Node) (ir.Shape, error) {
	a, x := n.Attrs().(*BroadcastAttrs), n.Input(0).Shape()
	if len(a.Axes) != len(x) {
		return nil, ir.Attrf("axes has %d entries, not one for each of %d axes of the operand", len(a.Axes), len(x))
	}
	if err := checkAxes(a.Axes, len(a.Shape)); err != nil {
		return nil, err
	}
	if !slices.IsSorted(a.Axes) {
		return nil, ir.Attrf("axes %v are not increasing", a.Axes)
	}
	for i, d := range x {
		if to := a.Shape[a.Axes[i]]; !d.Is(1) && d != to {
			return nil, ir.Shapef("axis %d of size %s cannot become axis %d of size %s", i, d, a.Axes[i], to)
		}
	}
	return a.Shape, nil
}

// transposeBroadcast sums over the axes of the broadcast.
func transposeBroadcast(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
	a, x := n.Attrs().(*BroadcastAttrs), n.Input(0).Shape()
	var repeated []int
	for axis, d := range a.Shape {
		i := slices.Index(a.Axes, axis)
		if i < 0 || x[i].Is(1) && !d.Is(1) {
			repeated = append(repeated, axis)
		}
	}
	return Reshape(b, sumOver(b, ct, repeated), x...)
}

// BroadcastInDim returns x broadcast to shape, with axis i of x as axis axes[i] of the
// result; x itself if the shapes are equal.
func BroadcastInDim(b *ir.Builder, x ir.Value, shape ir.Shape, axes []int) ir.Value {
	at := fromFront(axes, len(shape))
	if x.Valid() && x.Shape().Equal(shape) && slices.Equal(at, counting(0, len(shape))) {
		return x
	}
	return b.Add1(OpBroadcastInDim, &BroadcastAttrs{slices.Clone(shape), at}, x)
}

// BroadcastTo returns x broadcast to shape by NumPy's rules: the axes of x are the last
// ones of shape and have its sizes or size 1.
func BroadcastTo(b *ir.Builder, x ir.Value, shape ir.Shape) ir.Value {
	if x.Rank() > len(shape) {
		b.Failf(OpBroadcastInDim, []ir.Value{x}, ir.Shapef("%s has fewer axes", shape))
		return ir.Value{}
	}
	return BroadcastInDim(b, x, shape, counting(len(shape)-x.Rank(), x.Rank()))
}
