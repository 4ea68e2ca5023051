package cpu

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The bounds of a reduction in two stages: the length of the contiguous inner points, below which merging the
// lanes of each row takes longer than combining it, and the number of points.
const (
	maxStagedRow    = 512
	minStagedPoints = 1 << 13
)

// stageReduction divides a reduction over axes on both sides of a kept axis, such as the pixels and the
// channels of a group: the first stage combines the outer axes with the kept and the inner ones along the lanes,
// as memory has them, the second the results of the first. It adds the first stage's steps, changes the code to
// the second, and returns its inner sizes.
func (p *nestArrays) stageReduction(name string, code *fusion.Code, outer, inner []int) ([]int, error) {
	cut := stageCut(code, outer, inner)
	if cut == 0 {
		return inner, nil
	}
	load, _ := lanesLoad(code)
	at, dims := slices.Concat(code.Outer, code.Inner[cut:]), slices.Concat(outer, inner[cut:])
	orderByStride(affineOf(load.Args[0]), at, dims)
	stage := &code.Stages[0]
	first := &fusion.Code{Outer: at, Inner: code.Inner[:cut], Stages: []fusion.Stage{{Lets: slices.Clone(stage.Lets)}}}
	place := scalar.Simplify(linear(dims, at))
	for i := range stage.Reductions {
		r := &stage.Reductions[i]
		partial := *r
		partial.Elements, partial.Results = r.Elements, nil
		r.Elements = slices.Clone(r.Elements)
		for k, acc := range r.Accumulators {
			id := p.add(p.c.scratch(acc.DType, product(dims)))
			v := scalar.FreeVar(r.Running[k].Name+"_part"+strconv.Itoa(k), acc.DType)
			partial.Results = append(partial.Results, scalar.Local{Var: v, Value: r.Running[k]})
			first.Rows = append(first.Rows, fusion.ElementStore{Tensor: &fusion.Tensor{ID: id, Name: name, DType: acc.DType}, Offset: place, Value: v})
			r.Elements[k] = scalar.LoadAt(id, acc.DType, place)
		}
		first.Stages[0].Reductions = append(first.Stages[0].Reductions, partial)
	}
	code.Inner = code.Inner[cut:]
	return inner[cut:], makeSteps(p.c, name+" lanes", first, dims, inner[:cut])
}

// stageCut returns the number of inner axes of the first stage, 0 where one stage is as fast.
func stageCut(code *fusion.Code, outer, inner []int) int {
	if !jit.Available() || len(code.Stages) != 1 || len(code.Points) > 0 || len(inner) < 2 || product(outer)*product(inner) < minStagedPoints {
		return 0
	}
	for _, r := range code.Stages[0].Reductions {
		for _, a := range r.Accumulators {
			if !isWord(a.DType) {
				return 0
			}
		}
	}
	load, ok := lanesLoad(code)
	if !ok {
		return 0
	}
	sum, row := affineOf(load.Args[0]), 1
	for i := len(inner) - 1; i > 0; i-- {
		if sum.coef(code.Inner[i].Name) != row {
			return 0
		}
		row *= inner[i]
		next := sum.coef(code.Inner[i-1].Name)
		kept := keptBetween(sum, code, outer, row, next)
		if kept > 1 && row <= maxStagedRow && inner[i-1] > 1 && kept*row < product(inner[:i])*product(outer)*row/4 {
			return i
		}
	}
	return 0
}

// keptBetween returns the number of outer points whose places are row and more elements apart, and less than limit.
func keptBetween(sum affine, code *fusion.Code, outer []int, row, limit int) int {
	kept := 1
	for i, v := range code.Outer {
		if by := sum.coef(v.Name); by >= row && by < limit {
			kept *= outer[i]
		}
	}
	return kept
}

// lanesLoad returns the load of a reduction's elements that is contiguous along the last inner axis and depends
// on most coordinates; false where there is none.
func lanesLoad(code *fusion.Code) (best scalar.Expr, ok bool) {
	if len(code.Inner) == 0 || len(code.Stages) == 0 {
		return nil, false
	}
	last, most := code.Inner[len(code.Inner)-1].Name, 0
	for _, r := range code.Stages[0].Reductions {
		for _, e := range r.Elements {
			scalar.Walk(e, func(x scalar.Expr) {
				if x.Op != scalar.OpLoad {
					return
				}
				if sum := affineOf(x.Args[0]); sum.coef(last) == 1 && len(sum.terms) > most {
					best, most = x, len(sum.terms)
				}
			})
		}
	}
	return best, most > 0
}

// orderByStride sorts coordinates by their strides in an array, the longest first. Those of stride 0 stay first.
func orderByStride(sum affine, at []scalar.Expr, dims []int) {
	type axis struct {
		at       scalar.Expr
		size, by int
	}
	axes := make([]axis, len(at))
	for i, v := range at {
		if axes[i] = (axis{v, dims[i], sum.coef(v.Name)}); axes[i].by == 0 {
			axes[i].by = int(^uint(0) >> 1)
		}
	}
	slices.SortStableFunc(axes, func(a, b axis) int {
		switch {
		case a.by > b.by:
			return -1
		case a.by < b.by:
			return 1
		}
		return 0
	})
	for i, x := range axes {
		at[i], dims[i] = x.at, x.size
	}
}
