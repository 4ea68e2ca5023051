package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// tiles writes a kernel with one workgroup for each matrix, or part of one. Elements are
// kept in registers, distributed cyclically over a grid of threads: the thread at (i, j)
// has those whose row is i modulo the grid's rows and whose column is j modulo its
// columns, which balances the load to the end of an elimination.
type tiles struct {
	*loop.Writer
	kernel *loop.Kernel
	memory []ir.Memory // the storage arrays
	d      ir.DType    // of the elements
	// down and across are the sizes of the grid, i and j the thread's position.
	down, across int
	i, j         scalar.Expr
	// matrix and part are the workgroup's. For surplus workgroups exists is false and
	// matrix and part are the last ones.
	matrix, part, exists scalar.Expr
}

// tileRegisters is the number of 32-bit registers a thread may keep elements in.
const tileRegisters = 64

// gridFor returns the thread grid of a factorisation by columns: a wide one, since all
// threads read the partial results of each grid row, with at most maxHeld rows in a thread.
func gridFor(rows, cols, maxHeld int) (down, across int) {
	threads := 256
	if rows*cols <= 32*32 {
		threads = 64
	}
	across = 1
	for across < cols && across < threads/8 {
		across *= 2
	}
	for across > 1 && rows > maxHeld*threads/across {
		across /= 2
	}
	return threads / across, across
}

// fitsRegisters reports whether a matrix fits in the registers of its grid. Targets without the
// kernels factor such a matrix column by column.
func fitsRegisters(d ir.DType, rows, cols, maxHeld int) bool {
	down, across := gridFor(rows, cols, maxHeld)
	return (rows+down-1)/down*((cols+across-1)/across)*d.Size() <= 4*tileRegisters
}

// newTiles begins a kernel for matrices with the given number of parts each.
func newTiles(name string, d ir.DType, down, across, matrices, parts int, caps loop.Caps) *tiles {
	t := &tiles{Writer: loop.NewWriter(), d: d, down: down, across: across}
	count := matrices * parts
	groupsDown := (count + caps.Groups - 1) / caps.Groups
	groupsAcross := (count + groupsDown - 1) / groupsDown
	t.kernel = &loop.Kernel{Name: name, Workgroup: [3]int{down * across, 1, 1}, Groups: [3]int{groupsAcross, groupsDown, 1}}
	number := t.Let("number", scalar.Add(times(loop.GroupID(1, groupsDown), groupsAcross), loop.GroupID(0, groupsAcross)))
	t.exists = t.Let("exists", scalar.Lt(number, loop.Int(count)))
	number = t.Let("near", scalar.Min(number, loop.Int(count-1)))
	t.matrix, t.part = t.Let("matrix", over(number, parts)), t.Let("part", rest(number, parts))
	thread := loop.LocalID(0, down*across)
	t.i, t.j = t.Let("i", over(thread, across)), t.Let("j", rest(thread, across))
	return t
}

// heldMatrix is a matrix in the registers of a thread grid: thread i, j has every down-th
// row from i on and every across-th column from j on.
type heldMatrix struct {
	w                *tiles
	rows, cols       int
	ownRows, ownCols []scalar.Expr   // the thread's
	own              [][]scalar.Expr // its elements, once they are loaded
}

// holdMatrix begins a kernel whose threads hold the matrices of a node's operand 0, with
// at most maxHeld rows in a thread if there are enough columns. It returns nil if a matrix
// does not fit in registers, or there is none.
func holdMatrix(name string, n *ir.Node, maxHeld int, caps loop.Caps) *heldMatrix {
	rows, cols := matrixDims(n.Input(0))
	d := n.Input(0).DType()
	elements := elementsOf(n.Input(0).Type())
	if elements == 0 || !fitsRegisters(d, rows, cols, maxHeld) {
		return nil
	}
	down, across := gridFor(rows, cols, maxHeld)
	m := &heldMatrix{w: newTiles(name, d, down, across, elements/(rows*cols), 1, caps), rows: rows, cols: cols}
	m.ownRows, m.ownCols = m.w.spread(m.w.i, down, rows), m.w.spread(m.w.j, across, cols)
	return m
}

// eachStep iterates along the diagonal: over the columns at each index of ownCols, the
// tile, by their number k in it.
func (m *heldMatrix) eachStep(step func(tile int, k scalar.Expr)) {
	for tile := range m.ownCols {
		if steps := min(m.w.across, min(m.rows, m.cols)-tile*m.w.across); steps > 0 {
			m.w.Times("k", steps, func(k scalar.Expr) { step(tile, k) })
		}
	}
}

// array adds an array and returns its number.
func (t *tiles) array(name string, d ir.DType, length int, space loop.Space, access loop.Access) int {
	t.kernel.Arrays = append(t.kernel.Arrays, loop.Array{Name: t.Name(name), DType: d, Width: 1, Len: length, Space: space, Access: access})
	return len(t.kernel.Arrays) - 1
}

func (t *tiles) shared(name string, d ir.DType, length int) int {
	return t.array(name, d, length, loop.Shared, loop.Read)
}

// operand and result add the array of an operand or a result of a node.
func (t *tiles) operand(n *ir.Node, i int) int {
	t.memory = append(t.memory, ir.Memory{Space: ir.OperandMemory, Number: i})
	return t.array("x", t.d, elementsOf(n.Input(i).Type()), loop.Storage, loop.Read)
}

func (t *tiles) result(n *ir.Node, i int) int {
	t.memory = append(t.memory, ir.Memory{Space: ir.ResultMemory, Number: i})
	return t.array("y", n.Types()[i].DType, elementsOf(n.Types()[i]), loop.Storage, loop.ReadWrite)
}

// elementsOf counts the elements of a type of constant shape.
func elementsOf(t ir.Type) int {
	n, _ := t.Shape.Size().Const()
	return n
}

// algorithm returns the kernel as the algorithm of a node.
func (t *tiles) algorithm() *ir.Algorithm {
	t.kernel.Body = *t.Body
	return &ir.Algorithm{Launches: []ir.KernelLaunch{{Kernel: t.kernel, Arrays: t.memory}}}
}

// spread returns the rows or columns, of n, of a thread at position at.
func (t *tiles) spread(at scalar.Expr, by, n int) []scalar.Expr {
	out := make([]scalar.Expr, (n+by-1)/by)
	for k := range out {
		out[k] = t.Let("own", plus(at, k*by))
	}
	return out
}

// combined combines n values as a balanced tree, for short dependency chains.
func (t *tiles) combined(n int, value func(i int) scalar.Expr, combine func(x, y scalar.Expr) scalar.Expr) scalar.Expr {
	level := make([]scalar.Expr, n)
	for i := range level {
		level[i] = t.Let("value", value(i))
	}
	for len(level) > 1 {
		half := (len(level) + 1) / 2
		for i := range len(level) / 2 {
			level[i] = t.Let("value", combine(level[i], level[half+i]))
		}
		level = level[:half]
	}
	return level[0]
}

// place returns the offset of an element of the workgroup's matrix of rows × cols
// elements, clamped to the matrix.
func (t *tiles) place(row, col scalar.Expr, rows, cols int) scalar.Expr {
	inside := func(x scalar.Expr, n int) scalar.Expr { return scalar.Min(x, loop.Int(n-1)) }
	return scalar.Add(times(scalar.Add(times(t.matrix, rows), inside(row, rows)), cols), inside(col, cols))
}

// inMatrix reports whether an element lies in a matrix of rows × cols elements.
func inMatrix(row, col scalar.Expr, rows, cols int) scalar.Expr {
	return scalar.And(scalar.Lt(row, loop.Int(rows)), scalar.Lt(col, loop.Int(cols)))
}

// number is an element.
func (t *tiles) number(x float64) scalar.Expr { return scalar.Const(t.d, x) }

// get is an element of an array.
func (t *tiles) get(array int, at scalar.Expr) scalar.Expr { return scalar.LoadAt(array, t.d, at) }

// float is an f32 of an array.
func float(array int, at scalar.Expr) scalar.Expr { return scalar.LoadAt(array, ir.F32, at) }

// plus, times, over and rest are x + n, x·n, the floor of x/n, and x − n·⌊x/n⌋.
func plus(x scalar.Expr, n int) scalar.Expr  { return scalar.Add(x, loop.Int(n)) }
func times(x scalar.Expr, n int) scalar.Expr { return scalar.Mul(x, loop.Int(n)) }
func over(x scalar.Expr, n int) scalar.Expr  { return scalar.FloorDiv(x, loop.Int(n)) }
func rest(x scalar.Expr, n int) scalar.Expr  { return scalar.Mod(x, loop.Int(n)) }
