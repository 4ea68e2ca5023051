package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// partsAhead is how many parts of its sums a thread reads at once: vectors of eight take
// half of the registers that a thread can have where a multiprocessor is full of them.
const partsAhead = 8

// partsAdder writes the kernel that adds up the parts of a contraction's sums, those of
// four neighbouring results in a thread.
type partsAdder struct {
	*mover
	results
	partial *group.Tensor
	parts   int
}

// addParts returns the launch that adds up parts in order and computes what follows the
// contraction; or false where not all that it touches lies in vectors, or where there are
// so few results that several threads should share one.
func addParts(e *emitter, g *group.Group, c *group.Contraction, parts int, partial *group.Tensor) (l Launch, ok bool) {
	n := group.Product(g.Outer)
	if n%width != 0 || n/width < enoughThreads(e.caps) {
		return Launch{}, false
	}
	m := newMover(newWriter(e.p, e.caps, mapThreads))
	a := &partsAdder{m, results{emitter: m.emitter, g: g, c: c}, partial, parts}
	m.threads(n/width, func(i scalar.Expr) { ok = a.four(i) })
	return m.launch(g.Name()), ok
}

// four writes the i-th four results, and reports whether all went by vectors.
func (a *partsAdder) four(i scalar.Expr) bool {
	sums := a.vars("sum", slices.Repeat([]scalar.Expr{scalar.ConstF(ir.F32, 0)}, width))
	at, each := make([]ir.Index, width), make([][]kept, width)
	for j, sum := range sums {
		at[j] = a.mover.unflatten(scalar.Add(scalar.Mul(i, loop.Int(width)), loop.Int(j)), a.g.Outer)
		each[j] = a.members(sum, at[j])
	}
	stores := sideBySide(each)
	a.see(a.part(at, loop.Int(0))...)
	for _, s := range stores {
		a.see(s.value)
	}
	a.seeStores(stores, width)
	a.settle()
	whole := a.parts / partsAhead * partsAhead
	if whole > 0 {
		a.loop("part", loop.Int(0), loop.Int(whole), partsAhead, whole-1, func(p scalar.Expr) { a.addUp(sums, at, p, partsAhead) })
	}
	a.addUp(sums, at, loop.Int(whole), a.parts-whole)
	a.store(stores, width, all(width))
	return len(a.scalars) == 0
}

// part is what one part brings to results.
func (a *partsAdder) part(at []ir.Index, p scalar.Expr) (values []scalar.Expr) {
	for _, x := range at {
		values = append(values, a.mover.emitter.load(a.partial, append(ir.Index{p}, x...)))
	}
	return values
}

// addUp adds so many parts to sums, one after the other.
func (a *partsAdder) addUp(sums []scalar.Expr, at []ir.Index, first scalar.Expr, count int) {
	var values []scalar.Expr
	for p := range count {
		values = append(values, a.part(at, scalar.Add(first, loop.Int(p)))...)
	}
	a.load(values)
	for j, sum := range sums {
		x := sum
		for p := range count {
			x = scalar.Add(x, values[p*width+j])
		}
		a.set(sum, x)
	}
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
