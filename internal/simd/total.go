package simd

// Total is a sum of many terms and what rounding left out of it, which is added at the end:
// Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
type Total[T Float] struct{ Sum, Rest T }

// Add adds a term. Nothing is left out of sums that are not finite.
func (t *Total[T]) Add(x T) {
	sum := t.Sum + x
	part := sum - t.Sum
	if left := (t.Sum - (sum - part)) + (x - part); left-left == 0 {
		t.Rest += left
	}
	t.Sum = sum
}
