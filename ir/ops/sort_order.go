package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

func evalArgSort(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, x := n.Attrs().(*SortAttrs), in[0]
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	step, length := strides(x.Dims)[a.Axis], x.Dims[a.Axis]
	for _, base := range offsets(x.Dims, otherAxes(len(x.Dims), []int{a.Axis})) {
		places := counting(0, length)
		slices.SortStableFunc(places, func(i, j int) int { return comparePlaces(x, base+i*step, base+j*step, a.Descending) })
		for i, from := range places {
			out.I[base+i*step] = int64(from)
		}
	}
	return []*ir.Array{c.Round(out)}, nil
}

// comparePlaces returns -1, 0 or 1 as element i sorts before, equal to or after element j.
func comparePlaces(x *ir.Array, i, j int, descending bool) int {
	var c int
	if x.F != nil {
		a, b := x.F[i], x.F[j]
		c = boolInt(a > b || math.IsNaN(a)) - boolInt(a < b || math.IsNaN(b)) // 0 for two NaNs
	} else {
		c = compareInts(x.DType, x.I[i], x.I[j])
	}
	if descending {
		return -c
	}
	return c
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sortBits returns the number of bits of the sort keys of a type.
func sortBits(d ir.DType) int {
	switch {
	case d.IsBool():
		return 1
	case d.IsFloat():
		return max(32, 8*d.Size())
	}
	return 8 * d.Size()
}

// sortKey returns an unsigned integer with the order of the elements: the sign bit of
// signed integers is flipped; negative floats have all bits flipped and others the sign
// bit.
func sortKey(x scalar.Expr, descending bool) scalar.Expr {
	d := x.Type
	if d.IsFloat() {
		return floatKey(x, descending)
	}
	wide, width := ir.U32, sortBits(d)
	if d.Size() == 8 {
		wide = ir.U64
	}
	key := scalar.Convert(x, wide)
	if d.IsSigned() {
		key = scalar.Xor(key, scalar.ConstI(wide, wide.Wrap(1<<(width-1))))
	}
	all := scalar.ConstI(wide, wide.Wrap(int64(uint64(1)<<width-1)))
	if descending {
		key = scalar.Not(key)
	}
	return scalar.And(key, all)
}

// floatKey is sortKey for a float, by integer operations alone: devices may flush
// subnormal numbers in comparisons.
func floatKey(x scalar.Expr, descending bool) scalar.Expr {
	wide, infinite := ir.U32, int64(0x7f800000)
	if x.Type == ir.F64 {
		wide, infinite = ir.U64, 0x7ff<<52
	} else {
		x = scalar.Convert(x, ir.F32)
	}
	constant := func(c int64) scalar.Expr { return scalar.ConstI(wide, wide.Wrap(c)) }
	sign, all := constant(-1<<(8*wide.Size()-1)), constant(-1)
	bits := scalar.Bitcast(x, wide)
	size := scalar.And(bits, scalar.Not(sign))
	negative := scalar.And(scalar.Ge(bits, sign), scalar.Ne(size, constant(0)))
	key := scalar.Select(negative, scalar.Not(bits), scalar.Or(size, sign))
	nan := all
	if descending {
		key, nan = scalar.Not(key), constant(0)
	}
	return scalar.Select(scalar.Gt(size, constant(infinite)), nan, key)
}
