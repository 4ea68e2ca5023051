package ops

import (
	"errors"

	"github.com/rlx-go/rlx/ir"
)

// BroadcastShapes returns the shape that values of the given shapes are
// broadcast to: axes are aligned from the last, and a size of 1 or a missing
// axis takes the size of the others. The error is of kind [ir.ErrShape].
func BroadcastShapes(shapes ...ir.Shape) (ir.Shape, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make(ir.Shape, rank)
	for i := range out {
		out[i] = ir.N(1)
	}
	by := make([]ir.Shape, rank) // the shape that each size comes from
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

// Broadcast returns values broadcast to their common shape, see
// [BroadcastShapes]. op names the op in an error.
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

// broadcasting adds an elementwise node after broadcasting its operands to
// their common shape. An error is about the operands as they were given.
func broadcasting(b *ir.Builder, op ir.Op, attrs ir.Attrs, in ...ir.Value) ir.Value {
	wide := Broadcast(b, op, in...)
	if b.Err() != nil {
		return ir.Value{}
	}
	out := b.Add1(op, attrs, wide...)
	if e := (*ir.OpError)(nil); errors.As(b.Err(), &e) {
		e.In = typesOf(in)
	}
	return out
}
