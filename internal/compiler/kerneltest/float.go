package kerneltest

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// scaleTail is y = x·scalar0 + 0.5 with a bounds check in the last workgroup.
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

// reluVec4 computes four elements per thread.
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

// partials is the array of the partial results that [treeReduce] combines.
const partials = 2

// treeReduce returns a tree reduction with op of the first n partial results into
// element 0; n is a power of two and the number of threads.
func treeReduce(n int, op func(a, b expr) expr) block {
	li := loop.LocalIndex(n)
	var out block
	for half := n / 2; half > 0; half /= 2 {
		mine, other := s.LoadAt(partials, dtype.F32, li), s.LoadAt(partials, dtype.F32, add(li, i32(half)))
		out = append(out, barrier(), when(s.Lt(li, i32(half)), store(partials, li, op(mine, other))))
	}
	return append(out, barrier())
}

// sumTree sums the rows of a matrix in shared memory.
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
	body = append(body, treeReduce(threads, add)...)
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

// softmaxRow normalises one row per workgroup: maximum, sum, quotient.
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
	body = append(body, treeReduce(threads, s.Max)...)
	body = append(body,
		let("row_top", s.LoadAt(2, dtype.F32, i32(0))),
		newVar("sum", f32(0)),
		each(assign("sum", add(fv("sum"), s.Exp(s.Sub(load, fv("row_top")))))),
		barrier(),
		store(2, li, fv("sum")))
	body = append(body, treeReduce(threads, add)...)
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

// subgroupSum sums 64 elements per workgroup, first within subgroups.
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
		// One thread of each subgroup contributes its sum.
		store(2, li, s.Select(s.Eq(loop.Lane(sizes), i32(0)), fv("part"), f32(0))),
	}
	body = append(body, treeReduce(threads, add)...)
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

// scanLoop is a serial scan along each row, one thread per row: a variable carries its value
// from one iteration to the next.
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
					forRange("j", cols, 1,
						assign("sum", add(fv("sum"), s.LoadAt(0, dtype.F32, at))),
						store(1, at, fv("sum")))),
			},
		},
		Arrays:    [][]float64{x, zeros(rows * cols)},
		Want:      [][]float64{nil, want},
		Tolerance: 1e-6,
	}
}
