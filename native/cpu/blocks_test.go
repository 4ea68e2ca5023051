package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestBlocksAreProducts compares with sums in another order, of small integers,
// which are exact.
func TestBlocksAreProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	integers := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.IntN(17) - 8)
		}
		return x
	}
	for _, size := range [][3]int{{1, 1, 1}, {4, 2, 3}, {5, 3, 7}, {8, 6, 5}, {3, 9, 2}, {13, 11, 64}} {
		m, n, k := size[0], size[1], size[2]
		for layout := range 4 {
			x := &contraction{m: m, n: n, k: k, a: matrix{row: k, col: 1}, b: matrix{row: n, col: 1}}
			if layout&1 != 0 {
				x.a = matrix{row: 1, col: m}
			}
			if layout&2 != 0 {
				x.b = matrix{row: 1, col: k}
			}
			a, b, c := integers(m*k), integers(k*n), integers(m*n)
			blocks(x, a, b, c, m, n)
			t.Run(fmt.Sprint(size, layout), func(t *testing.T) {
				for i := range m * n {
					want := float32(0)
					for l := k - 1; l >= 0; l-- {
						want += a[i/n*x.a.row+l*x.a.col] * b[l*x.b.row+i%n*x.b.col]
					}
					if c[i] != want {
						t.Fatalf("element %d is %g, not %g", i, c[i], want)
					}
				}
			})
		}
	}
}
