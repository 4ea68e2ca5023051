package reduce

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// packedCandidates returns the schedules of a product with packed weights that are worth measuring: more
// and fewer rows, other slices, other rings, and rows without words.
func packedCandidates(w *Space, rule emit.Schedule) []emit.Ranked {
	cost := func(s emit.Schedule) float64 {
		c, _ := w.sliceCost(s.K - 1)
		d := w.e.Caps.Profile()
		cycles := c * float64(fusion.Product(w.Group.Inner)) / loop.Warp * rowsCost(w.e, w.Group, s)
		work := hardware.Work{Bytes: emit.BytesOf(w.Group.Reads()), Sectors: emit.BytesOf(w.Group.Reads())}
		return max(work.Time(d), cycles/d.Clock)
	}
	list := []emit.Ranked{{Schedule: rule, Cost: cost(rule)}}
	add := func(s emit.Schedule) {
		if s != rule && packedFits(w, s) {
			list = append(list, emit.Ranked{Schedule: s, Cost: cost(s)})
		}
	}
	for _, rows := range []int{rule.Rows / 4, rule.Rows / 2, 2 * rule.Rows} {
		s := rule
		s.Rows = rows
		add(s)
	}
	if s := rule; s.M > 0 {
		s.M = 0
		add(s)
	}
	for number, split := range rowSlices {
		if w.Group.Inner[0]%split.block == 0 {
			add(packedSchedule(w.e, w.Group, number))
		}
	}
	if emit.WithMma {
		for _, s := range otherRings(w, rule) {
			add(s)
		}
	}
	plain := shapeRows(w.e, w.Group)
	return append(list, emit.Ranked{Schedule: plain, Cost: w.cost(plain)})
}

// packedFits reports whether a product with packed weights can have a schedule.
func packedFits(w *Space, s emit.Schedule) bool {
	e, g := w.e, w.Group
	if s.K < 1 || s.K > len(rowSlices) || s != (emit.Schedule{Family: emit.PackedRows, M: s.M, K: s.K, Lanes: s.Lanes, Rows: s.Rows, Each: s.Each, Stages: s.Stages}) || !isPacked(e, g) {
		return false
	}
	split := rowSlices[s.K-1]
	if g.Inner[0]%split.block != 0 || s.Lanes%loop.Warp != 0 || s.Lanes < loop.Warp || s.Lanes > e.Caps.Invocations ||
		s.Rows < 1 || s.Rows > min(maxPackedRows, s.Lanes) || !packedDivides(g, s.Rows) {
		return false
	}
	if s.M != 0 && (s.M < 0 || s.Stages > 0 || s.M*s.Lanes > e.Caps.Invocations) {
		return false
	}
	if s.Stages > 0 || s.Each > 0 {
		if !emit.WithMma || !hasRing(w, s) {
			return false
		}
	}
	turns := emit.CeilDiv(g.Inner[0]/split.elements(), s.Lanes)
	_, ok := w.sliceCost(s.K - 1)
	return ok && turns*split.elements() <= 2*maxPackedElements
}

// sliceCost is [sliceCost] of one of [rowSlices], which is computed once.
func (w *Space) sliceCost(number int) (float64, bool) {
	if w.slices == nil {
		w.slices = make([]float64, len(rowSlices))
	}
	c := &w.slices[number]
	if *c == 0 {
		var ok bool
		if *c, ok = sliceCost(w.e, w.Group, rowSlices[number]); !ok {
			*c = -1
		}
	}
	return *c, *c >= 0
}

// sliceCost returns cycles per element of a thread's slice: of instructions, by four schedulers, and of
// the cache lines that loads of a warp touch. It is false where the weights do not factor.
func sliceCost(e *emit.Emitter, g *fusion.Group, split rowSlice) (float64, bool) {
	p := newPackedRows(e.Sibling(), g, split)
	p.first = scalar.NewVar("first", ir.I32, 0, int64(fusion.Product(g.Outer)-1))
	p.thread(scalar.NewVar("slice", ir.I32, 0, int64(g.Inner[0]/split.elements()-1)))
	before := len(p.Body)
	var values []scalar.Expr
	for _, m := range p.members {
		terms, ok := p.terms(m, p.first, p.slice[0])
		if !ok {
			return 0, false
		}
		for _, t := range p.weights.inWords(terms) {
			values = append(values, append(t.numbers, t.scale, t.offset)...)
			for _, q := range t.quads {
				values = append(values, q.weights)
			}
		}
	}
	values = slices.DeleteFunc(values, func(x scalar.Expr) bool { return x == nil })
	loads, ops := 0, len(values)
	for _, s := range append(p.Body[before:], p.NameAll(values)...) {
		loop.EachNode(s, func(n scalar.Expr) {
			switch {
			case n.Op == scalar.OpLoad:
				loads++
			case emit.WithMma && p.rounding != nil && isFree(n):
			case len(n.Args) > 0:
				ops++
			}
		})
	}
	elements := split.elements() * len(p.members)
	bytes := 0
	for _, t := range g.Reads() {
		if t.DType == ir.U8 {
			bytes += t.Len()
		}
	}
	perSlice := float64(bytes) / float64(fusion.Product(g.Outer)) / float64(g.Inner[0]/split.elements()) / float64(len(p.members))
	const schedulers, line = 4, 128
	if emit.WithMma && p.rounding != nil {
		return integerCost(ops, loads) / float64(elements), true
	}
	return (float64(ops)/schedulers + float64(loads)*(1+loop.Warp*perSlice/line)) / float64(elements), true
}
