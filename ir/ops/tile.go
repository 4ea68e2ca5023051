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
			apart := slices.Insert(shape.Clone(), a.Axis+1, ir.N(a.Repeats))
			x := BroadcastInDim(b, in[0], apart, withoutAxis(len(apart), a.Axis+1))
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
		apart := slices.Insert(x.Shape().Clone(), axis, ir.N(r))
		x = mergeAxes(b, BroadcastInDim(b, x, apart, withoutAxis(len(apart), axis)), axis)
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
