package simd

import "testing"

func TestTranspose(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testTranspose[uint8](t)
		testTranspose[uint16](t)
		testTranspose[uint32](t)
		testTranspose[float64](t)
	})
}

func testTranspose[T element](t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {8, 8}, {7, 20}, {20, 7}, {17, 25}, {64, 64}, {300, 37}} {
		rows, n := size[0], size[1]
		from, to := make([]T, rows*(n+3)), make([]T, n*(rows+2))
		for i := range from {
			from[i] = T(1 + i%251)
		}
		Transpose(to, rows+2, from, n+3, rows, n)
		for k, x := range to {
			j, i, want := k/(rows+2), k%(rows+2), T(0)
			if i < rows {
				want = from[i*(n+3)+j]
			}
			if x != want {
				t.Fatalf("%T %v: element (%d, %d) is %v, not %v", from, size, j, i, x, want)
			}
		}
	}
}
