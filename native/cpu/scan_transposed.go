package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// minTransposedScan is the least length of contiguous lines that are transposed for a scan, so that
// its lanes, the lines, are contiguous.
const minTransposedScan = 16

// transposeScan makes a scan along contiguous lines read and write arrays with the axis first. It adds the
// transposes of what the scan combines, and returns the transposes of the results, for after the scan. It
// returns false, and changes nothing, where results depend on other numbers in memory.
func (p *nestArrays) transposeScan(g *fusion.Group, x *fusion.Prefix) (results []*fusion.Code, ok bool, err error) {
	lines := product(x.Dims) / max(x.Dims[x.Axis], 1)
	if product(x.Dims[x.Axis+1:]) != 1 || lines < scanLanes || x.Dims[x.Axis] < minTransposedScan {
		return nil, false, nil
	}
	for _, s := range x.Stores {
		if s.Guarded || contains(s.Value, isLoad) {
			return nil, false, nil
		}
	}
	dims := append([]int{x.Dims[x.Axis]}, slices.Delete(slices.Clone(x.Dims), x.Axis, x.Axis+1)...)
	at := append([]scalar.Expr{x.At[x.Axis]}, slices.Delete(slices.Clone(x.At), x.Axis, x.Axis+1)...)
	place := scalar.Simplify(linear(dims, at))
	known := map[scalar.Expr]scalar.Expr{}
	running := func(e scalar.Expr) bool {
		return e.Op == scalar.OpVar && slices.ContainsFunc(x.Running, func(v scalar.Expr) bool { return v.Name == e.Name })
	}
	for i, e := range x.Combined {
		x.Combined[i] = scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
			if err != nil || contains(n, running) || !contains(n, isLoad) {
				return n, false
			}
			if load, ok := known[n]; ok {
				return load, true
			}
			buf, failed := p.c.materialize(g.Name()+" terms", fusion.Elements{Dims: dims, At: at, Value: n})
			if err = failed; err != nil {
				return n, false
			}
			known[n] = scalar.LoadAt(p.add(buf), n.Type, place)
			return known[n], true
		})
	}
	for i, s := range x.Stores {
		id := p.add(p.c.scratch(s.Value.Type, product(dims)))
		back := s
		back.Value = scalar.LoadAt(id, s.Value.Type, place)
		results = append(results, &fusion.Code{Rows: []fusion.ElementStore{back}})
		x.Stores[i] = fusion.ElementStore{Tensor: &fusion.Tensor{ID: id, Name: s.Tensor.Name, DType: s.Value.Type}, Offset: place, Value: s.Value}
	}
	return results, true, err
}

func isLoad(e scalar.Expr) bool { return e.Op == scalar.OpLoad }

// contains reports whether a node of an expression satisfies a condition.
func contains(e scalar.Expr, condition func(scalar.Expr) bool) bool {
	found := false
	scalar.Walk(e, func(n scalar.Expr) { found = found || condition(n) })
	return found
}
