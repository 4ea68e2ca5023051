package elementwise

import (
	"math/bits"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
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
func perThread(e *emit.Emitter, part *fusion.Group) int {
	per := 1
	for _, t := range part.Writes() {
		per = max(per, e.Caps.StoreUnit(t.DType))
	}
	if fusion.Product(part.Outer)%per != 0 || per*part.Weight() > maxWordWeight {
		return 1
	}
	return per
}

// Space is the schedule space of a map: elements per thread, and whether operands are
// transposed through workgroup memory.
type Space struct {
	e     *emit.Emitter
	Group *fusion.Group // the map
	// accesses caches the memory accesses of the map at the point at, see findAccesses.
	accesses []access
	at       ir.Index // the point
}

// access is an access to an element of a tensor, addressed in terms of a point's coordinates.
type access struct {
	root *fusion.Tensor
	at   scalar.Expr
}

// NewSpace returns the schedule space of a map.
func NewSpace(e *emit.Emitter, g *fusion.Group) *Space { return &Space{e: e, Group: g} }

// maxEach bounds the elements per thread: 16 bytes of 16-bit types, two vectors of f32. maxVectorWeight bounds the
// operations of a thread that has several, and with them the text of the kernel: it is fusion's bound for a group
// (maxGroupWeight).
const (
	maxEach         = 8
	maxVectorWeight = 600
)

// minGain is the factor by which a schedule's cost must undercut that of the plain one: costs
// are estimates, and other kernels have longer text.
const minGain = 1.05

// Rule returns the default schedule, see [emit.Space].
func (w *Space) Rule() emit.Schedule { return w.Candidates()[0].Schedule }

// Candidates returns the cheapest schedule first where it gains minGain.
func (w *Space) Candidates() []emit.Ranked {
	plain := emit.Schedule{Family: emit.Elements, Each: perThread(w.e, w.Group)}
	list := []emit.Ranked{{Schedule: plain, Cost: 0}}
	if !w.large() {
		return list
	}
	alone := w.cost(plain)
	list[0].Cost = alone
	vectors := w.vectorizes() || w.joinsVectors()
	for each := emit.VectorWidth; each <= maxEach; each *= 2 {
		s := emit.Schedule{Family: emit.Elements, Each: each}
		switch {
		case s == plain || !w.Fits(s):
		case vectors && w.prefersVectors(s, list[0].Cost):
			list = append([]emit.Ranked{{Schedule: s, Cost: w.cost(s)}}, list...)
		case vectors:
			list = append(list, emit.Ranked{Schedule: s, Cost: w.cost(s)})
		case emit.WithMma && w.storesVectors():
			list = append(list, emit.Ranked{Schedule: s, Cost: alone - w.unhidden(plain) + w.unhidden(s)})
			if each == emit.VectorWidth && w.vectorOps(each) <= maxGatheredOps {
				slices.Reverse(list)
			}
		}
	}
	// Sides of 32 and more: a warp then reads and writes whole cache lines.
	for _, tile := range [][2]int{{64, 32}, {32, 64}, {32, 32}} {
		if s := (emit.Schedule{Family: emit.Transposed, M: tile[0], N: tile[1]}); w.Fits(s) {
			list = append(list, emit.Ranked{Schedule: s, Cost: w.cost(s)})
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

// prefersVectors reports whether a schedule of vectors is taken instead of single elements: where its cost is no
// more. What the kernel before has left in the cache is then read by fewer instructions (H200: maps of a depthwise
// network took 8.7 instead of 12.8 µs and 5.4 instead of 11.2, by WebGPU maps of a point net 72 instead of 124).
func (w *Space) prefersVectors(s emit.Schedule, plain float64) bool {
	return s.Each == emit.VectorWidth && w.cost(s) <= plain
}

// large reports whether another schedule can pay for a map, see [largeMaps].
func (w *Space) large() bool { return len(w.Group.Copies) == 0 && largeMaps(w.e.Caps, w.Group) }

// largeMaps reports whether maps that share a launch move more bytes than memory does in the time of a launch,
// or, on CUDA, have more elements than the device holds threads (H200: by vectors in place of single elements the
// steps of a depthwise network and of a GAN in bf16 took 0.582 and 0.080 ms, 0.650 and 0.085 before). Smaller ones
// are as fast by any schedule.
func largeMaps(caps loop.Caps, maps ...*fusion.Group) bool {
	bytes, elements := 0.0, 0
	for _, g := range maps {
		bytes += emit.BytesOf(g.Reads()) + emit.BytesOf(g.Writes())
		elements += fusion.Product(g.Outer)
	}
	p := caps.Profile()
	return bytes > p.LaunchBytes() || emit.WithMma && caps.Dialect == dtype.CUDA && elements > p.Resident()
}

// Fits reports whether the group can be lowered by a schedule.
func (w *Space) Fits(s emit.Schedule) bool {
	switch s.Family {
	case emit.Elements:
		rule := perThread(w.e, w.Group)
		whole := s.Each >= 1 && s.Each <= maxEach && s.Each%rule == 0 && fusion.Product(w.Group.Outer)%s.Each == 0
		return s == emit.Schedule{Family: emit.Elements, Each: s.Each} && (s.Each == rule || whole && len(w.Group.Copies) == 0 && w.unrollable(s.Each))
	case emit.Transposed:
		if s != (emit.Schedule{Family: emit.Transposed, M: s.M, N: s.N}) || len(w.Group.Copies) > 0 || w.e.Caps.Invocations < emit.GroupThreads {
			return false
		}
		_, ok := w.transposition(s)
		return ok
	}
	return false
}

// unrollable reports whether the text of each unrolled elements is short enough. Subexpressions
// that a vector shares, such as a block of random bits, count once.
func (w *Space) unrollable(each int) bool {
	return each*w.Group.Weight() <= maxVectorWeight || each == emit.VectorWidth && w.vectorOps(each) <= maxVectorWeight
}

// findAccesses returns the memory accesses of the map at a symbolic point.
func (w *Space) findAccesses() []access {
	if w.accesses != nil {
		return w.accesses
	}
	w.at = fusion.Coords("c", w.Group.Outer)
	stores := w.e.Values(w.Group, w.e.Reader(), w.at)
	values := make([]scalar.Expr, len(stores))
	for i, s := range stores {
		root, at := w.e.Partition.Place(s.Tensor, s.At)
		w.accesses = append(w.accesses, access{root, w.e.Simplify(at)})
		values[i] = s.Value
	}
	seen := map[string]bool{}
	for _, x := range values {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref >= 0 && !seen[scalar.Key(n)] {
				seen[scalar.Key(n)] = true
				w.accesses = append(w.accesses, access{w.e.Partition.Tensor(n.Ref), w.e.Simplify(n.Args[0])})
			}
		})
	}
	return w.accesses
}

// steps returns the stride of an access along each coordinate, or false where the address is
// not affine.
func (w *Space) steps(a access) (steps []int, ok bool) {
	factors := map[string]int{}
	if !emit.LinearTerms(a.at, 1, factors) {
		return nil, false
	}
	for _, c := range w.at {
		steps = append(steps, factors[c.Name])
	}
	return steps, true
}

// vectorizes reports whether all accesses are contiguous or uniform along the last axis, so
// that the elements of a thread are vectors.
func (w *Space) vectorizes() bool {
	last := len(w.Group.Outer) - 1
	return last >= 0 && !slices.ContainsFunc(w.findAccesses(), func(a access) bool {
		steps, ok := w.steps(a)
		return a.root.Bytes() > 0 && (!ok || steps[last] > 1 || steps[last] < 0)
	})
}

// joinsVectors reports whether all accesses of four elements are vectors, as of rows that are read by indices, or on CUDA in
// the branches of a concatenation, see [emit.NarrowBranches] (H200: concatenations of 160 to 1,024 channels moved 1,160 GB/s
// by single elements). The four may share elements, such as the index.
func (w *Space) joinsVectors() bool {
	s := emit.Schedule{Family: emit.Elements, Each: emit.VectorWidth}
	if emit.CostlyBarriers(w.e.Caps) || !w.Fits(s) {
		return false
	}
	m := emit.NewVectorizer(w.e.Sibling())
	stores := vectorStores(m, w.Group, m.Position("i", fusion.Product(w.Group.Outer)/s.Each), s.Each)
	for id := range m.Scalars {
		if m.Partition.Tensor(id).Len() > 1 && !shareLoads(stores, id) {
			return false
		}
	}
	return true
}

// shareLoads reports whether the values of stores load the same elements of a tensor.
func shareLoads(stores []emit.PendingStore, id int) bool {
	same, values := true, map[string]int{} // by element: how many values load it, one after another
	for i, s := range stores {
		scalar.Walk(s.Value, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad && n.Ref == id {
				key := scalar.Key(n)
				same = same && values[key] >= i
				values[key] = i + 1
			}
		})
	}
	for _, n := range values {
		same = same && n == len(stores)
	}
	return same
}

// maxGatheredOps is the number of operations up to which a thread has several elements whose operands are no vectors
// (H200: pads and reads by indices, 59 to 201 operations for four elements, took 3.1 to 6.4 µs by four, 3.8 to
// 7.4 one by one and 4.0 to 9.0 by eight; sines of concatenated parts, 588 and 640, took 43 and 102 µs by four,
// 34 and 81 one by one).
const maxGatheredOps = 300

// storesVectors reports whether a thread may have several elements though not all loads are vectors: on CUDA,
// where results have 16 bits and are stored as vectors. With one element a thread has too few bytes in flight, which
// costs do not see where addresses are not affine.
func (w *Space) storesVectors() bool {
	last := len(w.Group.Outer) - 1
	if w.e.Caps.Dialect != dtype.CUDA || last < 0 || w.elementBytes() > 2 {
		return false
	}
	for _, a := range w.findAccesses()[:len(w.Group.Writes())] {
		if steps, ok := w.steps(a); !ok || steps[last] != 1 {
			return false
		}
	}
	return true
}

// cost estimates the time to move the operands and results, in sectors as a warp accesses them.
func (w *Space) cost(s emit.Schedule) float64 {
	n, each := fusion.Product(w.Group.Outer), max(s.Each, 1)
	if s.Family == emit.Transposed {
		each = s.M * s.N / emit.GroupThreads
	}
	t := hardware.Work{Bytes: emit.BytesOf(w.Group.Reads()) + emit.BytesOf(w.Group.Writes()), Threads: n / each, BytesInFlight: w.elementBytes() * each}
	for _, a := range w.findAccesses() {
		t.Sectors += float64(n) * hardware.SectorBytes / float64(w.sectorUse(a, s.Family == emit.Transposed))
	}
	t.Ops = float64(n/each) * (w.vectorOps(s.Each) + emit.PointOps)
	if s.Family == emit.Transposed {
		t.Ops = float64(n) * float64(w.Group.Weight()+emit.PointOps)
	}
	return t.Time(w.e.Caps.Profile()) + w.unhidden(s)
}

// unhidden estimates the part of a thread's instructions that the time of memory does not hide. It orders schedules that move the
// same bytes: an H200 runs four elements of a thread fastest, then eight, which take two accesses each, then one.
func (w *Space) unhidden(s emit.Schedule) float64 {
	n, each := float64(fusion.Product(w.Group.Outer)), max(s.Each, 1)
	octaves := bits.Len(uint(max(each, emit.VectorWidth))) - bits.Len(uint(min(each, emit.VectorWidth)))
	return (minGain - 1) / 2 * w.e.Caps.Profile().OpsTime(n*(1+float64(octaves)/2)*emit.PointOps)
}

// elementBytes returns the size of the largest element that is moved at each point.
func (w *Space) elementBytes() int {
	size := 1
	for _, t := range slices.Concat(w.Group.Reads(), w.Group.Writes()) {
		if t.Len() >= fusion.Product(w.Group.Outer) {
			size = max(size, loop.DeviceSize(t.DType))
		}
	}
	return size
}

// vectorOps counts the operations of a thread with each contiguous elements, shared
// subexpressions once.
func (w *Space) vectorOps(each int) float64 {
	seen := map[*scalar.Node]bool{}
	i := w.e.Position("i", fusion.Product(w.Group.Outer)/max(each, 1))
	for _, s := range w.e.Values(w.Group, w.e.Reader(), contiguous(w.e, w.Group, i, each)...) {
		scalar.Walk(w.e.Simplify(s.Value), func(n scalar.Expr) {
			if len(n.Args) > 0 {
				seen[n] = true
			}
		})
	}
	return float64(len(seen))
}

// contiguous returns the coordinates of the i-th run of each contiguous elements of a map.
func contiguous(e *emit.Emitter, g *fusion.Group, i scalar.Expr, each int) []ir.Index {
	at := make([]ir.Index, each)
	for k := range at {
		at[k] = e.Unflatten(scalar.Add(scalar.Mul(i, loop.Int(each)), loop.Int(k)), g.Outer)
	}
	return at
}

// sectorUse returns the number of elements that a warp's access uses of each sector.
func (w *Space) sectorUse(a access, transposed bool) int {
	steps, ok := w.steps(a)
	last, elements := len(steps)-1, hardware.SectorBytes/loop.DeviceSize(a.root.DType)
	switch {
	case !ok:
		return 1
	case last < 0 || steps[last] <= 1 || transposed && slices.Contains(steps, 1):
		return elements
	}
	return max(1, elements/steps[last])
}

// Emit returns the launches of a schedule that fits.
func (w *Space) Emit(s emit.Schedule) []emit.Launch {
	switch {
	case fusion.Product(w.Group.Outer) == 0:
		return nil
	case s.Family == emit.Transposed:
		return []emit.Launch{w.transposed(s)}
	case s.Each > perThread(w.e, w.Group):
		return []emit.Launch{w.vectorized(s.Each)}
	}
	return scalarMaps(w.e, w.Group.Name(), []*fusion.Group{w.Group})
}

// vectorized gives each thread each contiguous elements.
func (w *Space) vectorized(each int) emit.Launch {
	m := emit.NewVectorizer(w.e.Sibling().WithThreads(emit.GroupThreads))
	m.Threads(fusion.Product(w.Group.Outer)/each, func(i scalar.Expr) {
		stores := vectorStores(m, w.Group, i, each)
		m.Decide()
		m.Store(stores, each, emit.Always(each))
	})
	return m.Launch(w.Group.Name())
}

// vectorStores returns the stores of the i-th run of each contiguous elements of a map, which m
// has observed.
func vectorStores(m *emit.Vectorizer, g *fusion.Group, i scalar.Expr, each int) []emit.PendingStore {
	stores := m.Values(g, m.Reader(), contiguous(m.Emitter, g, i, each)...)
	for i := range stores {
		stores[i].Value = m.Simplify(stores[i].Value) // exposes common subexpressions
		if emit.WithMma && m.Caps.Dialect == dtype.CUDA && each == emit.VectorWidth {
			stores[i].Value = m.Simplify(emit.NarrowBranches(stores[i].Value))
		}
	}
	m.ObserveStores(stores, each)
	return stores
}

// scalarMaps lowers maps with perThread elements per thread. Horizontally fused groups take
// consecutive ranges of workgroups, so that no workgroup diverges.
func scalarMaps(e *emit.Emitter, name string, parts []*fusion.Group) []emit.Launch {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *fusion.Group) bool { return fusion.Product(p.Outer) == 0 })
	starts := make([]int, len(parts)+1)
	for i, part := range parts {
		threads := fusion.Product(part.Outer) / perThread(e, part)
		starts[i+1] = starts[i] + emit.CeilDiv(threads, emit.GroupThreads)
	}
	if starts[len(parts)] == 0 {
		return nil
	}
	return []emit.Launch{fuseParts(e, name, parts, starts, func(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
		return mapPart(e, part, thread, span)
	})}
}

// writePart returns the statements of one thread of a part, by the thread's number; there are
// span threads.
type writePart func(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt

// fuseParts returns the kernel of horizontally fused parts. starts are the first workgroups of
// the parts, then the end of the last.
func fuseParts(e *emit.Emitter, name string, parts []*fusion.Group, starts []int, write writePart) emit.Launch {
	e.Workgroup = [3]int{emit.GroupThreads, 1, 1}
	workgroup := e.LinearGroup(starts[len(parts)])
	return e.Finish(name, branchParts(parts, starts, workgroup, loop.LocalID(0, emit.GroupThreads), write))
}

// branchParts branches to the part of a workgroup by binary search, since languages bound the
// nesting of statements. starts are as in fuseParts.
func branchParts(parts []*fusion.Group, starts []int, workgroup, lane scalar.Expr, write writePart) []loop.Stmt {
	if len(parts) == 1 {
		first := scalar.Sub(workgroup, loop.Int(starts[0]))
		flat := scalar.Add(scalar.Mul(first, loop.Int(emit.GroupThreads)), lane)
		return write(parts[0], flat, (starts[1]-starts[0])*emit.GroupThreads)
	}
	half := len(parts) / 2
	return []loop.Stmt{&loop.If{
		Cond: scalar.Lt(workgroup, loop.Int(starts[half])),
		Then: branchParts(parts[:half], starts[:half+1], workgroup, lane, write),
		Else: branchParts(parts[half:], starts[half:], workgroup, lane, write),
	}}
}

// mapPart is [writePart] with perThread elements per thread.
func mapPart(e *emit.Emitter, part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
	per := perThread(e, part)
	n := fusion.Product(part.Outer) / per
	name := e.Name("i")
	i := scalar.NewVar(name, thread.Type, 0, int64(n-1))
	return boundThread(e, name, thread, mapElements(e, part, contiguous(e, part, i, per)...), n, span)
}

// boundThread names the number of a thread of a part and runs body in the first n of span threads.
func boundThread(e *emit.Emitter, name string, thread scalar.Expr, body []loop.Stmt, n, span int) []loop.Stmt {
	if span != n || e.Overshoots() {
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(scalar.FreeVar(name, thread.Type), loop.Int(n)), Then: body}}
	}
	return append([]loop.Stmt{&loop.Let{Name: name, Value: thread}}, body...)
}

// mapElements computes the elements of a map's results at some points.
func mapElements(e *emit.Emitter, g *fusion.Group, at ...ir.Index) []loop.Stmt {
	body := e.Points(g, e.Reader(), at...)
	for _, c := range g.Copies {
		for _, at := range at {
			body = append(body, copyElement(e, c, at)...)
		}
	}
	return body
}

func copyElement(e *emit.Emitter, c fusion.Copy, at ir.Index) []loop.Stmt {
	at = fusion.Spread(at, c.To.Dims)
	value := c.Literal
	if c.From != nil {
		value = e.Load(c.From, at)
	}
	return e.Store(c.To, at, value)
}

// fusedMapEmitter writes a kernel of horizontally fused maps with a vector per thread.
type fusedMapEmitter struct {
	v *emit.Vectorizer
	// at is the variable of the thread number in each part, stores are its stores.
	at     map[*fusion.Group]string
	stores map[*fusion.Group][]emit.PendingStore
}

// vectorizedMaps fuses maps horizontally with a vector per thread, on CUDA. It reports false
// where a part does not vectorise, or where all parts together are small, see [largeMaps].
func vectorizedMaps(e *emit.Emitter, name string, parts []*fusion.Group) (emit.Launch, bool) {
	if !emit.WithMma || e.Caps.Dialect != dtype.CUDA {
		return emit.Launch{}, false
	}
	if !largeMaps(e.Caps, parts...) {
		return emit.Launch{}, false
	}
	each, starts := emit.Schedule{Family: emit.Elements, Each: emit.VectorWidth}, make([]int, len(parts)+1)
	for i, part := range parts {
		w := NewSpace(e.Sibling(), part)
		if !w.Fits(each) || !w.vectorizes() && !w.storesVectors() {
			return emit.Launch{}, false
		}
		starts[i+1] = starts[i] + emit.CeilDiv(fusion.Product(part.Outer)/emit.VectorWidth, emit.GroupThreads)
	}
	b := &fusedMapEmitter{emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads)), map[*fusion.Group]string{}, map[*fusion.Group][]emit.PendingStore{}}
	for _, part := range parts {
		b.collect(part)
	}
	b.v.Decide()
	return fuseParts(b.v.Emitter, name, parts, starts, b.part), true
}

// collect computes the stores of a thread of a part.
func (b *fusedMapEmitter) collect(part *fusion.Group) {
	name := b.v.Name("i")
	i := b.v.Position(name, fusion.Product(part.Outer)/emit.VectorWidth)
	b.at[part], b.stores[part] = name, vectorStores(b.v, part, i, emit.VectorWidth)
}

// part is [writePart] with a vector per thread.
func (b *fusedMapEmitter) part(part *fusion.Group, thread scalar.Expr, span int) []loop.Stmt {
	body := b.v.Nested(func() { b.v.Store(b.stores[part], emit.VectorWidth, emit.Always(emit.VectorWidth)) })
	return boundThread(b.v.Emitter, b.at[part], thread, body, fusion.Product(part.Outer)/emit.VectorWidth, span)
}
