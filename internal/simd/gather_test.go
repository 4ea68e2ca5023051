package simd

import (
	"math/rand/v2"
	"testing"
)

// scattered returns a matrix of the given values whose rows and columns form runs of the given
// lengths with gaps between them, and room after the last.
func scattered[T Float](x []T, rows, cols, rowStretch, colStretch int) Matrix[T] {
	m := Matrix[T]{RowAt: places(rows, rowStretch, 1), ColAt: places(cols, colStretch, rows+rows/rowStretch+2)}
	if colStretch > rowStretch {
		m = Matrix[T]{RowAt: places(rows, rowStretch, cols+cols/colStretch+2), ColAt: places(cols, colStretch, 1)}
	}
	last := 0
	for _, i := range m.RowAt {
		for _, j := range m.ColAt {
			last = max(last, int(i+j))
		}
	}
	m.Data = make([]T, last+1+2*maxColumns)
	for i := range m.Data {
		m.Data[i] = 1000 // a wrong read shows in the result
	}
	for i, a := range m.RowAt {
		for j, b := range m.ColAt {
			m.Data[a+b] = x[i*cols+j]
		}
	}
	return m
}

// places returns n offsets in runs of elements unit apart, with gaps between the runs.
func places(n, stretch, unit int) []int32 {
	out := make([]int32, n)
	at := 0
	for i := range out {
		if i > 0 && i%stretch == 0 {
			at += 1
		}
		out[i] = int32(at * unit)
		at++
	}
	return out
}

// TestProductsOfFactorsWithTables has either factor in runs that are read in place, copied,
// gathered along columns or rows, or element by element.
func TestProductsOfFactorsWithTables(t *testing.T) {
	testTables(t, [][3]int{{64, 784, 300}, {40, 33, 520}, {300, 64, 65}})
}

// TestSmallProductsOfFactorsWithTablesAreExact is the part that is fast enough in an emulator. Each of
// its last three sizes is larger than a block in one direction.
func TestSmallProductsOfFactorsWithTablesAreExact(t *testing.T) {
	testTables(t, [][3]int{{5, 7, 3}, {13, 60, 40}, {13, blockN + 16, 20}, {5, 33, maxStep + 200}, {blockM + 60, 9, 65}})
}

func testTables(t *testing.T, sizes [][3]int) {
	everyLevel(t, func(t *testing.T) {
		testTablesOf[float32](t, sizes)
		testTablesOf[float64](t, sizes)
	})
}

func testTablesOf[T Float](t *testing.T, sizes [][3]int) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, size := range sizes {
		m, n, k := size[0], size[1], size[2]
		a, b := integers[T](r, m*k), integers[T](r, k*n)
		want := make([]T, m*n)
		s := &Space[T]{}
		s.Grow(Size{m, n, k})
		Product(s, Size{m, n, k}, Matrix[T]{Data: a, Row: k, Col: 1}, Matrix[T]{Data: b, Row: n, Col: 1}, want, n)
		for _, rows := range []int{1, 3, 28, 1 << 20} {
			for _, cols := range []int{1, 3, 14, 28, 1 << 20} {
				for which := range 3 {
					x, y := Matrix[T]{Data: a, Row: k, Col: 1}, Matrix[T]{Data: b, Row: n, Col: 1}
					if which != 1 {
						x = scattered(a, m, k, rows, cols)
					}
					if which != 0 {
						y = scattered(b, k, n, rows, cols)
					}
					got := make([]T, m*n)
					Product(s, Size{m, n, k}, x, y, got, n)
					for i := range got {
						if got[i] != want[i] {
							t.Fatalf("%v, stretches of %d rows and %d columns, factor %d: element %d is %v, not %v", size, rows, cols, which, i, got[i], want[i])
						}
					}
				}
			}
		}
	}
}

// TestManyRowsRepayPackingNarrowRuns has right factors with tables of runs of a length in vectors, which few rows
// read in place.
func TestManyRowsRepayPackingNarrowRuns(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		p := multiplication[float32]{kernels: kernelsOf[float32](), k: 9}
		if p.wide[0].code[tabled] == nil {
			return // every factor with tables is packed
		}
		n := 12 * p.lanes
		for _, c := range []struct {
			name        string
			run, m      int
			want, short bool
		}{
			{name: "narrow tiles, few rows", run: p.lanes, m: 12, want: true},
			{name: "narrow tiles, many rows", run: p.lanes, m: 64},
			{name: "wide tiles, many rows", run: 2 * p.lanes, m: 512, want: true},
			{name: "single columns", run: 1, m: 12},
			{name: "no memory behind the last column", run: 2 * p.lanes, m: 512, short: true},
		} {
			b := scattered(make([]float32, p.k*n), p.k, n, 1, c.run)
			if c.short {
				b.Data = b.Data[:len(b.Data)-2*maxColumns]
			}
			if got := p.readsInPlace(b, c.m, n); got != c.want {
				t.Errorf("%s: reads in place: %v", c.name, got)
			}
		}
	})
}

// TestDotsOfGatheredRowsAreExact multiplies rows in runs, of windows of an image, with a column in memory and one with tables.
func TestDotsOfGatheredRowsAreExact(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testGatheredDots[float32](t)
		testGatheredDots[float64](t)
	})
}

func testGatheredDots[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, size := range [][2]int{{1, 64}, {3, 100}, {37, 500}, {50, 17}} {
		m, k := size[0], size[1]
		a, x := integers[T](r, m*k), integers[T](r, k)
		s, got := &Space[T]{}, make([]T, m)
		s.Grow(Size{1, m, k})
		for _, column := range []Matrix[T]{{Data: x, Row: 1, Col: k}, scattered(x, k, 1, 1, 2)} {
			if !GatheredDots(s, m, k, scattered(a, m, k, 3, 32), column, got) {
				t.Fatalf("%d rows of %d: refused", m, k)
			}
			for i := range m {
				var want T
				for l := range k {
					want += a[i*k+l] * x[l]
				}
				if got[i] != want {
					t.Fatalf("%d rows of %d: row %d is %v, not %v", m, k, i, got[i], want)
				}
			}
		}
		if GatheredDots(s, m, k, scattered(a, m, k, 3, 7), Matrix[T]{Data: x, Row: 1, Col: k}, got) {
			t.Errorf("%d rows of %d in runs of 7 are copied", m, k)
		}
	}
}
