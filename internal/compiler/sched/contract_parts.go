package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// partsAhead is how many parts of four sums a thread reads at once at most: 64 registers.
const partsAhead = 16

// addParts returns the launch that adds up the parts of a contraction's sums in order, four
// neighbouring results in a thread, and computes what follows it; or false where not all
// that it touches lies in vectors, where parts are many, or where there are so few results
// that several threads should share one.
func addParts(e *emitter, g *fusion.Group, c *fusion.Contraction, parts int, partial *fusion.Tensor) (l Launch, ok bool) {
	n := fusion.Product(g.Outer)
	if n%width != 0 || n/width < enoughThreads(e.caps) || parts > partsAhead {
		return Launch{}, false
	}
	m := newMover(e.another().writer(mapThreads))
	r := results{emitter: m.emitter, g: g, c: c}
	m.threads(n/width, func(i scalar.Expr) {
		each := make([][]kept, width)
		for j := range each {
			at := m.unflatten(scalar.Add(scalar.Mul(i, loop.Int(width)), loop.Int(j)), g.Outer)
			sum := m.emitter.load(partial, append(ir.Index{loop.Int(0)}, at...))
			for p := 1; p < parts; p++ {
				sum = scalar.Add(sum, m.emitter.load(partial, append(ir.Index{loop.Int(p)}, at...)))
			}
			each[j] = r.members(sum, at)
		}
		stores := sideBySide(each)
		for _, s := range stores {
			m.see(s.value)
		}
		m.seeStores(stores, width)
		m.settle()
		m.store(stores, width, all(width))
	})
	return m.launch(g.Name()), len(m.scalars) == 0
}

// sideBySide returns what neighbours store, the elements of a tensor one after the other.
func sideBySide(each [][]kept) (stores []kept) {
	for i := range each[0] {
		for _, own := range each {
			stores = append(stores, own[i])
		}
	}
	return stores
}
