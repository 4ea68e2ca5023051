package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// contractWays are the ways of a contraction: in tiles, as a reduction, or by what some
// devices have.
type contractWays struct {
	e         *emitter
	g         *fusion.Group
	c         *fusion.Contraction
	reduction *reduceWays
	device    deviceWays
}

func newContractWays(e *emitter, g *fusion.Group) *contractWays {
	w := &contractWays{e: e, g: g, c: fusion.ContractionOf(g.Members[0].Node, e.Simplifier)}
	w.reduction = &reduceWays{e, g.Reduction()}
	if withMma {
		w.device = newDeviceWays(e, g, w.c)
	}
	return w
}

func (w *contractWays) rule() Schedule {
	if withMma {
		if s, ok := w.device.rule(); ok {
			return s
		}
	}
	if t, parts, ok := chooseTile(w.c, w.e.caps); ok {
		if withMma {
			t, parts = w.pipelined(t, parts)
		}
		return t.schedule(parts)
	}
	if small(w.c) {
		return rowByFew(w.reduction.g)
	}
	return w.reduction.rule()
}

// ranked returns a schedule with its cost.
func (w *contractWays) ranked(s Schedule) Ranked {
	if withMma {
		if ofDevice(s) {
			return Ranked{s, w.device.cost(s)}
		}
	}
	if t, ok := tileOf(s); ok {
		return Ranked{s, t.cost(w.c, s.Split, w.e.caps)}
	}
	return Ranked{s, reductionCost(w.c, s, w.e.caps)}
}

func (w *contractWays) candidates() []Ranked {
	list := []Ranked{w.ranked(w.rule())}
	if w.e.caps.Products == loop.AllProducts && list[0].Family == Library {
		return list
	}
	list = append(list, w.ranked(w.reduction.rule()))
	if fusion.Product(w.c.K) <= shortSpace {
		list = append(list, w.ranked(rowAlone(w.reduction.g)), w.ranked(rowByFew(w.reduction.g)))
	}
	if !tileable(w.c) {
		return list
	}
	for _, t := range everyTile() {
		if t.fits(w.e.caps) && (t.stages == 0 || w.copied()) {
			list = append(list, w.ranked(t.schedule(t.parts(w.c, w.e.caps))), w.ranked(t.schedule(1)))
		}
	}
	if withMma {
		for _, s := range w.device.schedules() {
			list = append(list, w.ranked(s))
		}
	}
	return list
}

func (w *contractWays) fits(s Schedule) bool {
	if withMma {
		if ofDevice(s) {
			return w.device.has(s) && (s.Family == Library || w.cuts(s))
		}
	}
	if s.Family == Tiles || s.Family == Pipelined || s.Family == Fragments {
		t, ok := tileOf(s)
		return ok && tileable(w.c) && t.fits(w.e.caps) && w.cuts(s) && (t.stages == 0 || w.copied())
	}
	return w.reduction.fits(s)
}

// copied reports whether both operands lie in memory as copies can take them.
func (w *contractWays) copied() bool {
	return withMma && layoutOf(w.e, w.g, w.c, ir.F32, 0) != staged && layoutOf(w.e, w.g, w.c, ir.F32, 1) != staged
}

// cuts reports whether sums can be cut as a schedule says: into parts that are not
// empty, and that one array holds.
func (w *contractWays) cuts(s Schedule) bool {
	return s.Split >= 1 && s.Split <= fusion.Product(w.c.K) && (s.Split == 1 || s.Split <= mostParts(w.c, w.e.caps))
}

func (w *contractWays) emit(s Schedule) []Launch {
	if withMma {
		if ofDevice(s) {
			return w.device.launches(s)
		}
	}
	if t, ok := tileOf(s); ok {
		return scheduleTiles(w.e, w.g, w.c, t, s.Split)
	}
	return scheduleReduce(w.e, w.reduction.g, s)
}

func (t tile) schedule(parts int) Schedule {
	family := Tiles
	switch {
	case t.together > 1:
		family = Fragments
	case t.stages > 0:
		family = Pipelined
	}
	return Schedule{Family: family, M: t.m, N: t.n, K: t.k, RM: t.rm, RN: t.rn, Split: parts, Stages: t.stages}
}

// everyTile are all tiles there are, whatever the target.
func everyTile() []tile {
	if withMma {
		return slices.Concat(fragmentTiles, pipelinedTiles, tiles)
	}
	return tiles
}

// tileOf finds the tile of a schedule among those there are.
func tileOf(s Schedule) (tile, bool) {
	for _, t := range everyTile() {
		if t.schedule(s.Split) == s {
			return t, true
		}
	}
	return tile{}, false
}
