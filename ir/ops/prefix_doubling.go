package ops

import "github.com/rlx-go/rlx/ir"

// doublingScan returns the inclusive scan along an axis by recursive doubling (Hillis and
// Steele, Data Parallel Algorithms, 1986): after step k each element combines the last 2^k
// elements. No node has more than two operands, and a device makes one pass over the
// values for each doubling.
func doublingScan(b *ir.Builder, a CumSumAttrs, x []ir.Value, combine func(b *ir.Builder, x, y []ir.Value) []ir.Value) []ir.Value {
	if len(x) == 0 || b.Err() != nil {
		return x
	}
	size := x[0].Dim(a.Axis)
	length, _ := size.Const()
	part := func(v ir.Value, from, size int) ir.Value { return SliceAxis(b, v, a.Axis, ir.N(from), ir.N(size)) }
	for run := 1; run < length; run *= 2 {
		early, late := make([]ir.Value, len(x)), make([]ir.Value, len(x))
		for i, v := range x {
			early[i], late[i] = part(v, 0, length-run), part(v, run, length-run)
		}
		if a.Reverse {
			early, late = late, early
		}
		next := make([]ir.Value, len(x))
		for i, v := range combine(b, early, late) {
			if a.Reverse {
				next[i] = Concatenate(b, a.Axis, v, part(x[i], length-run, run))
			} else {
				next[i] = Concatenate(b, a.Axis, part(x[i], 0, run), v)
			}
		}
		x = next
	}
	return x
}
