package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
)

// deviceWays are the ways of a contraction by what some devices have: multiply-adds of
// warp groups, and a library of products. In the browser nothing of it is called; its
// methods have other names than those of [ways] have, so that the linker knows.
type deviceWays struct {
	e       *emitter
	g       *fusion.Group
	c       *fusion.Contraction
	mma     *mmaPlan     // without a tile, nil where the target has no multiply-adds for it
	product *productPlan // nil where no library takes it
}

func newDeviceWays(e *emitter, g *fusion.Group, c *fusion.Contraction) deviceWays {
	w := deviceWays{e: e, g: g, c: c}
	w.mma, _ = planMma(e, g, c)
	w.product, _ = planProduct(e, g, c)
	return w
}

// ofDevice reports whether a schedule is one of these ways.
func ofDevice(s Schedule) bool { return s.Family == WarpGroups || s.Family == Library }

// rule returns what is expected to be faster than tiles, if anything is.
func (w *deviceWays) rule() (Schedule, bool) {
	var best *mmaPlan
	if w.mma != nil {
		best, _ = chooseMma(*w.mma, w.c, w.e.caps)
	}
	if p := w.product; p != nil && (w.e.caps.Products == loop.AllProducts || p.faster(w.c, w.e.caps, best)) {
		return Schedule{Family: Library}, true
	}
	if best != nil {
		return best.schedule(), true
	}
	return Schedule{}, false
}

// schedules are those that are worth comparing.
func (w *deviceWays) schedules() (list []Schedule) {
	if w.product != nil && w.product.pays(w.c) {
		list = append(list, Schedule{Family: Library})
	}
	if w.mma == nil {
		return list
	}
	for _, t := range mmaTilesOf(w.e.caps) {
		p := w.mma.in(t)
		p.split(w.c, p.wantedParts(w.c, w.e.caps))
		list = append(list, p.schedule())
	}
	return list
}

// plan completes the plan of multiply-adds by a schedule.
func (w *deviceWays) plan(s Schedule) mmaPlan {
	t, _ := mmaTileOf(s, w.e.caps)
	p := w.mma.in(t)
	p.split(w.c, s.Split)
	return p
}

func (w *deviceWays) cost(s Schedule) float64 {
	if s.Family == Library {
		return w.product.cost(w.c, w.e.caps)
	}
	p := w.plan(s)
	time := p.cost(w.c, w.e.caps)
	if w.product != nil { // what follows costs differently behind a library's product
		time += w.product.behind.within(w.e.caps)
	}
	return time
}

func (w *deviceWays) has(s Schedule) bool {
	if s.Family == Library {
		return w.product != nil && s == Schedule{Family: Library}
	}
	_, ok := mmaTileOf(s, w.e.caps)
	return ok && w.mma != nil
}

func (w *deviceWays) launches(s Schedule) []Launch {
	if s.Family == Library {
		return scheduleProduct(w.e, w.g, w.product)
	}
	p := w.plan(s)
	return scheduleMma(w.e, w.g, w.c, &p)
}

func (p *mmaPlan) schedule() Schedule {
	return Schedule{Family: WarpGroups, N: p.columns, Stages: p.stages, Split: p.parts}
}

func mmaTileOf(s Schedule, caps loop.Caps) (mmaTile, bool) {
	for _, t := range mmaTilesOf(caps) {
		if s == (Schedule{Family: WarpGroups, N: t.columns, Stages: t.stages, Split: s.Split}) {
			return t, true
		}
	}
	return mmaTile{}, false
}
