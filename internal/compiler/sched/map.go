package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxWordWeight is the maximum number of operations of a thread that computes all elements of a
// word, which are unrolled.
const maxWordWeight = 128

// perThread returns the number of elements per thread: 1, or the elements of a word where the
// target stores whole words only.
func (e *emitter) perThread(part *fusion.Group) int {
	per := 1
	for _, t := range part.Writes() {
		per = max(per, e.caps.StoreUnit(t.DType))
	}
	if fusion.Product(part.Outer)%per != 0 || per*part.Weight() > maxWordWeight {
		return 1
	}
	return per
}

// mapSpace is the schedule space of a map: elements per thread, and whether operands are
// transposed through workgroup memory.
type mapSpace struct {
	e *emitter
	g *fusion.Group
	// accesses caches the memory accesses of the map at the point at, see look.
	accesses []access
	at       ir.Index // the point
}

// access is an access to an element of a tensor, addressed in terms of a point's coordinates.
type access struct {
	root *fusion.Tensor
	at   scalar.Expr
}

func newMapSpace(e *emitter, g *fusion.Group) *mapSpace { return &mapSpace{e: e, g: g} }

// maxEach bounds the elements per thread, maxVectorWeight the operations of a thread that has
// several.
const (
	maxEach         = 8
	maxVectorWeight = 600
)

// minGain is the factor by which a schedule's cost must undercut that of the plain one: costs
// are estimates, and other kernels have longer text.
const minGain = 1.05

func (w *mapSpace) rule() Schedule { return w.candidates()[0].Schedule }

// candidates returns the cheapest schedule first where it gains minGain.
func (w *mapSpace) candidates() []Ranked {
	plain := Schedule{Family: Elements, Each: w.e.perThread(w.g)}
	list := []Ranked{{plain, 0}}
	if !w.large() {
		return list
	}
	list[0].Cost = w.cost(plain)
	for each := width; each <= maxEach; each *= 2 {
		if s := (Schedule{Family: Elements, Each: each}); s != plain && w.fits(s) && w.vectorizes() {
			list = append(list, Ranked{s, w.cost(s)})
		}
	}
	// Sides of 32 and more: a warp then reads and writes whole cache lines.
	for _, tile := range [][2]int{{64, 32}, {32, 64}, {32, 32}} {
		if s := (Schedule{Family: Transposed, M: tile[0], N: tile[1]}); w.fits(s) {
			list = append(list, Ranked{s, w.cost(s)})
		}
	}
	best := 0
	for i, r := range list {
		if r.Cost < list[best].Cost {
			best = i
		}
	}
	if list[0].Cost > minGain*list[best].Cost {
		list[0], list[best] = list[best], list[0]
	}
	return list
}

// large reports whether a map moves enough bytes for another schedule to pay: a map that is
// shorter than a launch is as fast by any.
func (w *mapSpace) large() bool {
	return len(w.g.Copies) == 0 && bytesOf(w.g.Reads())+bytesOf(w.g.Writes()) > w.e.caps.Profile().LaunchBytes()
}

func (w *mapSpace) fits(s Schedule) bool {
	switch s.Family {
	case Elements:
		rule := w.e.perThread(w.g)
		whole := s.Each >= 1 && s.Each <= maxEach && s.Each%rule == 0 && fusion.Product(w.g.Outer)%s.Each == 0
		return s == Schedule{Family: Elements, Each: s.Each} && (s.Each == rule || whole && len(w.g.Copies) == 0 && w.unrollable(s.Each))
	case Transposed:
		if s != (Schedule{Family: Transposed, M: s.M, N: s.N}) || len(w.g.Copies) > 0 || w.e.caps.Invocations < mapThreads {
			return false
		}
		_, ok := w.transposition(s)
		return ok
	}
	return false
}

// unrollable reports whether the text of each unrolled elements is short enough. Subexpressions
// that a vector shares, such as a block of random bits, count once.
func (w *mapSpace) unrollable(each int) bool {
	return each*w.g.Weight() <= maxVectorWeight || each == width && w.vectorOps(each) <= maxVectorWeight
}

// look returns the memory accesses of the map at a symbolic point.
func (w *mapSpace) look() []access {
	if w.accesses != nil {
		return w.accesses
	}
	w.at = fusion.Coords("c", w.g.Outer)
	stores := w.e.values(w.g, w.e.reader(), w.at)
	values := make([]scalar.Expr, len(stores))
	for i, s := range stores {
		root, at := w.e.p.Place(s.t, s.at)
		w.accesses = append(w.accesses, access{root, w.e.Simplify(at)})
		values[i] = s.value
	}
	seen := map[string]bool{}
	for _, x := range values {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 && !seen[scalar.Key(n)] {
				seen[scalar.Key(n)] = true
				w.accesses = append(w.accesses, access{w.e.p.Tensor(n.Ref), w.e.Simplify(n.Args[0])})
			}
		})
	}
	return w.accesses
}

// steps returns the stride of an access along each coordinate, or false where the address is
// not affine.
func (w *mapSpace) steps(a access) (steps []int, ok bool) {
	factors := map[string]int{}
	if !linearTerms(a.at, 1, factors) {
		return nil, false
	}
	for _, c := range w.at {
		steps = append(steps, factors[c.Name])
	}
	return steps, true
}

// vectorizes reports whether all accesses are contiguous or uniform along the last axis, so
// that the elements of a thread are vectors.
func (w *mapSpace) vectorizes() bool {
	last := len(w.g.Outer) - 1
	return last >= 0 && !slices.ContainsFunc(w.look(), func(a access) bool {
		steps, ok := w.steps(a)
		return a.root.Bytes() > 0 && (!ok || steps[last] > 1 || steps[last] < 0)
	})
}

// cost estimates the time to move the operands and results, in sectors as a warp accesses them.
func (w *mapSpace) cost(s Schedule) float64 {
	n, each := fusion.Product(w.g.Outer), max(s.Each, 1)
	if s.Family == Transposed {
		each = s.M * s.N / mapThreads
	}
	t := hardware.Work{Bytes: bytesOf(w.g.Reads()) + bytesOf(w.g.Writes()), Threads: n / each, BytesInFlight: w.elementBytes() * each}
	for _, a := range w.look() {
		t.Sectors += float64(n) * hardware.SectorBytes / float64(w.sectorUse(a, s.Family == Transposed))
	}
	t.Ops = float64(n/each) * (w.vectorOps(s.Each) + pointOps)
	if s.Family == Transposed {
		t.Ops = float64(n) * float64(w.g.Weight()+pointOps)
	}
	return t.Time(w.e.caps.Profile())
}

// elementBytes returns the size of the largest element that is moved at each point.
func (w *mapSpace) elementBytes() int {
	size := 1
	for _, t := range slices.Concat(w.g.Reads(), w.g.Writes()) {
		if t.Len() >= fusion.Product(w.g.Outer) {
			size = max(size, loop.DeviceSize(t.DType))
		}
	}
	return size
}

// vectorOps counts the operations of a thread with each contiguous elements, shared
// subexpressions once.
func (w *mapSpace) vectorOps(each int) float64 {
	seen := map[*scalar.Node]bool{}
	i := w.e.position("i", fusion.Product(w.g.Outer)/max(each, 1))
	for _, s := range w.e.values(w.g, w.e.reader(), w.contiguous(w.e, i, each)...) {
		scalar.Walk(w.e.Simplify(s.value), func(n scalar.Expr) {
			if len(n.Args) > 0 {
				seen[n] = true
			}
		})
	}
	return float64(len(seen))
}

// contiguous returns the coordinates of the i-th run of each contiguous elements.
func (w *mapSpace) contiguous(e *emitter, i scalar.Expr, each int) []ir.Index {
	at := make([]ir.Index, each)
	for k := range at {
		at[k] = e.unflatten(scalar.Add(scalar.Mul(i, loop.Int(each)), loop.Int(k)), w.g.Outer)
	}
	return at
}

// sectorUse returns the number of elements that a warp's access uses of each sector.
func (w *mapSpace) sectorUse(a access, turned bool) int {
	steps, ok := w.steps(a)
	last, elements := len(steps)-1, hardware.SectorBytes/loop.DeviceSize(a.root.DType)
	switch {
	case !ok:
		return 1
	case last < 0 || steps[last] <= 1 || turned && slices.Contains(steps, 1):
		return elements
	}
	return max(1, elements/steps[last])
}

func (w *mapSpace) emit(s Schedule) []Launch {
	switch {
	case fusion.Product(w.g.Outer) == 0:
		return nil
	case s.Family == Transposed:
		return []Launch{w.transposed(s)}
	case s.Each > w.e.perThread(w.g):
		return []Launch{w.vectorized(s.Each)}
	}
	return scheduleMaps(w.e, w.g.Name(), []*fusion.Group{w.g})
}

// vectorized gives each thread each contiguous elements.
func (w *mapSpace) vectorized(each int) Launch {
	m := newVectorizer(w.e.sibling().writer(mapThreads))
	m.threads(fusion.Product(w.g.Outer)/each, func(i scalar.Expr) {
		stores := m.values(w.g, m.reader(), w.contiguous(m.emitter, i, each)...)
		for i := range stores {
			stores[i].value = m.Simplify(stores[i].value) // exposes common subexpressions
			m.observe(stores[i].value)
		}
		m.observeStores(stores, each)
		m.decide()
		m.store(stores, each, all(each))
	})
	return m.launch(w.g.Name())
}

// scheduleMaps lowers maps with perThread elements per thread. Horizontally fused groups take
// consecutive ranges of workgroups, so that no workgroup diverges.
func scheduleMaps(e *emitter, name string, parts []*fusion.Group) []Launch {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *fusion.Group) bool { return fusion.Product(p.Outer) == 0 })
	starts := make([]int, len(parts)+1)
	for i, part := range parts {
		threads := fusion.Product(part.Outer) / e.perThread(part)
		starts[i+1] = starts[i] + ceilDiv(threads, mapThreads)
	}
	if starts[len(parts)] == 0 {
		return nil
	}
	return []Launch{e.fuseParts(name, parts, starts, e.mapPart)}
}

// writePart returns the statements of one thread of a part, by the thread's number; there are
// span threads.
type writePart func(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt

// fuseParts returns the kernel of horizontally fused parts. starts are the first workgroups of
// the parts, then the end of the last.
func (e *emitter) fuseParts(name string, parts []*fusion.Group, starts []int, write writePart) Launch {
	e.workgroup = [3]int{mapThreads, 1, 1}
	workgroup := e.linearGroup(starts[len(parts)])
	return e.finish(name, e.branchParts(parts, starts, workgroup, loop.LocalID(0, mapThreads), write))
}

// branchParts branches to the part of a workgroup by binary search, since languages bound the
// nesting of statements. starts are as in fuseParts.
func (e *emitter) branchParts(parts []*fusion.Group, starts []int, workgroup, lane scalar.Expr, write writePart) []loop.Stmt {
	if len(parts) == 1 {
		first := scalar.Sub(workgroup, loop.Int(starts[0]))
		flat := scalar.Add(scalar.Mul(first, loop.Int(mapThreads)), lane)
		return write(parts[0], flat, (starts[1]-starts[0])*mapThreads)
	}
	half := len(parts) / 2
	return []loop.Stmt{&loop.If{
		Cond: scalar.Lt(workgroup, loop.Int(starts[half])),
		Then: e.branchParts(parts[:half], starts[:half+1], workgroup, lane, write),
		Else: e.branchParts(parts[half:], starts[half:], workgroup, lane, write),
	}}
}

// mapPart is [writePart] with perThread elements per thread.
func (e *emitter) mapPart(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
	per := e.perThread(part)
	n := fusion.Product(part.Outer) / per
	name := e.name("i")
	i := scalar.NewVar(name, thread.Type, 0, int64(n-1))
	at := make([]ir.Index, per)
	for k := range at {
		at[k] = e.unflatten(scalar.Add(scalar.Mul(i, loop.Int(per)), loop.Int(k)), part.Outer)
	}
	body := e.mapElements(part, at...)
	if span != n || e.overshoots() {
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(scalar.FreeVar(name, thread.Type), loop.Int(n)), Then: body}}
	}
	return append([]loop.Stmt{&loop.Let{Name: name, Value: thread}}, body...)
}

// mapElements computes the elements of a map's results at some points.
func (e *emitter) mapElements(g *fusion.Group, at ...ir.Index) []loop.Stmt {
	body := e.points(g, e.reader(), at...)
	for _, c := range g.Copies {
		for _, at := range at {
			body = append(body, e.copyElement(c, at)...)
		}
	}
	return body
}

func (e *emitter) copyElement(c fusion.Copy, at ir.Index) []loop.Stmt {
	at = fusion.Spread(at, c.To.Dims)
	value := c.Literal
	if c.From != nil {
		value = e.load(c.From, at)
	}
	return e.store(c.To, at, value)
}

// fusedMapEmitter writes a kernel of horizontally fused maps with a vector per thread.
type fusedMapEmitter struct {
	*vectorizer
	// at is the variable of the thread number in each part, stores are its stores.
	at     map[*fusion.Group]string
	stores map[*fusion.Group][]pendingStore
}

// vectorizedMaps fuses maps horizontally with a vector per thread, on CUDA. It reports false
// where a part does not vectorise, or where all parts together are shorter than a launch, see
// [mapSpace.large].
func vectorizedMaps(e *emitter, name string, parts []*fusion.Group) (Launch, bool) {
	if !withMma || e.caps.Dialect != dtype.CUDA {
		return Launch{}, false
	}
	each, starts, bytes := Schedule{Family: Elements, Each: width}, make([]int, len(parts)+1), 0.0
	for i, part := range parts {
		w := newMapSpace(e.sibling(), part)
		if !w.fits(each) || !w.vectorizes() {
			return Launch{}, false
		}
		starts[i+1] = starts[i] + ceilDiv(fusion.Product(part.Outer)/width, mapThreads)
		bytes += bytesOf(part.Reads()) + bytesOf(part.Writes())
	}
	if bytes <= e.caps.Profile().LaunchBytes() {
		return Launch{}, false
	}
	b := &fusedMapEmitter{newVectorizer(e.sibling().writer(mapThreads)), map[*fusion.Group]string{}, map[*fusion.Group][]pendingStore{}}
	for _, part := range parts {
		b.collect(part)
	}
	b.decide()
	return b.fuseParts(name, parts, starts, b.part), true
}

// collect computes the stores of a thread of a part.
func (b *fusedMapEmitter) collect(part *fusion.Group) {
	name := b.name("i")
	i := b.position(name, fusion.Product(part.Outer)/width)
	stores := b.values(part, b.reader(), newMapSpace(b.emitter, part).contiguous(b.emitter, i, width)...)
	for i := range stores {
		stores[i].value = b.Simplify(stores[i].value)
		b.observe(stores[i].value)
	}
	b.observeStores(stores, width)
	b.at[part], b.stores[part] = name, stores
}

// part is [writePart] with a vector per thread.
func (b *fusedMapEmitter) part(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
	body := b.nested(func() { b.store(b.stores[part], width, all(width)) })
	if n := fusion.Product(part.Outer) / width; span != n || b.overshoots() {
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(scalar.FreeVar(b.at[part], thread.Type), loop.Int(n)), Then: body}}
	}
	return append([]loop.Stmt{&loop.Let{Name: b.at[part], Value: thread}}, body...)
}
