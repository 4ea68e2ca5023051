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
	*registers
	list    []step // of the current section
	end     asm.Label
	results []Value   // of the carries
	before  allocator // where the steps begin
}

// whenAny writes the jump over the steps up to the last carry, and reserves the registers of their results.
func (r *rareSteps) whenAny() {
	r.end, r.results = asm.Label{}, nil
	condition := r.takeOver(r.work.args[0])
	first := r.now + 1
	for r.list[first].kind != carry {
		first++
	}
	for _, s := range r.list[first:] {
		if s.kind != carry {
			break
		}
		r.results = append(r.results, s.dst)
		p := &r.locations[s.dst]
		p.reg, p.pinned = r.reg(&r.vector, r.busy), true
	}
	r.jumpIfNone(condition, &r.end)
}

// carry copies a result of rare steps to its register.
func (r *rareSteps) carry(s *step) {
	r.copyVector(r.locations[s.dst].reg, r.in(s.args[0]))
}

// edge records where values are after a step that begins rare ones, and moves them back there after the last.
func (r *rareSteps) edge(s *step) {
	switch {
	case s.kind == whenAny:
		r.before = r.allocator.clone(r.before.locations)
	case s.kind == carry && s.dst == r.results[len(r.results)-1]:
		r.restore()
		r.Bind(&r.end)
		r.settle()
	}
}

// clone returns a copy of which registers and slots hold what, with the locations in the memory of earlier ones.
func (a *allocator) clone(earlier []location) allocator {
	c := *a
	c.vector, c.mask, c.locations, c.slots = a.vector.clone(), a.mask.clone(), append(earlier[:0], a.locations...), slices.Clone(a.slots)
	return c
}

func (f *file) clone() file { return file{free: slices.Clone(f.free), holds: maps.Clone(f.holds)} }

// restore loads the values that rare steps displaced to the registers that they were in.
func (r *rareSteps) restore() {
	for _, f := range []file{r.before.vector, r.before.mask} {
		for _, reg := range slices.Sorted(maps.Keys(f.holds)) {
			v := f.holds[reg]
			p := r.locations[v]
			if p.nextUse(r.now) != math.MaxInt && p.reg != reg {
				p.reg = reg
				r.spill(&p, false)
			}
		}
	}
}

// settle resets the allocator to its state before rare steps, with their results and without the values that died in
// them.
func (r *rareSteps) settle() {
	r.vector, r.mask, r.slots = r.before.vector, r.before.mask, r.before.slots
	for s := r.before.slotCount; s < r.slotCount; s++ {
		r.slots = append(r.slots, s)
	}
	for i := range r.locations {
		p, old := &r.locations[i], &r.before.locations[i]
		p.reg, p.slot = old.reg, old.slot
	}
	for _, v := range r.results {
		p := &r.locations[v]
		p.pinned = false
		r.assign(v, p.reg)
	}
	for i, p := range r.locations {
		if p.reg != none || p.slot != none {
			r.release(Value(i))
		}
	}
}
