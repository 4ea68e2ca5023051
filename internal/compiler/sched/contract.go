package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scheduleTiles emits a tiled contraction. With split-K, a second kernel adds up the partial
// sums and computes the epilogue.
func scheduleTiles(e *emitter, g *fusion.Group, c *fusion.Contraction, t tile, parts int) []Launch {
	te := newTileEmitter(e, g, c, t, parts)
	if te.parts == 1 {
		return []Launch{te.launchWithDraft(parts, nil)}
	}
	partial := newPartial(0, ir.F32, g, te.parts)
	first := te.launchWithDraft(parts, partial)
	if second, ok := addPartials(e, g, c, te.parts, partial); ok {
		return []Launch{first, second}
	}
	return []Launch{first, e.sibling().combineParts(g.Reduction(), te.parts, []*fusion.Tensor{partial})}
}

// launchWithDraft returns the launch of the tiled kernel, with a draft kernel where the target
// wants one and the tile has one. A draft adds the same products in the same order.
func (te *tileEmitter) launchWithDraft(parts int, partial *fusion.Tensor) Launch {
	l := te.launch(te.out.g.Name(), partial)
	if draft, ok := te.t.draft(); ok && te.caps.Drafts && draft.fits(te.caps) {
		e := te.sibling()
		e.args = l.Args
		small := newTileEmitter(e, te.out.g, te.out.c, draft, parts)
		small.draft = true
		l.Draft = small.launch(te.out.g.Name()+"_draft", partial).Kernel
	}
	return l
}

// launch returns the launch of the tiled kernel alone. It stores results, or the partial sums of
// each part if partial is not nil.
func (te *tileEmitter) launch(name string, partial *fusion.Tensor) Launch {
	if partial == nil {
		return te.kernel(name, te.epilogueStore(te.out.g.EpilogueWeight()), te.out.stores)
	}
	return te.kernel(name+"_parts", te.epilogueStore(0), func(acc scalar.Expr, at ir.Index) []pendingStore {
		return []pendingStore{{partial, append(ir.Index{te.part}, at...), acc}}
	})
}

// epilogueStore picks the store path for an epilogue with weight operations per result.
func (te *tileEmitter) epilogueStore(weight int) func(resultStores) {
	if withMma && te.t.lanes > 1 {
		return te.core.(*fragmentCore).store
	}
	if weight*te.t.rm*te.t.rn > maxDirectOps {
		return te.storeStaged
	}
	return te.storeDirect
}

// tileCore holds the accumulators of a tile and the two buffers of operand tiles in workgroup
// memory: one is read while the other is written.
type tileCore interface {
	// declare defines the accumulators, as zeros.
	declare()
	// storeOperands stores the prefetched operands into a buffer.
	storeOperands(buffer scalar.Expr)
	// multiply accumulates the products of one step.
	multiply(buffer scalar.Expr)
}

// tileEmitter writes the kernel of a tiled contraction. Each operand is loaded in tiles into
// workgroup memory, one tile ahead of the arithmetic (double buffering). It is its own tileCore:
// it loads vectors of 4 from workgroup memory and accumulates in the registers of each thread.
// Its steps load the operands through registers; [pipeline] replaces them by asynchronous
// copies.
type tileEmitter struct {
	*emitter
	out   epilogue
	core  tileCore
	t     tile
	parts int         // split-K parts, each for workgroups of its own
	steps int         // steps of a part
	part  scalar.Expr // the workgroup's part
	valid scalar.Expr // false in workgroups beyond the last tile
	side  [2]side     // operand 0 along m, operand 1 along n
	slot  int         // workgroup memory: two tiles of operand 0, then two of operand 1
	lane  scalar.Expr
	draft bool // the kernel is a draft, see [tile.draft]
}

// side is one operand of a tiled contraction: tiles of free positions by contracted positions.
type side struct {
	operand   int
	free      []int // sizes of the free space
	tile, reg int   // free positions of a workgroup and of a thread
	thread    scalar.Expr
	first     scalar.Expr // first free position of the workgroup
	base      int         // first vector of its tiles in workgroup memory
	kFast     bool        // neighbouring threads load along the contracted space
	vectors   bool        // the loaded array may be declared as an array of vectors
	prefix    string
}

func newTileEmitter(e *emitter, g *fusion.Group, c *fusion.Contraction, t tile, parts int) *tileEmitter {
	te := &tileEmitter{emitter: e, out: epilogue{emitter: e, g: g, c: c}, t: t}
	te.steps = ceilDiv(fusion.Product(c.K), parts*t.k)
	te.parts = ceilDiv(fusion.Product(c.K), te.steps*t.k)
	threads := t.threads()
	e.workgroup = [3]int{threads, 1, 1}
	te.lane = loop.LocalID(0, threads)
	across, number := t.n/t.rn, te.lane
	if withMma && t.lanes > 1 {
		number = loop.SubgroupIndex(threads / t.lanes)
	}
	tilesM, tilesN := ceilDiv(fusion.Product(c.M), t.m), ceilDiv(fusion.Product(c.N), t.n)
	workgroup, valid := e.boundedGroup(te.parts * t.count(c))
	te.valid = valid
	te.part = te.let("part", scalar.FloorDiv(workgroup, loop.Int(t.count(c))), te.parts-1)
	column := scalar.Mod(workgroup, loop.Int(tilesN))
	row := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(tilesN)), loop.Int(tilesM))
	batch := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(tilesN*tilesM)), loop.Int(fusion.Product(c.Batch)))
	te.out.batch = te.unflatten(te.let("batch", batch, fusion.Product(c.Batch)-1), c.Batch)
	down, right := scalar.FloorDiv(number, loop.Int(across)), scalar.Mod(number, loop.Int(across))
	if withMma && t.stages > 0 {
		down, right = te.warpCoords()
	}
	te.side[0] = side{
		operand: 0, free: c.M, tile: t.m, reg: t.rm, prefix: "a",
		thread: te.let("ty", down, t.m/t.rm-1),
		first:  te.first("m", row, t.m, tilesM),
	}
	te.side[1] = side{
		operand: 1, free: c.N, tile: t.n, reg: t.rn, prefix: "b",
		thread: te.let("tx", right, across-1),
		first:  te.first("n", column, t.n, tilesN),
		base:   2 * t.k * t.m / 4,
	}
	for i := range te.side {
		te.side[i].kFast = te.contiguousAlongK(&te.side[i])
		// The whole kernel sees an array as vectors, or as scalars.
		whole := g.SoleOperand(c, i, te.out.batch)
		te.side[i].vectors = whole != nil && whole.Len()%4 == 0
	}
	te.core = te
	if withMma && t.lanes > 1 {
		te.core = newFragmentCore(te)
		return te
	}
	te.slot = e.shared("tiles", ir.F32, 4, t.sharedBytes()/16)
	return te
}

// first returns the first free position of tile i of count. The expression shows that it is a
// multiple of the vector width.
func (te *tileEmitter) first(name string, i scalar.Expr, size, count int) scalar.Expr {
	return scalar.Mul(te.let(name, scalar.Mul(i, loop.Int(size/4)), (count-1)*size/4), loop.Int(4))
}

// let names an integer from 0 to hi.
func (te *tileEmitter) let(prefix string, value scalar.Expr, hi int) scalar.Expr {
	if hi <= 0 {
		return loop.Int(0)
	}
	name := te.name(prefix)
	te.body = append(te.body, &loop.Let{Name: name, Value: te.Simplify(value)})
	return scalar.NewVar(name, value.Type, 0, int64(hi))
}

// contiguousAlongK reports whether the last axis of an operand depends on the last contracted
// coordinate.
func (te *tileEmitter) contiguousAlongK(s *side) bool {
	k := fusion.Coords("k", te.out.c.K)
	at, _ := te.out.c.Address(s.operand, te.out.batch, fusion.Coords("f", s.free), k)
	if len(at) == 0 || len(k) == 0 {
		return false
	}
	moves := false
	scalar.Walk(at[len(at)-1], func(x scalar.Expr) {
		moves = moves || x.Op == scalar.OpVar && x.Name == k[len(k)-1].Name
	})
	return moves
}

// resultStores returns what to store for one result of a contraction, given the sum and its
// coordinates in the group.
type resultStores func(sum scalar.Expr, at ir.Index) []pendingStore

// kernel writes the whole kernel; finish stores the accumulators, as result says.
func (te *tileEmitter) kernel(title string, finish func(resultStores), result resultStores) Launch {
	begin, step, end := te.begin, te.step, te.end
	if withMma && te.t.stages > 0 {
		p := newPipeline(te)
		begin, step, end = p.begin, p.step, p.end
	}
	te.core.declare()
	begin()
	outer := te.body
	te.body = nil
	name := te.name("step")
	step(scalar.NewVar(name, ir.I32, 0, int64(te.steps-1)))
	te.body = append(outer, &loop.For{Var: name, Start: loop.Int(0), End: loop.Int(te.steps), Step: loop.Int(1), Body: te.body})
	end()
	finish(result)
	return te.finish(title, te.body)
}

// begin loads the first tiles before the loop: a condition inside the loop would slow it down.
func (te *tileEmitter) begin() {
	te.declarePrefetch()
	te.prefetch(loop.Int(0))
	te.core.storeOperands(loop.Int(0))
	te.body = append(te.body, &loop.Barrier{})
}

// step prefetches the next tiles into registers while it multiplies those in workgroup memory.
func (te *tileEmitter) step(at scalar.Expr) {
	buffer := te.let("half", scalar.Mod(at, loop.Int(2)), 1)
	if te.steps > 1 {
		te.prefetch(te.let("next", scalar.Min(scalar.Add(at, loop.Int(1)), loop.Int(te.steps-1)), te.steps-1))
	}
	te.core.multiply(buffer)
	if te.steps > 1 {
		te.core.storeOperands(scalar.Sub(loop.Int(1), buffer))
		te.body = append(te.body, &loop.Barrier{})
	}
}

// end does nothing: all prefetched tiles are in workgroup memory.
func (te *tileEmitter) end() {}

// declare defines the accumulators of a thread.
func (te *tileEmitter) declare() {
	for i := range te.t.rm * te.t.rn {
		te.body = append(te.body, &loop.Var{Name: te.acc(i), Init: scalar.ConstF(ir.F32, 0)})
	}
}

// acc returns the name of accumulator i, an element of c, the product of a and b. The names are
// short because a kernel has hundreds of uses of them and a plan has dozens of such kernels.
func (te *tileEmitter) acc(i int) string { return "c" + strconv.Itoa(i) }

// unrolledProducts is the number of multiply-adds that a thread's loop body unrolls: two
// contracted positions for 64 accumulators. Contractions of at least longProducts
// multiply-adds unroll minUnrolledK positions. In WGSL on an H200, products of 4096 then
// ran at 41.0 TFLOP/s instead of 40.1, and at 39.9 with all eight positions unrolled. The
// driver takes 70 ms longer to compile such a kernel, so shorter contractions do not gain.
// In WGSL those from midProducts to twice that do: a step of an MLP with five of them took
// 496 µs instead of 503. Longer ones gained less (a step of a character GPT took 37.6 ms
// instead of 37.9), and deep models have dozens of them, whose text grew by a quarter. Not
// measured in CUDA.
const (
	unrolledProducts = 128
	minUnrolledK     = 4
	longProducts     = 1 << 35
	midProducts      = 1 << 30
	// draftProducts is unrolledProducts for drafts. A draft exists to be compiled soon, and less
	// unrolling makes less text: with drafts of 16 accumulators for all its products a character
	// GPT had all kernels compiled after 1.0 s with 32 as with 128 (H200, WebGPU).
	draftProducts = 32
)

// unroll returns the number of contracted positions that the loop body unrolls.
func (te *tileEmitter) unroll() int {
	if te.draft {
		return draftProducts / (te.t.rm * te.t.rn)
	}
	n := unrolledProducts / (te.t.rm * te.t.rn)
	long := mulAddCount(te.out.c)
	mid := long >= midProducts && long < 2*midProducts && te.caps.Dialect == dtype.WGSL
	if mid || long >= longProducts {
		n = max(n, minUnrolledK)
	}
	return min(te.t.k, n)
}

// multiply accumulates the products of one step. A thread's results lie in 4×4 squares spread
// over the tile, so that neighbouring threads read neighbouring vectors.
func (te *tileEmitter) multiply(buffer scalar.Expr) {
	together := te.unroll()
	outer, inner := te.name("k"), te.name("u")
	kk := scalar.Mul(scalar.NewVar(outer, ir.I32, 0, int64(te.t.k/together-1)), loop.Int(together))
	kk = scalar.Add(kk, scalar.NewVar(inner, ir.I32, 0, int64(together-1)))
	var body []loop.Stmt
	var regs [2][]string
	for i := range te.side {
		s := &te.side[i]
		for v := range s.reg / 4 {
			names := make([]string, 4)
			for j := range names {
				names[j] = s.prefix + strconv.Itoa(4*v+j)
			}
			at := scalar.Add(scalar.Mul(buffer, loop.Int(te.t.k*s.tile/4)), scalar.Mul(kk, loop.Int(s.tile/4)))
			at = scalar.Add(at, scalar.Add(loop.Int(s.base), s.swizzle(scalar.Add(s.thread, loop.Int(v*s.tile/s.reg)), kk)))
			body = append(body, &loop.LoadVec{Names: names, Array: te.slot, At: te.Simplify(at)})
			regs[i] = append(regs[i], names...)
		}
	}
	for i, a := range regs[0] {
		for j, b := range regs[1] {
			acc := te.acc(i*te.t.rn + j)
			x := scalar.Mul(scalar.FreeVar(a, ir.F32), scalar.FreeVar(b, ir.F32))
			body = append(body, &loop.Assign{Name: acc, Value: scalar.Add(scalar.FreeVar(acc, ir.F32), x)})
		}
	}
	body = []loop.Stmt{&loop.For{Var: inner, Start: loop.Int(0), End: loop.Int(together), Step: loop.Int(1), Unroll: true, Body: body}}
	te.body = append(te.body, &loop.For{Var: outer, Start: loop.Int(0), End: loop.Int(te.t.k / together), Step: loop.Int(1), Body: body})
}

// freePosition returns the free position of a thread's register i.
func (te *tileEmitter) freePosition(s *side, i int) scalar.Expr {
	vec := scalar.Add(s.thread, loop.Int(i/4*(s.tile/s.reg)))
	return scalar.Add(s.first, scalar.Add(scalar.Mul(vec, loop.Int(4)), loop.Int(i%4)))
}

// guardFree guards statements by the free position f being in range.
func (te *tileEmitter) guardFree(s *side, f scalar.Expr, then []loop.Stmt) []loop.Stmt {
	n := fusion.Product(s.free)
	if n%s.tile == 0 {
		return then
	}
	return guard(te.Simplify(scalar.Lt(f, loop.Int(n))), then)
}

// vectorsPerThread returns how many vectors of a side each thread moves per step.
func (te *tileEmitter) vectorsPerThread(s *side) int { return ceilDiv(s.tile/4*te.t.k, te.t.threads()) }

// declarePrefetch declares the registers of the next tiles: na0, na1, … of a, nb0, … of b.
func (te *tileEmitter) declarePrefetch() {
	te.eachPrefetch(func(_ *side, _ int, names []string) {
		for _, name := range names {
			te.body = append(te.body, &loop.Var{Name: name, Init: scalar.ConstF(ir.F32, 0)})
		}
	})
}

func (te *tileEmitter) eachPrefetch(f func(s *side, v int, names []string)) {
	for i := range te.side {
		s := &te.side[i]
		for v := range te.vectorsPerThread(s) {
			names := make([]string, 4)
			for j := range names {
				names[j] = "n" + s.prefix + strconv.Itoa(4*v+j)
			}
			f(s, v, names)
		}
	}
}

// vectorCoords returns the coordinates of a thread's vector v: its number along the free
// positions, and its contracted position.
func (te *tileEmitter) vectorCoords(s *side, v int) (vec, k scalar.Expr) {
	threads, per := te.t.threads(), s.tile/4
	id := scalar.Add(te.lane, loop.Int(v*threads))
	if s.kFast {
		return te.Simplify(scalar.FloorDiv(id, loop.Int(te.t.k))), te.Simplify(scalar.Mod(id, loop.Int(te.t.k)))
	}
	return te.Simplify(scalar.Mod(id, loop.Int(per))), te.Simplify(scalar.FloorDiv(id, loop.Int(per)))
}

// prefetch loads a thread's share of a step's tiles into registers.
func (te *tileEmitter) prefetch(step scalar.Expr) {
	rd := te.reader()
	load := rd.Operand(te.out.c.Node)
	length := fusion.Product(te.out.c.K)
	first := scalar.Mul(scalar.Add(scalar.Mul(te.part, loop.Int(te.steps)), step), loop.Int(te.t.k))
	k := te.let("k", first, te.parts*te.steps*te.t.k-1)
	te.eachPrefetch(func(s *side, v int, names []string) {
		vec, kk := te.vectorCoords(s, v)
		pos := scalar.Add(k, kk)
		inside := scalar.ConstBool(true)
		if te.parts*te.steps*te.t.k > length {
			inside = scalar.Lt(pos, loop.Int(length))
			pos = scalar.Min(pos, loop.Int(length-1))
		}
		kAt := te.unflatten(te.Simplify(pos), te.out.c.K)
		values := make([]scalar.Expr, 4)
		for j := range values {
			f := scalar.Add(scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))), loop.Int(j))
			x := te.out.c.Factor(s.operand, te.out.batch, te.freeAt(s, f), kAt, load)
			values[j] = scalar.Select(inside, x, scalar.ConstF(ir.F32, 0))
		}
		if s.vectors && te.loadVector(values) {
			te.assignAll(names, values)
			return
		}
		te.body = append(te.body, te.nameAll(values)...)
		te.assignAll(names, values)
	})
}

func (te *tileEmitter) assignAll(names []string, values []scalar.Expr) {
	for j, name := range names {
		te.body = append(te.body, &loop.Assign{Name: name, Value: values[j]})
	}
}

// freeAt returns the free coordinates of position f, clamped to the operand: results beyond its
// end are computed and not stored.
func (te *tileEmitter) freeAt(s *side, f scalar.Expr) ir.Index {
	n := fusion.Product(s.free)
	if n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n-1))
	}
	return te.unflatten(te.Simplify(f), s.free)
}

// storeOperands stores the registers into a buffer of workgroup memory. A row holds one
// contracted position.
func (te *tileEmitter) storeOperands(buffer scalar.Expr) {
	te.eachPrefetch(func(s *side, v int, names []string) {
		vec, kk := te.vectorCoords(s, v)
		values := make([]scalar.Expr, 4)
		for j, name := range names {
			values[j] = scalar.FreeVar(name, ir.F32)
		}
		at := scalar.Add(scalar.Mul(buffer, loop.Int(te.t.k*s.tile/4)), scalar.Add(scalar.Mul(kk, loop.Int(s.tile/4)), s.swizzle(vec, kk)))
		store := &loop.StoreVec{Array: te.slot, At: te.Simplify(scalar.Add(at, loop.Int(s.base))), Values: values}
		te.body = append(te.body, te.guardVector(s, v, []loop.Stmt{store})...)
	})
}

// guardVector guards statements about vector v by the thread having one.
func (te *tileEmitter) guardVector(s *side, v int, then []loop.Stmt) []loop.Stmt {
	total := te.t.k * s.tile / 4
	if (v+1)*te.t.threads() <= total {
		return then
	}
	return guard(scalar.Lt(scalar.Add(te.lane, loop.Int(v*te.t.threads())), loop.Int(total)), then)
}

// swizzle swizzles the place of a vector in its row of workgroup memory. Where neighbouring
// threads write to neighbouring rows, each row is rotated against the one before, so that the
// writes cause no bank conflicts.
func (s *side) swizzle(vec, row scalar.Expr) scalar.Expr {
	if !s.kFast {
		return vec
	}
	return scalar.Mod(scalar.Add(vec, row), loop.Int(s.tile/4))
}

// loadVector replaces four scalar loads by one vector load, and the values by its names, if they
// are adjacent and aligned to four elements. It reports whether it did.
func (te *tileEmitter) loadVector(values []scalar.Expr) bool {
	first := values[0]
	if first.Op != scalar.OpLoad {
		return false
	}
	for j, x := range values {
		if x.Op != scalar.OpLoad || x.Ref != first.Ref {
			return false
		}
		if n, ok := te.Simplify(scalar.Sub(x.Args[0], first.Args[0])).IntConst(); !ok || n != int64(j) {
			return false
		}
	}
	if rest, ok := te.Simplify(scalar.Mod(first.Args[0], loop.Int(4))).IntConst(); !ok || rest != 0 {
		return false
	}
	names := make([]string, 4)
	for j := range names {
		names[j] = te.name("x")
		values[j] = scalar.FreeVar(names[j], first.Type)
	}
	at := te.Simplify(scalar.FloorDiv(first.Args[0], loop.Int(4)))
	te.body = append(te.body, &loop.LoadVec{Names: names, Array: first.Ref, At: at})
	te.wide[first.Ref] = 4
	return true
}
