package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxRepeatedRow is the maximum length of short rows that become one.
const maxRepeatedRow = 1024

// repeatRows makes a map over rows that fill no vector, such as the channels of pixels, read what depends only on
// the place in a row, such as a bias, from arrays that repeat it, for which it adds steps. Several rows are then one,
// for which kernels have vectors. It returns the sizes of the outer coordinates.
func (p *nestArrays) repeatRows(name string, code *fusion.Code, outer []int) ([]int, error) {
	last := len(outer) - 1
	if !jit.Available() || len(code.Stages)+len(code.Points) > 0 || last < 1 || outer[last] >= jit.Width() || product(outer) < minStagedPoints {
		return outer, nil
	}
	times := maxRepeatedRow / outer[last]
	for times > 1 && outer[last-1]%times != 0 {
		times--
	}
	loads, ok := p.placeLoads(code, outer)
	if !ok || len(loads) == 0 || times*outer[last] < 4*jit.Width() {
		return outer, nil
	}
	outer = splitAxis(code, &code.Outer, outer, last-1, times)
	at, dims := code.Outer[last:], outer[last:]
	repeated := make([]scalar.Expr, len(loads))
	for i, load := range loads {
		buf, err := p.c.materialize(name+" rows", fusion.Elements{Dims: dims, At: at, Value: load})
		if err != nil {
			return nil, err
		}
		repeated[i] = scalar.LoadAt(p.c.bufferID(buf), load.Type, scalar.Simplify(linear(dims, at)))
	}
	replaceLoads(code, loads, repeated)
	return outer, nil
}

// placeLoads returns the distinct loads of a map that depend only on the last coordinate, the place in a row. It returns
// false unless all other loads and the stores are of rows one after the other, and values depend on the coordinates of
// rows only by loads.
func (p *nestArrays) placeLoads(code *fusion.Code, outer []int) (loads []scalar.Expr, ok bool) {
	last := len(outer) - 1
	place, row := code.Outer[last], code.Outer[last-1]
	inRow, ofRows := isOneOf(code.Outer[last-1:]), isOneOf(code.Outer[:last])
	isDense := func(offset scalar.Expr) bool {
		sum := affineOf(offset)
		return sum.coef(place.Name) == 1 && sum.coef(row.Name) == outer[last]
	}
	ok = true
	visit := func(e scalar.Expr) {
		switch {
		case isLoad(e) && scalar.Any(e.Args[0], inRow) && !isDense(e.Args[0]):
			sum, buf := affineOf(e.Args[0]), p.c.buffers[e.Ref]
			ok = ok && buf != nil && !scalar.Any(e.Args[0], ofRows) && len(sum.terms) == 1 && sum.constant >= 0 &&
				sum.coef(place.Name) > 0 && sum.constant+sum.coef(place.Name)*(outer[last]-1) < buf.elems
			if indexOf(loads, e) < 0 {
				loads = append(loads, e)
			}
		case isLoad(e):
		default:
			ok = ok && !inRow(e)
		}
	}
	seen := map[scalar.Expr]bool{}
	for _, s := range code.Rows {
		ok = ok && !s.Guarded && isDense(s.Offset) && !slices.ContainsFunc(loads, func(x scalar.Expr) bool { return p.c.buffers[x.Ref] == p.c.buffers[s.Tensor.ID] })
		walkToLoads(s.Value, seen, visit)
	}
	return loads, ok
}
