package kerneltest

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	s "github.com/rlx-go/rlx/ir/scalar"
)

// matmul is c = a·b for a of m×k and b of k×n elements, with tiles of bm × bn × bk in shared memory;
// each thread computes tm rows by 4 columns in registers. n is a multiple of bn and k of bk; the last
// rows of tiles are bounds-checked.
type matmul struct{ m, n, k, bm, bn, tm int }

// bk is the number of contracted positions of a tile.
const bk = 16

// The arrays of a matmul.
const (
	leftArray = iota
	rightArray
	resultArray
	leftTile
	rightTile
	sumsArray
)

// threads returns the workgroup: each thread has 4 columns and tm rows.
func (p matmul) threads() (tx, ty int) { return p.bn / 4, p.bm / p.tm }

func (p matmul) of(name string) *Case {
	m, n, k, bm, bn, tm := p.m, p.n, p.k, p.bm, p.bn, p.tm
	tx, ty := p.threads()
	groups := [3]int{n / bn, (m + bm - 1) / bm, 1}
	li := mad(loop.LocalID(1, ty), i32(tx), loop.LocalID(0, tx))
	firstRow := mul(loop.GroupID(1, groups[1]), i32(bm))
	firstCol := mul(loop.GroupID(0, groups[0]), i32(bn/4))

	// Each thread copies one vector of each tile.
	rowA := s.Min(add(firstRow, s.Div(li, i32(bk/4))), i32(m-1))
	fromA := add(mad(rowA, i32(k/4), mul(iv("tile"), i32(bk/4))), s.Rem(li, i32(bk/4)))
	rowB := mad(iv("tile"), i32(bk), s.Div(li, i32(bn/4)))
	fromB := add(mad(rowB, i32(n/4), firstCol), s.Rem(li, i32(bn/4)))
	fill := block{
		&loop.LoadVec{Names: []string{"in_a0", "in_a1", "in_a2", "in_a3"}, Array: leftArray, At: fromA},
		&loop.StoreVec{Array: leftTile, At: li, Values: []expr{fv("in_a0"), fv("in_a1"), fv("in_a2"), fv("in_a3")}},
		&loop.LoadVec{Names: []string{"in_b0", "in_b1", "in_b2", "in_b3"}, Array: rightArray, At: fromB},
		&loop.StoreVec{Array: rightTile, At: li, Values: []expr{fv("in_b0"), fv("in_b1"), fv("in_b2"), fv("in_b3")}},
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
				unroll("i", 4*tm, store(sumsArray, iv("i"), f32(0))),
				forRange("tile", k/bk, 1, append(fill,
					barrier(),
					forRange("q", bk/4, 1, p.multiplyTile()...),
					barrier())...),
				p.storeTile(firstRow, firstCol),
			},
		},
		Arrays:    [][]float64{floats(5, m*k), floats(6, k*n), zeros(m * n)},
		Want:      [][]float64{nil, nil, product(floats(5, m*k), floats(6, k*n), m, n, k)},
		Tolerance: 1e-4,
	}
}

// multiplyTile multiplies vector q of the thread's rows of a by the corresponding four rows of
// b.
func (p matmul) multiplyTile() block {
	var body block
	tx, ty := p.threads()
	b := func(row, col int) string { return "b" + strconv.Itoa(row) + strconv.Itoa(col) }
	for row := range 4 {
		at := mad(mad(iv("q"), i32(4), i32(row)), i32(tx), loop.LocalID(0, tx))
		body = append(body, &loop.LoadVec{Names: []string{b(row, 0), b(row, 1), b(row, 2), b(row, 3)}, Array: rightTile, At: at})
	}
	at := mad(mad(loop.LocalID(1, ty), i32(p.tm), iv("i")), i32(bk/4), iv("q"))
	rows := block{&loop.LoadVec{Names: []string{"a0", "a1", "a2", "a3"}, Array: leftTile, At: at}}
	for col := range 4 {
		slot := mad(iv("i"), i32(4), i32(col))
		sum := s.LoadAt(sumsArray, dtype.F32, slot)
		for row := range 4 {
			sum = s.Fma(fv("a"+strconv.Itoa(row)), fv(b(row, col)), sum)
		}
		rows = append(rows, store(sumsArray, slot, sum))
	}
	return append(body, unroll("i", p.tm, rows...))
}

// storeTile writes the thread's results to c.
func (p matmul) storeTile(firstRow, firstCol expr) loop.Stmt {
	tx, ty := p.threads()
	var values []expr
	for col := range 4 {
		values = append(values, s.LoadAt(sumsArray, dtype.F32, mad(iv("i"), i32(4), i32(col))))
	}
	row := add(firstRow, mad(loop.LocalID(1, ty), i32(p.tm), iv("i")))
	at := add(mad(iv("row"), i32(p.n/4), firstCol), loop.LocalID(0, tx))
	return unroll("i", p.tm,
		let("row", row),
		when(s.Lt(iv("row"), i32(p.m)), &loop.StoreVec{Array: resultArray, At: at, Values: values}))
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
