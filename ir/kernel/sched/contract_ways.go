package sched

import (
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

// contractWays are the ways of a contraction: in tiles, by multiply-adds of warp groups,
// by a library, or as a reduction.
type contractWays struct {
	e         *emitter
	g         *group.Group
	c         *group.Contraction
	reduction *reduceWays
	mma       *mmaPlan     // nil where the target has no multiply-adds for it
	product   *productPlan // nil where no library takes it
}

func newContractWays(e *emitter, g *group.Group) *contractWays {
	w := &contractWays{e: e, g: g, c: group.ContractionOf(g.Members[0].Node, e.Simplifier)}
	w.reduction = &reduceWays{e, g.Reduction()}
	if withMma {
		w.mma, _ = planMma(e, g, w.c)
		w.product, _ = planProduct(e, g, w.c)
	}
	return w
}

func (w *contractWays) rule() Schedule {
	var best *mmaPlan
	if w.mma != nil {
		best, _ = chooseMma(*w.mma, w.c, w.e.caps)
	}
	if p := w.product; p != nil && (w.e.caps.Products == loop.AllProducts || p.faster(w.c, w.e.caps, best)) {
		return Schedule{Family: Library}
	}
	if best != nil {
		return best.schedule()
	}
	if t, parts, ok := chooseTile(w.c, w.e.caps); ok {
		return t.schedule(parts)
	}
	if small(w.c) {
		return rowAlone(w.reduction.g)
	}
	return w.reduction.rule()
}

// ranked returns a schedule with its cost.
func (w *contractWays) ranked(s Schedule) Ranked {
	caps := w.e.caps
	switch s.Family {
	case Library:
		return Ranked{s, w.product.cost(w.c, caps)}
	case WarpGroups:
		t, _ := mmaTileOf(s)
		p := w.mma.in(t)
		p.split(w.c, s.Split)
		return Ranked{s, p.cost(w.c, caps)}
	case Tiles:
		t, _ := tileOf(s)
		return Ranked{s, t.cost(w.c, s.Split, caps)}
	}
	return Ranked{s, reductionCost(w.c, s, caps)}
}

func (w *contractWays) candidates() []Ranked {
	list := []Ranked{w.ranked(w.rule())}
	if w.product != nil && w.e.caps.Products == loop.AllProducts {
		return list
	}
	list = append(list, w.ranked(w.reduction.rule()))
	if group.Product(w.c.K) <= shortSpace {
		list = append(list, w.ranked(rowAlone(w.reduction.g)))
	}
	if !tileable(w.c) {
		return list
	}
	for _, t := range tiles {
		if t.fits(w.e.caps) {
			list = append(list, w.ranked(t.schedule(t.parts(w.c, w.e.caps))), w.ranked(t.schedule(1)))
		}
	}
	if p := w.product; p != nil && p.pays(w.c) {
		list = append(list, w.ranked(Schedule{Family: Library}))
	}
	for _, t := range mmaTiles {
		if w.mma != nil && t.sharedBytes() <= w.e.caps.MmaBytes {
			p := w.mma.in(t)
			p.split(w.c, p.wantedParts(w.c, w.e.caps))
			list = append(list, w.ranked(p.schedule()))
		}
	}
	return list
}

func (w *contractWays) fits(s Schedule) bool {
	switch s.Family {
	case Library:
		return w.product != nil && s == Schedule{Family: Library}
	case WarpGroups:
		t, ok := mmaTileOf(s)
		return ok && w.mma != nil && t.sharedBytes() <= w.e.caps.MmaBytes && w.cuts(s)
	case Tiles:
		t, ok := tileOf(s)
		return ok && tileable(w.c) && t.fits(w.e.caps) && w.cuts(s)
	}
	return w.reduction.fits(s)
}

// cuts reports whether sums can be cut as a schedule says: into parts that are not
// empty, and that one array holds.
func (w *contractWays) cuts(s Schedule) bool {
	sums := 4 * group.Product(w.c.Batch) * group.Product(w.c.M) * group.Product(w.c.N)
	return s.Split >= 1 && s.Split <= group.Product(w.c.K) && (s.Split == 1 || s.Split <= w.e.caps.BindingBytes/sums)
}

func (w *contractWays) emit(s Schedule) []Launch {
	switch s.Family {
	case Library:
		return scheduleProduct(w.e, w.g, w.product)
	case WarpGroups:
		t, _ := mmaTileOf(s)
		p := w.mma.in(t)
		p.split(w.c, s.Split)
		return scheduleMma(w.e, w.g, w.c, &p)
	case Tiles:
		t, _ := tileOf(s)
		return scheduleTiles(w.e, w.g, w.c, t, s.Split)
	}
	return scheduleReduce(w.e, w.reduction.g, s)
}

func (t tile) schedule(parts int) Schedule {
	return Schedule{Family: Tiles, M: t.m, N: t.n, K: t.k, RM: t.rm, RN: t.rn, Split: parts}
}

// tileOf finds the tile of a schedule among those there are.
func tileOf(s Schedule) (tile, bool) {
	for _, t := range tiles {
		if t.schedule(s.Split) == s {
			return t, true
		}
	}
	return tile{}, false
}

func (p *mmaPlan) schedule() Schedule {
	return Schedule{Family: WarpGroups, N: p.columns, Stages: p.stages, Split: p.parts}
}

func mmaTileOf(s Schedule) (mmaTile, bool) {
	for _, t := range mmaTiles {
		if s == (Schedule{Family: WarpGroups, N: t.columns, Stages: t.stages, Split: s.Split}) {
			return t, true
		}
	}
	return mmaTile{}, false
}
