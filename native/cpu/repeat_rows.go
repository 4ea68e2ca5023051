package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxRepeatedRow is the maximum length of short rows that become one.
const maxRepeatedRow = 1024

// repeatRows makes a map or a reduction over rows that fill no vector, such as the channels of pixels, read what depends only
// on the place in a row, such as a bias, from arrays that repeat it, for which it adds steps. Several rows are then one,
// for which kernels have vectors. It returns the sizes of the coordinates.
func (p *nestArrays) repeatRows(name string, code *fusion.Code, outer, inner []int) (_, _ []int, err error) {
	if len(code.Stages) > 0 {
		inner, err = p.repeatRowsOf(name, code, &code.Inner, inner)
	} else {
		outer, err = p.repeatRowsOf(name, code, &code.Outer, outer)
	}
	return outer, inner, err
}

// repeatRowsOf is [nestArrays.repeatRows] for rows along the last of the outer or the inner coordinates.
func (p *nestArrays) repeatRowsOf(name string, code *fusion.Code, space *[]scalar.Expr, dims []int) ([]int, error) {
	last := len(dims) - 1
	if !jit.Available() || len(code.Points) > 0 || last < 1 || dims[last] >= jit.Width() || product(dims) < minStagedPoints {
		return dims, nil
	}
	times := maxRepeatedRow / dims[last]
	for times > 1 && dims[last-1]%times != 0 {
		times--
	}
	loads, ok := p.placeLoads(code, *space, dims)
	if !ok || len(loads) == 0 || times*dims[last] < 4*jit.Width() {
		return dims, nil
	}
	dims = splitAxis(code, space, dims, last-1, times)
	rowAt, row := (*space)[last:], dims[last:]
	repeated := make([]scalar.Expr, len(loads))
	for i, load := range loads {
		buf, err := p.c.materialize(name+" rows", fusion.Elements{Dims: row, At: rowAt, Value: load})
		if err != nil {
			return nil, err
		}
		repeated[i] = scalar.LoadAt(p.c.bufferID(buf), load.Type, scalar.Simplify(linear(row, rowAt)))
	}
	replaceLoads(code, loads, repeated)
	return dims, nil
}

// placeLoads returns the distinct loads that depend only on the last coordinate of a space, the place in a row. It returns
// false unless all other loads and the stores are of rows one after the other, and values depend on the coordinates of
// rows only by loads.
func (p *nestArrays) placeLoads(code *fusion.Code, space []scalar.Expr, dims []int) (loads []scalar.Expr, ok bool) {
	last := len(dims) - 1
	place, row := space[last], space[last-1]
	all := slices.Concat(code.Outer, code.Inner)
	inRow, ofRows := isOneOf(space[last-1:]), isOneOf(all[:len(all)-1])
	isDense := func(offset scalar.Expr) bool {
		sum := affineOf(offset)
		return sum.coef(place.Name) == 1 && sum.coef(row.Name) == dims[last]
	}
	ok = true
	visit := func(e scalar.Expr) {
		switch {
		case isLoad(e) && scalar.Any(e.Args[0], inRow) && !isDense(e.Args[0]):
			sum, buf := affineOf(e.Args[0]), p.c.buffers[e.Ref]
			ok = ok && buf != nil && !scalar.Any(e.Args[0], ofRows) && len(sum.terms) == 1 && sum.constant >= 0 &&
				sum.coef(place.Name) > 0 && sum.constant+sum.coef(place.Name)*(dims[last]-1) < buf.elems
			if indexOf(loads, e) < 0 {
				loads = append(loads, e)
			}
		case isLoad(e):
		default:
			ok = ok && !inRow(e)
		}
	}
	seen := map[scalar.Expr]bool{}
	for _, stage := range code.Stages {
		for _, r := range stage.Reductions {
			for _, e := range r.Elements {
				walkToLoads(e, seen, visit)
			}
		}
		ok = ok && stage.Contraction == nil
	}
	for _, s := range code.Rows {
		ok = ok && !s.Guarded && (len(code.Stages) > 0 || isDense(s.Offset)) && !slices.ContainsFunc(loads, func(x scalar.Expr) bool { return p.c.buffers[x.Ref] == p.c.buffers[s.Tensor.ID] })
		walkToLoads(s.Value, seen, visit)
	}
	return loads, ok
}
