package matmul

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// stationaryPlan computes a contraction of few columns and a short contracted space, such as a layer of a narrow
// network: a workgroup, which is one warp group, keeps the whole operand along the columns in shared memory and
// multiplies tiles of rows by it, which threads load to the registers of their fragments. Nothing is staged, and
// neither operand nor result passes through shared memory.
type stationaryPlan struct {
	c       *fusion.Contraction
	operand ir.DType
	columns int // whole quads of each thread, see quad
	length  int // the contracted space, likewise
	tiles   int // tiles of rows of a batch
	each    int // tiles of a workgroup
}

// quad is the number of neighbouring elements that a thread has at a time: of the rows' operand along the contracted
// space, of a result along the columns. The four threads that share a row have quads next to each other, where a
// fragment has pairs or single elements (see [loop.MmaShape]), so that loads and stores are of vectors. Both operands
// have the contracted positions in the same order, and any order of columns is as good as another.
const quad = emit.VectorWidth

// quadSpan is the length of the quads of the four threads of a row.
const quadSpan = 4 * quad

// Limits of the plan: the elements of the columns' operand, which each workgroup copies (H200: 65536×128×64 took 12.8 µs
// in bf16 and 25.8 in TF32, other multiply-adds 9.7 and 22.7), and the operations of an unrolled epilogue.
const (
	stationaryElements = 64 * 64
	stationaryOps      = 2048
)

// minStationaryTiles is the minimum number of row tiles: a short product is as fast by threads that share nothing.
var minStationaryTiles = 32

// planStationary returns the plan of a contraction, or false if it is of other shapes, or if neighbours along the
// contracted space are no neighbours in memory in the rows' operand.
func planStationary(e *emit.Emitter, g *fusion.Group, c *fusion.Contraction) (p *stationaryPlan, ok bool) {
	d, ok := mmaOperand(c, e.Caps)
	if !ok || !tileable(c) {
		return nil, false
	}
	m, n, k := fusion.Product(c.M), fusion.Product(c.N), fusion.Product(c.K)
	if m > loop.MaxElements || max(n, k) > stationaryElements/quadSpan || min(n, k) <= emit.ThinSide {
		return nil, false
	}
	p = &stationaryPlan{
		c: c, operand: d,
		columns: emit.CeilDiv(n, quadSpan) * quadSpan, length: emit.CeilDiv(k, quadSpan) * quadSpan, tiles: emit.CeilDiv(m, loop.MmaRows),
	}
	switch {
	case p.columns*p.length > stationaryElements, p.columns/2*g.EpilogueWeight() > stationaryOps, p.sharedLength()*d.Size() > e.Caps.MmaBytes:
		return nil, false
	case fusion.Product(c.Batch)*p.tiles < minStationaryTiles, p.tiles*loop.MmaRows > 2*m: // short, or half of the rows would be padding
		return nil, false
	}
	if axis := contiguityOf(e, c, d, 0); axis != contiguousAlongK {
		return nil, false
	}
	p.each = min(p.tiles, emit.CeilDiv(p.tiles*fusion.Product(c.Batch), e.Caps.Profile().Processors*p.resident()))
	return p, true
}

// registers returns the registers of a thread's sums and fragments.
func (p *stationaryPlan) registers() int {
	return p.columns/2 + p.length*p.operand.Size()/8
}

// sharedLength returns the elements of the columns' operand in shared memory: panels of the rows of a [loop.Tile].
func (p *stationaryPlan) sharedLength() int {
	row := loop.RowElements(p.operand)
	return p.columns * emit.CeilDiv(p.length, row) * row
}

// resident estimates the workgroups that a multiprocessor holds at once, by their registers: those of the plan and
// about as many as ownRegisters for the rest.
func (p *stationaryPlan) resident() int {
	const file, ownRegisters, most = 64 << 10, 40, 8
	return max(1, min(most, file/(loop.WarpGroup*(p.registers()+ownRegisters))))
}

// schedule returns the plan's schedule: no size is chosen.
func (p *stationaryPlan) schedule() emit.Schedule { return emit.Schedule{Family: emit.Stationary} }

// stationaryCopy is the part of a latency that a workgroup waits for each vector of the columns' operand that its threads
// load.
const stationaryCopy = 1. / 12

// cost estimates the nanoseconds of the launch: those of the bytes of rows and results, or of the multiply-adds, and
// those until the columns' operand has arrived.
func (p *stationaryPlan) cost(caps loop.Caps) float64 {
	d := caps.Profile()
	rows := float64(fusion.Product(p.c.Batch)) * float64(fusion.Product(p.c.M))
	bytes := rows * float64(fusion.Product(p.c.K)*p.operand.Size()+fusion.Product(p.c.N)*p.c.Node.Types()[0].DType.Size())
	bandwidth := d.CacheBandwidth()
	if bytes > float64(d.Cache) {
		bandwidth = d.Bandwidth()
	}
	work := 2 * rows * float64(p.columns) * float64(p.length) / (float64(d.Processors) * d.Rates().Warps[2])
	copies := float64(p.columns*p.length) / (quad * loop.WarpGroup)
	return d.Launch + d.Latency*copies*stationaryCopy + max(bytes/bandwidth, work)
}

// stationaryEmitter writes the kernel of a stationaryPlan.
type stationaryEmitter struct {
	*emit.Emitter
	p           *stationaryPlan
	out         epilogue
	vectors     *emit.Vectorizer
	atom        loop.MmaShape
	valid       scalar.Expr // false in workgroups beyond the last
	first       scalar.Expr // first row tile of the workgroup
	thread      scalar.Expr
	row, column scalar.Expr // origin of the thread, see [loop.MmaShape]
	slot        int         // the columns' operand in shared memory
	alongK      bool        // whether it is copied along the contracted space, else along its columns
	sums, left  []string
}

// emitStationary emits a contraction by the plan.
func emitStationary(e *emit.Emitter, g *fusion.Group, p *stationaryPlan) []emit.Launch {
	m := &stationaryEmitter{Emitter: emit.New(e.Partition, e.Caps), p: p, atom: loop.MmaShape{Operand: p.operand, N: p.columns}}
	m.Workgroup = [3]int{loop.WarpGroup, 1, 1}
	m.out = epilogue{Emitter: m.Emitter, g: g, c: p.c}
	m.alongK = contiguityOf(m.Emitter, p.c, p.operand, 1) != contiguousAlongFree
	m.assign()
	m.declare()
	m.vectorize()
	m.copyColumns()
	m.Times("tile", p.each, m.multiplyTile)
	return []emit.Launch{m.Launch(g.Name())}
}

// assign names the batch and the first row tile of the workgroup, and the thread's origin.
func (m *stationaryEmitter) assign() {
	c, groups := m.p.c, emit.CeilDiv(m.p.tiles, m.p.each)
	workgroup, valid := m.BoundedGroup(fusion.Product(c.Batch) * groups)
	m.valid = valid
	batch := m.Let("batch", scalar.Mod(scalar.FloorDiv(workgroup, loop.Int(groups)), loop.Int(fusion.Product(c.Batch))))
	m.out.batch = m.Unflatten(batch, c.Batch)
	m.first = m.Let("first", scalar.Mul(scalar.Mod(workgroup, loop.Int(groups)), loop.Int(m.p.each)))
	m.thread = loop.LocalID(0, loop.WarpGroup)
	row, column := m.atom.Origin(m.thread)
	m.row, m.column = m.Let("row", row), m.Let("column", column)
}

// declare declares the shared memory and the registers of sums and of the rows' fragments.
func (m *stationaryEmitter) declare() {
	m.slot = m.Shared("columns", m.p.operand, 1, m.p.sharedLength())
	m.sums = declareSums(m.Emitter, m.atom)
	zero := scalar.Expr(scalar.ConstF(ir.F32, 0))
	if m.atom.LeftType() != ir.F32 {
		zero = scalar.Bitcast(loop.Int(0), m.atom.LeftType())
	}
	for i := range m.p.length / m.atom.K() * 4 {
		m.left = append(m.left, "left"+strconv.Itoa(i))
		m.Add(&loop.Var{Name: m.left[i], Init: zero})
	}
}

// vectorize decides which arrays the kernel sees as vectors, by all of its loads and stores.
func (m *stationaryEmitter) vectorize() {
	m.vectors = emit.NewVectorizer(m.Emitter)
	_, _, columns := m.columnQuad(scalar.NewVar("quad", ir.I32, 0, int64(m.p.columns*m.p.length/quad-1)))
	m.vectors.Observe(columns...)
	row := m.rowVar("at")
	m.vectors.Observe(m.rowQuads(row)...)
	for _, q := range m.resultQuads(row) {
		m.vectors.ObserveStores(q.stores, quad)
	}
	m.vectors.Decide()
}

// inQuad returns the position of element j of a quad along an axis of n positions, clamped to the last, and the condition
// that it is in range. Whole quads are clamped to whole quads.
func inQuad(q scalar.Expr, j, n int) (at, inside scalar.Expr) {
	if n%quad == 0 {
		return scalar.Add(scalar.Mul(scalar.Min(q, loop.Int(n/quad-1)), loop.Int(quad)), loop.Int(j)), scalar.Lt(q, loop.Int(n/quad))
	}
	at = scalar.Add(scalar.Mul(q, loop.Int(quad)), loop.Int(j))
	return scalar.Min(at, loop.Int(n-1)), scalar.Lt(at, loop.Int(n))
}

// factor returns an element of an operand at a free and a contracted position in range, rounded to the type that is
// multiplied, or zero where it does not exist.
func (m *stationaryEmitter) factor(operand int, free, k, exists scalar.Expr) scalar.Expr {
	c := m.p.c
	fAt, kAt := m.Unflatten(m.Simplify(free), c.Free(operand)), m.Unflatten(m.Simplify(k), c.K)
	x := c.Factor(operand, m.out.batch, fAt, kAt, m.Reader().Operand(c.Node))
	return m.Simplify(scalar.Convert(scalar.Select(m.Simplify(exists), x, scalar.ConstF(ir.F32, 0)), m.p.operand))
}

// columnQuad returns quad number at of the columns' operand: the columns and
// the contracted positions of its elements, and the elements.
func (m *stationaryEmitter) columnQuad(at scalar.Expr) (n, k [quad]scalar.Expr, elements []scalar.Expr) {
	c := m.p.c
	columns, terms := fusion.Product(c.N), fusion.Product(c.K)
	quads := m.p.columns / quad
	if m.alongK {
		quads = m.p.length / quad
	}
	across, q := m.Simplify(scalar.FloorDiv(at, loop.Int(quads))), m.Simplify(scalar.Mod(at, loop.Int(quads)))
	for j := range quad {
		along := m.Simplify(scalar.Add(scalar.Mul(q, loop.Int(quad)), loop.Int(j)))
		var x scalar.Expr
		if m.alongK {
			n[j], k[j] = across, along
			kAt, inside := inQuad(q, j, terms)
			x = m.factor(1, scalar.Min(across, loop.Int(columns-1)), kAt, scalar.And(inside, scalar.Lt(across, loop.Int(columns))))
		} else {
			n[j], k[j] = along, across
			nAt, inside := inQuad(q, j, columns)
			x = m.factor(1, nAt, scalar.Min(across, loop.Int(terms-1)), scalar.And(inside, scalar.Lt(across, loop.Int(terms))))
		}
		elements = append(elements, x)
	}
	return n, k, elements
}

// copyColumns stores the columns' operand in shared memory, zero outside of it.
func (m *stationaryEmitter) copyColumns() {
	row, total := loop.RowElements(m.p.operand), m.p.columns*m.p.length/quad
	m.Loop("quad", m.thread, loop.Int(total), loop.WarpGroup, total-1, func(at scalar.Expr) {
		n, k, elements := m.columnQuad(at)
		m.vectors.Load(elements)
		for j, x := range elements {
			n, k := fragmentColumn(n[j]), fragmentK(m.p.operand, k[j])
			panel := scalar.Mul(scalar.FloorDiv(k, loop.Int(row)), loop.Int(row*m.p.columns))
			to := scalar.Add(panel, loop.TileOffset(m.p.operand, 0, n, scalar.Mod(k, loop.Int(row))))
			m.Put(m.slot, m.Simplify(to), x)
		}
	})
	m.Add(&loop.ProxyFence{}, &loop.Barrier{})
}

// fragmentColumn returns the column of the multiply-adds that computes column n: thread c of a row has columns
// 8h + 2c + b of each span, which are the elements 2h + b of its quad.
func fragmentColumn(n scalar.Expr) scalar.Expr { return inSpan(n, 8, 2, 1) }

// fragmentK is fragmentColumn for contracted positions of operands of type d. In f32 a thread has one element at a time:
// position 8a + 4h + c of a span, of two multiply-adds, is element 2a + h of its quad.
func fragmentK(d ir.DType, k scalar.Expr) scalar.Expr {
	if d == ir.F32 {
		return inSpan(k, 8, 1, 4)
	}
	return fragmentColumn(k)
}

// inSpan moves a position in its span: element 2h + b of the quad of thread c to high·h + middle·c + low·b.
func inSpan(at scalar.Expr, high, middle, low int) scalar.Expr {
	digit := func(unit, base, to int) scalar.Expr {
		return scalar.Mul(scalar.Mod(scalar.FloorDiv(at, loop.Int(unit)), loop.Int(base)), loop.Int(to))
	}
	span := scalar.Mul(scalar.FloorDiv(at, loop.Int(quadSpan)), loop.Int(quadSpan))
	return scalar.Add(scalar.Add(span, digit(2, 2, high)), scalar.Add(digit(quad, quadSpan/quad, middle), digit(1, 2, low)))
}

// multiplyTile computes a row tile of the workgroup.
func (m *stationaryEmitter) multiplyTile(tile scalar.Expr) {
	name := m.Name("at")
	m.Add(&loop.Let{Name: name, Value: m.Simplify(scalar.Add(scalar.Mul(scalar.Add(m.first, tile), loop.Int(loop.MmaRows)), m.row))})
	row := m.rowVar(name)
	m.loadRows(row)
	s := &loop.Mma{Shape: m.atom}
	panel := loop.RowElements(m.p.operand)
	for k := 0; k < m.p.length; k += m.atom.K() {
		first := k / m.atom.K() * 4
		s.Terms = append(s.Terms, loop.MmaTerm{
			Sums: m.sums, First: k == 0, LeftRegisters: m.left[first : first+4],
			B: loop.Tile{Array: m.slot, At: loop.Int(k / panel * panel * m.p.columns), K: k % panel},
		})
	}
	m.Add(s, &loop.MmaWait{Names: slices.Concat(m.sums, m.left)})
	for _, q := range m.resultQuads(row) {
		m.When(q.inside, func() { m.vectors.Store(q.stores, quad, q.exists) })
	}
}

// rowVar returns the variable of a row, of the tiles of all workgroups.
func (m *stationaryEmitter) rowVar(name string) scalar.Expr {
	return scalar.NewVar(name, ir.I32, 0, int64(emit.CeilDiv(m.p.tiles, m.p.each)*m.p.each*loop.MmaRows-1))
}

// halves are the rows of a thread in a tile, relative to its origin.
var halves = [2]int{0, 8}

// rowQuads returns the elements of the rows' operand that a thread multiplies, quad by quad: for each span those of two rows.
func (m *stationaryEmitter) rowQuads(row scalar.Expr) (elements []scalar.Expr) {
	rows := fusion.Product(m.p.c.M)
	for span := range m.p.length / quadSpan {
		for _, half := range halves {
			free := scalar.Min(scalar.Add(row, loop.Int(half)), loop.Int(rows-1))
			for j := range quad {
				k, inside := inQuad(scalar.Add(m.column, loop.Int(4*span)), j, fusion.Product(m.p.c.K))
				elements = append(elements, m.factor(0, free, k, inside))
			}
		}
	}
	return elements
}

// loadRows loads the fragments of the rows' operand.
func (m *stationaryEmitter) loadRows(row scalar.Expr) {
	quads := m.rowQuads(row)
	m.vectors.Load(quads)
	m.Add(m.NameAll(quads)...)
	for i, name := range m.left {
		half, h := i%2, i/2%2
		if m.p.operand == ir.F32 {
			span, a := i/8, i/4%2
			m.Add(&loop.Assign{Name: name, Value: quads[(2*span+half)*quad+2*a+h]})
			continue
		}
		at := (2*(i/4)+half)*quad + 2*h
		m.Add(&loop.Pack{Name: name, Type: m.p.operand, Low: quads[at], High: quads[at+1]})
	}
}

// resultQuad is the stores of four neighbouring results, if the first exists, and which of the others do.
type resultQuad struct {
	stores []emit.PendingStore
	inside scalar.Expr
	exists []scalar.Expr
}

// resultQuads returns the results of a thread in a tile.
func (m *stationaryEmitter) resultQuads(row scalar.Expr) (out []resultQuad) {
	c := m.p.c
	rows, columns := fusion.Product(c.M), fusion.Product(c.N)
	for span := range m.p.columns / quadSpan {
		for i, half := range halves {
			x, q := scalar.Add(row, loop.Int(half)), scalar.Add(m.column, loop.Int(4*span))
			free := m.Unflatten(m.Simplify(scalar.Min(x, loop.Int(rows-1))), c.M)
			r := resultQuad{inside: scalar.And(scalar.And(m.valid, scalar.Lt(x, loop.Int(rows))), c.Exists(m.out.batch, free))}
			each := make([][]emit.PendingStore, quad)
			for j := range each {
				y, exists := inQuad(q, j, columns)
				at := m.out.point(free, m.Unflatten(m.Simplify(y), c.N))
				each[j] = m.out.stores(scalar.FreeVar(m.sums[8*span+4*(j/2)+2*i+j%2], ir.F32), at)
				r.exists = append(r.exists, m.Simplify(exists))
			}
			if columns%quad == 0 {
				r.inside, r.exists = scalar.And(r.inside, r.exists[0]), emit.Always(quad)
			}
			r.inside, r.stores = m.Simplify(r.inside), byTensor(each)
			out = append(out, r)
		}
	}
	return out
}
