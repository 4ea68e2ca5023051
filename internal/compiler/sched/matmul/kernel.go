package matmul

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// emitTiles emits a tiled contraction. With split-K, a second kernel adds up the partial
// sums and computes the epilogue.
func emitTiles(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, t tile, parts int) []emit.Launch {
	te := newTileEmitter(e, g, c, t, parts)
	if te.parts == 1 {
		return []emit.Launch{te.launchWithDraft(parts, nil)}
	}
	partial := reduce.NewPartial(0, ir.F32, g, te.parts)
	first := te.launchWithDraft(parts, partial)
	if second, ok := addPartials(e, g, c, te.parts, partial); ok {
		return []emit.Launch{first, second}
	}
	return []emit.Launch{first, reduce.CombineParts(e.Sibling(), g.Reduction(), te.parts, []*fusion.Tensor{partial})}
}

// launchWithDraft returns the launch of the tiled kernel, with a draft kernel where the target
// wants one and the tile has one. A draft adds the same products in the same order.
func (te *tileEmitter) launchWithDraft(parts int, partial *fusion.Tensor) emit.Launch {
	l := te.launch(te.out.g.Name(), partial)
	if draft, ok := te.t.draft(); ok && te.Caps.Drafts && draft.fits(te.Caps) {
		e := te.Sibling()
		e.Args = l.Args
		small := newTileEmitter(e, te.out.g, te.out.c, draft, parts)
		small.draft = true
		l.Draft = small.launch(te.out.g.Name()+"_draft", partial).Kernel
	}
	return l
}

// launch returns the launch of the tiled kernel alone. It stores results, or the partial sums of
// each part if partial is not nil.
func (te *tileEmitter) launch(name string, partial *fusion.Tensor) emit.Launch {
	if partial == nil {
		return te.kernel(name, te.epilogueStore(te.out.g.EpilogueWeight()), te.out.stores)
	}
	return te.kernel(name+"_parts", te.epilogueStore(0), func(acc scalar.Expr, at ir.Index) []emit.PendingStore {
		return []emit.PendingStore{{Tensor: partial, At: append(ir.Index{te.part}, at...), Value: acc}}
	})
}

// epilogueStore picks the store path for an epilogue with weight operations per result.
func (te *tileEmitter) epilogueStore(weight int) func(resultStores) {
	if emit.WithMma && te.t.lanes > 1 {
		return te.core.(*fragmentCore).store
	}
	if weight*te.t.rm*te.t.rn > maxDirectOps && !te.t.registers {
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
	*emit.Emitter
	out   epilogue
	core  tileCore
	t     tile
	parts int         // split-K parts, each computed by separate workgroups
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

func newTileEmitter(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, t tile, parts int) *tileEmitter {
	te := &tileEmitter{Emitter: e, out: epilogue{Emitter: e, g: g, c: c}, t: t}
	te.steps = emit.CeilDiv(fusion.Product(c.K), parts*t.k)
	te.parts = emit.CeilDiv(fusion.Product(c.K), te.steps*t.k)
	threads := t.threads()
	e.Workgroup = [3]int{threads, 1, 1}
	te.lane = loop.LocalID(0, threads)
	across, number := t.n/t.rn, te.lane
	if emit.WithMma && t.lanes > 1 {
		number = loop.SubgroupIndex(threads / t.lanes)
	}
	tilesM, tilesN := emit.CeilDiv(fusion.Product(c.M), t.m), emit.CeilDiv(fusion.Product(c.N), t.n)
	workgroup, valid := e.BoundedGroup(te.parts * t.count(c))
	te.valid = valid
	te.part = te.let("part", scalar.FloorDiv(workgroup, loop.Int(t.count(c))), te.parts-1)
	column := scalar.Mod(workgroup, loop.Int(tilesN))
	row := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(tilesN)), loop.Int(tilesM))
	batch := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(tilesN*tilesM)), loop.Int(fusion.Product(c.Batch)))
	te.out.batch = te.Unflatten(te.let("batch", batch, fusion.Product(c.Batch)-1), c.Batch)
	down, right := scalar.FloorDiv(number, loop.Int(across)), scalar.Mod(number, loop.Int(across))
	if emit.WithMma && t.stages > 0 {
		down, right = warpCoords(te)
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
		whole := c.SoleOperand(g, i, te.out.batch)
		te.side[i].vectors = whole != nil && whole.Len()%4 == 0
	}
	te.core = te
	if emit.WithMma && t.lanes > 1 {
		te.core = newFragmentCore(te)
		return te
	}
	if !t.registers {
		te.slot = e.Shared("tiles", ir.F32, 4, t.sharedBytes()/16)
	}
	return te
}

// first returns the first free position of tile i of count. The expression shows that it is a
// multiple of the vector width.
func (te *tileEmitter) first(name string, i scalar.Expr, size, count int) scalar.Expr {
	return scalar.Mul(te.let(name, scalar.Mul(i, loop.Int(size/4)), (count-1)*size/4), loop.Int(4))
}

// let names an integer from 0 to hi.
func (te *tileEmitter) let(prefix string, value scalar.Expr, hi int) scalar.Expr {
	return te.Bounded(prefix, value, hi+1)
}

// contiguousAlongK reports whether the last axis of an operand depends on the last contracted
// coordinate.
func (te *tileEmitter) contiguousAlongK(s *side) bool {
	k := fusion.Coords("k", te.out.c.K)
	at, _ := te.out.c.Address(s.operand, te.out.batch, fusion.Coords("f", s.free), k)
	if len(at) == 0 || len(k) == 0 {
		return false
	}
	return scalar.Any(at[len(at)-1], func(x scalar.Expr) bool { return x.Op == scalar.OpVar && x.Name == k[len(k)-1].Name })
}

// resultStores returns what to store for one result of a contraction, given the sum and its
// coordinates in the group.
type resultStores func(sum scalar.Expr, at ir.Index) []emit.PendingStore

// kernel writes the whole kernel; finish stores the accumulators to result.
func (te *tileEmitter) kernel(title string, finish func(resultStores), result resultStores) emit.Launch {
	begin, step, end := te.begin, te.step, te.end
	if emit.WithMma && te.t.stages > 0 {
		p := newPipeline(te)
		begin, step, end = p.begin, p.step, p.end
	}
	if te.t.registers {
		r := &registers{te: te}
		begin, step = r.begin, r.step
	}
	te.core.declare()
	begin()
	te.Loop("step", loop.Int(0), loop.Int(te.steps), 1, te.steps-1, step)
	end()
	finish(result)
	return te.Finish(title, te.Body)
}

// begin loads the first tiles before the loop: a condition inside the loop would slow it down.
func (te *tileEmitter) begin() {
	te.declarePrefetch()
	te.prefetch(loop.Int(0))
	te.core.storeOperands(loop.Int(0))
	te.Body = append(te.Body, &loop.Barrier{})
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
		te.Body = append(te.Body, &loop.Barrier{})
	}
}

// end does nothing: all prefetched tiles are in workgroup memory.
func (te *tileEmitter) end() {}

// declare defines the accumulators of a thread.
func (te *tileEmitter) declare() {
	for i := range te.t.rm * te.t.rn {
		te.Body = append(te.Body, &loop.Var{Name: te.acc(i), Init: scalar.ConstF(ir.F32, 0)})
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
	mid := long >= midProducts && long < 2*midProducts && te.Caps.Dialect == dtype.WGSL
	if mid || long >= longProducts {
		n = max(n, minUnrolledK)
	}
	return min(te.t.k, n)
}

// multiply accumulates the products of one step. A thread's results lie in 4×4 squares spread
// over the tile, so that neighbouring threads read neighbouring vectors.
func (te *tileEmitter) multiply(buffer scalar.Expr) {
	together := te.unroll()
	outer, inner := te.Name("k"), te.Name("u")
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
	te.Body = append(te.Body, &loop.For{Var: outer, Start: loop.Int(0), End: loop.Int(te.t.k / together), Step: loop.Int(1), Body: body})
}

// freePosition returns the free position of a thread's register i.
func (te *tileEmitter) freePosition(s *side, i int) scalar.Expr {
	vec := scalar.Add(s.thread, loop.Int(i/4*(s.tile/s.reg)))
	return scalar.Add(s.first, scalar.Add(scalar.Mul(vec, loop.Int(4)), loop.Int(i%4)))
}

// guardFree guards statements by the free position f being in range, and the result having it.
func (te *tileEmitter) guardFree(s *side, f scalar.Expr, then []loop.Stmt) []loop.Stmt {
	inside := scalar.ConstBool(true)
	if s.operand == 0 {
		inside = te.out.c.Exists(te.out.batch, te.freeAt(s, f))
	}
	if n := fusion.Product(s.free); n%s.tile != 0 {
		inside = scalar.And(scalar.Lt(f, loop.Int(n)), inside)
	}
	return emit.Guard(te.Simplify(inside), then)
}

// vectorsPerThread returns how many vectors of a side each thread moves per step.
func (te *tileEmitter) vectorsPerThread(s *side) int {
	return emit.CeilDiv(s.tile/4*te.t.k, te.t.threads())
}

// declarePrefetch declares the registers of the next tiles: na0, na1, … of a, nb0, … of b.
func (te *tileEmitter) declarePrefetch() {
	te.eachPrefetch(func(_ *side, _ int, names []string) {
		for _, name := range names {
			te.Body = append(te.Body, &loop.Var{Name: name, Init: scalar.ConstF(ir.F32, 0)})
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
	factor := te.factors()
	first := scalar.Mul(scalar.Add(scalar.Mul(te.part, loop.Int(te.steps)), step), loop.Int(te.t.k))
	k := te.let("k", first, te.parts*te.steps*te.t.k-1)
	var loads [][]scalar.Expr
	te.eachPrefetch(func(s *side, v int, names []string) {
		if v == 0 {
			loads = te.shareOf(s, k, factor)
			te.decideVectors(s, loads)
		}
		if s.vectors {
			te.loadVector(loads[v])
		} else {
			for j, x := range loads[v] {
				loads[v][j] = te.JoinLoads(x)
			}
			te.Body = append(te.Body, te.NameAll(loads[v])...)
		}
		te.assignAll(names, loads[v])
	})
}

// shareOf returns a thread's vectors of a side in the step whose first contracted position is k.
func (te *tileEmitter) shareOf(s *side, k scalar.Expr, factor operandReader) [][]scalar.Expr {
	out := make([][]scalar.Expr, te.vectorsPerThread(s))
	for v := range out {
		vec, kk := te.vectorCoords(s, v)
		for j := range emit.VectorWidth {
			f := scalar.Add(scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))), loop.Int(j))
			out[v] = append(out[v], factor(s, te.freeAt(s, f), scalar.Add(k, kk)))
		}
	}
	return out
}

// operandReader reads an operand at free coordinates and a contracted position.
type operandReader func(s *side, free ir.Index, k scalar.Expr) scalar.Expr

// factors returns a function that reads an operand at free coordinates and a contracted position:
// 0 beyond the last.
func (te *tileEmitter) factors() operandReader {
	rd := te.Reader()
	load := rd.Operand(te.out.c.Node)
	length := fusion.Product(te.out.c.K)
	return func(s *side, free ir.Index, k scalar.Expr) scalar.Expr {
		inside := scalar.ConstBool(true)
		if te.parts*te.steps*te.t.k > length {
			inside = scalar.Lt(k, loop.Int(length))
			k = scalar.Min(k, loop.Int(length-1))
		}
		x := te.out.c.Factor(s.operand, te.out.batch, free, te.Unflatten(te.Simplify(k), te.out.c.K), load)
		return scalar.Select(inside, x, scalar.ConstF(ir.F32, 0))
	}
}

func (te *tileEmitter) assignAll(names []string, values []scalar.Expr) {
	for j, name := range names {
		te.Body = append(te.Body, &loop.Assign{Name: name, Value: values[j]})
	}
}

// freeAt returns the free coordinates of position f, clamped to the operand: results beyond its
// end are computed and not stored.
func (te *tileEmitter) freeAt(s *side, f scalar.Expr) ir.Index {
	n := fusion.Product(s.free)
	if n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n-1))
	}
	return te.Unflatten(te.Simplify(f), s.free)
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
		te.Body = append(te.Body, te.guardVector(s, v, []loop.Stmt{store})...)
	})
}

// guardVector guards statements about vector v by the thread having one.
func (te *tileEmitter) guardVector(s *side, v int, then []loop.Stmt) []loop.Stmt {
	total := te.t.k * s.tile / 4
	if (v+1)*te.t.threads() <= total {
		return then
	}
	return emit.Guard(scalar.Lt(scalar.Add(te.lane, loop.Int(v*te.t.threads())), loop.Int(total)), then)
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

// decideVectors clears s.vectors unless each of a thread's loads is that of a vector: the whole kernel
// sees an array as vectors, or as scalars, and a load that is clamped to the operand's end is none.
func (te *tileEmitter) decideVectors(s *side, loads [][]scalar.Expr) {
	s.vectors = s.vectors && !slices.ContainsFunc(loads, func(values []scalar.Expr) bool { return !isVector(te.Emitter, values) })
}

// isVector reports whether four values are loads of adjacent elements, aligned to four.
func isVector(e *emit.Emitter, values []scalar.Expr) bool {
	first := values[0]
	for j, x := range values {
		if x.Op != scalar.OpLoad || x.Ref != first.Ref {
			return false
		}
		if n, ok := e.Simplify(scalar.Sub(x.Args[0], first.Args[0])).IntConst(); !ok || n != int64(j) {
			return false
		}
	}
	rest, ok := e.Simplify(scalar.Mod(first.Args[0], loop.Int(emit.VectorWidth))).IntConst()
	return ok && rest == 0
}

// loadVector replaces the four loads of a vector by one, and the values by its names.
func (te *tileEmitter) loadVector(values []scalar.Expr) {
	first, names := values[0], make([]string, emit.VectorWidth)
	for j := range names {
		names[j] = te.Name("x")
		values[j] = scalar.FreeVar(names[j], first.Type)
	}
	at := te.Simplify(scalar.FloorDiv(first.Args[0], loop.Int(emit.VectorWidth)))
	te.Body = append(te.Body, &loop.LoadVec{Names: names, Array: first.Ref, At: at})
	te.Widths[first.Ref] = emit.VectorWidth
}

// maxDirectOps is the maximum number of unrolled epilogue operations of a thread, over all its
// accumulators.
const maxDirectOps = 128

// storeDirect stores the accumulators of a thread from its registers, one by one. Vector stores
// would make the driver keep accumulators in adjacent registers: products of 4096 ran at 35
// TFLOP/s with them and at 41 without (H200, WebGPU). In CUDA scalar stores cost 2 %.
func (te *tileEmitter) storeDirect(result resultStores) {
	var body []loop.Stmt
	for i := range te.t.rm {
		row := te.freePosition(&te.side[0], i)
		var inRow []loop.Stmt
		for j := range te.t.rn {
			column := te.freePosition(&te.side[1], j)
			at := te.out.point(te.freeAt(&te.side[0], row), te.freeAt(&te.side[1], column))
			stores := te.StoreAll(result(scalar.FreeVar(te.acc(i*te.t.rn+j), ir.F32), at))
			inRow = append(inRow, te.guardFree(&te.side[1], column, stores)...)
		}
		body = append(body, te.guardFree(&te.side[0], row, inRow)...)
	}
	te.Body = append(te.Body, emit.Guard(te.valid, body)...)
}

// storeStaged stores the accumulators through workgroup memory, in rounds of as many rows as fit.
// Each thread then computes the epilogue of four neighbouring results at a time, in a loop, and
// stores are coalesced.
func (te *tileEmitter) storeStaged(result resultStores) {
	rows := te.roundRows()
	rounds := te.t.m / rows
	te.Body = append(te.Body, &loop.Barrier{})
	round := loop.Int(0)
	name := te.Name("round")
	if rounds > 1 {
		round = scalar.NewVar(name, ir.I32, 0, int64(rounds-1))
	}
	body := te.Nested(func() {
		te.stageRound(round, rows)
		te.Barrier()
		te.storeRound(round, rows, result)
	})
	if rounds > 1 {
		body = append(body, &loop.Barrier{})
		body = []loop.Stmt{&loop.For{Var: name, Start: loop.Int(0), End: loop.Int(rounds), Step: loop.Int(1), Body: body}}
	}
	te.Body = append(te.Body, body...)
}

// roundRows returns the number of tile rows that workgroup memory holds in a round: some
// registers of all threads, or of some threads.
func (te *tileEmitter) roundRows() int {
	rows := 4 * te.t.m / te.t.rm
	for rows*te.t.n*4 > te.t.sharedBytes() {
		rows /= 2
	}
	return rows
}

// stageRound stores the accumulators of a round's rows into workgroup memory. A thread has four
// neighbouring rows in each of its register groups.
func (te *tileEmitter) stageRound(round scalar.Expr, rows int) {
	s, c := &te.side[0], &te.side[1]
	perGroup := te.t.m / te.t.rm / (rows / 4) // rounds for a group of registers
	local := te.let("local", scalar.Mul(scalar.Mod(s.thread, loop.Int(rows/4)), loop.Int(4)), rows-4)
	var groups [][]loop.Stmt
	for first := 0; first < te.t.rm; first += 4 {
		var stores []loop.Stmt
		for i := first; i < first+4; i++ {
			for j := 0; j < te.t.rn; j += 4 {
				at := scalar.Mul(scalar.Add(local, loop.Int(i%4)), loop.Int(te.t.n/4))
				at = scalar.Add(at, scalar.Add(c.thread, loop.Int(j*te.t.n/te.t.rn/4)))
				stores = append(stores, &loop.StoreVec{Array: te.slot, At: te.Simplify(at), Values: te.accs(i, j)})
			}
		}
		groups = append(groups, stores)
	}
	slices.Reverse(groups)
	body := groups[0]
	for i, stores := range groups[1:] {
		last := (len(groups) - 1 - i) * perGroup // the first round of the groups after this one
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(last)), Then: stores, Else: body}}
	}
	mine := scalar.Eq(scalar.FloorDiv(s.thread, loop.Int(rows/4)), scalar.Mod(round, loop.Int(perGroup)))
	te.Body = append(te.Body, emit.Guard(te.Simplify(mine), body)...)
}

// accs returns the accumulators of row i and the four columns from j on.
func (te *tileEmitter) accs(i, j int) []scalar.Expr {
	out := make([]scalar.Expr, 4)
	for k := range out {
		out[k] = scalar.FreeVar(te.acc(i*te.t.rn+j+k), ir.F32)
	}
	return out
}

// storeRound computes and stores the results of the rows in workgroup memory.
func (te *tileEmitter) storeRound(round scalar.Expr, rows int, result resultStores) {
	s, c := &te.side[0], &te.side[1]
	across, threads := te.t.n/4, te.t.threads()
	name := te.Name("at")
	at := scalar.NewVar(name, ir.I32, 0, int64(rows*across-1))
	body := te.Nested(func() {
		sums := make([]scalar.Expr, 4)
		names := make([]string, 4)
		for j := range names {
			names[j] = te.Name("sum")
			sums[j] = scalar.FreeVar(names[j], ir.F32)
		}
		te.Body = append(te.Body, &loop.LoadVec{Names: names, Array: te.slot, At: at})
		row := scalar.Add(s.first, scalar.Add(scalar.Mul(round, loop.Int(rows)), scalar.FloorDiv(at, loop.Int(across))))
		column := scalar.Add(scalar.FloorDiv(c.first, loop.Int(4)), scalar.Mod(at, loop.Int(across)))
		te.storeQuad(sumQuad{sums, te.let("row", row, te.lastFree(s)), scalar.Mul(te.let("column", column, te.lastFree(c)/4), loop.Int(4))}, result)
	})
	te.Body = append(te.Body, &loop.For{Var: name, Start: te.lane, End: loop.Int(rows * across), Step: loop.Int(threads), Body: body})
}

// lastFree returns the last free position of the tiles of a side.
func (te *tileEmitter) lastFree(s *side) int {
	return emit.CeilDiv(fusion.Product(s.free), s.tile)*s.tile - 1
}

// epilogue computes the epilogue of a contraction group, for one batch position.
type epilogue struct {
	*emit.Emitter
	g     *fusion.Group
	c     *fusion.Contraction
	batch ir.Index
}

// point returns the outer coordinates of the group for a result.
func (r *epilogue) point(m, n ir.Index) ir.Index {
	at := make(ir.Index, len(r.g.Outer))
	for axis, e := range r.c.Out(r.batch, m, n) {
		if c := r.g.Members[0].Coord[axis]; c >= 0 {
			at[c] = e
		}
	}
	return at
}

// stores computes the epilogue of the sum acc in registers and returns the values to store.
func (r *epilogue) stores(acc scalar.Expr, at ir.Index) []emit.PendingStore {
	n := r.g.Members[0].Node
	rd := r.Reader()
	rd.Given = map[ir.Value]scalar.Expr{n.Result(0): scalar.Convert(acc, n.Types()[0].DType)}
	return r.Values(r.g, rd, at)
}

// sumQuad is the sums of four neighbouring columns of a row. The first column is a multiple of
// four.
type sumQuad struct {
	sums        []scalar.Expr
	row, column scalar.Expr
}

// storeQuad computes and stores the results of four sums, with vector loads and stores where
// the elements of four columns are adjacent in memory.
func (te *tileEmitter) storeQuad(f sumQuad, result resultStores) {
	rows, columns := &te.side[0], &te.side[1]
	m := emit.NewVectorizer(te.Emitter)
	m.ObserveWritten()
	stores := te.quadStores(f, result)
	m.ObserveStores(stores, 4)
	m.Decide()
	exists := emit.Always(4)
	for j := range exists {
		if columns.ragged() {
			exists[j] = scalar.Lt(scalar.Add(f.column, loop.Int(j)), loop.Int(fusion.Product(columns.free)))
		}
	}
	then := m.Nested(func() { m.Store(stores, 4, exists) })
	te.Body = append(te.Body, emit.Guard(te.valid, te.guardFree(rows, f.row, te.guardFree(columns, f.column, then)))...)
}

// quadStores returns the stores of four sums, tensor by tensor.
func (te *tileEmitter) quadStores(f sumQuad, result resultStores) []emit.PendingStore {
	each := make([][]emit.PendingStore, len(f.sums))
	for j, sum := range f.sums {
		each[j] = result(sum, te.out.point(te.freeAt(&te.side[0], f.row), te.columnAt(f.column, j)))
	}
	return byTensor(each)
}

// ragged reports whether of four neighbouring positions of a side some can be in range and
// others not.
func (s *side) ragged() bool {
	n := fusion.Product(s.free)
	return n%s.tile != 0 && n%4 != 0
}

// columnAt returns the coordinates of the column at an offset from first, clamped to the last.
func (te *tileEmitter) columnAt(first scalar.Expr, behind int) ir.Index {
	s := &te.side[1]
	at := scalar.Add(first, loop.Int(behind))
	if s.ragged() {
		at = scalar.Min(at, loop.Int(fusion.Product(s.free)-1))
	}
	return te.Unflatten(te.Simplify(at), s.free)
}

// maxPartials is the maximum number of parts that addPartials reads at once: 64 registers for
// four results.
const maxPartials = 16

// addPartials returns the launch that adds up the split-K partial sums in order, four
// neighbouring results per thread, and computes the epilogue. It returns false if some access is
// not by vectors, if there are more than maxPartials parts, or if there are so few results that
// several threads should share one.
func addPartials(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, parts int, partial *fusion.Tensor) (l emit.Launch, ok bool) {
	n := fusion.Product(g.Outer)
	if n%emit.VectorWidth != 0 || n/emit.VectorWidth < emit.FullThreads(e.Caps) || parts > maxPartials {
		return emit.Launch{}, false
	}
	m := emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads))
	r := epilogue{Emitter: m.Emitter, g: g, c: c}
	m.Threads(n/emit.VectorWidth, func(i scalar.Expr) {
		each := make([][]emit.PendingStore, emit.VectorWidth)
		for j := range each {
			at := m.Unflatten(scalar.Add(scalar.Mul(i, loop.Int(emit.VectorWidth)), loop.Int(j)), g.Outer)
			sum := m.Emitter.Load(partial, append(ir.Index{loop.Int(0)}, at...))
			for p := 1; p < parts; p++ {
				sum = scalar.Add(sum, m.Emitter.Load(partial, append(ir.Index{loop.Int(p)}, at...)))
			}
			each[j] = r.stores(sum, at)
		}
		stores := byTensor(each)
		m.ObserveStores(stores, emit.VectorWidth)
		m.Decide()
		m.Store(stores, emit.VectorWidth, emit.Always(emit.VectorWidth))
	})
	return m.Launch(g.Name()), len(m.Scalars) == 0
}

// byTensor transposes the stores of neighbouring points, each[point][tensor], to tensor-major
// order.
func byTensor(each [][]emit.PendingStore) (stores []emit.PendingStore) {
	for i := range each[0] {
		for _, own := range each {
			stores = append(stores, own[i])
		}
	}
	return stores
}
