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
			odds, evens, reversed, back := make([]uint32, n), make([]uint32, n+1), make([]uint32, n+1), make([]uint32, 2*n+1)
			for i := range odds {
				odds[i] = from[2*i+1]
			}
			Evens(evens[:n], from[:max(2*n-1, 0)])
			Reverse(reversed[:n], from[:n])
			reverses[uint8](t, n)
			reverses[uint16](t, n)
			reverses[uint64](t, n)
			Join(back[:2*n], evens[:n], odds)
			for i := range n + 1 {
				even, last := uint32(2*i+1), uint32(n-i)
				if i == n {
					even, last = 0, 0
				}
				if evens[i] != even || reversed[i] != last {
					t.Fatalf("%d elements: element %d is %d of the even ones and %d in reverse", n, i, evens[i], reversed[i])
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

// reverses compares [Reverse] of n elements of a type with its definition.
func reverses[T uint8 | uint16 | uint64](t *testing.T, n int) {
	t.Helper()
	from, to := make([]T, n), make([]T, n+1)
	for i := range from {
		from[i] = T(i + 1)
	}
	Reverse(to[:n], from)
	for i, x := range to {
		if want := T(n - i); x != want {
			t.Fatalf("%d elements of %T: element %d in reverse is %d, not %d", n, x, i, x, want)
		}
	}
}
