package serial

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A contraction for one thread. Both operands are packed into workgroup memory, in panels of as
// many rows or columns as fit registers, so that the operands' prologues run once per element
// and the innermost loop reads contiguously.
const (
	panelRows    = 6 // with panelColumns: 12 accumulator vectors of 16 registers
	panelColumns = 8
	// packedDepth is the approximate depth packed at once: a panel of rows and one of columns,
	// 18 KiB, fit a first-level cache of 32 KiB.
	packedDepth = 320
	// packedBytes bounds the packed columns, half of a second-level cache of 1 MiB; sumBytes
	// bounds the sums of partial depths: if they exceed it, the third-level cache does not hold
	// them, and the whole depth is packed at once.
	packedBytes = 512 << 10
	sumBytes    = 8 << 20
)

// blockedContraction is a contraction with its blocking.
type blockedContraction struct {
	*serial
	x         *fusion.ContractionCode
	rows      []fusion.ElementStore
	m, n      int
	outer     []scalar.Expr // reduced coordinates with loops of their own
	inner     []scalar.Expr // reduced coordinates collapsed into one loop
	depth     int           // reduced points packed at once
	blocks    int           // number of such blocks
	columnsAt []scalar.Expr // the column's coordinates with divisions of their own
	along     []scalar.Expr // those collapsed into one, as the pixels of a line
	area      area          // of the result, per workgroup
	a, b, c   int           // slots of a panel of rows, panels of columns, sums
	errorSlot int           // slot of the sums' rounding errors
}

// contract writes a contraction, or a reduction where it is thin.
func (s *serial) contract(g *fusion.Group) {
	code := g.CodeOf(s.form)
	x := code.Stages[0].Contraction
	s.stored = x.Stored
	for i, v := range code.Outer {
		if v.Op == scalar.OpVar {
			bindOuter(code.Rows, v, x.Outer[i])
		}
	}
	p := &blockedContraction{serial: s, x: x, rows: code.Rows, m: fusion.Product(x.M), n: fusion.Product(x.N)}
	k := fusion.Product(x.K)
	if x.Sum.Type != ir.F32 || min(p.m, p.n) <= emit.ThinSide || k*fusion.Product(x.Batch) == 0 {
		code = thin(x, code.Rows)
		s.reduce(code, s.loadsAdjacent(code), k, productBlock)
		return
	}
	p.chooseColumns()
	s.split(x.KAt, []scalar.Expr{x.A, x.B}, func(outer, inner []scalar.Expr) { p.outer, p.inner = outer, inner })
	p.chooseBlocks()
	p.write()
}

// bindOuter substitutes the M, N or batch coordinate for a coordinate of the result in stores.
func bindOuter(rows []fusion.ElementStore, v, space scalar.Expr) {
	for i := range rows {
		bound := map[string]scalar.Expr{v.Name: space}
		rows[i].Offset, rows[i].Value = scalar.SubstituteVars(rows[i].Offset, bound), scalar.SubstituteVars(rows[i].Value, bound)
	}
}

// thin returns a contraction as a reduction in the coordinates of its spaces, as those of the result may
// need divisions to find a group or a phase. They are in the order in which results lie in memory, the
// innermost long enough for vectors.
func thin(x *fusion.ContractionCode, rows []fusion.ElementStore) *fusion.Code {
	outer := vars(slices.Concat(x.BatchAt, x.MAt, x.NAt))
	for i := range outer {
		for j := i; j > 0 && strideOf(rows, outer[j-1]) < strideOf(rows, outer[j]); j-- {
			outer[j-1], outer[j] = outer[j], outer[j-1]
		}
	}
	for i := len(outer) - 1; i >= 0; i-- {
		if v := outer[i]; SizeOf(outer[i:i+1]) >= vectorLanes {
			outer = append(slices.Delete(outer, i, i+1), v)
			break
		}
	}
	return &fusion.Code{Outer: outer, Inner: vars(x.KAt), Rows: rows, Stages: []fusion.Stage{{Reductions: []fusion.Reduction{{
		Accumulators: []ir.Accumulator{{DType: x.Sum.Type, Init: scalar.Const(x.Sum.Type, 0)}},
		Elements:     []scalar.Expr{scalar.Mul(x.A, x.B)},
		Combine:      func(a, b []scalar.Expr) []scalar.Expr { return []scalar.Expr{scalar.Add(a[0], b[0])} },
		Running:      []scalar.Expr{x.Sum},
	}}}}}
}

// strideOf returns how far results that differ by one along a coordinate lie apart in memory: a large
// number if that is not constant.
func strideOf(rows []fusion.ElementStore, v scalar.Expr) int64 {
	if len(rows) > 0 {
		if step, known := StepOf(rows[0].Offset, v.Name); known {
			return step
		}
	}
	return math.MaxInt64
}

// chooseColumns makes the free space of that operand the columns along which results lie closer in
// memory: columns are packed and stored by vectors.
func (p *blockedContraction) chooseColumns() {
	stride := func(space ir.Index) int64 {
		if at := vars(space); len(at) > 0 {
			return strideOf(p.rows, at[len(at)-1])
		}
		return math.MaxInt64
	}
	if stride(p.x.MAt) < stride(p.x.NAt) {
		x := p.x
		x.M, x.N, x.MAt, x.NAt, x.A, x.B = x.N, x.M, x.NAt, x.MAt, x.B, x.A
		p.m, p.n = p.n, p.m
	}
	p.split(p.x.NAt, append(storedBy(p.rows), p.x.B), func(outer, flat []scalar.Expr) { p.columnsAt, p.along = outer, flat })
}

func (p *blockedContraction) write() {
	p.loops(vars(p.x.BatchAt), func() {
		p.outermost(func(divided bool) {
			if !divided {
				p.part(interval{loop.Int(0), loop.Int(p.m)}, interval{loop.Int(0), loop.Int(p.n)})
				return
			}
			across := emit.CeilDiv(p.n, p.area.n)
			group := p.e.LinearGroup(emit.CeilDiv(p.m, p.area.m) * across)
			row, column := p.e.Simplify(scalar.FloorDiv(group, loop.Int(across))), p.e.Simplify(scalar.Rem(group, loop.Int(across)))
			p.part(p.portion(row, p.m, p.area.m), p.portion(column, p.n, p.area.n))
		})
	})
}

// part writes some rows and columns of the result.
func (p *blockedContraction) part(rows, columns interval) {
	p.count("n", iterations{from: columns.from, to: columns.to, step: p.area.columns, last: p.n - 1}, func(n scalar.Expr) {
		p.count("block", upTo(p.blocks), func(block scalar.Expr) {
			p.packColumns(n, block)
			p.count("m", iterations{from: rows.from, to: rows.to, step: panelRows, last: p.m - 1}, func(m scalar.Expr) {
				p.packRows(m, block)
				p.panels(m, n, block)
				p.e.When(scalar.Eq(block, loop.Int(p.blocks-1)), func() { p.finish(m, n) })
			})
		})
	})
}

// vars returns the variables among coordinates.
func vars(at ir.Index) []scalar.Expr {
	var out []scalar.Expr
	for _, x := range at {
		if x.Op == scalar.OpVar {
			out = append(out, x)
		}
	}
	return out
}

// The relative cost of packing an element of each operand: rows are stored one element at a
// time.
const (
	packRow    = 3
	packColumn = 1
)

// chooseBlocks picks the block sizes.
func (p *blockedContraction) chooseBlocks() {
	steps, each := SizeOf(p.outer), SizeOf(p.inner)
	if len(p.outer) == 0 {
		steps, each = each, 1
	}
	p.blocks = evenBlocks(steps, max(1, packedDepth/each))
	if p.blocks > 1 && p.sumSize()*p.m*panelColumns > sumBytes {
		p.blocks = 1
	}
	p.depth = emit.CeilDiv(steps, p.blocks) * each
	columns, shares := max(1, packedBytes/(4*p.depth)), p.shares
	if p.blocks > 1 {
		columns = min(columns, sumBytes/(p.sumSize()*p.sumRows()))
	}
	if len(vars(p.x.BatchAt)) > 0 {
		shares = 1 // the batch is divided instead
	}
	p.area = areaOf(p.m, p.n, shares, columns)
	p.a = p.e.Shared("rows", ir.F32, 1, panelRows*p.depth)
	p.b = p.e.Shared("columns", ir.F32, 1, p.area.columns*p.depth)
	p.c = p.e.Shared("sums", ir.F32, 1, p.sumRows()*p.area.columns)
	if p.compensates() {
		p.errorSlot = p.e.Shared("rests", ir.F32, 1, p.sumRows()*p.area.columns)
	}
}

// compensates reports whether a sum has enough blocks for its rounding error to matter.
func (p *blockedContraction) compensates() bool { return p.blocks > fusion.SumBlockLen/2 }

// sumSize is the size of a sum in bytes.
func (p *blockedContraction) sumSize() int {
	if p.compensates() {
		return 8
	}
	return 4
}

// evenBlocks returns the number of blocks of at most maxSteps steps. It prefers equal blocks if there are at
// most 1.5 times as many, because indices in uneven ones must be clamped.
func evenBlocks(steps, maxSteps int) int {
	n := emit.CeilDiv(steps, maxSteps)
	for even := n; even <= n+n/2; even++ {
		if steps%even == 0 {
			return even
		}
	}
	return n
}

// roundUp rounds n up to a multiple of step.
func roundUp(n, step int) int { return emit.CeilDiv(n, step) * step }

// sumRows is the number of rows of stored sums: a panel's, or all where the depth is blocked.
func (p *blockedContraction) sumRows() int {
	if p.blocks == 1 {
		return panelRows
	}
	return emit.CeilDiv(p.m, panelRows) * panelRows
}

// area is the rows and columns of the result per workgroup, and the columns that it packs at
// once.
type area struct{ m, n, columns int }

// areaOf divides an m × n result among workgroups so that packing costs least, as each packs
// its own rows and columns, at most maxColumns columns at once.
func areaOf(m, n, shares, maxColumns int) area {
	best, lowest := area{}, 0
	for across := 1; across <= shares; across++ {
		if shares%across != 0 {
			continue
		}
		x := area{m: min(m, roundUp(emit.CeilDiv(m, shares/across), panelRows)), n: emit.CeilDiv(n, across)}
		x.columns = roundUp(emit.CeilDiv(x.n, emit.CeilDiv(x.n, maxColumns)), panelColumns)
		x.n = min(n, roundUp(x.n, x.columns))
		cost := packRow*m*emit.CeilDiv(n, x.n) + packColumn*n*emit.CeilDiv(m, x.m)
		if lowest == 0 || cost < lowest {
			best, lowest = x, cost
		}
	}
	return best
}

// steps writes a loop over the depth of a block and binds the reduced coordinates; f is given
// the index in the block.
func (p *blockedContraction) steps(block scalar.Expr, f func(k scalar.Expr)) {
	if len(p.outer) == 0 {
		n := SizeOf(p.inner)
		p.blockSteps(block, n, func(k, at scalar.Expr) {
			p.bind(p.inner, p.coordinates(at, p.inner))
			f(k)
		})
		return
	}
	each := SizeOf(p.inner)
	p.blockSteps(block, SizeOf(p.outer), func(step, at scalar.Expr) {
		p.bind(p.outer, p.coordinates(at, p.outer))
		p.count("k", upTo(each), func(k scalar.Expr) {
			p.bind(p.inner, p.coordinates(k, p.inner))
			f(p.e.Simplify(scalar.Add(scalar.Mul(step, loop.Int(each)), k)))
		})
	})
}

// blockSteps writes a loop over a block of n steps; f is given the index in the block and in
// the whole.
func (p *blockedContraction) blockSteps(block scalar.Expr, n int, f func(k, at scalar.Expr)) {
	size := emit.CeilDiv(n, p.blocks)
	first := p.e.Let("first", scalar.Mul(block, loop.Int(size)))
	end := p.e.Let("size", scalar.Min(loop.Int(size), scalar.Sub(loop.Int(n), first)))
	p.count("k", below(end, size), func(k scalar.Expr) {
		at := scalar.Add(first, k)
		if p.blocks*size > n {
			at = scalar.Min(at, loop.Int(n-1)) // the range of first is too wide
		}
		f(k, p.e.Simplify(at))
	})
}

// depthOf returns the depth of a block.
func (p *blockedContraction) depthOf(block scalar.Expr) scalar.Expr {
	k := fusion.Product(p.x.K)
	rest := scalar.Sub(loop.Int(k), scalar.Mul(block, loop.Int(p.depth)))
	return p.e.Let("depth", scalar.Min(loop.Int(p.depth), rest))
}

// packColumns packs the columns from n on, panel by panel, the columns of one depth step
// contiguous.
func (p *blockedContraction) packColumns(n, block scalar.Expr) {
	pack := func(panel scalar.Expr, whole bool) {
		p.alongPanel(scalar.Add(n, scalar.Mul(panel, loop.Int(panelColumns))), whole, func(bind func(l scalar.Expr)) {
			p.steps(block, func(k scalar.Expr) {
				p.lanes(panelColumns, func(l scalar.Expr) {
					bind(l)
					to := scalar.Mul(scalar.Add(scalar.Mul(panel, loop.Int(p.depth)), k), loop.Int(panelColumns))
					p.e.Put(p.b, scalar.Add(to, l), p.expr(p.x.B))
				})
			})
		})
	}
	p.panelsFrom(n, func(panel scalar.Expr) { pack(panel, true) }, func(panel scalar.Expr) { pack(panel, false) })
}

// panelsFrom writes a loop over the whole panels from column n on, and what the last one needs if it
// may have fewer columns.
func (p *blockedContraction) panelsFrom(n scalar.Expr, each, last func(panel scalar.Expr)) {
	whole := p.e.Let("whole", scalar.FloorDiv(scalar.Min(loop.Int(p.area.columns), scalar.Sub(loop.Int(p.n), n)), loop.Int(panelColumns)))
	maxPanels := p.area.columns / panelColumns
	p.count("panel", below(whole, maxPanels), each)
	if p.n%panelColumns != 0 {
		p.e.When(scalar.Lt(whole, loop.Int(maxPanels)), func() { last(whole) })
	}
}

// alongPanel writes f for the panel of columns that begins at a column. f is given a function that
// binds the coordinates of a lane: consecutive ones without divisions where the panel lies in one
// line of the innermost axes.
func (p *blockedContraction) alongPanel(column scalar.Expr, whole bool, f func(bind func(l scalar.Expr))) {
	last, line := p.n-1, SizeOf(p.along)
	if whole {
		last -= panelColumns - 1
	}
	first := p.e.Bounded("column", column, last+1)
	divided := func() {
		f(func(l scalar.Expr) {
			at := scalar.Add(first, l)
			if !whole {
				at = scalar.Min(at, loop.Int(p.n-1))
			}
			p.bind(p.x.NAt, p.coordinates(p.e.Simplify(at), p.x.NAt))
		})
	}
	inLine := func() {
		p.bind(p.columnsAt, p.e.LetAll("at", p.coordinates(scalar.FloorDiv(first, loop.Int(line)), p.columnsAt)))
		start := p.e.Bounded("start", scalar.Mod(first, loop.Int(line)), line-panelColumns+1)
		f(func(l scalar.Expr) { p.bind(p.along, p.coordinates(scalar.Add(start, l), p.along)) })
	}
	switch {
	case line == p.n || line < panelColumns || !whole:
		divided()
	case line%panelColumns == 0:
		inLine()
	default:
		p.e.Choose(scalar.Le(scalar.Mod(first, loop.Int(line)), loop.Int(line-panelColumns)), inLine, divided)
	}
}

// packRows packs a panel of rows from m on.
func (p *blockedContraction) packRows(m, block scalar.Expr) {
	rows := make([]ir.Index, panelRows)
	for i := range rows {
		at := scalar.Add(m, loop.Int(i))
		if p.m%panelRows != 0 {
			at = scalar.Min(at, loop.Int(p.m-1))
		}
		rows[i] = p.coordinates(p.e.Let("row", at), p.x.MAt)
		for axis, x := range rows[i] {
			rows[i][axis] = p.e.Let("at", x)
		}
	}
	p.steps(block, func(k scalar.Expr) {
		for i, at := range rows {
			p.bind(p.x.MAt, at)
			p.e.Put(p.a, scalar.Add(scalar.Mul(k, loop.Int(panelRows)), loop.Int(i)), p.expr(p.x.A))
		}
	})
}

// sumAt is the index of the sum of a row of the panel from m on.
func (p *blockedContraction) sumAt(m scalar.Expr, row, column scalar.Expr) scalar.Expr {
	if p.blocks > 1 {
		row = scalar.Add(m, row)
	}
	return scalar.Add(scalar.Mul(row, loop.Int(p.area.columns)), column)
}

// panels multiplies the packed rows with each panel of columns.
func (p *blockedContraction) panels(m, n, block scalar.Expr) {
	panels := scalar.FloorDiv(scalar.Add(scalar.Min(loop.Int(p.area.columns), scalar.Sub(loop.Int(p.n), n)), loop.Int(panelColumns-1)), loop.Int(panelColumns))
	maxPanels := p.area.columns / panelColumns
	depth := p.depthOf(block)
	p.count("panel", below(p.e.Let("panels", panels), maxPanels), func(panel scalar.Expr) {
		acc := p.e.Shared(p.e.Name("acc"), ir.F32, 1, panelRows*panelColumns)
		row := p.e.Shared(p.e.Name("row"), ir.F32, 1, panelColumns)
		at := func(i int, l scalar.Expr) scalar.Expr { return scalar.Add(l, loop.Int(i*panelColumns)) }
		for i := range panelRows {
			p.lanes(panelColumns, func(l scalar.Expr) { p.e.Put(acc, at(i, l), scalar.ConstF(ir.F32, 0)) })
		}
		first := p.e.Let("first", scalar.Mul(panel, loop.Int(p.depth*panelColumns)))
		p.count("k", below(depth, p.depth), func(k scalar.Expr) {
			from := scalar.Add(first, scalar.Mul(k, loop.Int(panelColumns)))
			p.lanes(panelColumns, func(l scalar.Expr) {
				p.e.Put(row, l, scalar.LoadAt(p.b, ir.F32, p.e.Simplify(scalar.Add(from, l))))
			})
			for i := range panelRows {
				a := scalar.LoadAt(p.a, ir.F32, p.e.Simplify(scalar.Add(scalar.Mul(k, loop.Int(panelRows)), loop.Int(i))))
				p.lanes(panelColumns, func(l scalar.Expr) {
					b, sum := scalar.LoadAt(row, ir.F32, l), scalar.LoadAt(acc, ir.F32, at(i, l))
					p.e.Put(acc, at(i, l), scalar.Add(sum, scalar.Mul(a, b)))
				})
			}
		})
		p.keep(m, panel, block, func(i int, l scalar.Expr) scalar.Expr { return scalar.LoadAt(acc, ir.F32, at(i, l)) })
	})
}

// keep stores the sums of a panel, or adds them to those of earlier blocks.
func (p *blockedContraction) keep(m, panel, block scalar.Expr, sum func(i int, l scalar.Expr) scalar.Expr) {
	each := func(store func(at, x scalar.Expr)) {
		for i := range panelRows {
			p.lanes(panelColumns, func(l scalar.Expr) {
				store(p.e.Simplify(p.sumAt(m, loop.Int(i), scalar.Add(scalar.Mul(panel, loop.Int(panelColumns)), l))), sum(i, l))
			})
		}
	}
	first := func() {
		each(func(at, x scalar.Expr) {
			p.e.Put(p.c, at, x)
			if p.compensates() {
				p.e.Put(p.errorSlot, at, scalar.Const(ir.F32, 0))
			}
		})
	}
	if p.blocks == 1 {
		first()
		return
	}
	p.e.Choose(scalar.Eq(block, loop.Int(0)), first, func() { each(p.addBlock) })
}

// addBlock adds the sum of a block.
func (p *blockedContraction) addBlock(at, x scalar.Expr) {
	before := scalar.LoadAt(p.c, ir.F32, at)
	if !p.compensates() {
		p.e.Put(p.c, at, scalar.Add(before, x))
		return
	}
	next, left := scalar.TwoSum(before, x)
	values := []scalar.Expr{next, scalar.Add(scalar.LoadAt(p.errorSlot, ir.F32, at), left)}
	p.e.Add(p.e.NameAll(values)...)
	p.e.Put(p.c, at, values[0])
	p.e.Put(p.errorSlot, at, values[1])
}

// finish computes and stores the epilogue of a panel of rows.
func (p *blockedContraction) finish(m, n scalar.Expr) {
	rows := p.e.Let("rows", scalar.Min(loop.Int(panelRows), scalar.Sub(loop.Int(p.m), m)))
	columns := p.e.Let("columns", scalar.Min(loop.Int(p.area.columns), scalar.Sub(loop.Int(p.n), n)))
	p.count("i", below(rows, panelRows), func(i scalar.Expr) {
		row := p.coordinates(p.e.Let("row", scalar.Add(m, i)), p.x.MAt)
		p.bind(p.x.MAt, row)
		store := func(j scalar.Expr) {
			at := p.e.Simplify(p.sumAt(m, i, j))
			sum := scalar.LoadAt(p.c, ir.F32, at)
			if p.compensates() {
				sum = scalar.Compensated(sum, scalar.LoadAt(p.errorSlot, ir.F32, at))
			}
			p.bound[p.x.Sum.Name] = sum
			p.storeAll(p.rows)
		}
		from := func(first, end scalar.Expr) {
			r := iterations{from: first, to: end, step: 1, last: p.area.columns - 1, lanes: true}
			p.count("j", r, func(j scalar.Expr) {
				p.bind(p.x.NAt, p.coordinates(p.e.Bounded("column", scalar.Add(n, j), p.n), p.x.NAt))
				store(j)
			})
		}
		if SizeOf(p.along) == p.n {
			from(loop.Int(0), columns)
			return
		}
		p.panelsFrom(n, func(panel scalar.Expr) {
			first := scalar.Mul(panel, loop.Int(panelColumns))
			p.alongPanel(scalar.Add(n, first), true, func(bind func(l scalar.Expr)) {
				p.lanes(panelColumns, func(l scalar.Expr) {
					bind(l)
					store(p.e.Simplify(scalar.Add(first, l)))
				})
			})
		}, func(panel scalar.Expr) { from(scalar.Mul(panel, loop.Int(panelColumns)), columns) })
	})
}
