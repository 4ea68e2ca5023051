package simd

import (
	"math/rand/v2"
	"testing"
)

// TestSubstitutionIsExactOnIntegers multiplies small integers by a triangle, and solves for them again.
func TestSubstitutionIsExactOnIntegers(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		testSubstitution[float32](t)
		testSubstitution[float64](t)
	})
}

func testSubstitution[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 3, 9, 17, 40, 100, 1000} {
		for _, size := range []int{1, 2, 7, 32} {
			width := PanelWidth[T](n)
			if widest := panelVectors[0] * kernelsOf[T]().lanes; width < min(n, widest) {
				t.Fatalf("%d columns have panels of %d", n, width)
			}
			a, want, panel := integers[T](r, size*size), integers[T](r, size*width), make([]T, size*width+1)
			panel[size*width] = 99
			for i := range size {
				for j := range width {
					for l, by := range a[i*size:][:i] {
						panel[i*width+j] -= by * want[l*width+j]
					}
					panel[i*width+j] += 4 * want[i*width+j]
				}
				a[i*size+i] = 0.25
			}
			// The elements before row i are 4·xᵢ - Σ aᵢₗ·xₗ, so that aᵢᵢ of ¼ gives xᵢ.
			Substitute(size, a, panel, width)
			for i, x := range want {
				if panel[i] != x {
					t.Fatalf("%T, %d rows of %d: element %d is %v, not %v", x, size, width, i, panel[i], x)
				}
			}
			if panel[size*width] != 99 {
				t.Fatalf("%d rows of %d: it writes beyond the panel", size, width)
			}
		}
	}
}
