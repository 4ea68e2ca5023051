package ops

import "github.com/rlx-go/rlx/ir"

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
	for _, s := range shapes {
		for i, d := range s {
			o := &out[rank-len(s)+i]
			switch {
			case o.Is(1):
				*o = d
			case !d.Is(1) && d != *o:
				return nil, ir.Shapef("%s and %s cannot be broadcast together: axis %d from the last is %s and %s",
					s, out, i-len(s), d, *o)
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
// their common shape.
func broadcasting(b *ir.Builder, op ir.Op, attrs ir.Attrs, in ...ir.Value) ir.Value {
	wide := Broadcast(b, op, in...)
	if b.Err() != nil {
		return ir.Value{}
	}
	return b.Add1(op, attrs, wide...)
}
