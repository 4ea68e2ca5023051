package attention

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mmaTile is the shape of attention by multiply-adds: a workgroup has the rows of groups
// warp groups, loops over blocks of columns columns, and holds stages of them in shared memory.
// A multiprocessor holds resident such workgroups: while one computes exponentials, others
// multiply.
type mmaTile struct{ groups, columns, stages, resident int }

// maxMmaLength returns the maximum length of queries, keys and values. Accumulators of
// longer ones leave too few registers, and blocks of longer ones of f32 too little shared
// memory.
func maxMmaLength(d ir.DType) int {
	if d == ir.F32 {
		return 64
	}
	return 128
}

// mmaTiles are the tiles by kind, for lengths up to 64 and up to 128 of 16 bits: the
// fastest of about ten each on an H200, for 8×16 causal heads of 2048 in bf16.
var mmaTiles = [...][2]mmaTile{
	forwardKernel: {{1, 64, 3, 4}, {1, 64, 3, 2}},
	queriesKernel: {{1, 64, 4, 2}, {2, 64, 3, 1}},
	keysKernel:    {{1, 64, 4, 2}, {2, 64, 3, 1}},
}

// mmaTilesF32 are those of f32, as TF32, for lengths up to 64: the fastest of six to nine
// each, measured in the same way.
var mmaTilesF32 = [...]mmaTile{
	forwardKernel: {1, 64, 3, 2},
	queriesKernel: {2, 64, 3, 1},
	keysKernel:    {2, 32, 4, 1},
}

// mmaSmallTile is the tile for devices with too little shared memory for the others.
var mmaSmallTile = mmaTile{1, 32, 3, 1}

// pickMmaTile returns the measured tile of a kernel on a device with bytes of shared memory.
func pickMmaTile(kind kernelKind, d ir.DType, s ir.Attend, bytes int) mmaTile {
	t := mmaTilesF32[kind]
	if d != ir.F32 {
		t = mmaTiles[kind][emit.CeilDiv(max(s.Depth, s.Width), 64)-1]
	}
	if t.sharedBytes(kind, d, s) > bytes {
		return mmaSmallTile
	}
	return t
}

// mmaTile returns the tile of a kernel of attention by multiply-adds.
func (n *attention) mmaTile(kind kernelKind) mmaTile {
	return tileFor(n.schedule, kind, n.operandType(), n.spec, n.caps.MmaBytes)
}

// sharedBytes bounds the workgroup memory of a kernel: the operands of the rows, and for each
// stage those of the columns, their transposed copies and the stats of queries.
func (t mmaTile) sharedBytes(kind kernelKind, d ir.DType, s ir.Attend) int {
	row := loop.RowElements(d)
	depth, width := roundUp(s.Depth, row), roundUp(s.Width, row)
	rows, columns := depth, depth+width
	if kind != forwardKernel {
		rows = depth + width
	}
	if d == ir.F32 { // blocks are whole rows of a transposed copy
		depth, width := paddedLength(d, s.Depth), paddedLength(d, s.Width)
		columns += map[kernelKind]int{queriesKernel: depth, keysKernel: depth + width}[kind]
	}
	bytes := d.Size() * (t.rows()*rows + t.stages*t.columns*columns)
	if kind == keysKernel {
		bytes += 8 * t.stages * t.columns
	}
	return bytes
}

func (t mmaTile) threads() int { return t.groups * loop.WarpGroup }

func (t mmaTile) rows() int { return t.groups * loop.MmaRows }

// inFlight returns the number of blocks whose copies are in flight: one stage is being read, and
// some threads may still read another.
func (t mmaTile) inFlight() int { return t.stages - 2 }

// roundUp returns the least multiple of k that is at least n.
func roundUp(n, k int) int { return emit.CeilDiv(n, k) * k }

// paddedLength returns the length of rows in shared memory and in registers: zeros fill them up to
// whole multiply-adds.
func paddedLength(d ir.DType, length int) int { return roundUp(length, loop.MmaShape{Operand: d}.K()) }

// usesMma reports whether the target has multiply-adds for attention.
func usesMma(s ir.Attend, d ir.DType, caps loop.Caps) bool {
	has := caps.Mma && (d == ir.F16 || d == ir.BF16 || d == ir.F32 && caps.TF32)
	if !has || max(s.Depth, s.Width) > maxMmaLength(d) {
		return false
	}
	for _, kind := range kindsOf(s) {
		if t := pickMmaTile(kind, d, s, caps.MmaBytes); t.sharedBytes(kind, d, s) > caps.MmaBytes {
			return false
		}
	}
	return true
}

// kindsOf returns the kernels of an attention that multiply.
func kindsOf(s ir.Attend) []kernelKind {
	if s.Backward {
		return []kernelKind{queriesKernel, keysKernel}
	}
	return []kernelKind{forwardKernel}
}

// mma has tables in the registers of warp-group multiply-adds, see [loop.MmaShape]. Operands
// of the rows stay in shared memory; operands of the columns arrive in stages, by asynchronous
// copies that overlap the arithmetic. Weights become the left operand of the next product
// without leaving registers. For f32, the right operand comes from a transposed copy, see
// [transposedCopies].
type mma struct {
	*kernel
	t          mmaTile
	l          layout
	operand    ir.DType
	thread     scalar.Expr
	group      scalar.Expr      // the thread's warp group
	lane       scalar.Expr      // the thread's number among the four that share a row
	operands   []*sharedOperand // operands in shared memory
	statsArray int              // shared array of stats
	stage      scalar.Expr      // stage of the current block
	packed     [][]string       // weights as left operands, for each of the accumulators
	inFlight   [][]string       // variables of the multiply-adds in flight in an iteration, by statement
	waited     int              // number of those known to be done
	next       func()           // starts the copies of a later block, to overlap the first products
}

// sharedOperand is an operand in shared memory: in each stage, the rows of a block for each
// piece as long as a row of a [loop.Tile].
type sharedOperand struct {
	matrix     // its length is padded
	side       *side
	streams    bool // it belongs to the columns and is copied in stages
	transposed bool // it is the transposed copy
	slot       int
}

// rows returns the rows of a block in shared memory.
func (h *sharedOperand) rows() int {
	if h.transposed {
		return h.matrix.length
	}
	return h.side.block
}

// columns returns the elements of a row in shared memory.
func (h *sharedOperand) columns() int {
	if h.transposed {
		return h.side.block
	}
	return h.matrix.length
}

func newMma(a *kernel) *mma {
	m := &mma{kernel: a, t: a.mmaTile(a.kind), operand: a.operandType()}
	a.e.Workgroup, a.e.Resident = [3]int{m.t.threads(), 1, 1}, m.t.resident
	atom := loop.MmaShape{Operand: m.operand}
	m.l = layout{
		rows: m.t.rows(), cols: m.t.columns, width: atom.K(), pairs: true,
		own: 2, columns: func(length int) int { return paddedLength(m.operand, length) / 4 },
		rowAt:    func(i int) int { row, _ := atom.Sum(2 * i); return row },
		columnAt: func(c int) int { _, column := atom.Sum(c/2*4 + c%2); return column },
	}
	return m
}

func (m *mma) layout() *layout { return &m.l }

func (m *mma) begin() {
	m.thread = loop.LocalID(0, m.t.threads())
	m.group = m.e.Let("warp_group", scalar.FloorDiv(m.thread, loop.Int(loop.WarpGroup)))
	row, column := loop.MmaShape{}.Origin(scalar.Mod(m.thread, loop.Int(loop.WarpGroup)))
	m.lane = m.e.Let("lane", column)
	m.l.row = m.e.Let("own", scalar.Add(scalar.Mul(m.group, loop.Int(loop.MmaRows)), row))
	m.l.column = scalar.Mul(m.lane, loop.Int(2))
	m.l.first = scalar.Eq(m.lane, loop.Int(0))
	m.declareOperands()
	if !m.byQuery {
		m.statsArray = m.e.Shared("stats", ir.F32, 1, m.t.stages*2*m.t.columns)
	}
	m.packed = make([][]string, 1)
	if m.kind == keysKernel {
		m.packed = make([][]string, 2)
	}
	left := loop.MmaShape{Operand: m.operand}.LeftType()
	for s := range m.packed {
		for i := range m.t.columns * m.operand.Size() / 8 {
			name := "packed" + strconv.Itoa(s) + "_" + strconv.Itoa(i)
			m.packed[s] = append(m.packed[s], name)
			m.e.Add(&loop.Var{Name: name, Init: scalar.Const(left, 0)})
		}
	}
}

// declareOperands declares the shared memory of the operands of a kernel's rows and columns.
func (m *mma) declareOperands() {
	rows, cols := []matrix{m.q()}, []matrix{m.k(), m.v()}
	switch m.kind {
	case queriesKernel:
		rows = append(rows, m.dout())
	case keysKernel:
		rows, cols = cols, []matrix{m.q(), m.dout()}
	}
	for _, x := range rows {
		m.declareOperand(sharedOperand{matrix: x, side: &m.rows})
	}
	for _, x := range cols {
		scores := m.kind != forwardKernel || x != m.v()
		if scores || !m.needsTransposed() {
			m.declareOperand(sharedOperand{matrix: x, side: &m.cols, streams: true})
		}
		if m.transposed[x.operand] != nil {
			m.declareOperand(sharedOperand{matrix: x, side: &m.cols, streams: true, transposed: true})
		}
	}
}

// declareOperand declares the shared memory of an operand.
func (m *mma) declareOperand(h sharedOperand) {
	h.matrix.length = paddedLength(m.operand, h.matrix.length)
	length := h.length(m)
	if h.streams {
		length *= m.t.stages
	}
	name := operandNames[h.operand]
	if h.transposed {
		name += "_transposed"
	}
	h.slot = m.e.Shared(name, m.operand, 1, length)
	m.operands = append(m.operands, &h)
}

// length returns the elements of an operand's block.
func (h *sharedOperand) length(m *mma) int {
	return roundUp(h.columns(), loop.RowElements(m.operand)) * h.rows()
}

// find returns an operand in shared memory.
func (m *mma) find(x matrix, transposed bool) *sharedOperand {
	for _, h := range m.operands {
		if h.operand == x.operand && h.transposed == transposed {
			return h
		}
	}
	panic("an operand is not in shared memory")
}

// base returns the offset of an operand's current block.
func (m *mma) base(h *sharedOperand) scalar.Expr {
	if !h.streams {
		return loop.Int(0)
	}
	return scalar.Mul(m.stage, loop.Int(h.length(m)))
}

// tile returns an operand's tile, contiguous along k, at contracted position k.
func (m *mma) tile(h *sharedOperand, from scalar.Expr, k int) loop.Tile {
	row := loop.RowElements(m.operand)
	from = sum(m.base(h), loop.Int(k/row*row*h.rows()), from)
	return loop.Tile{Array: h.slot, At: m.e.Simplify(from), K: k % row}
}

func (m *mma) product(f fragment, rows, cols matrix) (ready func()) {
	left, right := m.find(rows, false), m.find(cols, false)
	s := &loop.Mma{Shape: loop.MmaShape{Operand: m.operand, N: m.t.columns}}
	own := scalar.Mul(m.group, loop.Int(loop.MmaRows*loop.RowElements(m.operand)))
	for k := 0; k < left.columns(); k += s.Shape.K() {
		s.Terms = append(s.Terms, loop.MmaTerm{Sums: f.sums(), First: k == 0, A: m.tile(left, own, k), B: m.tile(right, loop.Int(0), k)})
	}
	m.e.Add(s)
	m.inFlight = append(m.inFlight, f.sums())
	number := len(m.inFlight)
	return func() {
		if m.next != nil {
			m.next()
			m.next = nil
		}
		m.wait(number, f.sums())
	}
}

// accumulate moves the weights to registers of their own. It does not wait for the products; a
// later wait does.
func (m *mma) accumulate(sums, weights fragment, x matrix) (begin func()) {
	h := m.find(x, m.needsTransposed())
	packed := m.packed[slices.IndexFunc(m.registers.sums, func(f fragment) bool { return f.name == sums.name })]
	s := &loop.Mma{Shape: loop.MmaShape{Operand: m.operand, N: h.matrix.length}}
	for k := 0; k < m.t.columns; k += s.Shape.K() {
		left := packed[4*len(s.Terms):][:4]
		m.pack(s.Shape, left, weights, k)
		right := loop.Tile{Array: h.slot, At: m.e.Simplify(m.base(h)), Depth: m.t.columns, K: k}
		if m.needsTransposed() {
			right = m.tile(h, loop.Int(0), k)
		}
		s.Terms = append(s.Terms, loop.MmaTerm{Sums: sums.sums(), LeftRegisters: left, B: right})
	}
	return func() {
		m.e.Add(s)
		m.inFlight = append(m.inFlight, slices.Concat(sums.sums(), packed))
	}
}

// pack moves the weights from a column on into the registers of an operand. Those of f32 stay in
// the registers of their thread, in another order of columns, see [transposedOrder].
func (m *mma) pack(atom loop.MmaShape, registers []string, weights fragment, column int) {
	for i, name := range registers {
		row, at := atom.Left(i)
		if m.needsTransposed() {
			m.e.Add(&loop.Assign{Name: name, Value: weights.at(row/8, column/4+at/4)})
			continue
		}
		r, c := row/8, (column+at)/4
		m.e.Add(&loop.Pack{Name: name, Type: m.operand, Low: weights.at(r, c), High: weights.at(r, c+1)})
	}
}

// wait waits for the first number multiply-adds of the iteration and for those of earlier ones.
// It names the variables that outlive the iteration and may be used again.
func (m *mma) wait(number int, names []string) {
	busy := slices.Concat(m.inFlight[number:]...)
	for i, f := range m.registers.sums {
		if lasting := slices.Concat(f.sums(), m.packed[i]); !slices.Contains(busy, lasting[0]) {
			names = append(names, lasting...)
		}
	}
	m.e.Add(&loop.MmaWait{Pending: len(m.inFlight) - number, Names: names})
	m.waited = number
}

// sums returns the registers in the order of [loop.MmaShape.Sum].
func (f fragment) sums() []string {
	out := make([]string, 2*f.columns)
	for i := range out {
		out[i] = f.register(i/2%2, i/4*2+i%2)
	}
	return out
}

// fold reduces over the four threads that share a row, by shuffles.
func (m *mma) fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr) {
	for i, x := range values {
		x = m.e.Let("mine", x)
		for across := 1; across < 4; across *= 2 {
			other := m.e.Name("other")
			m.e.Add(&loop.Shuffle{Name: other, Value: x, Xor: across})
			x = m.e.Let("both", combine(x, scalar.FreeVar(other, ir.F32)))
		}
		m.e.Add(&loop.Assign{Name: into[i], Value: combine(scalar.FreeVar(into[i], ir.F32), x)})
	}
}

func (m *mma) columnStat(c, which int) scalar.Expr {
	column := sum(m.l.column, loop.Int(m.l.columnAt(c)))
	at := sum(scalar.Mul(m.stage, loop.Int(2*m.t.columns)), scalar.Mul(column, loop.Int(2)), loop.Int(which))
	return m.e.Let("stat", scalar.LoadAt(m.statsArray, ir.F32, m.e.Simplify(at)))
}

// blocks copies the operands of the columns to shared memory a few blocks ahead of the
// arithmetic.
func (m *mma) blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func()) {
	lo, hi = m.e.Let("from", lo), m.e.Let("to", hi)
	m.copyRows()
	for s := range m.t.inFlight() {
		m.prefetch(m.e.Simplify(scalar.Add(lo, loop.Int(s))), hi)
	}
	at := lo
	for i, end := range []scalar.Expr{whole[0], whole[1], hi} {
		end = m.e.Let("end", scalar.Max(scalar.Min(end, hi), at))
		if scalar.Equal(end, at) {
			continue
		}
		m.visible.unmasked = i == 1
		m.e.Loop("block", at, end, 1, m.cols.blocks()-1, func(block scalar.Expr) { m.iterate(block, hi, body) })
		at = end
	}
	m.visible.unmasked, m.inFlight, m.waited = false, nil, 0
	m.wait(0, nil)
	m.e.Add(&loop.CopyWait{}, &loop.Barrier{})
}

// iterate computes with a block that has arrived and starts the copies of a later one. They
// overwrite a stage that all threads have read: before the barrier each has waited for the
// multiply-adds of two blocks ago.
func (m *mma) iterate(block, hi scalar.Expr, body func()) {
	m.e.Add(&loop.CopyWait{Pending: m.t.inFlight() - 1}, &loop.ProxyFence{}, &loop.Barrier{})
	m.stage = m.e.Let("stage", scalar.Mod(block, loop.Int(m.t.stages)))
	m.next = func() { m.prefetch(scalar.Add(block, loop.Int(m.t.inFlight())), hi) }
	m.cols.setBlock(block)
	m.inFlight, m.waited = nil, 0
	body()
	if last := len(m.inFlight) - 1; m.waited < last {
		m.wait(last, nil) // NVIDIA's compiler does not pipeline two that are in flight across iterations
	}
}

// prefetch starts the copies of a block of columns, if it exists. It commits a group of copies in
// any case, so that groups can be counted.
func (m *mma) prefetch(block, hi scalar.Expr) {
	m.e.When(scalar.Lt(block, hi), func() {
		inside := m.e.Let("ahead", scalar.Min(block, loop.Int(m.cols.blocks()-1)))
		stage := m.e.Let("place", scalar.Mod(inside, loop.Int(m.t.stages)))
		first := scalar.Mul(inside, loop.Int(m.cols.block))
		for _, h := range m.operands {
			if h.streams {
				m.startCopies(h, first, scalar.Mul(stage, loop.Int(h.length(m))))
			}
		}
		if !m.byQuery {
			m.copyStats(first, scalar.Mul(stage, loop.Int(2*m.cols.block)))
		}
	})
	m.e.Add(&loop.CopyCommit{})
}

// copyRows starts the copies of the rows' operands.
func (m *mma) copyRows() {
	for _, h := range m.operands {
		if !h.streams {
			m.startCopies(h, m.rows.first, loop.Int(0))
		}
	}
}

// startCopies starts the copies of a thread's share of a block, from position first on, to offset
// place.
func (m *mma) startCopies(h *sharedOperand, first, place scalar.Expr) {
	each, row := loop.ChunkElements(m.operand), loop.RowElements(m.operand)
	per := h.columns() / each
	m.distribute(h.rows()*per, func(id scalar.Expr) {
		r, number := scalar.FloorDiv(id, loop.Int(per)), scalar.Mod(id, loop.Int(per))
		p, exists := m.blockPiece(h, first, r, number)
		at := scalar.Mul(number, loop.Int(each))
		to := sum(place, scalar.Mul(scalar.FloorDiv(at, loop.Int(row)), loop.Int(row*h.rows())),
			loop.TileOffset(m.operand, 0, r, scalar.Mod(at, loop.Int(row))))
		c := &loop.CopyAsync{To: h.slot, ToAt: m.e.Simplify(to), From: p.Array, FromAt: m.e.Simplify(p.At), Count: each, Valid: p.Valid}
		m.addCopy(c, exists)
	})
}

// blockPiece returns a piece of row r of a block, by its number in the row, and the condition that
// it is in range.
func (m *mma) blockPiece(h *sharedOperand, first, r, number scalar.Expr) (p emit.Piece, exists scalar.Expr) {
	each := loop.ChunkElements(m.operand)
	if h.transposed {
		at := slices.Concat(m.heads.of(h.operand), ir.Index{r, scalar.Add(first, scalar.Mul(number, loop.Int(each)))})
		root, from := m.e.Partition.Place(m.transposed[h.operand], at)
		return emit.Piece{Array: root.ID, At: from}, scalar.ConstBool(true)
	}
	pos, exists := h.side.clamp(m.e.Simplify(scalar.Add(first, r)))
	if whole := m.rowLength(h.operand) / each; whole*each < h.matrix.length && m.staged[h.operand] == nil {
		exists = scalar.And(exists, scalar.Lt(number, loop.Int(whole)))
		number = scalar.Min(number, loop.Int(whole-1))
	}
	p, ok := m.piece(h.operand, m.e, m.read, m.heads.of(h.operand), pos, m.e.Simplify(scalar.Mul(number, loop.Int(each))))
	if !ok {
		panic("an operand's layout has changed")
	}
	return p, exists
}

// copyStats starts the copies of the stats of a block's queries.
func (m *mma) copyStats(first, place scalar.Expr) {
	m.distribute(m.cols.block, func(id scalar.Expr) {
		pos, exists := m.cols.clamp(m.e.Simplify(scalar.Add(first, id)))
		root, from := m.e.Partition.Place(m.stats, slices.Concat(m.heads.query, ir.Index{pos, loop.Int(0)}))
		c := &loop.CopyAsync{
			To: m.statsArray, ToAt: m.e.Simplify(scalar.Add(place, scalar.Mul(id, loop.Int(2)))),
			From: root.ID, FromAt: m.e.Simplify(from), Count: 2,
		}
		m.addCopy(c, exists)
	})
}

// addCopy adds a copy, which stores zeros where exists is false.
func (m *mma) addCopy(c *loop.CopyAsync, exists scalar.Expr) {
	if exists = m.e.Simplify(exists); exists.Op != scalar.OpConst {
		c.Valid = emit.Both(c.Valid, exists)
	}
	m.e.Add(c)
}

// distribute distributes n items over the threads and calls f for each of a thread's items.
func (m *mma) distribute(n int, f func(id scalar.Expr)) {
	for first := 0; first < n; first += m.t.threads() {
		id := m.e.Simplify(scalar.Add(m.thread, loop.Int(first)))
		m.e.When(scalar.Lt(id, loop.Int(n)), func() { f(id) })
	}
}

// piece returns a piece of an operand, or false if its elements are not contiguous and aligned.
func (n *attention) piece(operand int, e *emit.Emitter, read ir.Load, head ir.Index, pos, at scalar.Expr) (p emit.Piece, ok bool) {
	return e.PieceOf(n.m.Node.Input(operand).DType(), func(j int) scalar.Expr {
		index := slices.Concat(head, ir.Index{pos, scalar.Add(at, loop.Int(j))})
		if t := n.staged[operand]; t != nil {
			return e.Load(t, index)
		}
		return read(operand, index)
	})
}

// stage returns the launches that copy operands to scratch memory, if they are computed or do
// not consist of pieces, and that write the transposed copies.
func (n *attention) stage() []emit.Launch {
	operands := []int{n.q().operand, n.k().operand, n.v().operand}
	if n.spec.Backward {
		operands = append(operands, n.dout().operand)
	}
	out := transposedCopies(n)
	if n.needsTransposed() && !n.spec.Backward {
		operands = operands[:2] // only the transposed copy of the values is read
	}
	for _, operand := range operands {
		if !inPieces(n, operand) {
			out = append(out, stageOperand(n, operand))
		}
	}
	return out
}

// inPieces reports whether an operand consists of aligned pieces of 16 bytes.
func inPieces(n *attention, operand int) bool {
	e := emit.New(n.p, n.caps)
	x := n.m.Node.Input(operand)
	dims, _ := x.Shape().Ints()
	rank, each := len(dims), loop.ChunkElements(x.DType())
	if dims[rank-1]%each != 0 {
		return false
	}
	index := fusion.Coords("at", dims)
	at := scalar.Mul(scalar.NewVar("piece", ir.I32, 0, int64(dims[rank-1]/each-1)), loop.Int(each))
	_, ok := n.piece(operand, e, e.Reader().Operand(n.m.Node), index[:rank-2], index[rank-2], at)
	return ok
}

// rowLength returns the length of an operand's rows in memory.
func (n *attention) rowLength(operand int) int {
	dims, _ := n.m.Node.Input(operand).Shape().Ints()
	return dims[len(dims)-1]
}

// stageOperand returns the launch that copies an operand to scratch memory, in padded rows.
func stageOperand(n *attention, operand int) emit.Launch {
	t := n.m.Node.Input(operand).Type()
	dims, _ := t.Shape.Ints()
	last, length := len(dims)-1, n.rowLength(operand)
	dims = slices.Clone(dims)
	dims[last] = paddedLength(t.DType, length)
	name := n.prefix + "_" + operandNames[operand]
	scratch := n.p.Scratch(name, t.DType, dims...)
	w := emit.New(n.p, n.caps).WithThreads(emit.GroupThreads)
	load := w.Reader().Operand(n.m.Node)
	w.Threads(scratch.Len(), func(i scalar.Expr) {
		to := w.Unflatten(i, dims)
		column, exists := withinBounds(to[last], length, dims[last] == length)
		x := load(operand, slices.Concat(to[:last], ir.Index{column}))
		w.Save(scratch, to, w.Simplify(scalar.Select(exists, x, scalar.Const(x.Type, 0))))
	})
	n.staged[operand] = scratch
	return w.Launch(name)
}

// operandNames are the names of operands, by number.
var operandNames = map[int]string{queryOperand: "q", keyOperand: "k", valueOperand: "v", cotangentOperand: "dout"}

// operandType returns the type that is multiplied.
func (n *attention) operandType() ir.DType { return n.m.Node.Input(0).DType() }

// needsTransposed reports whether sums over rows read transposed copies. Multiply-adds of f32
// need a right operand that is contiguous along the contracted axis (see [loop.Tile]), and sums
// over queries or keys contract across its rows.
func (n *attention) needsTransposed() bool { return n.operandType() == ir.F32 }

// transposedOrder returns the position at place i of a transposed copy. A thread has
// accumulators at columns 2c and 2c+1 of each eight ([loop.MmaShape.Sum]) and must supply columns c
// and c+4 of the left operand ([loop.MmaShape.Left]). This permutation makes them the same.
func transposedOrder(i scalar.Expr) scalar.Expr {
	eight, four, two := loop.Int(8), loop.Int(4), loop.Int(2)
	within := scalar.Mod(i, eight)
	within = scalar.Add(scalar.Mul(scalar.Mod(within, four), two), scalar.FloorDiv(within, four))
	return scalar.Add(scalar.Mul(scalar.FloorDiv(i, eight), eight), within)
}

// transposedCopies returns the launches that write the transposed copies.
func transposedCopies(n *attention) []emit.Launch {
	if !n.needsTransposed() {
		return nil
	}
	if !n.spec.Backward {
		return []emit.Launch{transposeOperand(n, n.v(), forwardKernel, n.spec.Keys)}
	}
	var out []emit.Launch
	if n.m.Store[0] != nil {
		out = append(out, transposeOperand(n, n.k(), queriesKernel, n.spec.Keys))
	}
	if n.m.Store[1] != nil {
		out = append(out, transposeOperand(n, n.q(), keysKernel, n.spec.Queries))
	}
	if n.m.Store[2] != nil {
		out = append(out, transposeOperand(n, n.dout(), keysKernel, n.spec.Queries))
	}
	return out
}

// transposedRow is the number of neighbours of a row that a thread transposes: those of a memory
// sector.
const transposedRow = 8

// transposeOperand returns the launch that writes the transposed copy of an operand for a kernel,
// padded with zeros to whole blocks of columns. Its stores are coalesced.
func transposeOperand(n *attention, x matrix, kind kernelKind, rows int) emit.Launch {
	dims, _ := n.m.Node.Input(x.operand).Shape().Ints()
	heads, length := dims[:len(dims)-2], paddedLength(ir.F32, x.length)
	padded := roundUp(rows, n.mmaTile(kind).columns)
	name := n.prefix + "_" + operandNames[x.operand] + "_transposed"
	t := n.p.Scratch(name, ir.F32, slices.Concat(heads, []int{length, padded})...)
	w := emit.New(n.p, n.caps).WithThreads(emit.GroupThreads)
	load := w.Reader().Operand(n.m.Node)
	work := slices.Concat(heads, []int{length / transposedRow, padded})
	w.Threads(fusion.Product(work), func(i scalar.Expr) {
		at := w.Unflatten(i, work)
		head, part, place := at[:len(heads)], at[len(heads)], at[len(heads)+1]
		pos, exists := withinBounds(w.Let("pos", transposedOrder(place)), rows, padded == rows)
		var values []scalar.Expr
		for j := range transposedRow {
			column, inside := withinBounds(scalar.Add(scalar.Mul(part, loop.Int(transposedRow)), loop.Int(j)), x.length, length == x.length)
			values = append(values, w.Let("x", w.Simplify(orZero(scalar.And(exists, inside), load(x.operand, slices.Concat(head, ir.Index{pos, column}))))))
		}
		for j, v := range values {
			column := scalar.Add(scalar.Mul(part, loop.Int(transposedRow)), loop.Int(j))
			w.Save(t, slices.Concat(head, ir.Index{column, place}), v)
		}
	})
	n.transposed[x.operand] = t
	return w.Launch(name)
}
