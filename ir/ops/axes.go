package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// counting returns n numbers that start with first.
func counting(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

// repeatInt returns n times x.
func repeatInt(x, n int) []int { return slices.Repeat([]int{x}, n) }

// fillNil sets those of some lists that are nil.
func fillNil(to []int, lists ...*[]int) {
	for _, list := range lists {
		if *list == nil {
			*list = to
		}
	}
}

// pick returns the elements of a list at the given places: the sizes of some
// axes of a shape, say.
func pick[T any](list []T, at []int) []T {
	out := make([]T, len(at))
	for i, a := range at {
		out[i] = list[a]
	}
	return out
}

// otherAxes returns the axes of a value of some rank that are in none of the
// lists, in order.
func otherAxes(rank int, lists ...[]int) []int {
	named := slices.Concat(lists...)
	var out []int
	for a := range rank {
		if !slices.Contains(named, a) {
			out = append(out, a)
		}
	}
	return out
}

// shiftedBy is [shifted] for an operand that may have no batch axis (-1).
func shiftedBy(axes []int, at int) []int {
	if at < 0 {
		return axes
	}
	return shifted(axes, at)
}

// sizes returns the sizes of a shape whose axes are all constant, as they are
// where lowerings are asked; a symbolic axis counts as 0.
func sizes(s ir.Shape) []int {
	out := make([]int, len(s))
	for i, d := range s {
		out[i], _ = d.Const()
	}
	return out
}

// strides returns how far apart, in row-major order, neighbours along each axis
// are.
func strides(dims []int) []int {
	out := make([]int, len(dims))
	step := 1
	for a := len(dims) - 1; a >= 0; a-- {
		out[a] = step
		step *= dims[a]
	}
	return out
}

// offsets returns the places, in row-major order of dims, of all points of the
// space that some of the axes span, these in the order given.
func offsets(dims, axes []int) []int {
	step := strides(dims)
	var out []int
	positions(pick(dims, axes), func(_ int, pos []int) {
		at := 0
		for i, a := range axes {
			at += pos[i] * step[a]
		}
		out = append(out, at)
	})
	return out
}

// visitDim shows a single size to a visitor, as a list of one. A list of any
// other length that a parser leaves there is no size.
func visitDim(v ir.AttrVisitor, name string, d *ir.Dim) {
	list := []ir.Dim{*d}
	v.Dims(name, &list)
	switch { // a reader must not write: graphs are shared
	case len(list) != 1:
		*d = ir.N(-1)
	case list[0] != *d:
		*d = list[0]
	}
}

// dilated returns the extent of n elements that lie by steps apart.
func dilated(n ir.Dim, by int) ir.Dim {
	if n.Is(0) || by == 1 {
		return n
	}
	return n.Sub(ir.N(1)).Mul(ir.N(by)).Add(ir.N(1))
}

// windowCount returns how many windows of an extent fit into n elements when
// they start stride elements apart: 0 where not even one does. In a symbolic n
// they must leave no rest, which is checked once n is known.
func windowCount(n, extent ir.Dim, stride int) (ir.Dim, error) {
	room := n.Sub(extent)
	if !room.Valid() {
		return ir.N(0), nil
	}
	if r, ok := room.Const(); ok {
		return ir.N(r/stride + 1), nil
	}
	steps, err := room.Div(ir.N(stride))
	if err != nil {
		return steps, ir.Shapef("windows of extent %s do not fit into %s elements in strides of %d", extent, n, stride)
	}
	return steps.Add(ir.N(1)), nil
}

// placeAxes moves axis i of x to place[i].
func placeAxes(b *ir.Builder, x ir.Value, place []int) ir.Value {
	perm := make([]int, len(place))
	for i, p := range place {
		perm[p] = i
	}
	if slices.IsSorted(perm) {
		return x
	}
	return Transpose(b, x, perm...)
}

// splitAxis makes two axes of one: the first of size major.
func splitAxis(b *ir.Builder, x ir.Value, axis int, major ir.Dim) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	rest, err := x.Dim(axis).Div(major)
	if err != nil {
		b.Failf(OpReshape, []ir.Value{x}, err)
		return ir.Value{}
	}
	s := x.Shape()
	return Reshape(b, x, slices.Concat(s[:axis], ir.Shape{major, rest}, s[axis+1:])...)
}

// mergeAxes makes one axis of two neighbours.
func mergeAxes(b *ir.Builder, x ir.Value, axis int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	s := x.Shape()
	return Reshape(b, x, slices.Concat(s[:axis], ir.Shape{s[axis].Mul(s[axis+1])}, s[axis+2:])...)
}
