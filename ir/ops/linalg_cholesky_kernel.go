package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// choleskyMost is the largest matrix that a workgroup factors: its lower triangle
// lies in the registers of 256 threads, 36 elements in each.
const choleskyMost = 128

// choleskyKernels factors each matrix in one workgroup, column by column. A thread
// keeps the elements whose row and column are its own modulo the side of the square
// that the threads make, so that all of them have something left to do to the end. A
// column goes round by way of workgroup memory, of which two take turns: one barrier
// a column is enough.
func choleskyKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	size, _ := matrixDims(n.Input(0))
	side := 16
	if size <= 32 {
		side = 8
	}
	if size > choleskyMost || side*side > caps.Invocations {
		return nil
	}
	d := n.Input(0).DType()
	elements, _ := n.Input(0).Shape().Size().Const()
	a := &ir.Algorithm{}
	if elements == 0 {
		return a
	}
	tiles := (size + side - 1) / side
	k := &loop.Kernel{
		Name: "factor", Workgroup: [3]int{side * side, 1, 1},
		Arrays: []loop.Array{
			{Name: "x", DType: d, Width: 1, Len: elements},
			{Name: "l", DType: d, Width: 1, Len: elements, Access: loop.ReadWrite},
			{Name: "columns", DType: d, Width: 1, Len: 2 * side * tiles, Space: loop.Shared},
		},
	}
	f := &choleskyWriter{Writer: loop.NewWriter(), d: d, size: size, side: side, tiles: tiles}
	k.Groups, f.matrix, f.exists = f.workgroups(elements/(size*size), caps)
	f.write()
	k.Body = *f.Body
	a.Launches = []ir.KernelLaunch{{Kernel: k, Arrays: []ir.Memory{{Space: ir.OperandMemory}, {Space: ir.ResultMemory}}}}
	return a
}

// The arrays of the kernel.
const (
	choleskyX = iota
	choleskyL
	choleskyColumns
)

// choleskyWriter writes the kernel that factors a matrix of size rows.
type choleskyWriter struct {
	*loop.Writer
	d                 ir.DType
	size, side, tiles int
	matrix, exists    scalar.Expr
	rows, cols        []scalar.Expr   // of the thread's elements
	own               [][]scalar.Expr // the elements, those of the lower tiles
}

// workgroups lays out a workgroup for each matrix, and returns the number of one's
// own and whether there is such a matrix.
func (f *choleskyWriter) workgroups(matrices int, caps loop.Caps) (grid [3]int, matrix, exists scalar.Expr) {
	down := (matrices + caps.Groups - 1) / caps.Groups
	across := (matrices + down - 1) / down
	number := f.Let("matrix", scalar.Add(scalar.Mul(loop.GroupID(1, down), loop.Int(across)), loop.GroupID(0, across)))
	return [3]int{across, down, 1}, f.Let("near", scalar.Min(number, loop.Int(matrices-1))), f.Let("exists", scalar.Lt(number, loop.Int(matrices)))
}

func (f *choleskyWriter) write() {
	thread := loop.LocalID(0, f.side*f.side)
	down, across := f.Let("down", scalar.FloorDiv(thread, loop.Int(f.side))), f.Let("across", scalar.Mod(thread, loop.Int(f.side)))
	for t := range f.tiles {
		f.rows = append(f.rows, f.Let("row", scalar.Add(down, loop.Int(t*f.side))))
		f.cols = append(f.cols, f.Let("col", scalar.Add(across, loop.Int(t*f.side))))
	}
	f.load()
	good := f.Var("good", scalar.ConstBool(true))
	for t := range f.tiles {
		most := min(f.side, f.size-t*f.side)
		f.Times("k", most, func(k scalar.Expr) { f.eliminate(t, k, across, good) })
	}
	f.store(good)
}

// at is the place of an element of the matrix.
func (f *choleskyWriter) at(row, col scalar.Expr) scalar.Expr {
	inside := func(x scalar.Expr) scalar.Expr { return scalar.Min(x, loop.Int(f.size-1)) }
	return scalar.Add(scalar.Mul(scalar.Add(scalar.Mul(f.matrix, loop.Int(f.size)), inside(row)), loop.Int(f.size)), inside(col))
}

// load takes the symmetric part; what lies outside is that of an identity matrix.
func (f *choleskyWriter) load() {
	half := scalar.Const(f.d, 0.5)
	for i, row := range f.rows {
		var own []scalar.Expr
		for _, col := range f.cols[:i+1] {
			x, turned := scalar.LoadAt(choleskyX, f.d, f.at(row, col)), scalar.LoadAt(choleskyX, f.d, f.at(col, row))
			inside := scalar.And(scalar.Lt(row, loop.Int(f.size)), scalar.Lt(col, loop.Int(f.size)))
			outside := scalar.Select(scalar.Eq(row, col), scalar.Const(f.d, 1), scalar.Const(f.d, 0))
			own = append(own, f.Var("own", scalar.Select(inside, scalar.Mul(scalar.Add(x, turned), half), outside)))
		}
		f.own = append(f.own, own)
	}
}

// eliminate makes column k of a tile that of the factor, and takes it off all
// columns after it.
func (f *choleskyWriter) eliminate(tile int, k, across, good scalar.Expr) {
	number := f.Let("number", scalar.Add(k, loop.Int(tile*f.side)))
	half := f.Let("half", scalar.Mul(scalar.And(k, loop.Int(1)), loop.Int(f.side*f.tiles)))
	mine := f.Let("mine", scalar.Eq(across, k))
	f.When(mine, func() {
		for i := tile; i < f.tiles; i++ {
			f.Store(choleskyColumns, scalar.Add(half, f.rows[i]), f.own[i][tile])
		}
	})
	f.Barrier()
	column := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(choleskyColumns, f.d, scalar.Add(half, at)) }
	pivot := f.Let("pivot", column(number))
	f.Set(good, scalar.And(good, scalar.Gt(pivot, scalar.Const(f.d, 0))))
	root := f.Let("root", scalar.Sqrt(pivot))
	inverse := f.Let("inverse", scalar.Div(scalar.Const(f.d, 1), root))
	below := func(at scalar.Expr) scalar.Expr {
		return f.Let("below", scalar.Select(scalar.Gt(at, number), scalar.Mul(column(at), inverse), scalar.Const(f.d, 0)))
	}
	down, beside := make([]scalar.Expr, f.tiles), make([]scalar.Expr, f.tiles)
	for i := tile; i < f.tiles; i++ {
		down[i], beside[i] = below(f.rows[i]), below(f.cols[i])
	}
	for i := tile; i < f.tiles; i++ {
		for j := tile; j <= i; j++ {
			f.Set(f.own[i][j], scalar.Sub(f.own[i][j], scalar.Mul(down[i], beside[j])))
		}
	}
	f.When(mine, func() {
		for i := tile; i < f.tiles; i++ {
			diagonal := scalar.Select(scalar.Eq(f.rows[i], number), root, f.own[i][tile])
			f.Set(f.own[i][tile], scalar.Select(scalar.Gt(f.rows[i], number), down[i], diagonal))
		}
	})
}

// store writes the factor, zeros above its diagonal, or NaN throughout.
func (f *choleskyWriter) store(good scalar.Expr) {
	for i, row := range f.rows {
		for j, col := range f.cols {
			value := scalar.Expr(scalar.Const(f.d, 0))
			if j <= i {
				value = scalar.Select(scalar.Ge(row, col), f.own[i][j], value)
			}
			inside := scalar.And(f.exists, scalar.And(scalar.Lt(row, loop.Int(f.size)), scalar.Lt(col, loop.Int(f.size))))
			f.When(inside, func() {
				f.Store(choleskyL, f.at(row, col), scalar.Select(good, value, scalar.Const(f.d, math.NaN())))
			})
		}
	}
}
