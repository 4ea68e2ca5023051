package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The bounds of a reduction over rows that are transposed: the length of a row, for which kernels have no whole
// vectors, and the number of rows. The cost of a row that is reduced by itself is about 200 ns (AMD EPYC).
const (
	minTransposedRow, maxTransposedRow = 9, 96
	minTransposedRows                  = 256
	maxTransposedArrays                = 3 // that the reduction reads and writes
)

// transposeRows makes a reduction over short rows, such as a softmax, read and write arrays with the
// elements of a row first, so that its lanes are rows. It adds the transposes of the operands, and returns
// those of the results, for after the reduction. It does nothing where operands are not whole arrays.
func (p *nestArrays) transposeRows(name string, code *fusion.Code, outer, inner []int) (results []*fusion.Code, err error) {
	n := product(inner)
	if !jit.Available() || len(code.Stages) == 0 || len(code.Points) == 0 || n%jit.Width() == 0 || mayOverlap(n) || n < minTransposedRow || n > maxTransposedRow || product(outer) < minTransposedRows {
		return nil, nil
	}
	loads, ok := rowLoads(code, outer, inner)
	if !ok || len(loads)+len(code.Points) > maxTransposedArrays {
		return nil, nil
	}
	dims, at := slices.Concat(inner, outer), slices.Concat(code.Inner, code.Outer)
	place := scalar.Simplify(linear(dims, at))
	var moved []scalar.Expr
	for _, load := range loads {
		buf, err := p.c.materialize(name+" rows", fusion.Elements{Dims: dims, At: at, Value: load})
		if err != nil {
			return nil, err
		}
		moved = append(moved, scalar.LoadAt(p.c.bufferID(buf), load.Type, place))
	}
	replaceLoads(code, loads, moved)
	for i, s := range code.Points {
		var back fusion.ElementStore
		code.Points[i], back = p.storeAt(s, place, product(dims))
		results = append(results, &fusion.Code{Outer: slices.Concat(code.Outer, code.Inner), Rows: []fusion.ElementStore{back}})
	}
	return results, nil
}

// rowLoads returns the distinct loads of a reduction that differ along a row; false unless these loads, and all
// results, are of whole row-major arrays with elements of 32 bits.
func rowLoads(code *fusion.Code, outer, inner []int) (loads []scalar.Expr, ok bool) {
	whole, dims := &fusion.Code{Outer: slices.Concat(code.Outer, code.Inner)}, slices.Concat(outer, inner)
	fits := func(offset, value scalar.Expr) bool {
		return value.Type.Size() == 4 && isDense(whole, affineOf(offset), dims, product(dims))
	}
	alongRow := isOneOf(code.Inner)
	ok = true
	walkValues(code, func(x scalar.Expr) {
		if isLoad(x) && scalar.Any(x.Args[0], alongRow) && indexOf(loads, x) < 0 {
			loads, ok = append(loads, x), ok && fits(x.Args[0], x)
		}
	})
	for _, s := range code.Points {
		ok = ok && !s.Guarded && fits(s.Offset, s.Value)
	}
	return loads, ok
}

// indexOf returns the index of an expression in a list, -1 where it is not there.
func indexOf(list []scalar.Expr, e scalar.Expr) int {
	return slices.IndexFunc(list, func(x scalar.Expr) bool { return scalar.Equal(x, e) })
}
