package cpu

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
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
		return p.widenReduction(name, code, outer, inner)
	}
	load, _ := lanesLoad(code)
	at, dims := slices.Concat(code.Outer, code.Inner[cut:]), slices.Concat(outer, inner[cut:])
	orderByStride(affineOf(load.Args[0]), at, dims)
	place := scalar.Simplify(linear(dims, at))
	ids := p.partialArrays(code, product(dims))
	first := partialReduction(name, code, at, code.Inner[:cut], ids, place)
	readPartials(code, ids, place)
	code.Inner = code.Inner[cut:]
	return inner[cut:], makeSteps(p.c, name+" lanes", first, dims, inner[:cut])
}

// partialArrays adds an array of n elements for each accumulator, in the order of the reductions.
func (p *nestArrays) partialArrays(code *fusion.Code, n int) (ids []int) {
	for _, r := range code.Stages[0].Reductions {
		for _, acc := range r.Accumulators {
			ids = append(ids, p.c.bufferID(p.c.scratch(acc.DType, n)))
		}
	}
	return ids
}

// partialReduction returns the code that reduces over inner coordinates and stores the accumulators at a place of
// their arrays.
func partialReduction(name string, code *fusion.Code, outer, inner []scalar.Expr, ids []int, place scalar.Expr) *fusion.Code {
	out := &fusion.Code{Outer: outer, Inner: inner, Stages: []fusion.Stage{{Lets: slices.Clone(code.Stages[0].Lets)}}}
	for _, r := range code.Stages[0].Reductions {
		r.Elements, r.Results = slices.Clone(r.Elements), nil
		for k, acc := range r.Accumulators {
			id := ids[len(out.Rows)]
			v := scalar.FreeVar(r.Running[k].Name+"_part"+strconv.Itoa(k), acc.DType)
			r.Results = append(r.Results, scalar.Local{Var: v, Value: r.Running[k]})
			out.Rows = append(out.Rows, fusion.ElementStore{Tensor: &fusion.Tensor{ID: id, Name: name, DType: acc.DType}, Offset: place, Value: v})
		}
		out.Stages[0].Reductions = append(out.Stages[0].Reductions, r)
	}
	return out
}

// readPartials makes a reduction combine the elements of arrays of accumulators.
func readPartials(code *fusion.Code, ids []int, place scalar.Expr) {
	next := 0
	for i := range code.Stages[0].Reductions {
		r := &code.Stages[0].Reductions[i]
		r.Elements = slices.Clone(r.Elements)
		for k, acc := range r.Accumulators {
			r.Elements[k] = scalar.LoadAt(ids[next], acc.DType, place)
			next++
		}
	}
}

// wideLanes is the number of lanes for which a reduction of narrow rows is widened.
const wideLanes = 256

// widenReduction makes the lanes of a reduction over many narrow rows, such as the points of a cloud, span several
// rows: one nest combines every rows-th row, another what remains of them, and the code the results.
func (p *nestArrays) widenReduction(name string, code *fusion.Code, outer, inner []int) ([]int, error) {
	width := narrowRow(code, outer, inner)
	if width == 0 {
		return inner, nil
	}
	rows := wideLanes / width
	steps, rest, along, last := inner[0]/rows, inner[0]%rows, code.Inner[0], len(outer)-1
	parts := rows + min(rest, 1)
	step := func(count int) scalar.Expr { return scalar.NewVar(along.Name, along.Type, 0, int64(count-1)) }
	part := scalar.NewVar(along.Name+"p", along.Type, 0, int64(rows-1))
	w := &widening{p: p, code: code, at: slices.Insert(slices.Clone(code.Outer), last, part), dims: slices.Insert(slices.Clone(outer), last, parts), axis: last, inner: inner}
	w.ids = p.partialArrays(code, product(w.dims))
	sizes := slices.Clone(w.dims)
	sizes[last] = rows
	err := w.emit(name+" lanes", w.at, sizes, steps, part, scalar.Add(scalar.Mul(step(steps), loop.Int(rows)), part))
	if err == nil && rest > 0 {
		err = w.emit(name+" rest", code.Outer, outer, rest, scalar.ConstI(along.Type, int64(rows)), scalar.Add(step(rest), loop.Int(steps*rows)))
	}
	readPartials(code, w.ids, w.place(scalar.NewVar(part.Name, part.Type, 0, int64(parts-1))))
	code.Inner = []scalar.Expr{scalar.NewVar(part.Name, part.Type, 0, int64(parts-1))}
	return []int{parts}, err
}

// widening is a reduction that is widened: the arrays of its accumulators have an axis of parts.
type widening struct {
	p    *nestArrays
	code *fusion.Code
	ids  []int
	at   []scalar.Expr // the coordinates of the arrays
	dims []int
	axis int // of the parts
	// The sizes of the inner coordinates, and the one along which the parts are.
	inner []int
	along int
}

// place returns the place of a part in the arrays.
func (w *widening) place(part scalar.Expr) scalar.Expr {
	at := slices.Clone(w.at)
	at[w.axis] = part
	return scalar.Simplify(linear(w.dims, at))
}

// emit emits the nest over outer coordinates that combines count rows, given by the inner coordinate, in a part.
func (w *widening) emit(name string, outer []scalar.Expr, dims []int, count int, part, row scalar.Expr) error {
	along, at, inner := w.code.Inner[w.along], slices.Clone(w.code.Inner), slices.Clone(w.inner)
	at[w.along], inner[w.along] = scalar.NewVar(along.Name, along.Type, 0, int64(count-1)), count
	x := partialReduction(name, w.code, outer, at, w.ids, w.place(part))
	s := scalar.NewSimplifier()
	for _, r := range x.Stages[0].Reductions {
		for i, e := range r.Elements {
			r.Elements[i] = s.Simplify(scalar.SubstituteVars(e, map[string]scalar.Expr{along.Name: row}))
		}
	}
	return w.p.emitWhole(name, x, dims, inner)
}

// narrowRow returns the number of contiguous outer points that a reduction over the rows of an array has as its
// lanes, where they fill no vector and elements depend on nothing else; 0 for other reductions.
func narrowRow(code *fusion.Code, outer, inner []int) int {
	if !jit.Available() || len(code.Stages) != 1 || len(code.Points) > 0 || len(inner) != 1 || len(outer) == 0 {
		return 0
	}
	width := outer[len(outer)-1]
	if width < 2 || width >= jit.Width() || len(code.Stages[0].Lets) > 0 || inner[0] < 4*wideLanes/width || product(outer)*inner[0] < minStagedPoints {
		return 0
	}
	along, lane := code.Inner[0], code.Outer[len(outer)-1]
	coordinate := isOneOf(slices.Concat(code.Outer, code.Inner))
	fits, seen := true, map[scalar.Expr]bool{}
	visit := func(e scalar.Expr) {
		if e.Op == scalar.OpLoad {
			sum := affineOf(e.Args[0])
			fits = fits && sum.coef(lane.Name) == 1 && sum.coef(along.Name) == width
			return
		}
		fits = fits && !coordinate(e)
	}
	for _, r := range code.Stages[0].Reductions {
		for i, e := range r.Elements {
			fits = fits && isWord(r.Accumulators[i].DType)
			walkToLoads(e, seen, visit)
		}
	}
	if !fits {
		return 0
	}
	return width
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

// orderInner sorts the inner coordinates of reductions by their strides in the array that depends on most
// coordinates, the longest first: points that memory has in order then are contiguous, in whichever order the axes
// are.
func orderInner(code *fusion.Code, inner []int) []int {
	code.Inner, inner = slices.Clone(code.Inner), slices.Clone(inner)
	sum, steps := widestLoad(code), affine{} // with the steps of places that are bounded, as in the parts of a concatenation
	for _, v := range code.Inner {
		if step, ok := sum.step(v.Name); ok && step != 0 {
			steps.terms = append(steps.terms, affineTerm{step, v})
		}
	}
	orderByStride(steps, code.Inner, inner)
	return inner
}

// widestLoad returns the offset of a load of reductions' elements that depends on most coordinates.
func widestLoad(code *fusion.Code) (best affine) {
	for _, s := range code.Stages {
		for _, r := range s.Reductions {
			for _, e := range r.Elements {
				scalar.Walk(e, func(x scalar.Expr) {
					if x.Op == scalar.OpLoad {
						if sum := affineOf(x.Args[0]); len(sum.terms) > len(best.terms) {
							best = sum
						}
					}
				})
			}
		}
	}
	return best
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
