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
// changes nothing where results depend on other numbers in memory.
func (p *nestArrays) transposeScan(g *fusion.Group, x *fusion.Prefix) (results []*fusion.Code, err error) {
	lines := product(x.Dims) / max(x.Dims[x.Axis], 1)
	if product(x.Dims[x.Axis+1:]) != 1 || lines < scanLanes || x.Dims[x.Axis] < minTransposedScan {
		return nil, nil
	}
	for _, s := range x.Stores {
		if s.Guarded || scalar.Any(s.Value, isLoad) {
			return nil, nil
		}
	}
	dims := append([]int{x.Dims[x.Axis]}, slices.Delete(slices.Clone(x.Dims), x.Axis, x.Axis+1)...)
	at := append([]scalar.Expr{x.At[x.Axis]}, slices.Delete(slices.Clone(x.At), x.Axis, x.Axis+1)...)
	place := scalar.Simplify(linear(dims, at))
	known := map[scalar.Expr]scalar.Expr{}
	running := isOneOf(x.Running)
	for i, e := range x.Combined {
		x.Combined[i] = scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
			if err != nil || scalar.Any(n, running) || !scalar.Any(n, isLoad) {
				return n, false
			}
			if load, ok := known[n]; ok {
				return load, true
			}
			buf, failed := p.c.materialize(g.Name()+" terms", fusion.Elements{Dims: dims, At: at, Value: n})
			if err = failed; err != nil {
				return n, false
			}
			known[n] = scalar.LoadAt(p.c.bufferID(buf), n.Type, place)
			return known[n], true
		})
	}
	for i, s := range x.Stores {
		var back fusion.ElementStore
		x.Stores[i], back = p.storeAt(s, place, product(dims))
		results = append(results, &fusion.Code{Rows: []fusion.ElementStore{back}})
	}
	return results, err
}

// storeAt returns a store of the value of s at a place of a new array of n elements, and the store that
// copies it from there to where s has it.
func (p *nestArrays) storeAt(s fusion.ElementStore, place scalar.Expr, n int) (moved, back fusion.ElementStore) {
	id := p.c.bufferID(p.c.scratch(s.Value.Type, n))
	back = s
	back.Value = scalar.LoadAt(id, s.Value.Type, place)
	return fusion.ElementStore{Tensor: &fusion.Tensor{ID: id, Name: s.Tensor.Name, DType: s.Value.Type}, Offset: place, Value: s.Value}, back
}

// isOneOf returns a condition for an expression to be one of some variables.
func isOneOf(vars []scalar.Expr) func(scalar.Expr) bool {
	return func(e scalar.Expr) bool {
		return e.Op == scalar.OpVar && slices.ContainsFunc(vars, func(v scalar.Expr) bool { return v.Name == e.Name })
	}
}

func isLoad(e scalar.Expr) bool { return e.Op == scalar.OpLoad }
