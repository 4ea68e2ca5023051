package simd

import "testing"

// TestShuffles compares copies in another order with their definitions, for lengths around those of vectors.
func TestShuffles(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 7, 8, 9, 16, 31, 100} {
			from := make([]uint32, 2*n)
			for i := range from {
				from[i] = uint32(i + 1)
			}
			// Memory behind the results must stay.
			a, b, c, d, back := make([]uint32, n+1), make([]uint32, n+1), make([]uint32, n+1), make([]uint32, n+1), make([]uint32, 2*n+1)
			Split(a[:n], b[:n], from)
			Evens(c[:n], from[:max(2*n-1, 0)])
			Reverse(d[:n], from[:n])
			Join(back[:2*n], a[:n], b[:n])
			for i := range n + 1 {
				even, odd, last := uint32(2*i+1), uint32(2*i+2), uint32(n-i)
				if i == n {
					even, odd, last = 0, 0, 0
				}
				if a[i] != even || b[i] != odd || c[i] != even || d[i] != last {
					t.Fatalf("%d elements: element %d is split to %d and %d, even %d, reversed %d", n, i, a[i], b[i], c[i], d[i])
				}
			}
			for i, x := range back[:2*n] {
				if x != from[i] {
					t.Fatalf("%d elements: joined element %d is %d", n, i, x)
				}
			}
			if back[2*n] != 0 {
				t.Fatalf("%d elements: an element behind the joined ones was written", n)
			}
		}
	})
}
