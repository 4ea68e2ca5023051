package matmul

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// pieceReader reads an operand of a contraction by pieces.
type pieceReader struct {
	e       *emit.Emitter
	c       *fusion.Contraction
	d       ir.DType
	operand int
	batch   ir.Index
}

// pieceAt returns the piece of elements at a free and a contracted position, along the axis of
// the layout. It returns false if they are not contiguous and aligned. The positions are in
// range.
func (r *pieceReader) pieceAt(load ir.Load, free, k scalar.Expr, layout mmaLayout) (p emit.Piece, ok bool) {
	return r.e.PieceOf(r.d, func(j int) scalar.Expr {
		f, kk := free, k
		if layout == alongK {
			kk = scalar.Add(k, loop.Int(j))
		} else {
			f = scalar.Add(free, loop.Int(j))
		}
		fAt, kAt := r.e.Unflatten(r.e.Simplify(f), r.c.Free(r.operand)), r.e.Unflatten(r.e.Simplify(kk), r.c.K)
		return r.c.Factor(r.operand, r.batch, fAt, kAt, load)
	})
}

// orient picks the operand along the rows of tiles. Few rows of results go along the columns, of which tiles have as few as
// roundColumns: 16×4096×4096 in bf16 took 11.2 µs on an H200 instead of 14.9, and 32×14336×4096 took 34 instead of 48. The
// operand along the columns, if f32, must be contiguous along k, see [loop.Tile]. Of two that are not the smaller one is
// staged.
func (p *mmaPlan) orient() {
	m, n := fusion.Product(p.c.M), fusion.Product(p.c.N)
	if p.operand != ir.F32 || p.layout[1] != alongFree {
		if m <= roundColumns && n > roundColumns && (p.operand != ir.F32 || p.layout[0] != alongFree) {
			p.rowOperand = 1
		}
		return
	}
	if p.layout[0] == alongFree {
		if m >= n {
			p.layout[1] = staged
			return
		}
		p.layout[0] = staged
	}
	p.rowOperand = 1
}

// free returns the free spaces of the rows' and of the columns' operand.
func (p *mmaPlan) free() (rows, columns []int) {
	if p.rowOperand == 1 {
		return p.c.N, p.c.M
	}
	return p.c.M, p.c.N
}

// layoutOf returns the layout of an operand in memory, and whether its elements lie at multiples of its positions: those
// of a convolution do not. Staged operands do, in scratch memory.
func layoutOf(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, d ir.DType, operand int) (l mmaLayout, linear bool) {
	r := &pieceReader{e: e, c: c, d: d, operand: operand, batch: fusion.Coords("b", c.Batch)}
	free, k := fusion.Product(c.Free(operand)), fusion.Product(c.K)
	each := loop.ChunkElements(d)
	position := func(name string, n, step int) scalar.Expr {
		return scalar.Mul(scalar.NewVar(name, ir.I32, 0, int64(n/step-1)), loop.Int(step))
	}
	load := e.Reader().Operand(c.Node)
	read := func(freeStep, kStep int, l mmaLayout) (p emit.Piece, ok bool) {
		p, ok = r.pieceAt(load, position("f", free, freeStep), position("k", k, kStep), l)
		return p, ok && !emit.Writes(g, p.Array)
	}
	l, p, ok := alongK, emit.Piece{}, k%each == 0
	if ok {
		p, ok = read(1, each, alongK)
	}
	if !ok && free%each == 0 {
		l = alongFree
		p, ok = read(each, 1, alongFree)
	}
	if !ok {
		return staged, true
	}
	return l, p.Valid == nil && emit.LinearTerms(p.At, 1, map[string]int{})
}

// stagedLength returns the contracted length of a staged operand: whole pieces.
func stagedLength(c *fusion.Contraction, d ir.DType) int {
	each := loop.ChunkElements(d)
	return emit.CeilDiv(fusion.Product(c.K), each) * each
}

// stageOperand returns the launch that writes an operand to scratch memory, batch by batch and
// contiguous along k. A thread writes a whole piece, so that it stores vectors. Neighbouring
// threads write neighbouring pieces. For an operand that is contiguous along its free axis they
// write neighbouring free positions instead: the loads coalesce, and each store fills a sector.
func stageOperand(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction, p *mmaPlan, operand int) (emit.Launch, *fusion.Tensor) {
	free, length := fusion.Product(c.Free(operand)), stagedLength(c, p.operand)
	name := [2]string{"left", "right"}[operand]
	t := e.Partition.Scratch(name, p.operand, fusion.Product(c.Batch), free, length)
	run, freeFirst := loop.ChunkElements(p.operand), p.contiguous[operand] == contiguousAlongFree
	if freeFirst && length%(2*run) == 0 {
		run *= 2
	}
	w := emit.NewVectorizer(e.Sibling().WithThreads(emit.GroupThreads))
	element := stagedElement(w.Emitter, c, p.operand, operand)
	w.Threads(t.Len()/run, func(i scalar.Expr) {
		var at ir.Index // batch, free position, piece
		if freeFirst {
			at = w.Unflatten(i, []int{t.Dims[0], length / run, free})
			at[1], at[2] = at[2], at[1]
		} else {
			at = w.Unflatten(i, []int{t.Dims[0], free, length / run})
		}
		storePieces(w, t, run, at, element)
	})
	return w.Launch(g.Name() + "_" + name), t
}

// stagedElement returns the function of a staged operand's element at a batch, a free and a contracted
// position: zero beyond the operand.
func stagedElement(w *emit.Emitter, c *fusion.Contraction, d ir.DType, operand int) func(at ir.Index) scalar.Expr {
	load, all := w.Reader().Operand(c.Node), fusion.Product(c.K)
	return func(at ir.Index) scalar.Expr {
		batch, free, k := at[0], at[1], at[2]
		inside := scalar.Expr(scalar.ConstBool(true))
		if stagedLength(c, d) != all {
			inside = w.Simplify(scalar.Lt(k, loop.Int(all)))
			k = w.Simplify(scalar.Min(k, loop.Int(all-1)))
		}
		x := c.Factor(operand, w.Unflatten(batch, c.Batch), w.Unflatten(free, c.Free(operand)), w.Unflatten(k, c.K), load)
		return w.Simplify(scalar.Convert(scalar.Select(inside, x, scalar.ConstF(ir.F32, 0)), d))
	}
}

// contiguity is the axis of an operand along which neighbouring positions are neighbours in memory.
type contiguity int

const (
	contiguousAlongK contiguity = iota
	contiguousAlongFree
	contiguousInRuns // in runs of a vector's elements along either axis, such as the channels of a convolution
	scattered        // along neither, as where a convolution has few channels
)

// contiguityOf returns the contiguous axis of an operand, the contracted one where both are.
func contiguityOf(e *emit.Emitter, c *fusion.Contraction, d ir.DType, operand int) contiguity {
	batch, load := fusion.Coords("b", c.Batch), e.Reader().Operand(c.Node)
	position := func(name string, n, step int) scalar.Expr {
		return scalar.Mul(scalar.NewVar(name, ir.I32, 0, int64(max(n-2, 0)/step)), loop.Int(step))
	}
	element := func(free, k scalar.Expr) scalar.Expr {
		return c.Factor(operand, batch, e.Unflatten(e.Simplify(free), c.Free(operand)), e.Unflatten(e.Simplify(k), c.K), load)
	}
	along := func(freeRun, kRun, freeStep, kStep int) bool {
		free, k := position("f", fusion.Product(c.Free(operand)), freeRun), position("k", fusion.Product(c.K), kRun)
		return adjacent(e, element(free, k), element(scalar.Add(free, loop.Int(freeStep)), scalar.Add(k, loop.Int(kStep))))
	}
	run := loop.ChunkElements(d)
	switch {
	case along(1, 1, 0, 1):
		return contiguousAlongK
	case along(1, 1, 1, 0):
		return contiguousAlongFree
	case along(1, run, 0, 1), along(run, 1, 1, 0):
		return contiguousInRuns
	}
	return scattered
}

// adjacent reports whether an element reads the one behind what another reads, and nothing else.
func adjacent(e *emit.Emitter, here, there scalar.Expr) bool {
	var at [2][]scalar.Expr
	for i, x := range []scalar.Expr{here, there} {
		scalar.Walk(x, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad {
				at[i] = append(at[i], n.Args[0])
			}
		})
	}
	if len(at[0]) != 1 || len(at[1]) != 1 {
		return false
	}
	step, known := e.Simplify(scalar.Sub(at[1][0], at[0][0])).IntConst()
	return known && step == 1
}

// mmaSide is one operand of the multiply-adds: tiles of free positions by the contracted
// positions of a step.
type mmaSide struct {
	layout mmaLayout
	// pieceAt returns a piece of the operand at positions that are in range.
	pieceAt    func(free, k scalar.Expr) emit.Piece
	free       int         // all free positions
	tile       int         // free positions of a workgroup
	index      scalar.Expr // number of the workgroup's tile
	length     int         // all contracted positions
	slot       int         // workgroup array of the tiles of all stages
	threadRead bool        // threads read the tiles, not multiply-adds
	tensorMap  *tensorMap  // tensor map; nil if the operand or the target has none
	mapNumber  int         // number of the tensor map in the kernel
	operand    int         // of the contraction
	reversed   bool        // the batches of the tensor map are taps of a window, from the last on
}

// newSide declares the shared memory of an operand, number 0 for rows and 1 for columns. A
// staged operand, or a relayout, is read from scratch.
func (m *mmaEmitter) newSide(operand, number int, scratch *fusion.Tensor) mmaSide {
	c := m.out.c
	s := mmaSide{
		operand: operand, layout: m.p.layout[operand], free: fusion.Product(c.Free(operand)), length: fusion.Product(c.K),
		tile: [2]int{mmaRows, m.p.columns}[number], threadRead: number == 0 && m.p.inRegisters(),
	}
	s.slot = m.Shared([2]string{"rows", "columns"}[number], m.p.operand, 1, m.p.stages*s.stageLength(m.p))
	if m.p.layout[operand] == staged {
		s.layout, s.length = alongK, stagedLength(c, m.p.operand)
		s.pieceAt = func(free, k scalar.Expr) emit.Piece {
			root, at := m.Emitter.Partition.Place(scratch, ir.Index{m.batch, free, k})
			return emit.Piece{Array: root.ID, At: m.Simplify(at)}
		}
		return s
	}
	r := &pieceReader{e: m.Emitter, c: c, d: m.p.operand, operand: operand, batch: m.out.batch}
	load := m.load(operand, scratch)
	s.pieceAt = func(free, k scalar.Expr) emit.Piece {
		p, ok := r.pieceAt(load, free, k, s.layout)
		if !ok {
			panic("an operand's layout has changed")
		}
		return p
	}
	return s
}

// stageLength returns the elements of a stage's tile.
func (s *mmaSide) stageLength(p *mmaPlan) int { return s.tile * p.stepLength() }

// startCopies starts the copies of a thread's share of a step to a stage.
func (m *mmaEmitter) startCopies(s *mmaSide, step, stage scalar.Expr) {
	each := loop.ChunkElements(m.p.operand)
	base := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	for first := 0; first < s.stageLength(m.p)/each; first += mmaThreads {
		id := m.Simplify(scalar.Add(m.thread, loop.Int(first)))
		var to scalar.Expr
		var p emit.Piece
		if s.layout == alongK {
			to, p = m.pieceAlongK(s, step, id)
		} else {
			to, p = m.pieceAlongFree(s, step, id)
		}
		m.Add(&loop.CopyAsync{
			To: s.slot, ToAt: m.Simplify(scalar.Add(base, to)), From: p.Array, FromAt: p.At, Count: each, Valid: p.Valid,
		})
	}
}

// pieceAlongK returns piece id of a step's tile, contiguous along k, and its offset in the
// stage. Neighbouring threads have neighbours along k. Out-of-range free positions are clamped,
// since their results are not stored; out-of-range contracted positions are zero.
func (m *mmaEmitter) pieceAlongK(s *mmaSide, step, id scalar.Expr) (to scalar.Expr, p emit.Piece) {
	each, length := loop.ChunkElements(m.p.operand), m.p.stepLength()
	per := length / each
	row, at := scalar.FloorDiv(id, loop.Int(per)), scalar.Mod(id, loop.Int(per))
	free := scalar.Add(scalar.Mul(s.index, loop.Int(s.tile)), row)
	if s.free%s.tile != 0 {
		free = scalar.Min(free, loop.Int(s.free-1))
	}
	k, inside := m.clampK(s, scalar.Add(scalar.Mul(step, loop.Int(per)), at), each)
	p = s.pieceAt(m.Simplify(free), scalar.Mul(k, loop.Int(each)))
	p.Valid = emit.Both(p.Valid, inside)
	return loop.TileOffset(m.p.operand, 0, row, scalar.Mul(at, loop.Int(each))), p
}

// pieceAlongFree is pieceAlongK for operands contiguous along the free axis.
func (m *mmaEmitter) pieceAlongFree(s *mmaSide, step, id scalar.Expr) (to scalar.Expr, p emit.Piece) {
	each, length := loop.ChunkElements(m.p.operand), m.p.stepLength()
	per := s.tile / each
	row, at := scalar.FloorDiv(id, loop.Int(per)), scalar.Mod(id, loop.Int(per))
	free := scalar.Add(scalar.Mul(s.index, loop.Int(per)), at)
	if s.free%s.tile != 0 {
		free = scalar.Min(free, loop.Int(s.free/each-1))
	}
	k, inside := m.clampK(s, scalar.Add(scalar.Mul(step, loop.Int(length)), row), 1)
	p = s.pieceAt(scalar.Mul(m.Simplify(free), loop.Int(each)), k)
	p.Valid = emit.Both(p.Valid, inside)
	local := scalar.Mul(at, loop.Int(each))
	if s.threadRead {
		return threadTileOffset(s.tile, local, row), p
	}
	return loop.TileOffset(m.p.operand, length, local, row), p
}

// clampK clamps a contracted position, in units of unit elements, and returns the condition
// that it was in range, nil if it always is.
func (m *mmaEmitter) clampK(s *mmaSide, k scalar.Expr, unit int) (at, inside scalar.Expr) {
	have, all := s.length/unit, m.p.parts*m.p.steps*m.p.stepLength()/unit
	if all <= have {
		return m.Simplify(k), nil
	}
	return m.Simplify(scalar.Min(k, loop.Int(have-1))), m.Simplify(scalar.Lt(k, loop.Int(have)))
}

// threadTileOffset returns the offset of an element of f32 in a tile that threads read. A row is
// one contracted position; its pieces are swizzled so that a warp reads the tile of an MMA, 8 free
// by 4 contracted positions, without bank conflicts.
func threadTileOffset(tile int, free, k scalar.Expr) scalar.Expr {
	swizzle := scalar.Mul(scalar.Mod(k, loop.Int(4)), loop.Int(2))
	at := scalar.Add(scalar.Mul(scalar.Xor(scalar.FloorDiv(free, loop.Int(4)), swizzle), loop.Int(4)), scalar.Mod(free, loop.Int(4)))
	return scalar.Add(scalar.Mul(k, loop.Int(tile)), at)
}

// declareLeft declares the registers of the rows' operand.
func (m *mmaEmitter) declareLeft() {
	if !m.p.inRegisters() {
		return
	}
	for parity := range m.left {
		for i := range m.p.stepLength() / m.atom.K() * 4 {
			name := "left" + strconv.Itoa(parity) + "_" + strconv.Itoa(i)
			m.left[parity] = append(m.left[parity], name)
			m.Add(&loop.Var{Name: name, Init: scalar.ConstF(ir.F32, 0)})
		}
	}
}

// loadLeft loads a thread's registers of the rows' operand of a step.
func (m *mmaEmitter) loadLeft(stage scalar.Expr, parity int) {
	s := &m.side[0]
	base := scalar.Mul(stage, loop.Int(s.stageLength(m.p)))
	first := scalar.Add(scalar.Mul(m.group, loop.Int(loop.MmaRows)), m.row)
	for i, name := range m.left[parity] {
		row, k := m.atom.Left(i % 4)
		at := threadTileOffset(s.tile, scalar.Add(first, loop.Int(row)), scalar.Add(m.column, loop.Int(i/4*m.atom.K()+k)))
		m.Add(&loop.Assign{Name: name, Value: scalar.LoadAt(s.slot, ir.F32, m.Simplify(scalar.Add(base, at)))})
	}
}

// tensorMap is an operand as a tensor map: axis 0 is the contiguous one, axis 1 the other of the
// free and the contracted positions, and axis 2 the batch, if the operand depends on it.
type tensorMap struct {
	loop.TensorMap // Array is a tensor's ID; Size is not set
	batch          bool
}

// pieces is an operand as pieces, by batch, free position and contracted position.
type pieces struct {
	dtype                 ir.DType
	layout                mmaLayout
	batches, free, length int
	// at returns the piece at positions that are multiples of a piece along the layout's axis.
	at func(batch, free, k scalar.Expr) (p emit.Piece, ok bool)
}

// tensorMap returns the tensor map of an operand, or false if it has none. Its strides are not
// negative: a reversed axis has none.
func (x *pieces) tensorMap(e *emit.Emitter) (b tensorMap, ok bool) {
	each := loop.ChunkElements(x.dtype)
	axes := [3]axis{{"k", x.length, each}, {"f", x.free, 1}, {"b", x.batches, 1}}
	read := func(at [3]scalar.Expr) (emit.Piece, bool) { return x.at(at[2], at[1], at[0]) }
	if x.layout == alongFree {
		axes[0], axes[1] = axis{"f", x.free, each}, axis{"k", x.length, 1}
		read = func(at [3]scalar.Expr) (emit.Piece, bool) { return x.at(at[2], at[0], at[1]) }
	}
	first, ok := read([3]scalar.Expr{loop.Int(0), loop.Int(0), loop.Int(0)})
	if !ok || first.Valid != nil {
		return b, false
	}
	from, known := e.Simplify(first.At).IntConst()
	if !known {
		return b, false
	}
	b.Array, b.First = first.Array, int(from)
	for i, a := range axes {
		stride, linear := strideOf(e, read, axes, i)
		switch {
		case !linear || i == 0 && stride != each || i == 1 && stride == 0 || stride < 0 || stride%each != 0:
			return b, false
		case i == 2 && stride == 0: // one for all batches
			return b, true
		}
		b.Dims = append(b.Dims, a.length)
		if i > 0 {
			b.Strides = append(b.Strides, stride)
		}
	}
	b.batch = true
	return b, true
}

// axis is a range of positions, visited in steps.
type axis struct {
	name         string
	length, step int
}

// position returns a symbolic position of the axis that is at least steps steps before its end.
func (a axis) position(steps int) scalar.Expr {
	return scalar.Mul(scalar.NewVar(a.name, ir.I32, 0, int64(max(a.length/a.step-1-steps, 0))), loop.Int(a.step))
}

// strideOf returns the elements between neighbouring steps along axis i, or false if they depend
// on the position.
func strideOf(e *emit.Emitter, read func([3]scalar.Expr) (emit.Piece, bool), axes [3]axis, i int) (stride int, linear bool) {
	var here, there [3]scalar.Expr
	for j, a := range axes {
		here[j] = a.position(0)
		there[j] = here[j]
	}
	if axes[i].length <= axes[i].step {
		if i == 2 {
			return 0, true
		}
		return axes[0].length, true // there is no other
	}
	here[i] = axes[i].position(1)
	there[i] = scalar.Add(here[i], loop.Int(axes[i].step))
	p, ok := read(here)
	q, also := read(there)
	if !ok || !also || p.Valid != nil || q.Valid != nil || p.Array != q.Array {
		return 0, false
	}
	apart, known := e.Simplify(scalar.Sub(q.At, p.At)).IntConst()
	return int(apart), known
}

// sideTensorMap returns the tensor map of an operand of a contraction, or of the scratch memory
// that it is staged in, or nil if it has none.
func (m *mmaEmitter) sideTensorMap(s *mmaSide, scratch *fusion.Tensor) *tensorMap {
	c := m.out.c
	if x := m.p.im2col; x != nil && s.operand == 0 {
		return &tensorMap{TensorMap: x.view}
	} else if x != nil && !x.free {
		w := weights{im2col: x, e: m.Emitter, c: c, d: m.p.operand, stored: s.layout, in: scratch}
		b, reversed, ok := w.tensorMap()
		if !ok {
			return nil
		}
		s.reversed = reversed
		return &b
	}
	at := func(batch, free, k scalar.Expr) (emit.Piece, bool) {
		if m.p.layout[s.operand] == staged {
			root, place := m.Emitter.Partition.Place(scratch, ir.Index{batch, free, k})
			return emit.Piece{Array: root.ID, At: m.Simplify(place)}, true
		}
		r := &pieceReader{e: m.Emitter, c: c, d: m.p.operand, operand: s.operand, batch: m.Unflatten(m.Simplify(batch), c.Batch)}
		return r.pieceAt(m.load(s.operand, scratch), m.Simplify(free), m.Simplify(k), s.layout)
	}
	x := pieces{dtype: m.p.operand, layout: s.layout, batches: fusion.Product(c.Batch), free: s.free, length: s.length, at: at}
	b, ok := x.tensorMap(m.Emitter)
	if !ok {
		return nil
	}
	return &b
}
