//go:build amd64 || arm64

package jit

import (
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// rareSteps are steps that a vector skips where none of its lanes needs them. The code after them finds every value
// where the code before them left it, so that it need not know whether they were skipped.
type rareSteps struct {
	end     asm.Label
	results []Value // of the carries
	// What the allocator held where the steps begin.
	locations []location
	held      [2]file
	slots     []int
	slotCount int
}

// whenAny writes the jump over the steps up to the last carry, and reserves the registers of their results.
func (g *generator) whenAny() {
	g.rare = rareSteps{}
	condition := g.takeOver(g.work.args[0])
	first := g.now + 1
	for g.list[first].kind != carry {
		first++
	}
	for _, s := range g.list[first:] {
		if s.kind != carry {
			break
		}
		g.rare.results = append(g.rare.results, s.dst)
		p := &g.locations[s.dst]
		p.reg, p.pinned = g.reg(&g.vector, g.busy), true
	}
	g.jumpIfNone(condition, &g.rare.end)
}

// carry copies a result of rare steps to its register.
func (g *generator) carry(s *step) {
	g.copyVector(g.locations[s.dst].reg, g.in(s.args[0]))
}

// rareEdge records where values are after a step that begins rare ones, and moves them back there after the last.
func (g *generator) rareEdge(s *step) {
	switch {
	case s.kind == whenAny:
		g.rare.locations = slices.Clone(g.locations)
		g.rare.held = [2]file{g.vector.clone(), g.mask.clone()}
		g.rare.slots, g.rare.slotCount = slices.Clone(g.slots), g.slotCount
	case s.kind == carry && s.dst == g.rare.results[len(g.rare.results)-1]:
		g.restore()
		g.Bind(&g.rare.end)
		g.settle()
	}
}

func (f *file) clone() file { return file{free: slices.Clone(f.free), holds: maps.Clone(f.holds)} }

// restore loads the values that rare steps displaced to the registers that they were in.
func (g *generator) restore() {
	for _, f := range g.rare.held {
		for _, r := range slices.Sorted(maps.Keys(f.holds)) {
			v := f.holds[r]
			p := g.locations[v]
			if p.nextUse(g.now) != math.MaxInt && p.reg != r {
				p.reg = r
				g.spill(&p, false)
			}
		}
	}
}

// settle resets the allocator to its state before rare steps, with their results and without the values that died in
// them.
func (g *generator) settle() {
	g.vector, g.mask = g.rare.held[0], g.rare.held[1]
	g.slots = g.rare.slots
	for s := g.rare.slotCount; s < g.slotCount; s++ {
		g.slots = append(g.slots, s)
	}
	for i := range g.locations {
		p, old := &g.locations[i], &g.rare.locations[i]
		p.reg, p.slot = old.reg, old.slot
	}
	for _, v := range g.rare.results {
		p := &g.locations[v]
		p.pinned = false
		g.assign(v, p.reg)
	}
	for i, p := range g.locations {
		if p.reg != none || p.slot != none {
			g.release(Value(i))
		}
	}
}
