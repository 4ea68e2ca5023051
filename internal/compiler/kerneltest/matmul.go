package kerneltest

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// matmul is c = a·b with tiles of bm × bn × 16 in shared memory; each thread computes tm rows
// by 4 columns in registers. n is a multiple of bn and k of 16; the last rows of tiles are
// bounds-checked.
func matmul(name string, m, n, k, bm, bn, tm int) *Case {
	const bk = 16
	tx, ty := bn/4, bm/tm
	groups := [3]int{n / bn, (m + bm - 1) / bm, 1}
	const a, b, c, tileA, tileB, acc = 0, 1, 2, 3, 4, 5
	li := mad(loop.LocalID(1, ty), i32(tx), loop.LocalID(0, tx))
	firstRow := mul(loop.GroupID(1, groups[1]), i32(bm))
	firstCol := mul(loop.GroupID(0, groups[0]), i32(bn/4))

	// Each thread copies one vector of each tile.
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
				forRange("tile", k/bk, 1, append(fill,
					barrier(),
					forRange("q", bk/4, 1, multiplyTile(tileA, tileB, acc, tx, ty, tm, bk/4)...),
					barrier())...),
				storeTile(c, acc, m, n, tm, firstRow, firstCol, ty, tx),
			},
		},
		Arrays:    [][]float64{floats(5, m*k), floats(6, k*n), zeros(m * n)},
		Want:      [][]float64{nil, nil, product(floats(5, m*k), floats(6, k*n), m, n, k)},
		Tolerance: 1e-4,
	}
}

// multiplyTile multiplies vector q of the thread's rows of a by the corresponding four rows of
// b.
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
