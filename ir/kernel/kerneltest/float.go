package kerneltest

import (
	"math"
	"strconv"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// scaleTail is y = x·scalar0 + 0.5 with a guard for the last workgroup.
func scaleTail() *Case {
	const n, threads = 1000, 64
	groups := (n + threads - 1) / threads
	x := floats(1, n)
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "scale_tail",
			Arrays:    []loop.Array{input("x", dtype.F32, n), output("y", dtype.F32, n)},
			Scalars:   []dtype.DType{dtype.F32},
			Workgroup: [3]int{threads, 1, 1},
			Groups:    [3]int{groups, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, threads, groups)),
				when(s.Lt(iv("i"), i32(n)),
					store(1, iv("i"), mad(s.LoadAt(0, dtype.F32, iv("i")), loop.RunScalar(0, dtype.F32), f32(0.5)))),
			},
		},
		Arrays:  [][]float64{x, zeros(n)},
		Scalars: []s.Value{{F: 0.25}},
		Want:    [][]float64{nil, mapped(x, func(v float64) float64 { return v*0.25 + 0.5 })},
	}
}

// reluVec4 handles four elements a thread.
func reluVec4() *Case {
	const n, threads = 1024, 64
	x := floats(2, n)
	names := []string{"a", "b", "c", "d"}
	var relu []expr
	for _, name := range names {
		relu = append(relu, s.Select(s.Gt(fv(name), f32(0)), fv(name), f32(0)))
	}
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "relu_vec4",
			Arrays:    []loop.Array{vec4(input("x", dtype.F32, n)), vec4(output("y", dtype.F32, n))},
			Workgroup: [3]int{threads, 1, 1},
			Groups:    [3]int{n / 4 / threads, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, threads, n/4/threads)),
				&loop.LoadVec{Names: names, Array: 0, At: iv("i")},
				&loop.StoreVec{Array: 1, At: iv("i"), Values: relu},
			},
		},
		Arrays: [][]float64{x, zeros(n)},
		Want:   [][]float64{nil, mapped(x, func(v float64) float64 { return max(v, 0) })},
	}
}

// treeSum returns the statements that leave in element 0 of a shared array
// what op makes of its first n elements, n a power of two and the number of
// threads.
func treeSum(array, n int, op func(a, b expr) expr) block {
	li := loop.LocalIndex(n)
	var out block
	for half := n / 2; half > 0; half /= 2 {
		mine, other := s.LoadAt(array, dtype.F32, li), s.LoadAt(array, dtype.F32, add(li, i32(half)))
		out = append(out, barrier(), when(s.Lt(li, i32(half)), store(array, li, op(mine, other))))
	}
	return append(out, barrier())
}

// sumTree adds up the rows of a matrix in shared memory.
func sumTree() *Case {
	const rows, cols, threads = 5, 300, 128
	x := floats(3, rows*cols)
	want := make([]float64, rows)
	for i, v := range x {
		want[i/cols] += v
	}
	li := loop.LocalIndex(threads)
	row := loop.GroupID(0, rows)
	at := mad(row, i32(cols), iv("j"))
	body := block{
		newVar("sum", f32(0)),
		&loop.For{Var: "j", Start: li, End: i32(cols), Step: i32(threads), Body: block{
			assign("sum", add(fv("sum"), s.LoadAt(0, dtype.F32, at))),
		}},
		store(2, li, fv("sum")),
	}
	body = append(body, treeSum(2, threads, add)...)
	body = append(body, when(s.Eq(li, i32(0)), store(1, row, s.LoadAt(2, dtype.F32, i32(0)))))
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "sum_tree",
			Arrays:    []loop.Array{input("x", dtype.F32, rows*cols), output("y", dtype.F32, rows), shared("partial", dtype.F32, threads)},
			Workgroup: [3]int{threads, 1, 1},
			Groups:    [3]int{rows, 1, 1},
			Body:      body,
		},
		Arrays:    [][]float64{x, zeros(rows)},
		Want:      [][]float64{nil, want},
		Tolerance: 1e-5,
	}
}

// softmaxRow normalises one row a workgroup: maximum, sum, quotient.
func softmaxRow() *Case {
	const rows, cols, threads = 3, 70, 32
	x := floats(4, rows*cols)
	want := make([]float64, rows*cols)
	for r := range rows {
		top, sum := math.Inf(-1), 0.0
		for _, v := range x[r*cols : (r+1)*cols] {
			top = max(top, v)
		}
		for _, v := range x[r*cols : (r+1)*cols] {
			sum += math.Exp(v - top)
		}
		for j := range cols {
			want[r*cols+j] = math.Exp(x[r*cols+j]-top) / sum
		}
	}
	li := loop.LocalIndex(threads)
	at := mad(loop.GroupID(0, rows), i32(cols), iv("j"))
	load := s.LoadAt(0, dtype.F32, at)
	each := func(body ...loop.Stmt) loop.Stmt {
		return &loop.For{Var: "j", Start: li, End: i32(cols), Step: i32(threads), Body: body}
	}
	body := block{
		newVar("top", f32(-math.MaxFloat32)),
		each(assign("top", s.Max(fv("top"), load))),
		store(2, li, fv("top")),
	}
	body = append(body, treeSum(2, threads, s.Max)...)
	body = append(body,
		let("row_top", s.LoadAt(2, dtype.F32, i32(0))),
		newVar("sum", f32(0)),
		each(assign("sum", add(fv("sum"), s.Exp(s.Sub(load, fv("row_top")))))),
		barrier(),
		store(2, li, fv("sum")))
	body = append(body, treeSum(2, threads, add)...)
	body = append(body,
		let("scale", s.Recip(s.LoadAt(2, dtype.F32, i32(0)))),
		each(store(1, at, mul(s.Exp(s.Sub(load, fv("row_top"))), fv("scale")))))
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "softmax_row",
			Arrays:    []loop.Array{input("x", dtype.F32, rows*cols), output("y", dtype.F32, rows*cols), shared("partial", dtype.F32, threads)},
			Workgroup: [3]int{threads, 1, 1},
			Groups:    [3]int{rows, 1, 1},
			Body:      body,
		},
		Arrays:    [][]float64{x, zeros(rows * cols)},
		Want:      [][]float64{nil, want},
		Tolerance: 1e-6,
	}
}

// matmul is c = a·b with tiles of bm × bn × 16 in shared memory, of which each
// thread computes tm rows by 4 columns in registers. n is a multiple of bn and
// k of 16; the last rows of tiles are guarded.
func matmul(name string, m, n, k, bm, bn, tm int) *Case {
	const bk = 16
	tx, ty := bn/4, bm/tm
	groups := [3]int{n / bn, (m + bm - 1) / bm, 1}
	const a, b, c, tileA, tileB, acc = 0, 1, 2, 3, 4, 5
	li := mad(loop.LocalID(1, ty), i32(tx), loop.LocalID(0, tx))
	firstRow := mul(loop.GroupID(1, groups[1]), i32(bm))
	firstCol := mul(loop.GroupID(0, groups[0]), i32(bn/4))

	// Fill: each thread moves one vector of each tile.
	rowA := s.Min(add(firstRow, s.Div(li, i32(bk/4))), i32(m-1))
	fromA := add(mad(rowA, i32(k/4), mul(iv("tile"), i32(bk/4))), s.Rem(li, i32(bk/4)))
	rowB := mad(iv("tile"), i32(bk), s.Div(li, i32(bn/4)))
	fromB := add(mad(rowB, i32(n/4), firstCol), s.Rem(li, i32(bn/4)))
	fill := block{
		&loop.LoadVec{Names: []string{"in_a0", "in_a1", "in_a2", "in_a3"}, Array: a, At: fromA},
		&loop.StoreVec{Array: tileA, At: li, Values: []expr{fv("in_a0"), fv("in_a1"), fv("in_a2"), fv("in_a3")}},
		&loop.LoadVec{Names: []string{"in_b0", "in_b1", "in_b2", "in_b3"}, Array: b, At: fromB},
		&loop.StoreVec{Array: tileB, At: li, Values: []expr{fv("in_b0"), fv("in_b1"), fv("in_b2"), fv("in_b3")}},
	}
	return &Case{
		Kernel: &loop.Kernel{
			Name: name,
			Arrays: []loop.Array{
				vec4(input("a", dtype.F32, m*k)), vec4(input("b", dtype.F32, k*n)), vec4(output("c", dtype.F32, m*n)),
				vec4(shared("tile_a", dtype.F32, bm*bk)), vec4(shared("tile_b", dtype.F32, bk*bn)),
				private("acc", dtype.F32, 4*tm),
			},
			Workgroup: [3]int{tx, ty, 1},
			Groups:    groups,
			Body: block{
				unroll("i", 4*tm, store(acc, iv("i"), f32(0))),
				forRange("tile", 0, k/bk, 1, append(fill,
					barrier(),
					forRange("q", 0, bk/4, 1, multiplyTile(tileA, tileB, acc, tx, ty, tm, bk/4)...),
					barrier())...),
				storeTile(c, acc, m, n, tm, firstRow, firstCol, ty, tx),
			},
		},
		Arrays:    [][]float64{floats(5, m*k), floats(6, k*n), zeros(m * n)},
		Want:      [][]float64{nil, nil, product(floats(5, m*k), floats(6, k*n), m, n, k)},
		Tolerance: 1e-4,
	}
}

// multiplyTile multiplies vector q of the thread's rows of a by the four rows
// of b that belong to it.
func multiplyTile(tileA, tileB, acc, tx, ty, tm, rowLen int) block {
	var body block
	b := func(row, col int) string { return "b" + strconv.Itoa(row) + strconv.Itoa(col) }
	for row := range 4 {
		at := mad(mad(iv("q"), i32(4), i32(row)), i32(tx), loop.LocalID(0, tx))
		body = append(body, &loop.LoadVec{Names: []string{b(row, 0), b(row, 1), b(row, 2), b(row, 3)}, Array: tileB, At: at})
	}
	at := mad(mad(loop.LocalID(1, ty), i32(tm), iv("i")), i32(rowLen), iv("q"))
	rows := block{&loop.LoadVec{Names: []string{"a0", "a1", "a2", "a3"}, Array: tileA, At: at}}
	for col := range 4 {
		slot := mad(iv("i"), i32(4), i32(col))
		sum := s.LoadAt(acc, dtype.F32, slot)
		for row := range 4 {
			sum = s.Fma(fv("a"+strconv.Itoa(row)), fv(b(row, col)), sum)
		}
		rows = append(rows, store(acc, slot, sum))
	}
	return append(body, unroll("i", tm, rows...))
}

// storeTile writes the thread's results to c.
func storeTile(c, acc, m, n, tm int, firstRow, firstCol expr, ty, tx int) loop.Stmt {
	var values []expr
	for col := range 4 {
		values = append(values, s.LoadAt(acc, dtype.F32, mad(iv("i"), i32(4), i32(col))))
	}
	row := add(firstRow, mad(loop.LocalID(1, ty), i32(tm), iv("i")))
	at := add(mad(iv("row"), i32(n/4), firstCol), loop.LocalID(0, tx))
	return unroll("i", tm,
		let("row", row),
		when(s.Lt(iv("row"), i32(m)), &loop.StoreVec{Array: c, At: at, Values: values}))
}

func product(a, b []float64, m, n, k int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for p := range k {
			for j := range n {
				out[i*n+j] += a[i*k+p] * b[p*n+j]
			}
		}
	}
	return out
}

// subgroupSum adds up 64 elements a workgroup, first within subgroups.
func subgroupSum() *Case {
	const threads, groups = 64, 4
	sizes := [2]int{4, 64}
	x := floats(7, threads*groups)
	want := make([]float64, groups)
	for i, v := range x {
		want[i/threads] += v
	}
	li := loop.LocalIndex(threads)
	body := block{
		let("x0", s.LoadAt(0, dtype.F32, mad(loop.GroupID(0, groups), i32(threads), li))),
		&loop.Subgroup{Op: s.OpAdd, Name: "part", Value: fv("x0")},
		// One thread of each subgroup brings its sum, the others nothing.
		store(2, li, s.Select(s.Eq(loop.Lane(sizes), i32(0)), fv("part"), f32(0))),
	}
	body = append(body, treeSum(2, threads, add)...)
	body = append(body, when(s.Eq(li, i32(0)), store(1, loop.GroupID(0, groups), s.LoadAt(2, dtype.F32, i32(0)))))
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "subgroup_sum",
			Arrays:    []loop.Array{input("x", dtype.F32, threads*groups), output("y", dtype.F32, groups), shared("partial", dtype.F32, threads)},
			Workgroup: [3]int{threads, 1, 1},
			Groups:    [3]int{groups, 1, 1},
			Subgroup:  sizes,
			Body:      body,
		},
		Arrays:    [][]float64{x, zeros(groups)},
		Want:      [][]float64{nil, want},
		Tolerance: 1e-5,
	}
}

// scanLoop is a running sum along each row, one thread a row: the value of a
// variable goes from one turn of a loop to the next.
func scanLoop() *Case {
	const rows, cols = 40, 9
	x := floats(8, rows*cols)
	want := make([]float64, rows*cols)
	for i := range x {
		want[i] = x[i]
		if i%cols > 0 {
			want[i] += want[i-1]
		}
	}
	at := mad(iv("row"), i32(cols), iv("j"))
	return &Case{
		Kernel: &loop.Kernel{
			Name:      "scan_loop",
			Arrays:    []loop.Array{input("x", dtype.F32, rows*cols), output("y", dtype.F32, rows*cols)},
			Workgroup: [3]int{8, 2, 1},
			Groups:    [3]int{3, 1, 1},
			Body: block{
				let("row", mad(loop.GroupID(0, 3), i32(16), loop.LocalIndex(16))),
				when(s.Lt(iv("row"), i32(rows)),
					newVar("sum", f32(0)),
					forRange("j", 0, cols, 1,
						assign("sum", add(fv("sum"), s.LoadAt(0, dtype.F32, at))),
						store(1, at, fv("sum")))),
			},
		},
		Arrays:    [][]float64{x, zeros(rows * cols)},
		Want:      [][]float64{nil, want},
		Tolerance: 1e-6,
	}
}
