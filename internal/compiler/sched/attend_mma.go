package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendMmaTile is the shape of attention by multiply-adds: a workgroup has the rows of groups
// warp groups, loops over blocks of columns columns, and holds stages of them in shared memory.
// A multiprocessor holds resident such workgroups: while one computes exponentials, others
// multiply.
type attendMmaTile struct{ groups, columns, stages, resident int }

// maxAttendMmaLength returns the maximum length of queries, keys and values. Accumulators of
// longer ones leave too few registers, and blocks of longer ones of f32 too little shared
// memory.
func maxAttendMmaLength(d ir.DType) int {
	if d == ir.F32 {
		return 64
	}
	return 128
}

// attendMmaTiles are the tiles by kind, for lengths up to 64 and up to 128 of 16 bits: the
// fastest of about ten each on an H200, for 8×16 causal heads of 2048 in bf16.
var attendMmaTiles = [...][2]attendMmaTile{
	attendForward: {{1, 64, 3, 4}, {1, 64, 3, 2}},
	attendQueries: {{1, 64, 4, 2}, {2, 64, 3, 1}},
	attendKeys:    {{1, 64, 4, 2}, {2, 64, 3, 1}},
}

// attendMmaTilesF32 are those of f32, as TF32, for lengths up to 64: the fastest of six to nine
// each, measured in the same way.
var attendMmaTilesF32 = [...]attendMmaTile{
	attendForward: {1, 64, 3, 2},
	attendQueries: {2, 64, 3, 1},
	attendKeys:    {2, 32, 4, 1},
}

// attendMmaSmall is the tile for devices with too little shared memory for the others.
var attendMmaSmall = attendMmaTile{1, 32, 3, 1}

// pickAttendMma returns the tile of a kernel on a device with bytes of shared memory.
var pickAttendMma = func(kind attendKind, d ir.DType, s ir.Attend, bytes int) attendMmaTile {
	t := attendMmaTilesF32[kind]
	if d != ir.F32 {
		t = attendMmaTiles[kind][ceilDiv(max(s.Depth, s.Width), 64)-1]
	}
	if t.sharedBytes(kind, d, s) > bytes {
		return attendMmaSmall
	}
	return t
}

// mmaTile returns the tile of a kernel of attention by multiply-adds.
func (n *attention) mmaTile(kind attendKind) attendMmaTile {
	return pickAttendMma(kind, n.operandType(), n.Attend, n.caps.MmaBytes)
}

// sharedBytes bounds the workgroup memory of a kernel: the operands of the rows, and for each
// stage those of the columns, their transposed copies and the stats of queries.
func (t attendMmaTile) sharedBytes(kind attendKind, d ir.DType, s ir.Attend) int {
	row := loop.RowElements(d)
	depth, width := ceilDiv(s.Depth, row)*row, ceilDiv(s.Width, row)*row
	rows, columns := depth, depth+width
	if kind != attendForward {
		rows = depth + width
	}
	if d == ir.F32 { // blocks are whole rows of a transposed copy
		columns += map[attendKind]int{attendQueries: s.Depth, attendKeys: s.Depth + s.Width}[kind]
	}
	bytes := d.Size() * (t.rows()*rows + t.stages*t.columns*columns)
	if kind == attendKeys {
		bytes += 8 * t.stages * t.columns
	}
	return bytes
}

func (t attendMmaTile) threads() int { return t.groups * loop.WarpGroup }
func (t attendMmaTile) rows() int    { return t.groups * loop.MmaRows }

// inFlight returns the number of blocks whose copies are in flight: one stage is being read, and
// some threads may still read another.
func (t attendMmaTile) inFlight() int { return t.stages - 2 }

// attendsByMma reports whether the target has multiply-adds for attention.
func attendsByMma(s ir.Attend, d ir.DType, caps loop.Caps) bool {
	k := loop.MmaShape{Operand: d}.K()
	has := caps.Mma && (d == ir.F16 || d == ir.BF16 || d == ir.F32 && caps.TF32)
	if !has || max(s.Depth, s.Width) > maxAttendMmaLength(d) || s.Depth%k != 0 || s.Width%k != 0 {
		return false
	}
	for _, kind := range attendKinds(s) {
		if t := pickAttendMma(kind, d, s, caps.MmaBytes); t.sharedBytes(kind, d, s) > caps.MmaBytes {
			return false
		}
	}
	return true
}

// attendKinds returns the kernels of an attention that multiply.
func attendKinds(s ir.Attend) []attendKind {
	if s.Backward {
		return []attendKind{attendQueries, attendKeys}
	}
	return []attendKind{attendForward}
}

// attendMma has tables in the registers of warp-group multiply-adds, see [loop.MmaShape]. Operands
// of the rows stay in shared memory; operands of the columns arrive in stages, by asynchronous
// copies that overlap the arithmetic. Weights become the left operand of the next product
// without leaving registers. For f32, the right operand comes from a transposed copy, see
// [attention.transposedCopies].
type attendMma struct {
	*attender
	t          attendMmaTile
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
	matrix
	side       *attendSide
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

func newAttendMma(a *attender) *attendMma {
	m := &attendMma{attender: a, t: a.mmaTile(a.kind), operand: a.operandType()}
	a.workgroup, a.resident = [3]int{m.t.threads(), 1, 1}, m.t.resident
	atom := loop.MmaShape{Operand: m.operand}
	m.l = layout{
		rows: m.t.rows(), cols: m.t.columns, width: 16, pairs: true,
		own: 2, columns: func(length int) int { return length / 4 },
		rowAt:    func(i int) int { row, _ := atom.Sum(2 * i); return row },
		columnAt: func(c int) int { _, column := atom.Sum(c/2*4 + c%2); return column },
	}
	return m
}

func (m *attendMma) layout() *layout { return &m.l }

func (m *attendMma) begin() {
	m.thread = loop.LocalID(0, m.t.threads())
	m.group = m.let("warp_group", scalar.FloorDiv(m.thread, loop.Int(loop.WarpGroup)))
	row, column := loop.MmaShape{}.Origin(scalar.Mod(m.thread, loop.Int(loop.WarpGroup)))
	m.lane = m.let("lane", column)
	m.l.row = m.let("own", scalar.Add(scalar.Mul(m.group, loop.Int(loop.MmaRows)), row))
	m.l.column = scalar.Mul(m.lane, loop.Int(2))
	m.l.first = scalar.Eq(m.lane, loop.Int(0))
	m.declareOperands()
	if !m.byQuery {
		m.statsArray = m.shared("stats", ir.F32, 1, m.t.stages*2*m.t.columns)
	}
	m.packed = make([][]string, 1)
	if m.kind == attendKeys {
		m.packed = make([][]string, 2)
	}
	left := loop.MmaShape{Operand: m.operand}.LeftType()
	for s := range m.packed {
		for i := range m.t.columns * m.operand.Size() / 8 {
			name := "packed" + strconv.Itoa(s) + "_" + strconv.Itoa(i)
			m.packed[s] = append(m.packed[s], name)
			m.add(&loop.Var{Name: name, Init: scalar.Const(left, 0)})
		}
	}
}

// declareOperands declares the shared memory of the operands of a kernel's rows and columns.
func (m *attendMma) declareOperands() {
	rows, cols := []matrix{m.q()}, []matrix{m.k(), m.v()}
	switch m.kind {
	case attendQueries:
		rows = append(rows, m.dout())
	case attendKeys:
		rows, cols = cols, []matrix{m.q(), m.dout()}
	}
	for _, x := range rows {
		m.declareOperand(sharedOperand{matrix: x, side: &m.rows})
	}
	for _, x := range cols {
		scores := m.kind != attendForward || x != m.v()
		if scores || !m.needsTransposed() {
			m.declareOperand(sharedOperand{matrix: x, side: &m.cols, streams: true})
		}
		if m.transposed[x.operand] != nil {
			m.declareOperand(sharedOperand{matrix: x, side: &m.cols, streams: true, transposed: true})
		}
	}
}

// declareOperand declares the shared memory of an operand.
func (m *attendMma) declareOperand(h sharedOperand) {
	length := h.length(m)
	if h.streams {
		length *= m.t.stages
	}
	name := attendNames[h.operand]
	if h.transposed {
		name += "_turned"
	}
	h.slot = m.shared(name, m.operand, 1, length)
	m.operands = append(m.operands, &h)
}

// length returns the elements of an operand's block.
func (h *sharedOperand) length(m *attendMma) int {
	row := loop.RowElements(m.operand)
	return ceilDiv(h.columns(), row) * row * h.rows()
}

// find returns an operand in shared memory.
func (m *attendMma) find(x matrix, transposed bool) *sharedOperand {
	for _, h := range m.operands {
		if h.operand == x.operand && h.transposed == transposed {
			return h
		}
	}
	panic("an operand is not in shared memory")
}

// base returns the offset of an operand's current block.
func (m *attendMma) base(h *sharedOperand) scalar.Expr {
	if !h.streams {
		return loop.Int(0)
	}
	return scalar.Mul(m.stage, loop.Int(h.length(m)))
}

// tile returns an operand's tile, contiguous along k, at contracted position k.
func (m *attendMma) tile(h *sharedOperand, from scalar.Expr, k int) loop.Tile {
	row := loop.RowElements(m.operand)
	from = sum(m.base(h), loop.Int(k/row*row*h.rows()), from)
	return loop.Tile{Array: h.slot, At: m.Simplify(from), K: k % row}
}

func (m *attendMma) product(f fragment, rows, cols matrix) (ready func()) {
	left, right := m.find(rows, false), m.find(cols, false)
	s := &loop.Mma{Shape: loop.MmaShape{Operand: m.operand, N: m.t.columns}}
	own := scalar.Mul(m.group, loop.Int(loop.MmaRows*loop.RowElements(m.operand)))
	for k := 0; k < rows.length; k += s.Shape.K() {
		s.Terms = append(s.Terms, loop.MmaTerm{Sums: f.sums(), First: k == 0, A: m.tile(left, own, k), B: m.tile(right, loop.Int(0), k)})
	}
	m.add(s)
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
func (m *attendMma) accumulate(sums, weights fragment, x matrix) (begin func()) {
	h := m.find(x, m.needsTransposed())
	packed := m.packed[slices.IndexFunc(m.sums, func(f fragment) bool { return f.name == sums.name })]
	s := &loop.Mma{Shape: loop.MmaShape{Operand: m.operand, N: x.length}}
	for k := 0; k < m.t.columns; k += s.Shape.K() {
		left := packed[4*len(s.Terms):][:4]
		m.pack(s.Shape, left, weights, k)
		right := loop.Tile{Array: h.slot, At: m.Simplify(m.base(h)), Depth: m.t.columns, K: k}
		if m.needsTransposed() {
			right = m.tile(h, loop.Int(0), k)
		}
		s.Terms = append(s.Terms, loop.MmaTerm{Sums: sums.sums(), LeftRegisters: left, B: right})
	}
	return func() {
		m.add(s)
		m.inFlight = append(m.inFlight, slices.Concat(sums.sums(), packed))
	}
}

// pack moves the weights from a column on into the registers of an operand. Those of f32 stay in
// the registers of their thread, in another order of columns, see [transposedOrder].
func (m *attendMma) pack(atom loop.MmaShape, registers []string, weights fragment, column int) {
	for i, name := range registers {
		row, at := atom.Left(i)
		if m.needsTransposed() {
			m.add(&loop.Assign{Name: name, Value: weights.at(row/8, column/4+at/4)})
			continue
		}
		r, c := row/8, (column+at)/4
		m.add(&loop.Pack{Name: name, Type: m.operand, Low: weights.at(r, c), High: weights.at(r, c+1)})
	}
}

// wait waits for the first number multiply-adds of the iteration and for those of earlier ones.
// It names the variables that outlive the iteration and may be used again.
func (m *attendMma) wait(number int, names []string) {
	busy := slices.Concat(m.inFlight[number:]...)
	for i, f := range m.sums {
		if lasting := slices.Concat(f.sums(), m.packed[i]); !slices.Contains(busy, lasting[0]) {
			names = append(names, lasting...)
		}
	}
	m.add(&loop.MmaWait{Pending: len(m.inFlight) - number, Names: names})
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
func (m *attendMma) fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr) {
	for i, x := range values {
		x = m.let("mine", x)
		for across := 1; across < 4; across *= 2 {
			other := m.name("other")
			m.add(&loop.Shuffle{Name: other, Value: x, Xor: across})
			x = m.let("both", combine(x, scalar.FreeVar(other, ir.F32)))
		}
		m.add(&loop.Assign{Name: into[i], Value: combine(scalar.FreeVar(into[i], ir.F32), x)})
	}
}

func (m *attendMma) columnStat(c, which int) scalar.Expr {
	column := sum(m.l.column, loop.Int(m.l.columnAt(c)))
	at := sum(scalar.Mul(m.stage, loop.Int(2*m.t.columns)), scalar.Mul(column, loop.Int(2)), loop.Int(which))
	return m.let("stat", scalar.LoadAt(m.statsArray, ir.F32, m.Simplify(at)))
}

// blocks copies the operands of the columns to shared memory a few blocks ahead of the
// arithmetic.
func (m *attendMma) blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func()) {
	lo, hi = m.let("from", lo), m.let("to", hi)
	m.copyRows()
	for s := range m.t.inFlight() {
		m.prefetch(m.Simplify(scalar.Add(lo, loop.Int(s))), hi)
	}
	at := lo
	for i, end := range []scalar.Expr{whole[0], whole[1], hi} {
		end = m.let("end", scalar.Max(scalar.Min(end, hi), at))
		if scalar.Equal(end, at) {
			continue
		}
		m.unmasked = i == 1
		m.loop("block", at, end, 1, m.cols.blocks()-1, func(block scalar.Expr) { m.iterate(block, hi, body) })
		at = end
	}
	m.unmasked, m.inFlight, m.waited = false, nil, 0
	m.wait(0, nil)
	m.add(&loop.CopyWait{}, &loop.Barrier{})
}

// iterate computes with a block that has arrived and starts the copies of a later one. They
// overwrite a stage that all threads have read: before the barrier each has waited for the
// multiply-adds of two blocks ago.
func (m *attendMma) iterate(block, hi scalar.Expr, body func()) {
	m.add(&loop.CopyWait{Pending: m.t.inFlight() - 1}, &loop.ProxyFence{}, &loop.Barrier{})
	m.stage = m.let("stage", scalar.Mod(block, loop.Int(m.t.stages)))
	m.next = func() { m.prefetch(scalar.Add(block, loop.Int(m.t.inFlight())), hi) }
	m.setBlock(&m.cols, block)
	m.inFlight, m.waited = nil, 0
	body()
	if last := len(m.inFlight) - 1; m.waited < last {
		m.wait(last, nil) // NVIDIA's compiler does not pipeline two that are in flight across iterations
	}
}

// prefetch starts the copies of a block of columns, if it exists. It commits a group of copies in
// any case, so that groups can be counted.
func (m *attendMma) prefetch(block, hi scalar.Expr) {
	m.when(scalar.Lt(block, hi), func() {
		inside := m.let("ahead", scalar.Min(block, loop.Int(m.cols.blocks()-1)))
		stage := m.let("place", scalar.Mod(inside, loop.Int(m.t.stages)))
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
	m.add(&loop.CopyCommit{})
}

// copyRows starts the copies of the rows' operands.
func (m *attendMma) copyRows() {
	for _, h := range m.operands {
		if !h.streams {
			m.startCopies(h, m.rows.first, loop.Int(0))
		}
	}
}

// startCopies starts the copies of a thread's share of a block, from position first on, to offset
// place.
func (m *attendMma) startCopies(h *sharedOperand, first, place scalar.Expr) {
	each, row := loop.ChunkElements(m.operand), loop.RowElements(m.operand)
	per := h.columns() / each
	m.distribute(h.rows()*per, func(id scalar.Expr) {
		r, at := scalar.FloorDiv(id, loop.Int(per)), scalar.Mul(scalar.Mod(id, loop.Int(per)), loop.Int(each))
		p, exists := m.blockPiece(h, first, r, at)
		to := sum(place, scalar.Mul(scalar.FloorDiv(at, loop.Int(row)), loop.Int(row*h.rows())),
			loop.TileOffset(m.operand, 0, r, scalar.Mod(at, loop.Int(row))))
		c := &loop.CopyAsync{To: h.slot, ToAt: m.Simplify(to), From: p.array, FromAt: m.Simplify(p.at), Count: each, Valid: p.valid}
		if exists = m.Simplify(exists); exists.Op != scalar.OpConst {
			c.Valid = both(c.Valid, exists)
		}
		m.add(c)
	})
}

// blockPiece returns the piece of row r of a block at a column, and the condition that it is
// in range.
func (m *attendMma) blockPiece(h *sharedOperand, first, r, column scalar.Expr) (p piece, exists scalar.Expr) {
	if h.transposed {
		at := slices.Concat(m.head(h.operand), ir.Index{r, scalar.Add(first, column)})
		root, from := m.emitter.p.Place(m.transposed[h.operand], at)
		return piece{array: root.ID, at: from}, scalar.ConstBool(true)
	}
	pos, exists := h.side.clamp(m.Simplify(scalar.Add(first, r)))
	p, ok := m.piece(h.operand, m.emitter, m.read, m.head(h.operand), pos, m.Simplify(column))
	if !ok {
		panic("an operand's layout has changed")
	}
	return p, exists
}

// copyStats starts the copies of the stats of a block's queries.
func (m *attendMma) copyStats(first, place scalar.Expr) {
	m.distribute(m.cols.block, func(id scalar.Expr) {
		pos, exists := m.cols.clamp(m.Simplify(scalar.Add(first, id)))
		root, from := m.emitter.p.Place(m.stats, slices.Concat(m.queryHead, ir.Index{pos, loop.Int(0)}))
		c := &loop.CopyAsync{
			To: m.statsArray, ToAt: m.Simplify(scalar.Add(place, scalar.Mul(id, loop.Int(2)))),
			From: root.ID, FromAt: m.Simplify(from), Count: 2,
		}
		if exists = m.Simplify(exists); exists.Op != scalar.OpConst {
			c.Valid = exists
		}
		m.add(c)
	})
}

// distribute distributes n items over the threads and calls f for each of a thread's items.
func (m *attendMma) distribute(n int, f func(id scalar.Expr)) {
	for first := 0; first < n; first += m.t.threads() {
		id := m.Simplify(scalar.Add(m.thread, loop.Int(first)))
		m.when(scalar.Lt(id, loop.Int(n)), func() { f(id) })
	}
}
