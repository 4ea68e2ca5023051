package ops

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

func counting(first, n int) []int { return permute.Counting(first, n) }

// repeatInt returns x repeated n times.
func repeatInt(x, n int) []int { return slices.Repeat([]int{x}, n) }

// fillNil sets the lists that are nil to to.
func fillNil(to []int, lists ...*[]int) {
	for _, list := range lists {
		if *list == nil {
			*list = to
		}
	}
}

func pick[T any](list []T, at []int) []T { return permute.Pick(list, at) }

// shiftedBy is [shifted] for an operand that may lack the batch axis (-1).
func shiftedBy(axes []int, at int) []int {
	if at < 0 {
		return axes
	}
	return shifted(axes, at)
}

// sizes returns the sizes of a constant shape; lowerings see no others. A symbolic size
// counts as 0.
func sizes(s ir.Shape) []int {
	out := make([]int, len(s))
	for i, d := range s {
		out[i], _ = d.Const()
	}
	return out
}

// strides returns the row-major strides of a shape.
func strides(dims []int) []int {
	out := make([]int, len(dims))
	step := 1
	for a := len(dims) - 1; a >= 0; a-- {
		out[a] = step
		step *= dims[a]
	}
	return out
}

// offsets returns the row-major offsets in dims of all points spanned by axes, in the
// order given.
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

// visitDim visits a single size as a list of one. A list of another length from a parser
// is no size.
func visitDim(v ir.AttrVisitor, name string, d *ir.Dim) {
	list := []ir.Dim{*d}
	v.Dims(name, &list)
	switch { // visitors that read must not write: graphs are shared
	case len(list) != 1:
		*d = ir.N(-1)
	case list[0] != *d:
		*d = list[0]
	}
}

// dilated returns the extent of n elements with dilation by.
func dilated(n ir.Dim, by int) ir.Dim {
	if n.Is(0) || by == 1 {
		return n
	}
	return n.Sub(ir.N(1)).Mul(ir.N(by)).Add(ir.N(1))
}

// windowCount returns the number of windows of the given extent and stride in n elements,
// 0 if none fits. For symbolic n they must leave no remainder, which is checked when n is
// bound.
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

// placeAxes moves axis i of x to position place[i].
func placeAxes(b *ir.Builder, x ir.Value, place []int) ir.Value {
	perm := permute.Inverse(place)
	if slices.IsSorted(perm) {
		return x
	}
	return Transpose(b, x, perm...)
}

// splitAxis splits an axis into two, the first of size major.
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

// mergeAxes merges an axis with the next one.
func mergeAxes(b *ir.Builder, x ir.Value, axis int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	s := x.Shape()
	return Reshape(b, x, slices.Concat(s[:axis], ir.Shape{s[axis].Mul(s[axis+1])}, s[axis+2:])...)
}

// positions calls f for every position of a shape in row-major order, with its row-major
// offset. f must not retain pos.
func positions(dims []int, f func(i int, pos []int)) {
	count := 1
	for _, d := range dims {
		count *= d
	}
	pos := make([]int, len(dims))
	for i := range count {
		f(i, pos)
		for a := len(dims) - 1; a >= 0; a-- {
			if pos[a]++; pos[a] < dims[a] {
				break
			}
			pos[a] = 0
		}
	}
}

// offset returns the row-major offset of a position.
func offset(dims, pos []int) int {
	at := 0
	for a, d := range dims {
		at = at*d + pos[a]
	}
	return at
}

// copyElement sets element i of dst to element j of src, of the same type.
func copyElement(dst *ir.Array, i int, src *ir.Array, j int) {
	switch {
	case dst.F != nil:
		dst.F[i] = src.F[j]
	case dst.C != nil:
		dst.C[i] = src.C[j]
	default:
		dst.I[i] = src.I[j]
	}
}

// copyRows sets the elements of dst to elements of src, of the same type, at the offsets that place returns for their
// positions. Offsets of a row's elements, which differ in the last axis, are evenly spaced.
func copyRows(dst, src *ir.Array, place func(at []int) int) {
	last := len(dst.Dims) - 1
	if last < 0 {
		copyElement(dst, 0, src, place(nil))
		return
	}
	length, at := dst.Dims[last], make([]int, last+1)
	if length == 0 {
		return
	}
	positions(dst.Dims[:last], func(row int, pos []int) {
		at[copy(at, pos)] = 0
		first, step := place(at), 0
		if length > 1 {
			at[last] = 1
			step = place(at) - first
		}
		for i := range length {
			copyElement(dst, row*length+i, src, first+i*step)
		}
	})
}

// maxBodyTable bounds the elements of a literal that a body adds to a graph for operands
// of any size: it is compiler memory. Literals sized by attributes are bounded by
// [maxTable].
const maxBodyTable = 1 << 27

// fitsTable reports whether a literal has at most maxBodyTable elements. If not, it
// records an error in b.
func fitsTable(b *ir.Builder, dims ...int) bool {
	n := 1
	for _, size := range dims {
		if size > 0 && n > maxBodyTable/size {
			b.Fail(ir.Errorf(ir.ErrUnsupported, "the op needs a table of %v elements in the graph: at most %d are supported", dims, maxBodyTable))
			return false
		}
		n *= size
	}
	return true
}

// table returns a zeroed array for a body to fill and add to the graph, or nil if it does
// not fit.
func table(b *ir.Builder, d ir.DType, dims ...int) *ir.Array {
	if !fitsTable(b, dims...) {
		return nil
	}
	return ir.NewArray(d, dims...)
}

// resultArray returns a zeroed array of the type of a node's result, whose shape must be
// constant.
func resultArray(n *ir.Node, result int) (*ir.Array, error) {
	t := n.Types()[result]
	dims, ok := t.Shape.Ints()
	if !ok {
		return nil, ir.Errorf(ir.ErrSymbol, "%s has a symbolic size", t)
	}
	return ir.NewArray(t.DType, dims...), nil
}
