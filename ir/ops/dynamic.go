package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Slices at computed positions.
const (
	OpDynamicSlice       ir.Op = "dynamic_slice"
	OpDynamicUpdateSlice ir.Op = "dynamic_update_slice"
)

// DynamicSliceAttrs hold the sizes of the slice, one for each axis.
type DynamicSliceAttrs struct{ Sizes []ir.Dim }

// Visit shows the attributes.
func (a *DynamicSliceAttrs) Visit(v ir.AttrVisitor) { v.Dims("sizes", &a.Sizes) }

func init() {
	const clamped = "start is i32[rank of x], clamped so that the slice is in bounds"
	defineComposite(composite{
		op: OpDynamicSlice, doc: "The slice of x of the given sizes that begins at start (XLA's DynamicSlice). It reads only that slice.",
		operands: []string{"x", "start"}, types: plain, newAttrs: func() ir.Attrs { return &DynamicSliceAttrs{} },
		constraints: []string{clamped, "sizes has an entry for each axis, not larger than it"},
		check: func(n *ir.Node) error {
			return checkPart(n.Input(0).Shape(), n.Attrs().(*DynamicSliceAttrs).Sizes, n.Input(1).Type())
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			at := placePart(b, in[0], in[1], n.Attrs().(*DynamicSliceAttrs).Sizes)
			if len(at.axes) == 0 {
				return in[0]
			}
			return placeAxes(b, Gather(b, in[0], at.indices, GatherAttrs{IndexedAxes: at.indexed(OutsideClip)}), at.order)
		},
	})
	defineComposite(composite{
		op: OpDynamicUpdateSlice, doc: "x with the slice that begins at start replaced by update (XLA's DynamicUpdateSlice). On a state it runs in place, at the cost of the slice: " +
			"this extends a KV cache.",
		operands: []string{"x", "update", "start"}, types: plain,
		constraints: []string{"update has the element type and the rank of x and is not larger along any axis", clamped},
		check: func(n *ir.Node) error {
			x, u := n.Input(0).Type(), n.Input(1).Type()
			if x.DType != u.DType {
				return ir.DTypef("the update is %s, not of the type of x, %s", u, x)
			}
			return checkPart(x.Shape, u.Shape, n.Input(2).Type())
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			at := placePart(b, in[0], in[2], in[1].Shape())
			if len(at.axes) == 0 {
				return in[1]
			}
			update := Transpose(b, in[1], at.order...)
			return Scatter(b, in[0], at.indices, update, ScatterAttrs{at.indexed(OutsideDrop)})
		},
	})
}

// checkPart reports an error unless a slice of the given sizes fits into x.
func checkPart(x ir.Shape, sizes []ir.Dim, start ir.Type) error {
	if len(sizes) != len(x) {
		return ir.Shapef("sizes has %d entries, not one for each of %d axes", len(sizes), len(x))
	}
	if want := ir.TypeOf(ir.I32, ir.N(len(x))); !start.Equal(want) {
		return ir.Shapef("start is %s, not %s", start, want)
	}
	for i, d := range sizes {
		if !d.Valid() || !x[i].Sub(d).Valid() {
			return ir.Shapef("a part of %s elements along axis %d of size %s", d, i, x[i])
		}
	}
	return nil
}

// part is the location of a slice: the index tuple of each position along the axes that it
// does not cover.
type part struct {
	indices ir.Value
	axes    []int // those along which the slice is shorter
	order   []int // these axes and then the others
}

func (p part) indexed(outside string) IndexedAxes {
	return IndexedAxes{Axes: p.axes, Outside: outside, Unique: true}
}

// placePart returns the location of the slice of x of the given sizes that begins at
// start.
func placePart(b *ir.Builder, x, start ir.Value, sizes []ir.Dim) part {
	var p part
	for a, d := range sizes {
		if d != x.Dim(a) {
			p.axes = append(p.axes, a)
		}
	}
	p.order = slices.Concat(p.axes, otherAxes(x.Rank(), p.axes))
	short := ir.Shape(pick(sizes, p.axes))
	var tuple []ir.Value
	for i, a := range p.axes {
		room := DimSize(b, ir.I32, x.Dim(a).Sub(sizes[a]))
		first := Clamp(b, Reshape(b, SliceAxis(b, start, 0, ir.N(a), ir.N(1))), Const(b, ir.I32, 0), room)
		tuple = append(tuple, Add(b, Iota(b, ir.I32, i, short...), first))
	}
	if len(tuple) > 0 {
		p.indices = Stack(b, -1, tuple...)
	}
	return p
}

// DynamicSlice returns the slice of x of the given sizes that begins at start, i32[rank],
// clamped so that the slice is in bounds.
func DynamicSlice(b *ir.Builder, x, start ir.Value, sizes ...ir.Dim) ir.Value {
	return b.Add1(OpDynamicSlice, &DynamicSliceAttrs{slices.Clone(sizes)}, x, start)
}

// DynamicUpdateSlice returns x with the slice that begins at start, i32[rank], replaced by
// update, of the type and rank of x. start is clamped so that the slice is in bounds.
func DynamicUpdateSlice(b *ir.Builder, x, update, start ir.Value) ir.Value {
	return b.Add1(OpDynamicUpdateSlice, nil, x, update, start)
}
