package kerneltest

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// histogram counts with atomics and uses the previous value of a counter.
func histogram() *Case {
	const n, bins = 512, 8
	x := ints(9, n, bins)
	count, marks := zeros(bins), zeros(bins)
	for _, v := range x {
		count[int(v)]++
		marks[int(v)] = 1
	}
	at := s.LoadAt(0, dtype.I32, iv("i"))
	return &Case{
		Kernel: &loop.Kernel{
			Name: "histogram",
			Arrays: []loop.Array{
				input("x", dtype.I32, n), atomic("count", dtype.U32, bins), output("mark", dtype.F32, bins),
			},
			Workgroup: [3]int{64, 1, 1},
			Groups:    [3]int{n / 64, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, 64, n/64)),
				&loop.AtomicOp{Op: s.OpAdd, Array: 1, At: at, Value: u32(1), Old: "before"},
				when(s.Eq(uv("before"), u32(0)), store(2, at, f32(1))),
			},
		},
		Arrays: [][]float64{x, zeros(bins), zeros(bins)},
		Want:   [][]float64{nil, count, marks},
	}
}

// gatherChecked reports indices outside the table in the status words.
func gatherChecked() *Case {
	const n, rows = 100, 10
	x, table := ints(10, n, rows+2), floats(11, rows)
	for i := range x {
		x[i]-- // from -1 to rows
	}
	want := make([]float64, n)
	for i, v := range x {
		if v >= 0 && v < rows {
			want[i] = table[int(v)]
		}
	}
	inside := s.And(s.Ge(iv("k"), i32(0)), s.Lt(iv("k"), i32(rows)))
	found := s.LoadAt(1, dtype.F32, s.Clamp(iv("k"), i32(0), i32(rows-1)))
	return &Case{
		Kernel: &loop.Kernel{
			Name: "gather_checked",
			Arrays: []loop.Array{
				input("x", dtype.I32, n), input("table", dtype.F32, rows), output("y", dtype.F32, n), atomic("status", dtype.U32, 4),
			},
			Workgroup: [3]int{32, 1, 1},
			Groups:    [3]int{4, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, 32, 4)),
				when(s.Lt(iv("i"), i32(n)),
					let("k", s.LoadAt(0, dtype.I32, iv("i"))),
					store(2, iv("i"), s.Check(s.Select(inside, found, f32(0)), inside, 7))),
			},
		},
		Arrays: [][]float64{x, table, zeros(n), zeros(4)},
		Want:   [][]float64{nil, nil, want, {7, 0, 0, 0}},
	}
}

// countedState loads from an array that it changes atomically: it counts the large elements if
// a flag in the array is set.
func countedState() *Case {
	const n = 64
	x := ints(15, n, 100)
	count := 41.0
	for _, v := range x {
		if v > 50 {
			count++
		}
	}
	old := s.LoadAt(1, dtype.I32, i32(1))
	k := &loop.Kernel{
		Name:      "counted_state",
		Arrays:    []loop.Array{input("x", dtype.I32, n), atomic("state", dtype.I32, 2)},
		Workgroup: [3]int{32, 1, 1},
		Groups:    [3]int{2, 1, 1},
		Body: block{
			let("i", loop.GlobalID(0, 32, 2)),
			when(s.And(s.Lt(old, i32(0)), s.Gt(s.LoadAt(0, dtype.I32, iv("i")), i32(50))),
				&loop.AtomicOp{Op: s.OpAdd, Array: 1, At: i32(0), Value: i32(1)}),
		},
	}
	return &Case{Kernel: k, Arrays: [][]float64{x, {41, -1}}, Want: [][]float64{nil, {count, -1}}}
}

// weights adds two halves of floats by atomics: one whose previous sum it names and checks to be
// finite, one to a sum that it has loaded. The floats are multiples of 1/256, so sums are exact
// in any order.
func weights() *Case {
	const n, bins = 512, 8
	x, place, start := floats(21, n), ints(22, n, bins), floats(23, bins)
	sums, finite := append([]float64{}, start...), zeros(bins)
	for i, v := range x {
		sums[int(place[i])] += v
		finite[int(place[i])]++
	}
	at, half := s.LoadAt(1, dtype.I32, iv("i")), mul(f32(0.5), s.LoadAt(0, dtype.F32, iv("i")))
	isFinite := func(x expr) expr { return s.Lt(s.Abs(x), f32(1e30)) }
	return &Case{
		Kernel: &loop.Kernel{
			Name: "weights",
			Arrays: []loop.Array{
				input("x", dtype.F32, n), input("place", dtype.I32, n),
				atomic("sum", dtype.F32, bins), atomic("finite", dtype.U32, bins),
			},
			Workgroup: [3]int{64, 1, 1},
			Groups:    [3]int{n / 64, 1, 1},
			Body: block{
				let("i", loop.GlobalID(0, 64, n/64)),
				&loop.AtomicOp{Op: s.OpAdd, Array: 2, At: at, Value: half, Old: "before"},
				when(isFinite(fv("before")), &loop.AtomicOp{Op: s.OpAdd, Array: 3, At: at, Value: u32(1)}),
				when(isFinite(s.LoadAt(2, dtype.F32, at)), &loop.AtomicOp{Op: s.OpAdd, Array: 2, At: at, Value: half}),
			},
		},
		Arrays: [][]float64{x, place, start, zeros(bins)},
		Want:   [][]float64{nil, nil, sums, finite},
	}
}
