//go:build !js

package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/ir/scalar"
)

// libraryLimits are the matrices that cuSOLVER factors faster than the op's own kernels, which factor all of a batch
// at once where the library factors one after the other (an H200: native/bench/results.md, "Factorisations of one large
// matrix"): those of rows or more, at most batch of them, or one for every rowsEach rows if that is more.
var libraryLimits = map[ir.Op]struct{ rows, batch, rowsEach int }{
	OpCholesky:    {rows: maxCholesky + 1, batch: 1, rowsEach: math.MaxInt},
	OpLU:          {rows: 192, batch: 1, rowsEach: 512},
	OpHouseholder: {rows: 1280, batch: 2, rowsEach: math.MaxInt},
	OpEigh:        {rows: 128, batch: 4, rowsEach: math.MaxInt},
}

// libraryFactor returns the calls of a library that compute a factorisation, and the kernels that store the operand
// in the library's layout and the results in that of the op; nil where the op's own kernels or its body are faster. All
// that the library writes is scratch memory, so that it may run where a condition does not hold.
func libraryFactor(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	rows, cols := matrixDims(n.Input(0))
	count := elementsOf(n.Input(0).Type())
	limit, ok := libraryLimits[n.Op()]
	if !caps.Factors || !ok || rows < limit.rows || cols < matrixBlock || count > math.MaxInt32 {
		return nil
	}
	l := &libraryWriter{n: n, d: n.Input(0).DType(), batch: count / (rows * cols), rows: rows, cols: cols}
	if l.batch > max(limit.batch, rows/limit.rowsEach) {
		return nil
	}
	switch n.Op() {
	case OpCholesky:
		l.cholesky()
	case OpLU:
		l.lu()
	case OpHouseholder:
		l.householder()
	case OpEigh:
		l.eigh()
	}
	return &l.algorithm
}

// libraryWriter writes the launches of a factorisation.
type libraryWriter struct {
	n                 *ir.Node
	d                 ir.DType
	batch, rows, cols int
	algorithm         ir.Algorithm
	factors, codes    operandOf // of the library: the matrices, column by column, and 0 for each that is factored
}

// operandOf is memory with its type.
type operandOf struct {
	ir.Memory
	ir.Type
}

func (l *libraryWriter) operand() operandOf {
	return operandOf{ir.Memory{Space: ir.OperandMemory}, l.n.Input(0).Type()}
}

func (l *libraryWriter) result(i int) operandOf {
	return operandOf{ir.Memory{Space: ir.ResultMemory, Number: i}, l.n.Types()[i]}
}

func (l *libraryWriter) scratch(d ir.DType, dims ...int) operandOf {
	t := ir.Type{DType: d, Shape: ir.Dims(dims...)}
	l.algorithm.Scratch = append(l.algorithm.Scratch, t)
	return operandOf{ir.Memory{Space: ir.ScratchMemory, Number: len(l.algorithm.Scratch) - 1}, t}
}

// call adds the library's call on the matrices in factors, with its other results.
func (l *libraryWriter) call(op routine.FactorOp, others ...operandOf) {
	f := routine.Factor{Op: op, DType: l.d, Batch: l.batch, Rows: l.rows, Cols: l.cols}
	f.Workspace = factorWorkspace(f)
	l.codes = l.scratch(ir.I32, l.batch)
	launch := ir.KernelLaunch{Routine: f}
	for _, m := range append(append([]operandOf{l.factors}, others...), l.codes, l.scratch(ir.U8, f.Workspace)) {
		launch.Arrays = append(launch.Arrays, m.Memory)
	}
	l.algorithm.Launches = append(l.algorithm.Launches, launch)
}

// factorWorkspace returns an upper bound of the workspace that cuSOLVER 12.0 asks for, for matrices of 128 to
// 32,768 rows and columns, square ones and those four times as high or wide.
func factorWorkspace(f routine.Factor) int {
	rows, cols, words := f.Rows, f.Cols, f.DType.Size()/4
	switch f.Op {
	case routine.LUFactor:
		return 64<<10 + 64*(rows+cols) + rows*cols/192
	case routine.HouseholderFactor:
		return words * (3<<20 + 4352*cols)
	case routine.EigenFactor:
		return words * (1<<20 + 600*rows + 16*rows*rows)
	}
	return 64<<10 + rows*cols/128
}

// cholesky factors the symmetric part, whose order by columns is that by rows. The last element of a factor is not
// positive, or not a number, where one of its pivots is.
func (l *libraryWriter) cholesky() {
	l.factors = l.scratch(l.d, l.batch, l.rows, l.rows)
	l.symmetric()
	l.call(routine.CholeskyFactor)
	l.transposed("factor", l.factors, l.result(0), func(k *libraryKernel, row, col, x scalar.Expr) scalar.Expr {
		size := l.rows * l.rows
		last := k.get(k.from, plus(times(k.matrix, size), size-1))
		good := scalar.And(k.succeeded(l.codes), scalar.Gt(last, k.number(0)))
		return scalar.Select(good, scalar.Select(scalar.Ge(row, col), x, k.number(0)), k.number(math.NaN()))
	})
}

// byColumns factors the operand, stored by columns, into the first result. It returns what the library stores for each
// element of the diagonal.
func (l *libraryWriter) byColumns(op routine.FactorOp, d ir.DType) operandOf {
	l.factors = l.scratch(l.d, l.batch, l.cols, l.rows)
	l.transposed("columns", l.operand(), l.factors, nil)
	others := l.scratch(d, l.batch, min(l.rows, l.cols))
	l.call(op, others)
	l.transposed("rows", l.factors, l.result(0), nil)
	return others
}

// lu factors the matrices, and makes the permutation of the pivots.
func (l *libraryWriter) lu() { l.permutation(l.byColumns(routine.LUFactor, ir.I64)) }

func (l *libraryWriter) householder() {
	tau := l.byColumns(routine.HouseholderFactor, l.d)
	l.copied(tau, l.result(1), func(_ *libraryKernel, x scalar.Expr) scalar.Expr { return x })
}

// eigh factors the symmetric part. Eigenvectors, which the library stores one after the other, get the sign of
// [vectorSignsDoc].
func (l *libraryWriter) eigh() {
	l.factors = l.scratch(l.d, l.batch, l.rows, l.rows)
	l.symmetric()
	values := l.scratch(l.d, l.batch, l.rows)
	l.call(routine.EigenFactor, values)
	signs := l.signs()
	l.copied(values, l.result(0), func(k *libraryKernel, x scalar.Expr) scalar.Expr {
		return scalar.Select(k.succeeded(l.codes), x, k.number(math.NaN()))
	})
	l.transposed("vectors", l.factors, l.result(1), func(k *libraryKernel, row, col, x scalar.Expr) scalar.Expr {
		return scalar.Mul(x, k.get(k.add(signs, loop.Read), scalar.Add(times(k.matrix, l.rows), col)))
	})
}

// libraryKernel writes a kernel around a library's call.
type libraryKernel struct {
	*tiles
	arrays   map[ir.Memory]int
	from, to int // arrays
}

// kernel begins a kernel that reads and writes memory; groups are the workgroups for a matrix.
func (l *libraryWriter) kernel(name string, from, to operandOf, workgroup [2]int, groups [2]int) *libraryKernel {
	t := &tiles{Writer: loop.NewWriter(), d: l.d, kernel: &loop.Kernel{
		Name: name, Workgroup: [3]int{workgroup[0], workgroup[1], 1}, Groups: [3]int{groups[0], groups[1], l.batch},
	}}
	k := &libraryKernel{tiles: t, arrays: map[ir.Memory]int{}}
	k.matrix = loop.GroupID(2, l.batch)
	k.from, k.to = k.add(from, loop.Read), k.add(to, loop.ReadWrite)
	return k
}

// add adds an array in memory, unless the kernel has it, and returns its number.
func (k *libraryKernel) add(m operandOf, access loop.Access) int {
	if known, ok := k.arrays[m.Memory]; ok {
		return known
	}
	k.arrays[m.Memory] = len(k.kernel.Arrays)
	k.memory = append(k.memory, m.Memory)
	return k.array("m", m.DType, elementsOf(m.Type), loop.Storage, access)
}

// succeeded reports whether the matrix of the workgroup was factored.
func (k *libraryKernel) succeeded(codes operandOf) scalar.Expr {
	return scalar.Eq(scalar.LoadAt(k.add(codes, loop.Read), ir.I32, k.matrix), loop.Int(0))
}

func (l *libraryWriter) finish(k *libraryKernel) {
	l.algorithm.Launches = append(l.algorithm.Launches, k.algorithm().Launches...)
}

// transposeTile is the size of a tile of a transpose. A thread has every eighth row of it. One more column in
// workgroup memory avoids bank conflicts.
const transposeTile, transposeThreads = 32, 8

// transposed adds a kernel that stores value(row, col, x) for the elements x of the transposes of matrices, or x where
// value is nil.
func (l *libraryWriter) transposed(name string, from, to operandOf, value func(k *libraryKernel, row, col, x scalar.Expr) scalar.Expr) {
	rows, _ := to.Shape[to.Shape.Rank()-2].Const()
	cols, _ := to.Shape[to.Shape.Rank()-1].Const()
	across, down := (cols+transposeTile-1)/transposeTile, (rows+transposeTile-1)/transposeTile
	k := l.kernel(name, from, to, [2]int{transposeTile, transposeThreads}, [2]int{across, down})
	tile := k.shared("tile", l.d, transposeTile*(transposeTile+1))
	x, y := loop.LocalID(0, transposeTile), loop.LocalID(1, transposeThreads)
	firstCol, firstRow := times(loop.GroupID(0, across), transposeTile), times(loop.GroupID(1, down), transposeTile)
	start := times(k.matrix, rows*cols)
	each := func(f func(line scalar.Expr)) {
		for i := 0; i < transposeTile; i += transposeThreads {
			f(k.Let("line", plus(y, i)))
		}
	}
	each(func(line scalar.Expr) {
		col, row := k.Let("col", scalar.Add(firstCol, line)), k.Let("row", scalar.Add(firstRow, x))
		k.When(inMatrix(row, col, rows, cols), func() {
			k.Store(tile, scalar.Add(times(line, transposeTile+1), x), k.get(k.from, scalar.Add(start, scalar.Add(times(col, rows), row))))
		})
	})
	k.Barrier()
	if value == nil {
		value = func(_ *libraryKernel, _, _, x scalar.Expr) scalar.Expr { return x }
	}
	each(func(line scalar.Expr) {
		col, row := k.Let("col", scalar.Add(firstCol, x)), k.Let("row", scalar.Add(firstRow, line))
		k.When(inMatrix(row, col, rows, cols), func() {
			transposed := k.get(tile, scalar.Add(times(x, transposeTile+1), line))
			k.Store(k.to, scalar.Add(start, scalar.Add(times(row, cols), col)), value(k, row, col, transposed))
		})
	})
	l.finish(k)
}

// symmetric adds a kernel that stores the symmetric part of the operand in factors.
func (l *libraryWriter) symmetric() {
	l.transposed("symmetric", l.operand(), l.factors, func(k *libraryKernel, row, col, x scalar.Expr) scalar.Expr {
		at := scalar.Add(times(scalar.Add(times(k.matrix, l.rows), row), l.rows), col)
		return scalar.Mul(scalar.Add(k.get(k.from, at), x), k.number(0.5))
	})
}

// lineThreads is the number of threads of a workgroup with a line of elements.
const lineThreads = 256

// line begins a kernel with a thread for each of n elements of a matrix, and returns the thread's number.
func (l *libraryWriter) line(name string, from, to operandOf, n int) (k *libraryKernel, i scalar.Expr) {
	groups := (n + lineThreads - 1) / lineThreads
	k = l.kernel(name, from, to, [2]int{lineThreads, 1}, [2]int{groups, 1})
	return k, k.Let("i", loop.GlobalID(0, lineThreads, groups))
}

// copied adds a kernel that stores value(x) for the diagonal elements x of matrices.
func (l *libraryWriter) copied(from, to operandOf, value func(k *libraryKernel, x scalar.Expr) scalar.Expr) {
	n := min(l.rows, l.cols)
	k, i := l.line("copy", from, to, n)
	k.When(scalar.Lt(i, loop.Int(n)), func() {
		at := scalar.Add(times(k.matrix, n), i)
		k.Store(k.to, at, value(k, k.get(k.from, at)))
	})
	l.finish(k)
}

// permutation adds a kernel whose threads each follow a row through all swaps. The library counts pivots from 1.
func (l *libraryWriter) permutation(pivots operandOf) {
	n := min(l.rows, l.cols)
	k, i := l.line("permute", pivots, l.result(1), l.rows)
	order := k.add(l.result(2), loop.ReadWrite)
	pivot := func(j scalar.Expr) scalar.Expr {
		return plus(scalar.Convert(scalar.LoadAt(k.from, ir.I64, scalar.Add(times(k.matrix, n), j)), ir.I32), -1)
	}
	k.When(scalar.Lt(i, loop.Int(n)), func() { k.Store(k.to, scalar.Add(times(k.matrix, n), i), pivot(i)) })
	k.When(scalar.Lt(i, loop.Int(l.rows)), func() {
		at := k.Var("at", i)
		k.Times("j", n, func(j scalar.Expr) {
			p := k.Let("p", pivot(j))
			k.Set(at, scalar.Select(scalar.Eq(at, j), p, scalar.Select(scalar.Eq(at, p), j, at)))
		})
		k.Store(order, scalar.Add(times(k.matrix, l.rows), at), i)
	})
	l.finish(k)
}

// signs adds a kernel that sums up each eigenvector by a workgroup, and returns the factors of 1 or -1, or NaN where
// the library failed.
func (l *libraryWriter) signs() operandOf {
	signs := l.scratch(l.d, l.batch, l.rows)
	k := l.kernel("signs", l.factors, signs, [2]int{lineThreads, 1}, [2]int{l.rows, 1})
	parts := k.shared("parts", l.d, lineThreads)
	thread := loop.LocalID(0, lineThreads)
	vector := k.Let("vector", scalar.Add(times(k.matrix, l.rows), loop.GroupID(0, l.rows)))
	sum := k.Var("sum", k.number(0))
	k.Times("part", (l.rows+lineThreads-1)/lineThreads, func(part scalar.Expr) {
		i := k.Let("i", scalar.Add(times(part, lineThreads), thread))
		k.When(scalar.Lt(i, loop.Int(l.rows)), func() {
			weight := scalar.Add(scalar.Convert(i, l.d), k.number(math.Sqrt2))
			k.Set(sum, scalar.Add(sum, scalar.Div(k.get(k.from, scalar.Add(times(vector, l.rows), i)), weight)))
		})
	})
	k.Store(parts, thread, sum)
	for half := lineThreads / 2; half > 0; half /= 2 {
		k.Barrier()
		k.When(scalar.Lt(thread, loop.Int(half)), func() {
			k.Store(parts, thread, scalar.Add(k.get(parts, thread), k.get(parts, plus(thread, half))))
		})
	}
	k.When(scalar.Eq(thread, loop.Int(0)), func() {
		sign := scalar.Select(scalar.Lt(k.get(parts, loop.Int(0)), k.number(0)), k.number(-1), k.number(1))
		k.Store(k.to, vector, scalar.Select(k.succeeded(l.codes), sign, k.number(math.NaN())))
	})
	l.finish(k)
	return signs
}
