package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Tiling, repeating, rolling and padding by mode.
const (
	OpTile    ir.Op = "tile"
	OpRepeat  ir.Op = "repeat"
	OpRoll    ir.Op = "roll"
	OpPadMode ir.Op = "pad_mode"
)

// TileAttrs hold the number of repeats along each axis.
type TileAttrs struct{ Repeats []int }

// Visit shows the attributes.
func (a *TileAttrs) Visit(v ir.AttrVisitor) { v.Ints("repeats", &a.Repeats) }

// RepeatAttrs hold an axis and the number of repeats of each of its elements.
type RepeatAttrs struct{ Axis, Repeats int }

// Visit shows the attributes.
func (a *RepeatAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Int("repeats", &a.Repeats)
}

// RollAttrs hold an axis and the shift along it.
type RollAttrs struct{ Axis, Shift int }

// Visit shows the attributes.
func (a *RollAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Int("shift", &a.Shift)
}

func init() {
	defineComposite(composite{
		op: OpTile, doc: "x tiled: repeated as a whole along each axis (numpy.tile).", types: plain, newAttrs: func() ir.Attrs { return &TileAttrs{} },
		constraints: []string{"repeats has an entry for each axis of x, none negative"},
		check: func(n *ir.Node) error {
			r := n.Attrs().(*TileAttrs).Repeats
			if len(r) != n.Input(0).Rank() || slices.ContainsFunc(r, negative) {
				return ir.Attrf("repeats is %v: it must have an entry for each of %d axes, none negative", r, n.Input(0).Rank())
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return tile(b, in[0], n.Attrs().(*TileAttrs).Repeats)
		},
	})
	defineComposite(composite{
		op: OpRepeat, doc: "x with each element along an axis repeated (numpy.repeat).", types: plain, newAttrs: func() ir.Attrs { return &RepeatAttrs{} },
		constraints: []string{"axis is an axis of x; repeats is not negative"},
		check: func(n *ir.Node) error {
			a := n.Attrs().(*RepeatAttrs)
			if a.Repeats < 0 {
				return ir.Attrf("repeats is %d, negative", a.Repeats)
			}
			return checkAxes([]int{a.Axis}, n.Input(0).Rank())
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, shape := n.Attrs().(*RepeatAttrs), in[0].Shape()
			expanded := slices.Insert(shape.Clone(), a.Axis+1, ir.N(a.Repeats))
			x := BroadcastInDim(b, in[0], expanded, withoutAxis(len(expanded), a.Axis+1))
			return mergeAxes(b, x, a.Axis)
		},
	})
	defineComposite(composite{
		op: OpRoll, doc: "x rolled along an axis: element i of the result is element (i − shift) modulo the size (numpy.roll).",
		types: plain, newAttrs: func() ir.Attrs { return &RollAttrs{} },
		constraints: []string{"axis is an axis of x, whose size is not symbolic"},
		body:        roll,
	})
	defineComposite(composite{
		op: OpPadMode, doc: "x padded before and after each axis: with a value (constant), the edge element (ONNX's edge, PyTorch's " +
			"replicate), the mirrored elements (reflect), or periodically (ONNX's wrap, PyTorch's circular).",
		types: plain, newAttrs: func() ir.Attrs { return &PadModeAttrs{Mode: PadConstant} },
		constraints: []string{
			"low and high have an entry for each axis of x, none negative",
			`mode is "constant", "edge", "reflect" or "wrap"`,
			"padding is shorter than the axis for reflect and no longer than it for wrap; edge needs an element",
		},
		check: checkPadMode,
		body:  padMode,
	})
}

func negative(n int) bool { return n < 0 }

// tile inserts an axis before each repeated one and merges the two.
func tile(b *ir.Builder, x ir.Value, repeats []int) ir.Value {
	for axis, r := range repeats {
		if r == 1 {
			continue
		}
		expanded := slices.Insert(x.Shape().Clone(), axis, ir.N(r))
		x = mergeAxes(b, BroadcastInDim(b, x, expanded, withoutAxis(len(expanded), axis)), axis)
		if b.Err() != nil {
			return x
		}
	}
	return x
}

func roll(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*RollAttrs), in[0]
	size, ok := sizeOf(b, OpRoll, x, a.Axis)
	if !ok || size == 0 {
		return x
	}
	cut := ((-a.Shift)%size + size) % size // the first element of the result
	if cut == 0 {
		return x
	}
	parts := Split(b, x, a.Axis, ir.N(cut), ir.N(size-cut))
	return Concatenate(b, a.Axis, parts[1], parts[0])
}

// Tile returns x repeated as a whole repeats[i] times along axis i, as numpy.tile.
func Tile(b *ir.Builder, x ir.Value, repeats ...int) ir.Value {
	return b.Add1(OpTile, &TileAttrs{slices.Clone(repeats)}, x)
}

// Repeat returns x with each element along axis repeated, as numpy.repeat.
func Repeat(b *ir.Builder, x ir.Value, axis, repeats int) ir.Value {
	return b.Add1(OpRepeat, &RepeatAttrs{fromFront([]int{axis}, x.Rank())[0], repeats}, x)
}

// Roll returns x rolled along axis, as numpy.roll: element i of the result is element i −
// shift modulo the size of the axis, which is constant.
func Roll(b *ir.Builder, x ir.Value, axis, shift int) ir.Value {
	return b.Add1(OpRoll, &RollAttrs{fromFront([]int{axis}, x.Rank())[0], shift}, x)
}

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
	minRest := 0 // of the size of the axis minus its padding
	switch a.Mode {
	case PadConstant, PadWrap:
	case PadReflect:
		minRest = 1
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
		case a.Mode != PadEdge && size < pad+minRest:
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
