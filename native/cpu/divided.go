package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The bounds of a reduction that is divided among workers.
const (
	minDividedPoints = 1 << 17 // all points
	minPartPoints    = 1 << 15 // points of a part
	maxDivision      = 64      // parts of all blocks of results
	minPartRows      = 16      // inner points of a part where the lanes are outer ones
	maxDividedRows   = 8       // results where the lanes are inner points: more are enough for the workers without parts
)

// division is a reduction of few results over many points, as of a channel over all positions, in parts along an inner
// axis: nests combine the points of each part, then the parts, and a map follows for each point what needs the results. The
// parts depend on the shape alone, so that results are the same for any number of workers.
type division struct {
	p            *nestArrays
	name         string
	code         *fusion.Code
	outer, inner []int
	axis         int // of inner
	steps        int // points along the axis of a part
	lets         []scalar.Local
}

// divisionOf returns the division of a reduction, nil for those that have enough work for all workers or too little to
// share.
func (p *nestArrays) divisionOf(name string, code *fusion.Code, outer, inner []int) *division {
	points, rows := product(outer)*product(inner), product(inner)
	if !jit.Available() || len(inner) == 0 || !p.dividable(code) {
		return nil
	}
	units, lanes := outsideLanes(code, outer)
	switch {
	case units == 0 || !lanes && units > maxDividedRows:
		return nil
	case !lanes:
		rows = points
	}
	d := &division{p: p, name: name, code: code, outer: outer, inner: inner}
	for i, n := range inner {
		if n > inner[d.axis] {
			d.axis = i
		}
	}
	parts := min(maxDivision/units, points/minPartPoints, rows/minPartRows, inner[d.axis])
	if parts < 2 {
		return nil
	}
	for least := parts / 2; parts > max(least, 2) && inner[d.axis]%parts != 0; {
		parts--
	}
	d.steps = (inner[d.axis] + parts - 1) / parts
	return d
}

// dividable reports whether code reduces, its stages can run one after the other for all outer points, as kernels can have their
// values, and it loads no array that it stores.
func (p *nestArrays) dividable(code *fusion.Code) bool {
	reduces := false
	isOther := func(t ir.DType) bool { return !isWord(t) && t != ir.F64 }
	isOtherLocal := func(x scalar.Local) bool { return isOther(x.Var.Type) }
	for _, s := range code.Stages {
		if s.Contraction != nil || slices.ContainsFunc(s.Lets, isOtherLocal) {
			return false
		}
		for _, r := range s.Reductions {
			reduces = true
			if slices.ContainsFunc(r.Results, isOtherLocal) || slices.ContainsFunc(r.Accumulators, func(a ir.Accumulator) bool { return isOther(a.DType) }) {
				return false
			}
		}
	}
	stored := map[*buffer]bool{}
	for _, x := range slices.Concat(code.Rows, code.Points) {
		stored[p.c.buffers[x.Tensor.ID]] = true
	}
	apart := true
	walkValues(code, func(x scalar.Expr) {
		apart = apart && !isCheck(x) && (x.Op != scalar.OpLoad || !stored[p.c.buffers[x.Ref]])
	})
	return reduces && apart
}

// outsideLanes returns the number of blocks of outer points, and whether the lanes are outer points rather than inner ones, as
// the array has them next to each other that depends on most coordinates; 0 where it has neither.
func outsideLanes(code *fusion.Code, outer []int) (units int, outside bool) {
	best := widestLoad(code)
	isNext := func(v scalar.Expr) bool { return best.coef(v.Name) == 1 }
	switch {
	case slices.ContainsFunc(code.Outer, isNext):
		return (product(outer) + blockLanes - 1) / blockLanes, true
	case slices.ContainsFunc(code.Inner, isNext):
		return product(outer), false
	}
	return 0, false
}

// emit adds the steps of a division.
func (d *division) emit() error {
	last := len(d.code.Stages) - 1
	for len(d.code.Stages[last].Reductions) == 0 {
		last--
	}
	for i, s := range d.code.Stages[:last+1] {
		d.lets = append(d.lets, s.Lets...)
		if len(s.Reductions) == 0 {
			continue
		}
		whole, parts, err := d.reduce(s)
		if err != nil {
			return err
		}
		var points []fusion.ElementStore
		if i == last {
			whole.Stages = append(whole.Stages, d.code.Stages[last+1:]...)
			whole.Rows = slices.Clone(d.code.Rows)
			points = d.readResults(whole)
		} else {
			for _, r := range s.Reductions {
				for _, x := range r.Results {
					d.lets = append(d.lets, scalar.Local{Var: x.Var, Value: d.keep(whole, x.Var)})
				}
			}
		}
		if err := makeSteps(d.p.c, d.name+" parts", whole, slices.Clone(d.outer), []int{parts}); err != nil {
			return err
		}
		if len(points) > 0 {
			return d.follow(points)
		}
	}
	return nil
}

// reduce adds the steps that combine the points of each part in a stage. It returns the code that combines the parts, and
// their number.
func (d *division) reduce(s fusion.Stage) (whole *fusion.Code, parts int, err error) {
	along, size := d.code.Inner[d.axis], d.inner[d.axis]
	full, rest := size/d.steps, size%d.steps
	parts = full + min(rest, 1)
	number := func(count int) scalar.Expr { return scalar.NewVar(along.Name+"d", along.Type, 0, int64(count-1)) }
	whole = &fusion.Code{Outer: d.code.Outer, Inner: d.code.Inner, Stages: []fusion.Stage{{Lets: slices.Clone(d.lets), Reductions: slices.Clone(s.Reductions)}}}
	w := &widening{
		p: d.p, code: whole, inner: d.inner, along: d.axis,
		at: slices.Insert(slices.Clone(whole.Outer), 0, number(parts)), dims: slices.Insert(slices.Clone(d.outer), 0, parts),
	}
	w.ids = d.p.partialArrays(whole, product(w.dims))
	step := func(count int) scalar.Expr { return scalar.NewVar(along.Name, along.Type, 0, int64(count-1)) }
	outer, dims := slices.Clone(w.at), slices.Clone(w.dims)
	outer[0], dims[0] = number(full), full
	err = w.emit(d.name, outer, dims, d.steps, outer[0], scalar.Add(scalar.Mul(outer[0], loop.Int(d.steps)), step(d.steps)))
	if err == nil && rest > 0 {
		err = w.emit(d.name+" rest", whole.Outer, d.outer, rest, scalar.ConstI(along.Type, int64(full)), scalar.Add(step(rest), loop.Int(full*d.steps)))
	}
	readPartials(whole, w.ids, w.place(number(parts)))
	whole.Inner = []scalar.Expr{number(parts)}
	return whole, parts, err
}

// keep makes code store a value of the outer point in an array, and returns its load.
func (d *division) keep(code *fusion.Code, value scalar.Expr) scalar.Expr {
	id, place := d.p.c.bufferID(d.p.c.scratch(value.Type, product(d.outer))), scalar.Simplify(linear(d.outer, d.code.Outer))
	code.Rows = append(code.Rows, fusion.ElementStore{Tensor: &fusion.Tensor{ID: id, Name: d.name, DType: value.Type}, Offset: place, Value: value})
	return scalar.LoadAt(id, value.Type, place)
}

// readResults returns the stores of the inner points, whose values of the outer point are loads of arrays that code
// stores.
func (d *division) readResults(code *fusion.Code) []fusion.ElementStore {
	named, loads := map[string]bool{}, map[string]scalar.Expr{}
	for _, s := range code.Stages {
		for _, x := range s.Lets {
			named[x.Var.Name] = true
		}
		for _, r := range s.Reductions {
			for _, x := range r.Results {
				named[x.Var.Name] = true
			}
		}
	}
	points := slices.Clone(d.code.Points)
	for i, p := range points {
		points[i].Value = scalar.Substitute(p.Value, func(x scalar.Expr) (scalar.Expr, bool) {
			if x.Op != scalar.OpVar || !named[x.Name] {
				return x, false
			}
			if loads[x.Name] == nil {
				loads[x.Name] = d.keep(code, x)
			}
			return loads[x.Name], true
		})
	}
	return points
}

// follow adds the steps of stores for each inner point.
func (d *division) follow(points []fusion.ElementStore) error {
	at, dims := slices.Concat(d.code.Outer, d.code.Inner), slices.Concat(d.outer, d.inner)
	orderByStride(affineOf(points[0].Offset), at, dims)
	return d.p.c.nest(d.name, &fusion.Code{Outer: at, Rows: points}, dims, nil, nil)
}
