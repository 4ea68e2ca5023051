package reduce

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The schedules of products of one row with packed weights. A workgroup computes some rows of
// weights. Its threads divide a row, and each keeps its part of the row of activations in
// registers, so that these are loaded once for all rows of weights; it loads weights as words.

// rowSlice is how threads divide a row of weights. A row consists of blocks of block elements, which
// are indexed by [majors, fields, minors, run]; a thread has a slice, the elements [:, run] of one
// major and one minor. Bytes of packed formats hold the same bits of all fields, so that the slice
// uses all bits of the bytes that it loads.
type rowSlice struct{ block, majors, fields, minors, run int }

// rowSlices are those that the formats need: blocks of 32 with nibbles of the two halves or with
// bytes, and those of 256, in which groups of 32 bytes have two or four fields, or all have scales
// in common.
var rowSlices = []rowSlice{
	{32, 1, 1, 1, 32},
	{32, 1, 2, 2, 8},
	{32, 1, 1, 2, 16},
	{32, 1, 1, 4, 8},
	{64, 4, 2, 1, 8},
	{64, 1, 4, 2, 8},
	{256, 4, 2, 2, 16},
	bytePairs,
	{256, 8, 2, 1, 16},
	{256, 2, 4, 4, 8},
	{256, 2, 4, 2, 16},
	{256, 1, 8, 8, 4},
	{256, 1, 1, 8, 32},
	{256, 1, 1, 16, 16},
}

// bytePairs has two runs of bytes of neighbouring blocks of q8_0, for which it is the cheapest.
var bytePairs = rowSlice{256, 4, 2, 4, 8}

func (s rowSlice) elements() int { return s.fields * s.run }

// perBlock is the number of slices of a block.
func (s rowSlice) perBlock() int { return s.majors * s.minors }

// Bounds of a product with packed weights.
const (
	packedLanes       = emit.GroupThreads // threads, more only where each has maxPackedElements activations
	maxPackedLanes    = 512               // threads
	maxPackedElements = 32                // of the activations of a thread
	maxPackedRows     = 64                // rows of a workgroup
	packedAtOnce      = 4                 // rows whose weights are in flight together
	minPackedLength   = 256               // elements of a row
	packedTeams       = 4                 // teams of a workgroup where each is a warp
)

// packedRows writes the kernel of a product with packed weights.
type packedRows struct {
	*emit.Emitter
	r        *rowEmitter // of the same kernel
	g        *fusion.Group
	members  []*fusion.Member
	numbers  []*fusion.Member
	sums     []scalar.Expr // of the thread, by number
	split    rowSlice
	first    scalar.Expr     // the first row of weights of a loop iteration
	slice    []scalar.Expr   // of the thread, by turn
	x        [][]scalar.Expr // activations, by turn
	totals   map[string]scalar.Expr
	scaled   map[string]scalar.Expr // activations times a power of two
	weights  *wordLoads
	elements map[*fusion.Member]scalar.Expr // in general
	start    int                            // the number of statements before the first that may depend on other kernels
	rows     *rowLoop                       // that is being written, or nil
	rounding *rounding                      // of the activations, or nil
	team     scalar.Expr                    // the number of the thread's team in the workgroup
	warps    int                            // of a team
}

// rowLoop is a loop over rows of weights, whose loads are an iteration ahead: a row's words are loaded as soon as
// those before them have been used.
type rowLoop struct {
	begin, next scalar.Expr // the first rows of the first and of the next iteration
	more        scalar.Expr // there is a next iteration
	words       []loop.Stmt // loads of the first rows' words, before all that depends on other kernels
	before      []loop.Stmt // statements before the loop
	after       []loop.Stmt // loads of the words of the current row in the next iteration
}

// isPacked reports whether a group is a sum of products with packed weights: on CUDA and, with subgroups of a warp, in
// WebGPU only, elsewhere it is not measured.
func isPacked(e *emit.Emitter, g *fusion.Group) bool {
	d := e.Caps.Dialect
	if d != dtype.CUDA && d != dtype.WGSL || e.Caps.Lanes() != loop.Warp || e.Long || len(g.Inner) != 1 || len(g.Outer) == 0 ||
		g.Inner[0] < minPackedLength || !g.Rows().CanSplit() {
		return false
	}
	bytes := func(t *fusion.Tensor) bool {
		return t.DType == ir.U8 && !t.IsSlice() && t.Root().Len() >= fusion.Product(g.Outer)
	}
	if !slices.ContainsFunc(g.Reads(), bytes) {
		return false
	}
	for _, m := range g.Members {
		if !m.Reduced {
			continue
		}
		accs := m.Reduction().Accumulators(m.Node)
		if len(accs) != 1 || accs[0].DType != ir.F32 {
			return false
		}
		a, b := scalar.FreeVar("a", ir.F32), scalar.FreeVar("b", ir.F32)
		if sum := m.Reduction().Combine(m.Node, []scalar.Expr{a}, []scalar.Expr{b}); scalar.Key(sum[0]) != scalar.Key(scalar.Add(a, b)) {
			return false
		}
	}
	return true
}

// packedRule returns the schedule of a product with packed weights, or false if the group is none.
func packedRule(w *Space) (emit.Schedule, bool) {
	e, g := w.e, w.Group
	if !isPacked(e, g) {
		return emit.Schedule{}, false
	}
	best, cost, period := -1, 0., periodOf(e, g)
	for i, s := range rowSlices {
		if g.Inner[0]%s.block != 0 || s.block > period && s != bytePairs {
			continue
		}
		if c, ok := w.sliceCost(i); ok && (best < 0 || c < cost) {
			best, cost = i, c
		}
	}
	if best < 0 {
		return emit.Schedule{}, false
	}
	if emit.WithMma {
		return withRing(e, g, packedSchedule(e, g, w.halfBlocks(best))), true
	}
	return packedSchedule(e, g, best), true
}

// periodOf returns a bound of the elements of a block of the format of the weights: the largest number by which their
// place in a row is divided. Slices of larger blocks than the format has share no more words than others, except for
// bytePairs, and to cost all of them takes several times as long.
func periodOf(e *emit.Emitter, g *fusion.Group) int {
	p, period := newPackedRows(e.Sibling(), g, rowSlices[0]), 1
	for _, m := range p.members {
		scalar.Walk(p.general(m), func(n scalar.Expr) {
			if n.Op != scalar.OpFloorDiv && n.Op != scalar.OpMod {
				return
			}
			by, ok := n.Args[1].IntConst()
			if !scalar.Any(n.Args[0], func(x scalar.Expr) bool { return x.Op == scalar.OpVar && x.Name == generalInner }) {
				return
			}
			if !ok || by > int64(g.Inner[0]) {
				by = int64(g.Inner[0])
			}
			period = max(period, int(by))
		})
	}
	return period
}

// packedSchedule picks the threads and the rows of a workgroup for a slice.
func packedSchedule(e *emit.Emitter, g *fusion.Group, number int) emit.Schedule {
	n := g.Inner[0] / rowSlices[number].elements()
	turns := 1
	for emit.CeilDiv(n, turns) > maxPackedLanes || turns*rowSlices[number].elements() < maxPackedElements && emit.CeilDiv(n, turns) > packedLanes {
		turns++
	}
	lanes := emit.CeilDiv(emit.CeilDiv(n, turns), loop.Warp) * loop.Warp
	best := emit.Schedule{Family: emit.PackedRows, K: number + 1, Lanes: lanes, Rows: 1}
	for s := best; s.Rows <= min(maxPackedRows, lanes); s.Rows++ {
		if packedDivides(g, s.Rows) && rowsCost(e, g, s) <= rowsCost(e, g, best) {
			best = s
		}
	}
	best.M = teams(e, best)
	return best
}

// teams returns how many teams of threads, each with rows of its own, a workgroup has, 0 for one. Short rows take a warp each, and
// by WebGPU workgroups of one warp take longer: a token of SmolLM2-135M takes an H200 819 µs with one, 801 with four of them.
// CUDA makes 1,629 tokens/s with one, 1,580 with four. All products of a length have as many, so that launches can be joined.
func teams(e *emit.Emitter, s emit.Schedule) int {
	if e.Caps.Dialect != dtype.WGSL || s.Lanes > loop.Warp || packedTeams*s.Lanes > e.Caps.Invocations {
		return 0
	}
	return packedTeams
}

// packedDivides reports whether workgroups of a number of rows have all rows of weights, and whole groups of those
// that are in flight together.
func packedDivides(g *fusion.Group, rows int) bool {
	return fusion.Product(g.Outer)%rows == 0 && (rows%packedAtOnce == 0 || rows < packedAtOnce && emit.PowerOfTwo(rows) == rows)
}

// Of the time of a workgroup: loading the activations takes as long as some rows of weights, and a
// processor needs some warps for its share of the bandwidth.
const (
	activationRows = 4
	busyWarps      = 12
)

// rowsCost is the time of a processor in rows of weights.
func rowsCost(e *emit.Emitter, g *fusion.Group, s emit.Schedule) float64 {
	groups := fusion.Product(g.Outer) / s.Rows
	processors := e.Caps.Profile().Processors
	warps := float64(groups) / float64(processors) * float64(s.Lanes/loop.Warp)
	return float64(emit.CeilDiv(groups, processors)*(s.Rows+activationRows)) * max(1, busyWarps/warps)
}

func newPackedRows(e *emit.Emitter, g *fusion.Group, split rowSlice) *packedRows {
	r := &rowEmitter{
		Emitter: e, g: g, shape: rowLayout{lanes: 1, rows: 1}, levels: g.Levels(), named: map[ir.Value]scalar.Expr{}, lane: loop.Int(0),
		inRange: scalar.ConstBool(true),
	}
	p := &packedRows{Emitter: r.Emitter, r: r, g: g, split: split, elements: map[*fusion.Member]scalar.Expr{}, totals: map[string]scalar.Expr{}, scaled: map[string]scalar.Expr{}, weights: newWordLoads(r.Emitter)}
	if emit.WithMma {
		findRounding(p)
		p.weights.whole = p.rounding != nil
	}
	p.splitMembers()
	return p
}

// emitPacked writes the kernel, or reports false where the weights do not factor. Threads load their
// activations as vectors if they can. Elsewhere they go through workgroup memory, and a workgroup has one team.
func emitPacked(e *emit.Emitter, g *fusion.Group, s emit.Schedule) (emit.Launch, bool) {
	if l, ok := emitPackedBy(e.Sibling(), g, s, (*packedRows).loadVectors); ok {
		return l, true
	}
	s.M = 0
	return emitPackedBy(e.Sibling(), g, s, (*packedRows).stage)
}

// activationLoader loads the activations of a thread, or reports false where it cannot; used is the
// number of other bytes of workgroup memory.
type activationLoader func(p *packedRows, s emit.Schedule, lane scalar.Expr, used int) bool

// emitPackedBy is emitPacked with one way to load the activations.
func emitPackedBy(e *emit.Emitter, g *fusion.Group, s emit.Schedule, load activationLoader) (emit.Launch, bool) {
	p := newPackedRows(e, g, rowSlices[s.K-1])
	each, n := max(s.M, 1), fusion.Product(g.Outer)/s.Rows // teams, of a workgroup and all
	e.Workgroup = [3]int{each * s.Lanes, 1, 1}
	group, exists := e.BoundedGroup(emit.CeilDiv(n, each))
	lane := loop.LocalID(0, each*s.Lanes)
	p.team, p.warps = p.Simplify(scalar.FloorDiv(lane, loop.Int(s.Lanes))), s.Lanes/loop.Warp
	lane = p.Simplify(scalar.Mod(lane, loop.Int(s.Lanes)))
	number := scalar.Add(scalar.Mul(group, loop.Int(each)), p.team)
	if n%each != 0 {
		exists, number = scalar.And(exists, scalar.Lt(number, loop.Int(n))), scalar.Min(number, loop.Int(n-1))
	}
	number = p.ranged("group", number, n)
	count := g.Inner[0] / p.split.elements()
	for t := range emit.CeilDiv(count, s.Lanes) {
		at := scalar.Add(lane, loop.Int(t*s.Lanes))
		p.thread(p.ranged("slice", scalar.Min(at, loop.Int(count-1)), count))
	}
	atOnce := p.atOnce(s)
	parts, numbers := p.partsOf(p.members, each*s.Rows*p.warps), p.partsOf(p.numbers, each*p.warps)
	begin := p.ranged("begin", scalar.Mul(number, loop.Int(s.Rows)), fusion.Product(g.Outer))
	p.start = len(p.Body)
	if !load(p, s, lane, 4*p.warps*(s.Rows*len(parts)+len(numbers))) {
		return emit.Launch{}, false
	}
	if emit.WithMma && p.rounding != nil {
		roundActivations(p)
	}
	if !p.sumActivations() {
		return emit.Launch{}, false
	}
	p.foldNumbers(lane, numbers)
	overRows := func(f func(at scalar.Expr)) { p.overRows(s.Rows, atOnce, f) }
	if emit.WithMma && s.Stages > 0 {
		r, ok := findRing(p, s)
		if !ok {
			return emit.Launch{}, false
		}
		atOnce = r.rows
		overRows = func(f func(at scalar.Expr)) { p.overRing(r, lane, s, begin, f) }
	}
	ok := true
	overRows(func(at scalar.Expr) { ok = p.sumRows(begin, at, lane, s, atOnce, parts) && ok })
	if !ok {
		return emit.Launch{}, false
	}
	p.Body = append(p.Body, &loop.Barrier{})
	p.finish(begin, lane, exists, s.Rows, append(parts, numbers...))
	for id := range p.weights.tensors {
		e.Words[id] = true
	}
	if p.weights.readsBytes(p.Body) || p.readsElements() {
		return emit.Launch{}, false
	}
	return e.Finish(g.Name(), p.Body), true
}

// sumRows computes and stores the sums of a few rows from at on, counted from begin, the first of the workgroup. It reports
// false where the weights do not factor.
func (p *packedRows) sumRows(begin, at, lane scalar.Expr, s emit.Schedule, atOnce int, parts []int) bool {
	first := p.Name("first") // a variable even where it is known: expressions are distinguished by it
	p.Body = append(p.Body, &loop.Let{Name: first, Value: p.Simplify(scalar.Add(begin, at))})
	p.first = scalar.NewVar(first, ir.I32, 0, int64(max(fusion.Product(p.g.Outer)-atOnce, 1)))
	p.beginRows(begin, at, s.Rows, atOnce)
	for m := range p.members {
		var sums []scalar.Expr
		for j := range atOnce {
			sum, ok := p.sum(m, j)
			if !ok {
				return false
			}
			sums = append(sums, sum)
			p.loadNext()
		}
		p.fold(sums, lane, func(row, sum scalar.Expr) {
			row = scalar.Add(scalar.Mul(p.team, loop.Int(s.Rows)), scalar.Add(at, row))
			to := scalar.Add(scalar.Mul(row, loop.Int(p.warps)), scalar.FloorDiv(lane, loop.Int(loop.Warp)))
			p.Body = append(p.Body, &loop.Store{Array: parts[m], At: p.Simplify(to), Value: sum})
		})
	}
	return true
}

// atOnce returns the number of rows whose weights are in flight together.
func (p *packedRows) atOnce(s emit.Schedule) int {
	switch {
	case emit.WithMma && p.rounding != nil:
		return integerRows(p, s, len(p.slice))
	case len(p.members) > 1:
		return min(packedAtOnce, s.Rows, 2)
	}
	return min(packedAtOnce, s.Rows)
}

// ranged names a value in [0, n).
func (p *packedRows) ranged(prefix string, x scalar.Expr, n int) scalar.Expr {
	x = p.Simplify(x)
	if x.Op == scalar.OpConst {
		return x
	}
	name := p.Name(prefix)
	p.Body = append(p.Body, &loop.Let{Name: name, Value: x})
	return scalar.NewVar(name, x.Type, 0, int64(max(n, 1)-1))
}

// thread adds a slice to those of the thread.
func (p *packedRows) thread(slice scalar.Expr) { p.slice = append(p.slice, slice) }

// overRows writes f for the rows of a workgroup, some at a time. The words of the first ones are loaded before the activations:
// where these are all rows, on WebGPU alone. CUDA's compiler orders loads itself, and there SmolLM2-135M decodes 1,614 tokens/s
// on an H200, with them 1,584, while by WebGPU its kernels take 850 µs a token, with them 837.
func (p *packedRows) overRows(rows, atOnce int, f func(at scalar.Expr)) {
	if emit.WithMma && rows == atOnce && p.Caps.Dialect == dtype.CUDA {
		f(loop.Int(0))
		return
	}
	name, at, outer := "", loop.Int(0), p.Body
	if rows > atOnce {
		name = p.Name("r")
		at = scalar.NewVar(name, ir.I32, 0, int64(rows-atOnce))
	}
	p.Body = nil
	p.rows, p.weights.from = &rowLoop{}, p.loadAhead
	f(at)
	outer = append(outer, p.rows.before...)
	if p.fixed() {
		p.rows.words = append(p.rows.words, &loop.Barrier{Kernels: true})
	}
	outer = slices.Insert(outer, p.start, p.rows.words...)
	p.rows, p.weights.from = nil, nil
	if rows == atOnce {
		p.Body = append(outer, p.Body...)
		return
	}
	// WGSL's NoUnroll begins a loop at a number that is not uniform, which shuffles in it need.
	rolled := emit.WithMma && p.Caps.Dialect == dtype.CUDA
	p.Body = append(outer, &loop.For{Var: name, Start: loop.Int(0), End: loop.Int(rows), Step: loop.Int(atOnce), NoUnroll: rolled, Body: p.Body})
}

// beginRows says which rows the loop over rows, if there is one, begins and goes on with.
func (p *packedRows) beginRows(begin, at scalar.Expr, rows, atOnce int) {
	if p.rows != nil {
		p.rows.begin, p.rows.next = begin, scalar.Add(p.first, loop.Int(atOnce))
		p.rows.more = p.Simplify(scalar.Lt(scalar.Add(at, loop.Int(atOnce)), loop.Int(rows)))
	}
}

// loadAhead loads a word before the loop over rows and, once it has been used, that of the next iteration.
func (p *packedRows) loadAhead(array int, at scalar.Expr, last int) scalar.Expr {
	name, l := p.Name("w"), p.rows
	at = atMost(at, last)
	load := func(first scalar.Expr) scalar.Expr {
		return scalar.LoadAt(array, ir.U32, p.Simplify(scalar.SubstituteVars(at, map[string]scalar.Expr{p.first.Name: first})))
	}
	l.words = append(l.words, &loop.Var{Name: name, Init: load(l.begin)})
	l.after = append(l.after, &loop.Assign{Name: name, Value: load(l.next)})
	return scalar.FreeVar(name, ir.U32)
}

// fixed reports whether no kernel of a run writes the weights, or numbers that their places depend on.
func (p *packedRows) fixed() bool {
	fixed := len(p.weights.tensors) > 0
	for _, s := range p.rows.words {
		loop.EachNode(s, func(n scalar.Expr) {
			fixed = fixed && (n.Op != scalar.OpLoad || n.Ref < 0 || p.Partition.IsFixed(p.Partition.Tensor(n.Ref)))
		})
	}
	return fixed
}

// loadNext writes the loads of the words of the next iteration that the current row no longer needs.
func (p *packedRows) loadNext() {
	if p.rows == nil || len(p.rows.after) == 0 {
		return
	}
	if more, known := p.rows.more.IntConst(); !known || more != 0 {
		p.Body = append(p.Body, &loop.If{Cond: p.rows.more, Then: p.rows.after})
	}
	p.rows.after = nil
}

// beforeRows names a value before the loop over rows, if there is one.
func (p *packedRows) beforeRows(prefix string, x scalar.Expr) scalar.Expr {
	if p.rows == nil {
		return p.r.let(prefix, x)
	}
	name := p.Name(prefix)
	p.rows.before = append(p.rows.before, &loop.Let{Name: name, Value: x})
	return scalar.FreeVar(name, x.Type)
}

// element returns the inner coordinate of an element of a slice.
func (p *packedRows) element(slice scalar.Expr, field, at int) scalar.Expr {
	s := p.split
	block, place := scalar.FloorDiv(slice, loop.Int(s.perBlock())), scalar.Mod(slice, loop.Int(s.perBlock()))
	major, minor := scalar.FloorDiv(place, loop.Int(s.minors)), scalar.Mod(place, loop.Int(s.minors))
	e := scalar.Add(scalar.Mul(block, loop.Int(s.block)), scalar.Mul(major, loop.Int(s.fields*s.minors*s.run)))
	e = scalar.Add(e, scalar.Mul(minor, loop.Int(s.run)))
	return p.Simplify(scalar.Add(e, loop.Int(field*s.minors*s.run+at)))
}

// product returns the factors of a member's element that are independent of the row, and the other one:
// activations and weights.
func (p *packedRows) product(m *fusion.Member, row, inner scalar.Expr) (x, value scalar.Expr, ok bool) {
	value = scalar.Substitute(p.general(m), func(n scalar.Expr) (scalar.Expr, bool) {
		switch {
		case n.Op == scalar.OpVar && n.Name == generalRow:
			return row, true
		case n.Op == scalar.OpVar && n.Name == generalInner:
			return inner, true
		}
		return nil, false
	})
	for value = p.Simplify(value); value.Op == scalar.OpMul; {
		a, b := value.Args[0], value.Args[1]
		switch {
		case !p.varies(a):
			x, value = times(x, a), b
		case !p.varies(b):
			x, value = times(x, b), a
		default:
			return x, value, x != nil && x.Type == ir.F32
		}
	}
	return x, value, x != nil && x.Type == ir.F32 && p.varies(value)
}

// The variables of an element in general.
const generalRow, generalInner = "any_row", "any_inner"

// general returns the element of a member at any row and inner coordinate, by variables, from which those of a slice
// follow by substitution: to read an element through all ops costs several times as much.
func (p *packedRows) general(m *fusion.Member) scalar.Expr {
	if p.elements[m] == nil {
		r := p.r
		r.row = p.Unflatten(scalar.NewVar(generalRow, ir.I32, 0, int64(fusion.Product(p.g.Outer)-1)), p.g.Outer)
		at := slices.Concat(r.row, p.Unflatten(scalar.NewVar(generalInner, ir.I32, 0, int64(p.g.Inner[0]-1)), p.g.Inner))
		c := &chunk{j: -1, inner: at[len(r.row):], valid: scalar.ConstBool(true)}
		reader := c.reader(r)
		if p.rounding != nil {
			reader.Given = p.rounding.given
		}
		p.elements[m] = p.Simplify(m.Reduction().Element(m.Node, m.At(at), m.InnerAt(at), reader.Operand(m.Node))[0])
	}
	return p.elements[m]
}

func times(a, b scalar.Expr) scalar.Expr {
	if a == nil {
		return b
	}
	return scalar.Mul(a, b)
}

// varies reports whether an expression depends on the row of weights.
func (p *packedRows) varies(e scalar.Expr) bool {
	return scalar.Any(e, func(n scalar.Expr) bool { return n.Op == scalar.OpVar && n.Name == p.first.Name })
}

// loadVectors computes the activations of each thread by itself, from vectors. It reports false where they
// are no vectors.
func (p *packedRows) loadVectors(s emit.Schedule, lane scalar.Expr, _ int) bool {
	p.first = scalar.NewVar("first", ir.I32, 0, int64(fusion.Product(p.g.Outer)-1)) // activations do not depend on it
	count := p.g.Inner[0] / p.split.elements()
	vectors := emit.NewVectorizer(p.Emitter)
	var own []scalar.Expr
	for _, slice := range p.slice {
		for i := range p.split.elements() {
			x, ok := p.activation(p.element(slice, i/p.split.run, i%p.split.run))
			if !ok {
				return false
			}
			own = append(own, x)
		}
	}
	for _, m := range p.numbers {
		for _, slice := range p.slice {
			for i := range p.split.elements() {
				own = append(own, p.number(m, p.element(slice, i/p.split.run, i%p.split.run)))
			}
		}
	}
	vectors.Observe(own...)
	vectors.Decide()
	if !p.allVectors(own) {
		return false
	}
	vectors.Load(own)
	each, turns := p.split.elements(), len(p.slice)
	for t := range p.slice {
		exists := p.Simplify(scalar.Lt(scalar.Add(lane, loop.Int(t*s.Lanes)), loop.Int(count)))
		existing := func(value scalar.Expr) scalar.Expr { return scalar.Select(exists, value, scalar.Const(ir.F32, 0)) }
		var x []scalar.Expr
		for _, value := range own[t*each : (t+1)*each] {
			x = append(x, p.r.let("x", existing(value)))
		}
		p.x = append(p.x, x)
		for n := range p.numbers {
			at := ((n+1)*turns + t) * each
			p.addToSum(n, existing(sumOf(own[at:at+each])))
		}
	}
	return true
}

// allVectors reports whether the loads of values that depend on the slice are of vectors.
func (p *packedRows) allVectors(values []scalar.Expr) bool {
	names := map[string]bool{}
	for _, s := range p.slice {
		names[s.Name] = true
	}
	for _, x := range values {
		scalars := scalar.Any(x, func(n scalar.Expr) bool {
			return n.Op == scalar.OpLoad && n.Ref >= 0 && p.Widths[n.Ref] == 0 &&
				scalar.Any(n.Args[0], func(at scalar.Expr) bool { return at.Op == scalar.OpVar && names[at.Name] })
		})
		if scalars {
			return false
		}
	}
	return true
}

// readsElements reports whether statements access elements of an array that is read in vectors.
func (p *packedRows) readsElements() (found bool) {
	loop.WalkStores(p.Body, func(array int) { found = found || array >= 0 && p.Widths[array] > 0 })
	loop.Walk(p.Body, func(s loop.Stmt) {
		loop.EachNode(s, func(n scalar.Expr) { found = found || n.Op == scalar.OpLoad && n.Ref >= 0 && p.Widths[n.Ref] > 0 })
	})
	return found
}

// activation returns the factor of weights at an element of the row, or false where members have other
// ones.
func (p *packedRows) activation(element scalar.Expr) (x scalar.Expr, ok bool) {
	for n, m := range p.members {
		own, _, ok := p.product(m, p.first, element)
		if !ok || p.varies(own) || n > 0 && scalar.Key(own) != scalar.Key(x) {
			return nil, false
		}
		x = own
	}
	if emit.WithMma && p.rounding != nil && x != nil {
		return unrounded(x)
	}
	return x, x != nil
}

// stage computes the activations once, by contiguous threads, and passes them to the threads that keep
// them through workgroup memory, some slices at a time. It reports false where members have other
// activations.
func (p *packedRows) stage(s emit.Schedule, lane scalar.Expr, used int) bool {
	lanes := s.Lanes
	each, count := p.split.elements(), p.g.Inner[0]/p.split.elements()
	stride := each | 1 // without bank conflicts
	room := (p.Caps.SharedBytes - used) / (4 * stride) / loop.Warp * loop.Warp
	if room <= 0 {
		return false
	}
	room = min(room, emit.CeilDiv(count, loop.Warp)*loop.Warp)
	memory := p.Shared(p.Name("x"), ir.F32, 1, room*stride)
	p.first = scalar.NewVar("first", ir.I32, 0, int64(fusion.Product(p.g.Outer)-1)) // activations do not depend on it
	for range p.slice {
		var own []scalar.Expr
		for range each {
			own = append(own, p.Var("x", scalar.Const(ir.F32, 0)))
		}
		p.x = append(p.x, own)
	}
	for range p.numbers {
		p.sums = append(p.sums, p.Var("number", scalar.Const(ir.F32, 0)))
	}
	for from := 0; from < count; from += room {
		to, ok := min(from+room, count), true
		p.Loop("i", lane, loop.Int((to-from)*each), lanes, (to-from)*each-1, func(i scalar.Expr) {
			element := p.Simplify(scalar.Add(i, loop.Int(from*each)))
			var x scalar.Expr
			if x, ok = p.activation(element); !ok {
				return
			}
			p.Body = append(p.Body, &loop.Store{Array: memory, At: p.Simplify(p.staged(i, stride)), Value: x})
			for n, m := range p.numbers {
				p.Set(p.sums[n], scalar.Add(p.sums[n], p.number(m, element)))
			}
		})
		if !ok {
			return false
		}
		p.Barrier()
		for t, own := range p.x {
			number := scalar.Add(lane, loop.Int(t*lanes)) // not p.slice, which is clamped
			p.When(scalar.And(scalar.Ge(number, loop.Int(from)), scalar.Lt(number, loop.Int(to))), func() {
				at := p.Let("at", scalar.Mul(scalar.Sub(number, loop.Int(from)), loop.Int(stride)))
				for i, v := range own {
					p.Set(v, scalar.LoadAt(memory, ir.F32, scalar.Add(at, loop.Int(i))))
				}
			})
		}
		if to < count {
			p.Barrier()
		}
	}
	return true
}

// staged returns where an element is in workgroup memory, counted from the first slice there.
func (p *packedRows) staged(i scalar.Expr, stride int) scalar.Expr {
	s := p.split
	digit := func(by, n int) scalar.Expr { return scalar.Mod(scalar.FloorDiv(i, loop.Int(by)), loop.Int(n)) }
	run, minor, field := digit(1, s.run), digit(s.run, s.minors), digit(s.run*s.minors, s.fields)
	major, block := digit(s.run*s.minors*s.fields, s.majors), scalar.FloorDiv(i, loop.Int(s.block))
	slice := scalar.Add(scalar.Mul(block, loop.Int(s.perBlock())), scalar.Add(scalar.Mul(major, loop.Int(s.minors)), minor))
	return scalar.Add(scalar.Mul(slice, loop.Int(stride)), scalar.Add(scalar.Mul(field, loop.Int(s.run)), run))
}

// sum returns the thread's part of a member's row, the j-th of those at p.first.
func (p *packedRows) sum(number, j int) (sum scalar.Expr, ok bool) {
	row := p.Simplify(scalar.Add(p.first, loop.Int(j)))
	for t, slice := range p.slice {
		terms, ok := p.terms(p.members[number], row, slice)
		if !ok {
			return nil, false
		}
		for _, w := range p.weights.inWords(terms) {
			if emit.WithMma && w.quads != nil {
				sum = p.r.let("sum", integerSum(p, t, w, sum))
				continue
			}
			dot := scalar.Const(ir.F32, 0)
			for i, x := range w.numbers {
				dot = scalar.Fma(x, p.factor(t, w, i), dot)
			}
			dot = p.r.let("dot", dot)
			if emit.WithMma && w.shifts != nil {
				dot = scalar.Fma(dot, scalar.Const(ir.F32, math.Ldexp(1, productScale)), p.subtracted(t, w))
			}
			if w.scale != nil {
				dot = scalar.Mul(w.scale, dot)
			}
			if w.offset != nil {
				total := p.totals[totalKey(t, w)]
				if w.negative {
					total = scalar.Neg(total)
				}
				dot = scalar.Fma(w.offset, total, dot)
			}
			if sum != nil {
				dot = scalar.Add(sum, dot)
			}
			sum = p.r.let("sum", dot)
		}
	}
	return sum, true
}

// factor returns what the i-th number of a term is multiplied with.
func (p *packedRows) factor(turn int, w term, i int) scalar.Expr {
	x := p.x[turn][w.elements[i]]
	if !emit.WithMma || w.shifts == nil {
		return x
	}
	key := format.Sprintf("%d %d %d", turn, w.elements[i], w.shifts[i])
	if p.scaled[key] == nil {
		by := math.Ldexp(1, subnormalUnit-productScale-w.shifts[i])
		p.scaled[key] = p.beforeRows("scaled", scalar.Mul(x, scalar.Const(ir.F32, by)))
	}
	return p.scaled[key]
}

// subtracted returns the summand that corrects the dot product of a term whose numbers are subnormal: the sum of
// activations times the constant that was not subtracted from each.
func (p *packedRows) subtracted(turn int, w term) scalar.Expr {
	if w.minus == 0 {
		return scalar.Const(ir.F32, 0)
	}
	key := format.Sprintf("%s less %d", totalKey(turn, w), w.minus)
	if p.scaled[key] == nil {
		total := p.x[turn][w.elements[0]]
		for _, i := range w.elements[1:] {
			total = scalar.Add(total, p.x[turn][i])
		}
		p.scaled[key] = p.beforeRows("less", scalar.Mul(total, scalar.Const(ir.F32, float64(-w.minus))))
	}
	return p.scaled[key]
}

// sumActivations names the sums of activations that weights with offsets are multiplied with, once for
// all rows. It reports false where the weights do not factor.
func (p *packedRows) sumActivations() bool {
	for t, slice := range p.slice {
		for _, m := range p.members {
			terms, ok := p.terms(m, p.first, slice)
			if !ok {
				return false
			}
			for _, w := range terms {
				if key := totalKey(t, w); w.offset != nil && p.totals[key] == nil {
					total := p.x[t][w.elements[0]]
					for _, i := range w.elements[1:] {
						total = scalar.Add(total, p.x[t][i])
					}
					p.totals[key] = p.r.let("total", total)
				}
			}
		}
	}
	return true
}

func totalKey(turn int, w term) string { return format.Sprintf("%d %v", turn, w.elements) }

// fold adds the sums of rows over the threads of a warp. Each step halves the rows that a thread has
// sums of, so that n rows take n − 1 + log₂(32/n) shuffles. f gets a row's number among them and
// its sum, in one thread.
func (p *packedRows) fold(sums []scalar.Expr, lane scalar.Expr, f func(row, sum scalar.Expr)) {
	row, across := loop.Int(0), loop.Warp/2
	bit := func() scalar.Expr { return scalar.Mod(scalar.FloorDiv(lane, loop.Int(across)), loop.Int(2)) }
	shuffled := func(x scalar.Expr) scalar.Expr {
		name := p.Name("other")
		p.Body = append(p.Body, &loop.Shuffle{Name: name, Value: x, Xor: across})
		return scalar.FreeVar(name, ir.F32)
	}
	for ; len(sums) > 1; across /= 2 {
		half := len(sums) / 2
		upper := p.r.let("upper", p.Simplify(scalar.Eq(bit(), loop.Int(1))))
		row = scalar.Add(scalar.Mul(bit(), loop.Int(half)), row)
		var kept []scalar.Expr
		for i := range half {
			mine := p.r.let("mine", scalar.Select(upper, sums[half+i], sums[i]))
			theirs := shuffled(scalar.Select(upper, sums[i], sums[half+i]))
			kept = append(kept, p.r.let("both", scalar.Add(mine, theirs)))
		}
		sums = kept
	}
	sum, rest := sums[0], 2*across
	for ; across > 0; across /= 2 {
		sum = p.r.let("both", scalar.Add(sum, shuffled(sum)))
	}
	first := p.Simplify(scalar.Eq(scalar.Mod(lane, loop.Int(rest)), loop.Int(0)))
	p.Add(&loop.If{Cond: first, Then: p.Nested(func() { f(p.Simplify(row), sum) })})
}

// finish adds the parts of warps and stores what follows, a row in each of the first threads.
func (p *packedRows) finish(begin, lane, exists scalar.Expr, rows int, parts []int) {
	body := p.Nested(func() {
		own := p.ranged("own", scalar.Min(lane, loop.Int(rows-1)), rows)
		number := p.ranged("row", scalar.Add(begin, own), fusion.Product(p.g.Outer))
		p.r.row = p.Unflatten(number, p.g.Outer)
		for i, acc := range p.r.declare(slices.Concat(p.members, p.numbers)) {
			from := p.team
			if i < len(p.members) {
				from = scalar.Add(scalar.Mul(p.team, loop.Int(rows)), own)
			}
			p.Add(&loop.Assign{Name: acc.name, Value: scalar.Add(acc.value(), p.total(parts[i], from))})
			p.r.finishMember(acc.m, []accumulator{acc})
		}
		p.r.nameRows(1)
		p.r.finishRows()
	})
	p.Add(emit.Guard(p.Simplify(scalar.And(scalar.Lt(lane, loop.Int(rows)), exists)), body)...)
}
