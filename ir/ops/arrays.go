package ops

import "github.com/rlx-go/rlx/ir"

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
