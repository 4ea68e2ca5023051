package attention

import (
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// subgroup has tables in tiles of plain registers, as [plain] has, and multiplies in
// subgroup fragments of f32. The layout of a fragment over its lanes is unspecified, so products
// reach the threads through workgroup memory, a tile of all rows and one vector of columns per
// thread at a time; weights go the other way. Threads of a row exchange values by shuffles.
// Every step ends with a barrier, after which workgroup memory is free. Not measured on a device
// that has fragments.
type subgroup struct {
	*kernel
	plain                         *plain
	left, right                   int         // workgroup arrays of the operands; left also holds a tile
	fragmentRows, fragmentColumns int         // rows and columns of fragments of each subgroup
	ty, tx                        scalar.Expr // the subgroup's row and column
}

// Limits of attention by subgroups.
const (
	subgroups     = plainThreads / matmul.FragmentLanes
	maxStageDepth = 32                     // maximum contracted positions in workgroup memory
	stagePad      = matmul.FragmentPad / 4 // padding of a row of contracted positions, in elements
	// stageLength is the elements of each of the two workgroup arrays: half a stage of the
	// columns of the widest tile.
	stageLength = 4 * plainAcross * (maxStageDepth/2 + stagePad)
)

// hasFragments reports whether the target has the fragments that attention multiplies in.
func hasFragments(caps loop.Caps) bool {
	return caps.Fragments && caps.Shuffles && caps.Subgroup == [2]int{matmul.FragmentLanes, matmul.FragmentLanes} &&
		caps.SharedBytes >= 2*4*stageLength
}

func newSubgroup(a *kernel) *subgroup {
	p := newPlain(a)
	p.t.groups = 1
	p.l.cols, p.l.subgroup = p.t.cols(), matmul.FragmentLanes
	p.l.columnAt = func(c int) int { return c/4*p.t.groupColumns() + c%4*p.t.across } // neighbours side by side
	rows, columns := p.t.rows()/loop.FragmentSize, p.t.groupColumns()/loop.FragmentSize
	groupRows := min(subgroups, rows)
	return &subgroup{kernel: a, plain: p, fragmentRows: rows / groupRows, fragmentColumns: columns * groupRows / subgroups}
}

func (a *subgroup) begin() {
	a.plain.threadCoords()
	a.plain.l.column = a.plain.x
	a.left = a.kernel.e.Shared("left", ir.F32, 1, stageLength)
	a.right = a.kernel.e.Shared("right", ir.F32, 1, stageLength)
	across := a.plain.t.groupColumns() / loop.FragmentSize / a.fragmentColumns
	number := loop.SubgroupIndex(subgroups)
	a.ty = a.e.Let("ty", scalar.FloorDiv(number, loop.Int(across)))
	a.tx = a.e.Let("tx", scalar.Mod(number, loop.Int(across)))
}

func (a *subgroup) layout() *layout { return a.plain.layout() }

func (a *subgroup) columnStat(c, which int) scalar.Expr { return a.plain.columnStat(c, which) }

func (a *subgroup) blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func()) {
	a.plain.blocks(lo, hi, whole, body)
}

// product defers the work to ready, which shortens the live ranges of registers.
func (a *subgroup) product(f fragment, rows, cols matrix) (ready func()) {
	return func() {
		depth := min(a.stageDepth(), emit.CeilDiv(rows.length, loop.FragmentSize)*loop.FragmentSize)
		t := a.zeroTile()
		a.repeat("chunk", emit.CeilDiv(rows.length, depth), func(chunk scalar.Expr) {
			from := a.e.Let("from", scalar.Mul(chunk, loop.Int(depth)))
			a.stageDepths(a.left, rows, &a.rows, from, depth)
			a.stageDepths(a.right, cols, &a.cols, from, depth)
			a.e.Barrier()
			a.multiplyTile(t, factor{a.left, loop.Int(0), depth + stagePad, false}, factor{a.right, loop.Int(0), depth + stagePad, true}, depth)
			a.e.Barrier()
		})
		a.addTile(f, 0, t)
	}
}

// accumulate goes through the accumulators by one vector of columns per thread.
func (a *subgroup) accumulate(sums, weights fragment, m matrix) (begin func()) {
	stride := a.stride()
	columns := min(a.plain.t.groupColumns(), largestPower(stageLength/stride))
	for v := range a.plain.t.vectors(m.length) {
		t := a.zeroTile()
		a.storeTile(weights)
		a.repeat("round", a.plain.t.groupColumns()/columns, func(round scalar.Expr) {
			from := a.e.Let("from", scalar.Mul(round, loop.Int(columns)))
			a.stagePositions(m, from, v, columns)
			a.e.Barrier()
			a.multiplyTile(t, factor{a.left, from, stride, false}, factor{a.right, loop.Int(0), stride, false}, columns)
			a.e.Barrier()
		})
		a.addTile(sums, 4*v, t)
	}
	return func() {}
}

// stageDepth returns the number of contracted positions of scores in workgroup memory.
func (a *subgroup) stageDepth() int {
	depth := maxStageDepth
	for max(a.plain.t.rows(), a.plain.t.groupColumns())*(depth+stagePad) > stageLength {
		depth /= 2
	}
	return depth
}

// stride returns the elements from one row of a tile to the next. The padding avoids bank
// conflicts between the threads of a subgroup, which are four rows apart.
func (a *subgroup) stride() int { return a.plain.t.groupColumns() + a.plain.t.across/4 }

// zeroTile declares a subgroup's fragments of a tile, by rows.
func (a *subgroup) zeroTile() []string {
	names := make([]string, a.fragmentRows*a.fragmentColumns)
	for i := range names {
		names[i] = a.e.Name("tile")
		a.e.Add(&loop.FragmentZero{Name: names[i]})
	}
	return names
}

// factor is a matrix in workgroup memory, stored by rows, or by columns if transposed.
type factor struct {
	array      int
	at         scalar.Expr
	stride     int
	transposed bool
}

// load names a fragment of the left or the right operand at a row and a column.
func (a *subgroup) load(f factor, row, column scalar.Expr, right bool) string {
	if f.transposed {
		row, column = column, row
	}
	name := a.e.Name("part")
	at := sum(f.at, scalar.Mul(row, loop.Int(f.stride)), column)
	a.kernel.e.Add(&loop.FragmentLoad{Name: name, Array: f.array, At: a.e.Simplify(at), Stride: f.stride, Transposed: f.transposed, Right: right})
	return name
}

// multiplyTile accumulates in a tile the product of two factors with depth contracted positions.
func (a *subgroup) multiplyTile(tile []string, left, right factor, depth int) {
	const size = loop.FragmentSize
	a.repeat("k", depth/size, func(k scalar.Expr) {
		k = scalar.Mul(k, loop.Int(size))
		rows, columns := make([]string, a.fragmentRows), make([]string, a.fragmentColumns)
		for i := range rows {
			rows[i] = a.load(left, sum(scalar.Mul(a.ty, loop.Int(a.fragmentRows*size)), loop.Int(i*size)), k, false)
		}
		for j := range columns {
			columns[j] = a.load(right, k, sum(scalar.Mul(a.tx, loop.Int(a.fragmentColumns*size)), loop.Int(j*size)), true)
		}
		for i, row := range rows {
			for j, column := range columns {
				a.e.Add(&loop.FragmentMulAdd{Sum: tile[i*a.fragmentColumns+j], A: row, B: column})
			}
		}
	})
}

// addTile adds a tile to a vector of columns of a table, starting at column c.
func (a *subgroup) addTile(f fragment, c int, tile []string) {
	const size = loop.FragmentSize
	stride := a.stride()
	for i, name := range tile {
		row := sum(scalar.Mul(a.ty, loop.Int(a.fragmentRows*size)), loop.Int(i/a.fragmentColumns*size))
		column := sum(scalar.Mul(a.tx, loop.Int(a.fragmentColumns*size)), loop.Int(i%a.fragmentColumns*size))
		at := a.e.Simplify(scalar.Add(scalar.Mul(row, loop.Int(stride)), column))
		a.e.Add(&loop.FragmentStore{Array: a.left, At: at, Stride: stride, Name: name})
	}
	a.e.Barrier()
	a.eachTileElement(func(i, j int, at scalar.Expr) {
		a.registers.assign(f, i, c+j, scalar.Add(f.at(i, c+j), scalar.LoadAt(a.left, ir.F32, at)))
	})
	a.e.Barrier()
}

// storeTile stores a table, which is one tile, into workgroup memory.
func (a *subgroup) storeTile(f fragment) {
	a.eachTileElement(func(i, j int, at scalar.Expr) { a.e.Put(a.left, at, f.at(i, j)) })
}

// eachTileElement calls visit for each of a thread's elements of a tile, with its offset in
// workgroup memory.
func (a *subgroup) eachTileElement(visit func(i, j int, at scalar.Expr)) {
	first := a.e.Let("own", sum(scalar.Mul(a.plain.y, loop.Int(4*a.stride())), a.plain.x))
	for i := range 4 {
		for j := range 4 {
			visit(i, j, a.e.Simplify(scalar.Add(first, loop.Int(i*a.stride()+j*a.plain.t.across))))
		}
	}
}

// stageDepths copies contracted positions of a block's rows into workgroup memory, with zeros
// out of range.
func (a *subgroup) stageDepths(slot int, m matrix, s *side, from scalar.Expr, depth int) {
	a.stageElements(slot, s.block, depth, depth+stagePad, func(row, k scalar.Expr) scalar.Expr {
		at, ok := withinBounds(scalar.Add(from, k), m.length, m.length%depth == 0)
		pos, exists := s.clamp(scalar.Add(s.first, row))
		return orZero(scalar.And(ok, exists), a.plain.element(m.operand, pos, at))
	})
}

// stagePositions copies rows of an operand that belong to columns of the current block, starting
// at from, into workgroup memory: the elements of one vector of the threads.
func (a *subgroup) stagePositions(m matrix, from scalar.Expr, vector, rows int) {
	a.stageElements(a.right, rows, a.plain.t.groupColumns(), a.stride(), func(row, column scalar.Expr) scalar.Expr {
		at, ok := withinBounds(scalar.Add(loop.Int(vector*a.plain.t.groupColumns()), column), m.length, m.length%a.plain.t.groupColumns() == 0)
		pos, exists := a.cols.clamp(sum(a.cols.first, from, row))
		return orZero(scalar.And(ok, exists), a.plain.element(m.operand, pos, at))
	})
}

// stageElements has the threads store a matrix into workgroup memory, coalesced.
func (a *subgroup) stageElements(slot, rows, columns, stride int, element func(row, column scalar.Expr) scalar.Expr) {
	a.repeat("round", emit.CeilDiv(rows*columns, plainThreads), func(round scalar.Expr) {
		id := a.e.Simplify(scalar.Add(a.plain.lane, scalar.Mul(round, loop.Int(plainThreads))))
		at, ok := withinBounds(id, rows*columns, rows*columns%plainThreads == 0)
		a.e.When(ok, func() {
			row, column := scalar.FloorDiv(at, loop.Int(columns)), scalar.Mod(at, loop.Int(columns))
			a.e.Put(slot, scalar.Add(scalar.Mul(row, loop.Int(stride)), column), element(row, column))
		})
	})
}

// fold reduces over the threads of a row, which are neighbours, by shuffles.
func (a *subgroup) fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr) {
	for i, value := range values {
		mine := a.e.Var("mine", value)
		for across := 1; across < a.plain.t.across; across *= 2 {
			other := a.e.Name("other")
			a.e.Add(&loop.Shuffle{Name: other, Value: mine, Xor: across})
			a.e.Set(mine, combine(mine, scalar.FreeVar(other, ir.F32)))
		}
		a.e.Add(&loop.Assign{Name: into[i], Value: combine(scalar.FreeVar(into[i], ir.F32), mine)})
	}
}
