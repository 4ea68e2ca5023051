package sched

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scheduleTiles computes a contraction in tiles. Where its sums are cut into parts, a
// second kernel adds those up and computes what follows the contraction.
func scheduleTiles(e *emitter, g *fusion.Group, c *fusion.Contraction, t tile, parts int) []Launch {
	te := newTileEmitter(e, g, c, t, parts)
	if te.parts == 1 {
		return []Launch{te.drafted(parts, nil)}
	}
	partial := newPartial(0, ir.F32, g, te.parts)
	first := te.drafted(parts, partial)
	if second, ok := addParts(e, g, c, te.parts, partial); ok {
		return []Launch{first, second}
	}
	return []Launch{first, e.another().combineParts(g.Reduction(), te.parts, []*fusion.Tensor{partial})}
}

// drafted is the launch of the tiles, with a draft of the kernel where the target wants one
// and the tile has one: it adds up the same products in the same order.
func (te *tileEmitter) drafted(parts int, partial *fusion.Tensor) Launch {
	l := te.launch(te.g.Name(), partial)
	if draft, ok := te.t.draft(); ok && te.caps.Drafts && draft.fits(te.caps) {
		e := te.another()
		e.args = l.Args
		small := newTileEmitter(e, te.g, te.c, draft, parts)
		small.draft = true
		l.Draft = small.launch(te.g.Name()+"_draft", partial).Kernel
	}
	return l
}

// launch is the launch of the tiles alone: it leaves results, or where there is partial the
// sums of the parts in that.
func (te *tileEmitter) launch(name string, partial *fusion.Tensor) Launch {
	if partial == nil {
		return te.kernel(name, te.storesBehind(te.g.EpilogueWeight()), te.members)
	}
	return te.kernel(name+"_parts", te.storesBehind(0), func(acc scalar.Expr, at ir.Index) []kept {
		return []kept{{partial, append(ir.Index{te.part}, at...), acc}}
	})
}

// storesBehind returns how sums are stored behind which so many operations stand.
func (te *tileEmitter) storesBehind(weight int) func(storeResult) {
	if withMma && te.t.together > 1 {
		return te.core.(*fragmentCore).store
	}
	if weight*te.t.rm*te.t.rn > maxDirect {
		return te.staged
	}
	return te.direct
}

// tileCore is where the products of a tile are added up, and the tiles of its operands in
// workgroup memory, of which there are two: one that is read and one that is written.
type tileCore interface {
	// declare defines the sums, as zeros.
	declare()
	// put writes what was read ahead into a tile.
	put(buffer scalar.Expr)
	// multiply adds the products of one step.
	multiply(buffer scalar.Expr)
}

// tileEmitter writes the kernel of a tiled contraction. Both operands are read
// in tiles into workgroup memory, one tile ahead of the arithmetic. By itself it is the
// core that reads them by vectors of 4 into registers, where each thread has its sums, and
// the steps that bring them by way of registers.
type tileEmitter struct {
	results
	core  tileCore
	t     tile
	parts int         // of the contracted space, each for a workgroup of its own
	steps int         // of a part
	part  scalar.Expr // which of them the workgroup has
	valid scalar.Expr // false in workgroups beyond the last tile
	side  [2]side     // operand 0 along m, operand 1 along n
	slot  int         // workgroup memory: two tiles of operand 0, then two of operand 1
	lane  scalar.Expr
	body  []loop.Stmt
	draft bool // the kernel is one, see [tile.draft]
}

// side is what is the same for both operands of a contraction: a tile of free
// positions by contracted ones.
type side struct {
	operand   int
	free      []int // sizes of the free space
	tile, reg int   // free positions of a workgroup and of a thread
	thread    scalar.Expr
	first     scalar.Expr // first free position of the workgroup
	base      int         // first vector of its tiles in workgroup memory
	kFast     bool        // neighbouring threads load along the contracted space
	vectors   bool        // what is loaded may be declared as an array of vectors
	prefix    string
}

func newTileEmitter(e *emitter, g *fusion.Group, c *fusion.Contraction, t tile, parts int) *tileEmitter {
	te := &tileEmitter{results: results{emitter: e, g: g, c: c}, t: t}
	te.steps = ceilDiv(fusion.Product(c.K), parts*t.k)
	te.parts = ceilDiv(fusion.Product(c.K), te.steps*t.k)
	threads := t.threads()
	e.workgroup = [3]int{threads, 1, 1}
	te.lane = loop.LocalID(0, threads)
	across, number := t.n/t.rn, te.lane
	if withMma && t.together > 1 {
		number = loop.SubgroupIndex(threads / t.together)
	}
	tilesM, tilesN := ceilDiv(fusion.Product(c.M), t.m), ceilDiv(fusion.Product(c.N), t.n)
	workgroup, valid := e.boundedGroup(te.parts * t.count(c))
	te.valid = valid
	te.part = te.let("part", scalar.FloorDiv(workgroup, loop.Int(t.count(c))), te.parts-1)
	column := scalar.Mod(workgroup, loop.Int(tilesN))
	row := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(tilesN)), loop.Int(tilesM))
	batch := scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(tilesN*tilesM)), loop.Int(fusion.Product(c.Batch)))
	te.batch = te.unflatten(te.let("batch", batch, fusion.Product(c.Batch)-1), c.Batch)
	down, right := scalar.FloorDiv(number, loop.Int(across)), scalar.Mod(number, loop.Int(across))
	if withMma && t.stages > 0 {
		down, right = te.warpPlace()
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
		// An array is of vectors in the whole kernel or not at all.
		whole := g.SoleOperand(c, i, te.batch)
		te.side[i].vectors = whole != nil && whole.Len()%4 == 0
	}
	te.core = te
	if withMma && t.together > 1 {
		te.core = newFragmentCore(te)
		return te
	}
	te.slot = e.shared("tiles", ir.F32, 4, t.sharedBytes()/16)
	return te
}

// first is the first free position of tile number i of count: a multiple of the
// width of a vector, which the expression shows.
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

// contiguousAlongK reports whether the last axis of an operand moves with the
// last contracted coordinate.
func (te *tileEmitter) contiguousAlongK(s *side) bool {
	k := fusion.Coords("k", te.c.K)
	at, _ := te.c.Address(s.operand, te.batch, fusion.Coords("f", s.free), k)
	if len(at) == 0 || len(k) == 0 {
		return false
	}
	moves := false
	scalar.Walk(at[len(at)-1], func(x scalar.Expr) {
		moves = moves || x.Op == scalar.OpVar && x.Name == k[len(k)-1].Name
	})
	return moves
}

// storeResult returns what is stored of one result of a contraction, a sum at a point of
// the group.
type storeResult func(sum scalar.Expr, at ir.Index) []kept

// kernel writes the whole kernel; finish stores what the registers hold by result.
func (te *tileEmitter) kernel(title string, finish func(storeResult), result storeResult) Launch {
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

// begin loads the first tiles before the loop, since a condition inside it slows it down.
func (te *tileEmitter) begin() {
	te.declareAhead()
	te.loadAhead(loop.Int(0))
	te.core.put(loop.Int(0))
	te.body = append(te.body, &loop.Barrier{})
}

// step loads the next tiles into registers while those in workgroup memory are multiplied.
func (te *tileEmitter) step(at scalar.Expr) {
	buffer := te.let("half", scalar.Mod(at, loop.Int(2)), 1)
	if te.steps > 1 {
		te.loadAhead(te.let("next", scalar.Min(scalar.Add(at, loop.Int(1)), loop.Int(te.steps-1)), te.steps-1))
	}
	te.core.multiply(buffer)
	if te.steps > 1 {
		te.core.put(scalar.Sub(loop.Int(1), buffer))
		te.body = append(te.body, &loop.Barrier{})
	}
}

// end has nothing to do: all that was loaded is in workgroup memory.
func (te *tileEmitter) end() {}

// declare defines the sums of a thread.
func (te *tileEmitter) declare() {
	for i := range te.t.rm * te.t.rn {
		te.body = append(te.body, &loop.Var{Name: te.acc(i), Init: scalar.ConstF(ir.F32, 0)})
	}
}

// acc is the name of a sum: an element of c, the product of a and b. A kernel has hundreds
// of uses of such names, and a plan dozens of such kernels, so they are short.
func (te *tileEmitter) acc(i int) string { return "c" + strconv.Itoa(i) }

// unrolledProducts is how many products of a thread are written out: those of two
// contracted positions for 64 sums. A contraction of longProducts in all has them of
// leastUnrolled positions: products of 4096 then ran at 41.0 TFLOP/s instead of 40.1 in
// WGSL on an H200, with all eight at 39.9, but such a kernel takes a driver 70 ms more to
// compile, which shorter ones do not win back. In WGSL those between midProducts and twice
// as many do, too: a step of an MLP with five of them took 496 µs so and not 503. Longer ones
// gained less (a step of a character GPT took 37.6 ms and not 37.9), and deep models have
// dozens of them, whose text grew by a quarter. In CUDA nobody has measured them.
const (
	unrolledProducts = 128
	leastUnrolled    = 4
	longProducts     = 1 << 35
	midProducts      = 1 << 30
	// draftProducts are those of a draft, which are few since it is there to be compiled
	// soon. With kernels of 16 sums for all its products a character GPT had all its kernels
	// compiled after 1.0 s with 32, and with 128 (H200, WebGPU): the fewer make less text.
	draftProducts = 32
)

// together is how many contracted positions are written out.
func (te *tileEmitter) together() int {
	if te.draft {
		return draftProducts / (te.t.rm * te.t.rn)
	}
	n := unrolledProducts / (te.t.rm * te.t.rn)
	long := points(te.c)
	mid := long >= midProducts && long < 2*midProducts && te.caps.Dialect == dtype.WGSL
	if mid || long >= longProducts {
		n = max(n, leastUnrolled)
	}
	return min(te.t.k, n)
}

// multiply adds the products of one step. A thread's results lie in squares of
// 4×4, spread over the tile so that neighbours read neighbouring vectors.
func (te *tileEmitter) multiply(buffer scalar.Expr) {
	together := te.together()
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
			at = scalar.Add(at, scalar.Add(loop.Int(s.base), s.turned(scalar.Add(s.thread, loop.Int(v*s.tile/s.reg)), kk)))
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

// place returns the free position of a thread's register i.
func (te *tileEmitter) place(s *side, i int) scalar.Expr {
	vec := scalar.Add(s.thread, loop.Int(i/4*(s.tile/s.reg)))
	return scalar.Add(s.first, scalar.Add(scalar.Mul(vec, loop.Int(4)), loop.Int(i%4)))
}

// within keeps statements to free positions that exist.
func (te *tileEmitter) within(s *side, f scalar.Expr, then []loop.Stmt) []loop.Stmt {
	n := fusion.Product(s.free)
	if n%s.tile == 0 {
		return then
	}
	return guard(te.Simplify(scalar.Lt(f, loop.Int(n))), then)
}

// vectors is how many vectors of a side each thread moves per step.
func (te *tileEmitter) vectors(s *side) int { return ceilDiv(s.tile/4*te.t.k, te.t.threads()) }

// declareAhead declares the registers that hold the next tiles: na0 and on of a, nb0 of b.
func (te *tileEmitter) declareAhead() {
	te.eachAhead(func(_ *side, _ int, names []string) {
		for _, name := range names {
			te.body = append(te.body, &loop.Var{Name: name, Init: scalar.ConstF(ir.F32, 0)})
		}
	})
}

func (te *tileEmitter) eachAhead(f func(s *side, v int, names []string)) {
	for i := range te.side {
		s := &te.side[i]
		for v := range te.vectors(s) {
			names := make([]string, 4)
			for j := range names {
				names[j] = "n" + s.prefix + strconv.Itoa(4*v+j)
			}
			f(s, v, names)
		}
	}
}

// vectorPlace returns which vector along the free positions, and which
// contracted position, vector v of a thread is.
func (te *tileEmitter) vectorPlace(s *side, v int) (vec, k scalar.Expr) {
	threads, per := te.t.threads(), s.tile/4
	id := scalar.Add(te.lane, loop.Int(v*threads))
	if s.kFast {
		return te.Simplify(scalar.FloorDiv(id, loop.Int(te.t.k))), te.Simplify(scalar.Mod(id, loop.Int(te.t.k)))
	}
	return te.Simplify(scalar.Mod(id, loop.Int(per))), te.Simplify(scalar.FloorDiv(id, loop.Int(per)))
}

// loadAhead reads a thread's share of the tiles of a step into registers.
func (te *tileEmitter) loadAhead(step scalar.Expr) {
	rd := te.reader()
	load := rd.Operand(te.c.Node)
	length := fusion.Product(te.c.K)
	first := scalar.Mul(scalar.Add(scalar.Mul(te.part, loop.Int(te.steps)), step), loop.Int(te.t.k))
	k := te.let("k", first, te.parts*te.steps*te.t.k-1)
	te.eachAhead(func(s *side, v int, names []string) {
		vec, kk := te.vectorPlace(s, v)
		pos := scalar.Add(k, kk)
		inside := scalar.ConstBool(true)
		if te.parts*te.steps*te.t.k > length {
			inside = scalar.Lt(pos, loop.Int(length))
			pos = scalar.Min(pos, loop.Int(length-1))
		}
		kAt := te.unflatten(te.Simplify(pos), te.c.K)
		values := make([]scalar.Expr, 4)
		for j := range values {
			f := scalar.Add(scalar.Add(s.first, scalar.Mul(vec, loop.Int(4))), loop.Int(j))
			x := te.c.Factor(s.operand, te.batch, te.freeAt(s, f), kAt, load)
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

// freeAt returns the free coordinates of position f, kept inside the operand:
// what lies beyond is computed and not stored.
func (te *tileEmitter) freeAt(s *side, f scalar.Expr) ir.Index {
	n := fusion.Product(s.free)
	if n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n-1))
	}
	return te.unflatten(te.Simplify(f), s.free)
}

// put writes the registers into a buffer of workgroup memory: rows of one contracted
// position.
func (te *tileEmitter) put(buffer scalar.Expr) {
	te.eachAhead(func(s *side, v int, names []string) {
		vec, kk := te.vectorPlace(s, v)
		values := make([]scalar.Expr, 4)
		for j, name := range names {
			values[j] = scalar.FreeVar(name, ir.F32)
		}
		at := scalar.Add(scalar.Mul(buffer, loop.Int(te.t.k*s.tile/4)), scalar.Add(scalar.Mul(kk, loop.Int(s.tile/4)), s.turned(vec, kk)))
		store := &loop.StoreVec{Array: te.slot, At: te.Simplify(scalar.Add(at, loop.Int(s.base))), Values: values}
		te.body = append(te.body, te.ownVector(s, v, []loop.Stmt{store})...)
	})
}

// ownVector keeps statements about vector v of a thread to threads that have one.
func (te *tileEmitter) ownVector(s *side, v int, then []loop.Stmt) []loop.Stmt {
	total := te.t.k * s.tile / 4
	if (v+1)*te.t.threads() <= total {
		return then
	}
	return guard(scalar.Lt(scalar.Add(te.lane, loop.Int(v*te.t.threads())), loop.Int(total)), then)
}

// turned is the place of a vector in its row of workgroup memory. Where neighbouring
// threads write to neighbouring rows, rows are turned against each other, so that
// they do not write to one bank.
func (s *side) turned(vec, row scalar.Expr) scalar.Expr {
	if !s.kFast {
		return vec
	}
	return scalar.Mod(scalar.Add(vec, row), loop.Int(s.tile/4))
}

// loadVector loads four values at once where they lie side by side, at a multiple
// of four, and names them.
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
