package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Padding modes of pad_mode.
const (
	PadReflect  = "reflect" // mirrored, without repeating the edge
	PadEdge     = "edge"    // the edge element, repeated
	PadWrap     = "wrap"    // periodic
	PadConstant = "constant"
)

// PadModeAttrs hold the padding before and after each axis and its mode. Value is that of
// [PadConstant].
type PadModeAttrs struct {
	Low, High []int
	Mode      string
	Value     float64
}

// Visit shows the attributes.
func (a *PadModeAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("low", &a.Low)
	v.Ints("high", &a.High)
	v.Text("mode", &a.Mode)
	v.Float("value", &a.Value)
}

func checkPadMode(n *ir.Node) error {
	a, x := n.Attrs().(*PadModeAttrs), n.Input(0).Shape()
	if len(a.Low) != len(x) || len(a.High) != len(x) || slices.ContainsFunc(slices.Concat(a.Low, a.High), negative) {
		return ir.Attrf("low is %v and high %v: they must have an entry for each of %d axes, none negative", a.Low, a.High, len(x))
	}
	least := 0 // the minimum of the size of the axis minus its padding
	switch a.Mode {
	case PadConstant, PadWrap:
	case PadReflect:
		least = 1
	case PadEdge:
	default:
		return ir.Attrf("mode is %q, not one of %q, %q, %q and %q", a.Mode, PadConstant, PadEdge, PadReflect, PadWrap)
	}
	for i, d := range x {
		pad := max(a.Low[i], a.High[i])
		size, ok := d.Const()
		switch {
		case !ok || pad == 0 || a.Mode == PadConstant:
		case a.Mode == PadEdge && size == 0:
			return ir.Shapef("axis %d has no element to repeat", i)
		case a.Mode != PadEdge && size < pad+least:
			return ir.Shapef("axis %d of size %d is too short for %d elements by mode %q", i, size, pad, a.Mode)
		}
	}
	return nil
}

func padMode(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*PadModeAttrs), in[0]
	if a.Mode == PadConstant {
		return Pad(b, x, Const(b, x.DType(), a.Value), a.Low, a.High, nil)
	}
	for axis := range a.Low {
		low, high := a.Low[axis], a.High[axis]
		parts := make([]ir.Value, 0, 3)
		if low > 0 {
			parts = append(parts, padding(b, x, axis, low, a.Mode, true))
		}
		parts = append(parts, x)
		if high > 0 {
			parts = append(parts, padding(b, x, axis, high, a.Mode, false))
		}
		if len(parts) > 1 {
			x = Concatenate(b, axis, parts...)
		}
	}
	return x
}

// padding returns the padding before or after an axis.
func padding(b *ir.Builder, x ir.Value, axis, count int, mode string, before bool) ir.Value {
	size, width := x.Dim(axis), ir.N(count)
	from := func(start ir.Dim) ir.Value { return SliceAxis(b, x, axis, start, width) }
	end := size.Sub(width)
	switch mode {
	case PadEdge:
		at := size.Sub(ir.N(1))
		if before {
			at = ir.N(0)
		}
		shape := x.Shape().Clone()
		shape[axis] = width
		return BroadcastTo(b, SliceAxis(b, x, axis, at, ir.N(1)), shape)
	case PadReflect:
		if before {
			return Reverse(b, from(ir.N(1)), axis)
		}
		return Reverse(b, from(end.Sub(ir.N(1))), axis)
	}
	if before {
		return from(end)
	}
	return from(ir.N(0))
}

// PadMode returns x padded along each axis by low and high elements of its own: [PadEdge],
// [PadReflect] or [PadWrap].
func PadMode(b *ir.Builder, x ir.Value, low, high []int, mode string) ir.Value {
	return b.Add1(OpPadMode, &PadModeAttrs{Low: slices.Clone(low), High: slices.Clone(high), Mode: mode}, x)
}
