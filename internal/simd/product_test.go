package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// everyLevel runs a test at each level that the processor supports.
func everyLevel(t *testing.T, f func(t *testing.T)) {
	have := Has
	defer func() { Has = have }()
	for _, l := range Levels() {
		Has = l
		t.Run(l.String(), f)
	}
}

// integers returns small integers, whose sums of products are exact.
func integers[T Float](r *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(r.IntN(17) - 8)
	}
	return x
}

// layouts returns a matrix of the given values in every layout.
func layouts[T Float](x []T, rows, cols int) map[string]Matrix[T] {
	transposed, strided := make([]T, len(x)), make([]T, 3*len(x)+1)
	for i := range rows {
		for j := range cols {
			transposed[j*rows+i], strided[1+3*(i*cols+j)] = x[i*cols+j], x[i*cols+j]
		}
	}
	table := func(n, by int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(i * by)
		}
		return out
	}
	return map[string]Matrix[T]{
		"in tables":           {Data: strided[1:], RowAt: table(rows, 3*cols), ColAt: table(cols, 3)},
		"in table of columns": {Data: x, RowAt: table(rows, cols), ColAt: table(cols, 1)},
		"rows":                {Data: x, Row: cols, Col: 1},
		"columns":             {Data: transposed, Row: 1, Col: rows},
		"strided":             {Data: strided[1:], Row: 3 * cols, Col: 3},
	}
}

func TestProductsAreExactOnIntegers(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testProducts[float32](t)
		testProducts[float64](t)
	})
}

func testProducts[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][3]int{
		{1, 1, 1},
		{1, 300, 5},
		{1, 33, 300},
		{2, 31, 7},
		{3, 64, 2},
		{5, 16, 0},
		{12, 32, 9},
		{13, 33, 257},
		{31, 95, 64},
		{64, 10, 128},
		{241, 50, 3},
		{25, 800, 20},
	} {
		m, n, k := size[0], size[1], size[2]
		a, b := integers[T](r, m*k), integers[T](r, k*n)
		want := make([]T, m*n)
		for i := range m * n {
			for l := range k {
				want[i] += a[i/n*k+l] * b[l*n+i%n]
			}
		}
		var s Space[T]
		s.Grow(Size{m, n, k})
		for nameA, a := range layouts(a, m, k) {
			for nameB, b := range layouts(b, k, n) {
				c := make([]T, m*(n+1))
				for i := range c {
					c[i] = 99
				}
				Product(&s, Size{m, n, k}, a, b, c, n+1)
				for i := range c {
					if i%(n+1) == n && c[i] != 99 || i%(n+1) < n && c[i] != want[i/(n+1)*n+i%(n+1)] {
						t.Fatalf("%T %v, %s times %s: element %d is %v", a.Data, size, nameA, nameB, i, c[i])
					}
				}
			}
		}
	}
}

// TestAccumulateAddsToProducts adds products to the numbers of rows that are strided, also with several
// steps along k.
func TestAccumulateAddsToProducts(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, size := range [][3]int{{1, 1, 1}, {1, 300, 5}, {13, 33, 2}, {31, 17, 2*maxStep + 1}, {3, 4, 0}} {
			m, n, k := size[0], size[1], size[2]
			a, b, c := integers[float32](r, m*k), integers[float32](r, k*n), integers[float32](r, m*(n+1))
			want := append([]float32{}, c...)
			for i := range m * n {
				for l := range k {
					want[i/n*(n+1)+i%n] += a[i/n*k+l] * b[l*n+i%n]
				}
			}
			var s Space[float32]
			s.Grow(Size{m, n, k})
			Accumulate(&s, Size{m, n, k}, Matrix[float32]{Data: a, Row: k, Col: 1}, Matrix[float32]{Data: b, Row: n, Col: 1}, c, n+1)
			if !slices.Equal(c, want) {
				t.Errorf("%v: other sums than of loops", size)
			}
		}
	})
}

// TestLongProductsAreExactOnIntegers has products that are split along k, with more rows or
// columns than a block.
func TestLongProductsAreExactOnIntegers(t *testing.T) {
	const k = 4*minChain*maxStep + 100
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][2]int{{2, blockN + 9}, {keptM + 5, 3}} {
		m, n := size[0], size[1]
		a, b, c := integers[float32](r, m*k), integers[float32](r, k*n), make([]float32, m*n)
		var s Space[float32]
		s.Grow(Size{m, n, k})
		Product(&s, Size{m, n, k}, Matrix[float32]{Data: a, Row: k, Col: 1}, Matrix[float32]{Data: b, Row: n, Col: 1}, c, n)
		for i := range m {
			for j := range n {
				want := float32(0)
				for l := range k {
					want += a[i*k+l] * b[l*n+j]
				}
				if c[i*n+j] != want {
					t.Fatalf("%d×%d: element %d, %d is %v, not %v", m, n, i, j, c[i*n+j], want)
				}
			}
		}
	}
}

// uniform returns n numbers in [-0.5, 0.5).
func uniform(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x
}

// TestPartsOfProductsAreTheSame checks that a product in parts has the same bits, on which
// results independent of the number of cores rely.
func TestPartsOfProductsAreTheSame(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		const m, n, k = 61, 171, 300
		r := rand.New(rand.NewPCG(5, 6))
		a, b := Matrix[float32]{Data: uniform(r, m*k), Row: k, Col: 1}, Matrix[float32]{Data: uniform(r, k*n), Row: n, Col: 1}
		whole, parts := make([]float32, m*n), make([]float32, m*n)
		var s Space[float32]
		s.Grow(Size{m, n, k})
		Product(&s, Size{m, n, k}, a, b, whole, n)
		for i := 0; i < m; i += 7 {
			for j := 0; j < n; j += 40 {
				Product(&s, Size{min(7, m-i), min(40, n-j), k}, a.From(i, 0), b.From(0, j), parts[i*n+j:], n)
			}
		}
		for i, x := range whole {
			if parts[i] != x {
				t.Fatalf("element %d is %v in parts and %v at once", i, parts[i], x)
			}
		}
	})
}

// TestPartsAlongTheSum checks that a long product has the same bits as the sum of its parts along k, by which workers share it.
func TestPartsAlongTheSum(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		const m, n, k = 13, 37, 2*minChain*maxStep + 77
		r := rand.New(rand.NewPCG(5, 6))
		z := Size{m, n, k}
		a, b := Matrix[float32]{Data: uniform(r, m*k), Row: 1, Col: m}, Matrix[float32]{Data: uniform(r, k*n), Row: n, Col: 1}
		whole, sum, part := make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)
		var s Space[float32]
		s.Grow(z)
		Product(&s, z, a, b, whole, n)
		for i := range Parts(k) {
			ProductPart(&s, z, i, a, b, part, n)
			if i == 0 {
				copy(sum, part)
			} else {
				AddTo(sum, part)
			}
		}
		if Parts(k) < 2 || !slices.Equal(sum, whole) {
			t.Errorf("the sum of %d parts differs from the product", Parts(k))
		}
	})
	for k := range 1 << 17 {
		if parts := Parts(k); parts < 1 || parts > maxParts || k > 0 && (parts-1)*partLen(k) >= k {
			t.Fatalf("%d terms have %d parts of %d", k, parts, partLen(k))
		}
	}
}

func TestDots(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testDots[float32](t)
		testDots[float64](t)
	})
}

func testDots[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var s Space[T]
	for _, m := range []int{1, 3, 4, 6, 9} {
		for _, k := range []int{0, 1, 15, 32, 33, 100} {
			a, x, c := integers[T](r, m*k+1), integers[T](r, k+1), make([]T, m+1)
			Dots(&s, m, k, a, k, x, c)
			for i := range m {
				var want T
				for l := range k {
					want += a[i*k+l] * x[l]
				}
				if c[i] != want || c[m] != 0 {
					t.Fatalf("%T, %d rows of %d: row %d gives %v, not %v", a, m, k, i, c[i], want)
				}
			}
		}
	}
}

// TestProductsOfSpecialValues has special values at every position of a tile.
func TestProductsOfSpecialValues(t *testing.T) {
	inf, nan, tiny := float32(math.Inf(1)), float32(math.NaN()), float32(1e-40)
	special := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, nan, tiny, -tiny, 1, math.MaxFloat32}
	everyLevel(t, func(t *testing.T) {
		const m, n = 15, 37
		a, b, c := make([]float32, m), make([]float32, n), make([]float32, m*n)
		for i := range a {
			a[i] = special[i%len(special)]
		}
		for j := range b {
			b[j] = special[j*5%len(special)]
		}
		var s Space[float32]
		s.Grow(Size{m, n, 1})
		Product(&s, Size{m, n, 1}, Matrix[float32]{Data: a, Row: 1, Col: 1}, Matrix[float32]{Data: b, Row: n, Col: 1}, c, n)
		for i := range c {
			want := a[i/n] * b[i%n] // or a zero of the other sign
			if c[i] != want && (c[i] == c[i] || want == want) {
				t.Fatalf("%v times %v is %v, not %v", a[i/n], b[i%n], c[i], want)
			}
		}
	})
}
