package matmul

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/ir/scalar"
)

// libraryPlan computes a contraction by a library's matrix product, and the epilogue by a kernel
// of its own or by the library.
type libraryPlan struct {
	routine.Product
	left, right *fusion.Tensor
	swapped     bool             // the operands were swapped
	addends     []*fusion.Tensor // bias and matrix that the library adds
	// out is the tensor that the product is written to, nil for scratch memory.
	out      *fusion.Tensor
	complete bool         // no epilogue kernel follows
	epilogue epilogueWork // the epilogue kernel, unless complete
}

// planLibrary returns the plan of a contraction as a library's product, or false if the target's
// library cannot compute it with the operands as they lie.
func planLibrary(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction) (*libraryPlan, bool) {
	if e.Caps.Products == loop.NoProducts || !tileable(c) {
		return nil, false
	}
	if _, all := c.Exists(fusion.Coords("b", c.Batch), fusion.Coords("m", c.M)).IntConst(); !all {
		return nil, false
	}
	in, result := c.Node.Inputs(), c.Node.Types()[0].DType
	p := &libraryPlan{Product: routine.Product{
		Operand: in[0].Type().DType, Result: result,
		Batch: fusion.Product(c.Batch), M: fusion.Product(c.M), N: fusion.Product(c.N), K: fusion.Product(c.K),
	}}
	p.TF32 = e.Caps.TF32 && p.Operand == ir.F32
	if in[1].Type().DType != p.Operand || !p.setLayouts(e, c) {
		return nil, false
	}
	if p.Workspace = p.workspaceBytes(e.Caps); p.Check() != nil {
		return nil, false
	}
	p.out = ownResult(e, g, p.left, p.right)
	p.complete = p.out != nil && len(g.Members) == 1 && len(g.Copies) == 0
	plain := *p
	if p.fuseEpilogue(e, g, c); e.Caps.Refused.Has(p.Product) {
		*p = plain // the library refuses the epilogue: a kernel computes it
	}
	if e.Caps.Refused.Has(p.Product) {
		return nil, false
	}
	p.epilogue = newEpilogueWork(g, p)
	return p, true
}

// The library divides long sums into parts, of libraryPart terms at least, that idle processors compute,
// and keeps their results in f32, in tiles of libraryTile bytes: those of libraryWaves tiles for each processor.
// These are estimates, since the library does not document its choices: with less workspace it does without parts
// where they would be faster, and more is memory that nothing uses.
const (
	librarySide  = 128
	libraryTile  = 4 * librarySide * librarySide
	libraryPart  = 512
	libraryWaves = 2
)

// workspaceBytes returns the size of the library's workspace: that of the tiles of parts, if sums are as long as a
// part. In TF32 matrix units read rows along the sums, so the library may also copy operands that lie across.
func (p *libraryPlan) workspaceBytes(caps loop.Caps) int {
	tiles := p.tiles(librarySide) * emit.CeilDiv(p.K, libraryPart)
	if p.K < libraryPart {
		tiles = 0
	}
	bytes := int64(min(tiles, libraryWaves*caps.Profile().Processors)) * libraryTile
	if p.TF32 {
		across := 0
		if p.Left.Transposed {
			across += p.M
		}
		if !p.Right.Transposed {
			across += p.N
		}
		bytes += int64(p.Batch*p.K) * int64(across*p.Operand.Size())
	}
	return int(min(int64(caps.ProductBytes), bytes))
}

// tiles returns the number of tiles with a side.
func (p *libraryPlan) tiles(side int) int {
	return p.Batch * emit.CeilDiv(p.M, side) * emit.CeilDiv(p.N, side)
}

// setLayouts sets the layouts of the operands and of the result. Rows of the result lie along the
// space of its last axis: if that is the first operand's, the library computes the transpose
// with the operands swapped.
func (p *libraryPlan) setLayouts(e *emit.Emitter, c *fusion.Contraction) (ok bool) {
	m, n := p.spaces(c)
	if p.Out, ok = p.resultLayout(e, c, m, n); !ok {
		return false
	}
	if p.Left, p.left, ok = p.operandLayout(e, c, 0); !ok {
		return false
	}
	if p.Right, p.right, ok = p.operandLayout(e, c, 1); !ok {
		return false
	}
	// Both layouts are free × contracted positions; the right matrix is the transpose.
	p.Right.Transposed = !p.Right.Transposed
	if p.Out.Transposed {
		p.Out.Transposed, p.swapped = false, true
		p.M, p.N = p.N, p.M
		p.left, p.right = p.right, p.left
		p.Left, p.Right = p.Right, p.Left
		p.Left.Transposed, p.Right.Transposed = !p.Left.Transposed, !p.Right.Transposed
	}
	return true
}

// axes is a coordinate space of a contraction: its coordinates and sizes.
type axes struct {
	at   ir.Index
	dims []int
}

func (p *libraryPlan) spaces(c *fusion.Contraction) (m, n axes) {
	return axes{fusion.Coords("m", c.M), c.M}, axes{fusion.Coords("n", c.N), c.N}
}

// operandLayout returns the layout and the tensor of an operand that is read as stored.
func (p *libraryPlan) operandLayout(e *emit.Emitter, c *fusion.Contraction, operand int) (routine.Layout, *fusion.Tensor, bool) {
	batch := axes{fusion.Coords("b", c.Batch), c.Batch}
	m, n := p.spaces(c)
	free, k := []axes{m, n}[operand], axes{fusion.Coords("k", c.K), c.K}
	r := &pieceReader{e: e, c: c, d: p.Operand, operand: operand, batch: batch.at}
	x := e.Simplify(c.Factor(operand, batch.at, free.at, k.at, e.Reader().Operand(c.Node)))
	stored, ok := emit.StoredAt(r.d, x)
	if !ok || stored.Valid != nil {
		return routine.Layout{}, nil, false
	}
	l, ok := layoutAt(stored.At, batch, free, k)
	return l, e.Partition.Tensor(stored.Array), ok
}

// resultLayout returns the layout of the result in a tensor of its type.
func (p *libraryPlan) resultLayout(e *emit.Emitter, c *fusion.Contraction, m, n axes) (routine.Layout, bool) {
	batch := axes{fusion.Coords("b", c.Batch), c.Batch}
	dims, _ := c.Node.Types()[0].Shape.Ints()
	at, step := scalar.Expr(loop.Int(0)), 1
	out := c.Out(batch.at, m.at, n.at)
	for axis := len(dims) - 1; axis >= 0; axis-- {
		at = scalar.Add(at, scalar.Mul(out[axis], loop.Int(step)))
		step *= dims[axis]
	}
	return layoutAt(e.Simplify(at), batch, m, n)
}

// layoutAt returns the layout of a batch of matrices, given the offset of the element at
// symbolic coordinates. Rows lie along down.
func layoutAt(at scalar.Expr, batch, down, across axes) (l routine.Layout, ok bool) {
	factors := map[string]int{}
	if !emit.LinearTerms(at, 1, factors) {
		return l, false
	}
	var steps [3]int
	for i, s := range []axes{batch, down, across} {
		if steps[i], ok = s.step(factors); !ok {
			return l, false
		}
	}
	if len(factors) > 0 {
		return l, false // the offset depends on a loop variable
	}
	rows, columns := fusion.Product(down.dims), fusion.Product(across.dims)
	switch step, row, column := steps[0], steps[1], steps[2]; {
	case columns == 1 || column == 1 && row >= columns:
		return routine.Layout{Row: max(row, columns), Step: step}, true
	case rows == 1 || row == 1 && column >= rows:
		return routine.Layout{Transposed: true, Row: max(column, rows), Step: step}, true
	}
	return l, false
}

// step returns the stride of a space, if all neighbours in row-major order are equally far
// apart, and removes its coordinates from the factors.
func (s axes) step(factors map[string]int) (step int, ok bool) {
	size, first := 1, true
	for i := len(s.dims) - 1; i >= 0; i-- {
		if s.dims[i] == 1 {
			continue
		}
		factor := factors[s.at[i].Name]
		delete(factors, s.at[i].Name)
		if first {
			step, first = factor, false
		}
		if factor != step*size {
			return 0, false
		}
		size *= s.dims[i]
	}
	return step, step >= 0
}

// ownResult returns the tensor that the group stores the bare contraction to, or nil if there is
// none that a library may write.
func ownResult(e *emit.Emitter, g *fusion.Group, operands ...*fusion.Tensor) *fusion.Tensor {
	t := g.Members[0].Store[0]
	if t == nil || t.Outer != nil || e.Partition.IsGuarded(t) || slices.Contains(operands, t) {
		return nil
	}
	return t
}

// minLibraryOps and minLibraryOpsF32 are the operations of the smallest product for which the library
// of an H200 is faster than kernels, on matrix units and in f32.
const (
	minLibraryOps    = 1 << 25
	minLibraryOpsF32 = 1 << 27
)

// The library is faster if rows are aligned for tensor cores and the result is not thinner
// than its tiles.
const (
	alignedBytes = 16
	minSide      = 64
)

// onMatrixUnits reports whether the library computes the product on matrix units.
func (p *libraryPlan) onMatrixUnits() bool { return p.TF32 || p.Operand != ir.F32 }

// rate returns the library's operations per nanosecond on a processor of the device.
func (p *libraryPlan) rate(d hardware.Profile) float64 {
	switch {
	case p.TF32 && p.Left.Transposed && !p.Right.Transposed:
		return d.Rates().LibraryTransposed
	case p.TF32:
		return d.Rates().LibraryTF32
	case p.Operand == ir.F32:
		return d.Rates().LibraryF32
	}
	return d.Rates().Library16
}

// aligned reports whether tensor cores can compute the product.
func (p *libraryPlan) aligned() bool {
	factors, result := p.Operand.Size(), p.Result.Size()
	return (p.Left.Row*factors)%alignedBytes == 0 && (p.Right.Row*factors)%alignedBytes == 0 && (p.Out.Row*result)%alignedBytes == 0
}

// worthwhile reports whether the library can be expected to be faster than kernels.
func (p *libraryPlan) worthwhile(c *fusion.Contraction) bool {
	least := float64(minLibraryOpsF32)
	if p.onMatrixUnits() {
		least = minLibraryOps
	}
	return 2*mulAddCount(c) >= least && min(p.M, p.N) >= minSide && (!p.onMatrixUnits() || p.aligned())
}

// libraryTiles are the sides of the library's tiles, with their rates in terms of that of the largest, and
// libraryTerms is the minimum number of terms of a part of a sum for which the cost counts parts. A tile begins after the time of
// libraryFill terms; the kernel that adds parts takes libraryJoin launches. TF32 tiles of such sums take libraryLong
// cycles more where there are few: less than one for libraryFew processors. All are fitted to the times of the products in
// testdata/products_h200.txt.
var libraryTiles = []struct {
	side int
	rate float64
}{{librarySide, 1}, {librarySide / 2, 0.7}}

const (
	libraryTerms = 1024
	libraryFill  = 16
	libraryJoin  = 4. / 3
	libraryLong  = 13600
	libraryFew   = 8
)

// time estimates the nanoseconds of the product: of its tiles, one at a time on each processor, or of the tiles'
// split-K parts and the kernel that adds them.
func (p *libraryPlan) time(d hardware.Profile) float64 {
	least := math.Inf(1)
	for _, t := range libraryTiles {
		tiles := float64(p.tiles(t.side))
		work := 2 * float64(t.side*t.side) * float64(p.K+libraryFill) / (t.rate * p.rate(d))
		waves := tiles / float64(d.Processors)
		if waves < libraryWaves {
			waves = math.Ceil(waves)
		}
		least = min(least, work*waves)
		if parts := min(p.K/libraryTerms, int(float64(d.Processors)/tiles)); parts > 1 {
			least = min(least, libraryJoin*d.Launch+work/float64(parts))
		}
	}
	if p.TF32 && p.K >= libraryTerms && libraryFew*p.tiles(librarySide) <= d.Processors {
		least += libraryLong / d.Clock
	}
	return least
}

// cost estimates the nanoseconds of the library call and of the epilogue kernel. The call waits for the kernels
// before it.
func (p *libraryPlan) cost(c *fusion.Contraction, caps loop.Caps) float64 {
	d, stored := caps.Profile(), float64(p.Result.Size())*resultCount(c)
	time := waitingLaunch*d.Launch + max(p.time(d), stored/d.Bandwidth())
	time += p.libraryEpilogueTime(caps)
	if !p.complete {
		time = separateMargin * (time + p.epilogue.separateTime(caps))
	}
	return time
}

// tilesTime estimates the nanoseconds of tiles without multiply-adds: those at the device's full
// rate, or those of the chosen tile if they are more.
func tilesTime(c *fusion.Contraction, caps loop.Caps) float64 {
	time := caps.Profile().Launch + 2*mulAddCount(c)/caps.Profile().Arithmetic()
	if t, parts, ok := chooseTile(c, caps); ok {
		time = math.Max(time, t.cost(c, parts, caps))
	}
	return time
}

// faster reports whether the library is expected to be faster than kernels: those of mma, or
// tiles if mma is nil.
func (p *libraryPlan) faster(c *fusion.Contraction, caps loop.Caps, mma *mmaPlan) bool {
	own := tilesTime(c, caps)
	if mma != nil {
		own = mma.cost(caps)
	}
	return p.worthwhile(c) && p.cost(c, caps) < own+p.epilogue.fusedTime(caps)
}

// fuseEpilogue fuses the epilogue into the library call if all that the group stores is the
// product plus a bias, a matrix of the result's layout, or both. Only f32: for types of 16 bits
// the library rounds once where the graph rounds the product too. A relu is not fused because
// the library's does not propagate NaN.
func (p *libraryPlan) fuseEpilogue(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction) {
	if p.out != nil || p.Batch != 1 || p.Result != ir.F32 || len(g.Copies) > 0 {
		return
	}
	f := &epilogueMatcher{e: e, c: c, p: p, product: scalar.FreeVar("product", ir.F32)}
	k, ok := f.soleStore(g)
	if !ok || k.Tensor.Outer != nil || e.Partition.IsGuarded(k.Tensor) || k.Tensor.DType != p.Result {
		return
	}
	_, at := e.Partition.Place(k.Tensor, k.At)
	if lies, ok := f.layout(e.Simplify(at)); !ok || lies != p.Out {
		return
	}
	if !f.matchSum(k.Value) || f.seen != 1 || k.Tensor.Root() == p.left.Root() || k.Tensor.Root() == p.right.Root() || f.aliases(k.Tensor) {
		return
	}
	p.Bias, p.Adds, p.Added = f.bias != nil, f.adds != nil, f.added
	p.out, p.complete = k.Tensor, true
	for _, t := range []*fusion.Tensor{f.bias, f.adds} {
		if t != nil {
			p.addends = append(p.addends, t)
		}
	}
}

// epilogueMatcher matches the epilogue of a product.
type epilogueMatcher struct {
	e          *emit.Emitter
	c          *fusion.Contraction
	p          *libraryPlan
	product    scalar.Expr
	seen       int // occurrences of the product
	bias, adds *fusion.Tensor
	added      routine.Layout
}

// soleStore returns the single value that a group stores, for the product at symbolic
// coordinates. It returns false if there are several.
func (f *epilogueMatcher) soleStore(g *fusion.Group) (k emit.PendingStore, ok bool) {
	m := g.Members[0]
	b := fusion.Coords("b", f.c.Batch)
	rows, columns := f.p.spaces(f.c)
	product := f.c.Out(b, rows.at, columns.at)
	at := make(ir.Index, len(g.Outer))
	for axis, coordinate := range m.Coord {
		if coordinate >= 0 {
			at[coordinate] = product[axis]
		}
	}
	for _, x := range at {
		if x == nil {
			return k, false
		}
	}
	rd := f.e.Reader()
	rd.Given = map[ir.Value]scalar.Expr{m.Node.Result(0): f.product}
	all := f.e.Values(g, rd, at)
	if len(all) != 1 {
		return k, false
	}
	return all[0], true
}

// layout returns the layout of an M×N matrix, given the offset of its element at symbolic
// coordinates.
func (f *epilogueMatcher) layout(at scalar.Expr) (routine.Layout, bool) {
	down, across := f.sides()
	return layoutAt(at, axes{}, down, across)
}

// sides returns the spaces of the rows and the columns of the library's result.
func (f *epilogueMatcher) sides() (down, across axes) {
	down, across = f.p.spaces(f.c)
	if f.p.swapped {
		return across, down
	}
	return down, across
}

// matchSum matches x as a sum of the product, a bias and a matrix.
func (f *epilogueMatcher) matchSum(x scalar.Expr) bool {
	switch {
	case scalar.Equal(x, f.product):
		f.seen++
		return true
	case x.Op == scalar.OpAdd:
		return f.matchSum(x.Args[0]) && f.matchSum(x.Args[1])
	case x.Op != scalar.OpLoad || x.Type != ir.F32 || x.Ref < 0:
		return false
	}
	t := f.e.Partition.Tensor(x.Ref)
	at := f.e.Simplify(x.Args[0])
	if f.bias == nil && f.perColumn(at) {
		f.bias = t
		return true
	}
	if l, ok := f.layout(at); ok && f.adds == nil && !l.Transposed {
		f.adds, f.added = t, l
		return true
	}
	return false
}

// perColumn reports whether an offset is the column's number.
func (f *epilogueMatcher) perColumn(at scalar.Expr) bool {
	factors := map[string]int{}
	if !emit.LinearTerms(at, 1, factors) {
		return false
	}
	down, across := f.sides()
	step, ok := across.step(factors)
	if !ok || step != 1 {
		return false
	}
	step, ok = down.step(factors)
	return ok && step == 0 && len(factors) == 0
}

// aliases reports whether a bias or matrix lies in the memory of t.
func (f *epilogueMatcher) aliases(t *fusion.Tensor) bool {
	return f.bias != nil && f.bias.Root() == t.Root() || f.adds != nil && f.adds.Root() == t.Root()
}

// libraryEpilogueTime estimates the nanoseconds of the epilogue that the library computes: those
// of reading the added matrix.
func (p *libraryPlan) libraryEpilogueTime(caps loop.Caps) float64 {
	if !p.Adds {
		return 0
	}
	return float64(p.Result.Size()) * float64(p.Batch*p.M*p.N) / caps.Profile().Bytes / float64(caps.Profile().Processors)
}

// epilogueWork is the epilogue of a product: the number of results, and the operations and bytes
// of each.
type epilogueWork struct {
	results, weight float64
	product         float64 // bytes of one result of the product
	wholes, bytes   float64 // tensors of full size that are read; bytes read and written per result
}

// newEpilogueWork returns the epilogue of a group after a planned product.
func newEpilogueWork(g *fusion.Group, p *libraryPlan) epilogueWork {
	f := epilogueWork{results: float64(p.Batch * p.M * p.N), weight: float64(g.EpilogueWeight()), product: float64(p.Result.Size())}
	for _, t := range g.Reads() {
		if t != p.left && t != p.right && float64(t.Len()) >= f.results {
			f.wholes++
			f.bytes += float64(loop.DeviceSize(t.DType))
		}
	}
	for _, t := range g.Writes() {
		if t != p.out {
			f.bytes += float64(loop.DeviceSize(t.DType))
		}
	}
	return f
}

// Costs of an epilogue of a multiprocessor and a result, fused ones in cycles. In a kernel of
// multiply-adds few threads compute it, and no products meanwhile: on an H200 12 to 20 µs
// for a bias and a maximum in products of 4096, 110 for the gelu and 300 for its gradient in
// those of 16384 × 3072. A separate epilogue kernel is a map, bound by its bytes or by its
// operations, at separateOps of the profile's f32 operations each. separateMargin is the factor by which the library must
// be faster to be chosen with a separate epilogue.
const (
	fusedBase      = 0.204
	fusedWeight    = 0.0187
	fusedWhole     = 0.306
	separateOps    = 1.809
	separateMargin = 1.2
)

// waitingLaunch is the overhead in launches of a kernel that waits for a library's product, or of a product that
// waits for a kernel.
const waitingLaunch = 4. / 3

// fusedTime estimates the nanoseconds of the epilogue fused into the kernel of the product, 0 if
// there is no epilogue.
func (f epilogueWork) fusedTime(caps loop.Caps) float64 {
	if f.weight == 0 {
		return 0
	}
	d := caps.Profile()
	return f.results * (fusedBase + fusedWeight*f.weight + fusedWhole*f.wholes) / d.Clock / float64(d.Processors)
}

// separateTime estimates the nanoseconds of a separate epilogue kernel.
func (f epilogueWork) separateTime(caps loop.Caps) float64 {
	d := caps.Profile()
	return waitingLaunch*d.Launch + f.results*math.Max((f.product+f.bytes)/d.Bytes, separateOps*f.weight/d.Flops)/float64(d.Processors)
}

// resultsPerThread is the number of contiguous results per thread of an epilogue kernel, which
// puts more bytes in flight for narrow types. maxEpilogueOps is the maximum number of unrolled
// operations.
const (
	resultsPerThread = 4
	maxEpilogueOps   = 320
)

// emitLibrary emits a contraction as a library call, followed by an epilogue kernel if there
// is one.
func emitLibrary(e *emit.Emitter, g *fusion.Group, p *libraryPlan) []emit.Launch {
	out := p.out
	if out == nil {
		dims, _ := g.Members[0].Node.Types()[0].Shape.Ints()
		out = e.Partition.Scratch("product", p.Result, dims...)
	}
	space := e.Partition.Scratch("workspace", ir.U32, emit.CeilDiv(p.Workspace, 4))
	call := emit.Launch{Routine: p.Product, Args: append([]*fusion.Tensor{p.left, p.right, space, out}, p.addends...)}
	if p.complete {
		return []emit.Launch{call}
	}
	return []emit.Launch{call, epilogueKernel(e, g, p, out)}
}

// epilogueKernel returns the epilogue kernel: it computes what the group stores, other than the
// product, from the product.
func epilogueKernel(e *emit.Emitter, g *fusion.Group, p *libraryPlan, out *fusion.Tensor) emit.Launch {
	n := g.Members[0].Node
	together := resultsPerThread
	if fusion.Product(g.Outer)%together != 0 || together*g.EpilogueWeight() > maxEpilogueOps {
		together = 1
	}
	w := emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads))
	w.Threads(fusion.Product(g.Outer)/together, func(i scalar.Expr) {
		byTensor := make([][]emit.PendingStore, len(g.Writes()))
		for k := range together {
			at := w.Unflatten(scalar.Add(scalar.Mul(i, loop.Int(together)), loop.Int(k)), g.Outer)
			rd := w.Reader()
			rd.Given = map[ir.Value]scalar.Expr{n.Result(0): w.Emitter.Load(out, g.Members[0].At(at))}
			for i, s := range w.Values(g, rd, at) {
				s.Value = w.Simplify(s.Value)
				byTensor[i] = append(byTensor[i], s)
			}
		}
		stores := slices.DeleteFunc(slices.Concat(byTensor...), func(s emit.PendingStore) bool { return s.Tensor == p.out })
		w.ObserveStores(stores, together)
		w.Decide()
		w.Store(stores, together, emit.Always(together))
	})
	return w.Launch(g.Name())
}
