package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// besideEmitter writes a kernel of maps side by side, of each of which a thread has a vector.
type besideEmitter struct {
	*mover
	// at is the number of a thread in each part, and stores what it stores.
	at     map[*fusion.Group]string
	stores map[*fusion.Group][]kept
}

// mapsByVectors gives each thread a vector of neighbours of its part, on CUDA, or reports
// that some part does not lie so, or that all of them move no more than in the time of a
// launch, see [mapWays.large].
func mapsByVectors(e *emitter, name string, parts []*fusion.Group) (Launch, bool) {
	if !withMma || e.caps.Dialect != dtype.CUDA {
		return Launch{}, false
	}
	each, starts, bytes := Schedule{Family: Elements, Each: width}, make([]int, len(parts)+1), 0.0
	for i, part := range parts {
		w := newMapWays(e.another(), part)
		if !w.fits(each) || !w.byVectors() {
			return Launch{}, false
		}
		starts[i+1] = starts[i] + ceilDiv(fusion.Product(part.Outer)/width, mapThreads)
		bytes += bytesOf(part.Reads()) + bytesOf(part.Writes())
	}
	if bytes <= e.caps.Profile().LaunchBytes() {
		return Launch{}, false
	}
	b := &besideEmitter{newMover(e.another().writer(mapThreads)), map[*fusion.Group]string{}, map[*fusion.Group][]kept{}}
	for _, part := range parts {
		b.look(part)
	}
	b.settle()
	return b.partsAt(name, parts, starts, b.part), true
}

// look finds what a thread of a part stores.
func (b *besideEmitter) look(part *fusion.Group) {
	name := b.name("i")
	i := b.position(name, fusion.Product(part.Outer)/width)
	stores := b.values(part, b.reader(), newMapWays(b.emitter, part).neighbours(b.emitter, i, width)...)
	for i := range stores {
		stores[i].value = b.Simplify(stores[i].value)
		b.see(stores[i].value)
	}
	b.seeStores(stores, width)
	b.at[part], b.stores[part] = name, stores
}

// part is [writePart] for the vectors of a part.
func (b *besideEmitter) part(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
	body := b.nested(func() { b.store(b.stores[part], width, all(width)) })
	if n := fusion.Product(part.Outer) / width; span != n || b.overshoots() {
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(scalar.FreeVar(b.at[part], thread.Type), loop.Int(n)), Then: body}}
	}
	return append([]loop.Stmt{&loop.Let{Name: b.at[part], Value: thread}}, body...)
}
