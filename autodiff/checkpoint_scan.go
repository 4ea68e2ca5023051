package autodiff

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// CheckpointedScan is [ops.Scan] in segments of equal length, each under a [Checkpoint]: reverse mode
// stores the carries between segments alone and recomputes one segment at a time. For n steps it holds the
// intermediate values of n/segments steps, least for about √n segments. Results and derivatives are those
// of the scan. segments must divide the number of steps, which is constant: otherwise the error is of kind
// [ir.ErrAttr] or [ir.ErrSymbol], recorded in b.
func CheckpointedScan(b *ir.Builder, l ops.Loop, segments int) (carries, ys []ir.Value) {
	const op ir.Op = "checkpointed_scan"
	none := make([]ir.Value, len(l.Carries))
	if !b.Require(op, "body", l.Body != nil) {
		return none, nil
	}
	for i, x := range l.Xs {
		if !b.Require(op, "operand", x.Valid()) {
			return none, nil
		}
		if i == 0 && x.Rank() > 0 {
			l.Length = x.Dim(0)
		}
		if x.Rank() == 0 || x.Dim(0) != l.Length {
			b.Failf(op, l.Xs, ir.Shapef("operand %d is %s, whose first axis is not of size %s, the number of steps", i, x.Type(), l.Length))
			return none, nil
		}
	}
	n, ok := l.Length.Const()
	switch {
	case !ok:
		b.Failf(op, l.Xs, ir.Errorf(ir.ErrSymbol, "the number of steps is %s: it must be a number", l.Length))
	case segments < 1 || n%segments != 0:
		b.Failf(op, l.Xs, ir.Attrf("segments is %d: it must divide the number of steps, %d", segments, n))
	}
	if b.Err() != nil {
		return none, nil
	}
	outer, steps := l, n/segments
	outer.Length, outer.Xs = ir.N(segments), make([]ir.Value, len(l.Xs))
	for i, x := range l.Xs {
		outer.Xs[i] = ops.Reshape(b, x, slices.Concat(ir.Shape{ir.N(segments), ir.N(steps)}, x.Shape()[1:])...)
	}
	outer.Body = func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
		out := Checkpoint(b, slices.Concat(consts, carries, xs), func(b *ir.Builder, in []ir.Value) []ir.Value {
			first, last := len(consts), len(consts)+len(carries)
			inner := ops.Loop{Consts: in[:first], Carries: in[first:last], Xs: in[last:], Length: ir.N(steps), Reverse: l.Reverse, Body: l.Body}
			return slices.Concat(ops.Scan(b, inner))
		})
		if b.Err() != nil {
			return carries, nil
		}
		return out[:len(carries)], out[len(carries):]
	}
	carries, ys = ops.Scan(b, outer)
	for i, y := range ys {
		if b.Err() == nil {
			ys[i] = ops.Reshape(b, y, slices.Concat(ir.Shape{l.Length}, y.Shape()[2:])...)
		}
	}
	return carries, ys
}
