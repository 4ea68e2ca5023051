package simd

// Dots computes c[i·step] = Σ a[i][l]·x[l] for m rows of k elements that lie
// one after the other, aRow apart. A sum depends on its row alone, not on which
// rows are computed together.
func Dots[T Float](s *Space[T], m, k int, a []T, aRow int, x []T, c []T, step int) {
	d := kernelsOf[T]()
	full := k - k%d.dotLanes
	count, apart := 4, aRow
	if m < count { // the kernel gets one row four times
		count, apart = 1, 0
	}
	for done := 0; done < m; done += count {
		i := min(done, m-count)
		clear(s.sums[:])
		if full > 0 {
			d.dots(full, &a[i*aRow], apart, &x[0], &s.sums[0])
		}
		for r := range count {
			c[(i+r)*step] = dotTail(s.sums[r*d.dotLanes:][:d.dotLanes], a[(i+r)*aRow:][:k], x, full)
		}
	}
}

// maxLanes is the most lanes that sums are kept in.
const maxLanes = 32

// dotTail adds up the lanes, pairwise, and the products after them.
func dotTail[T Float](lanes, row, x []T, from int) T {
	for n := len(lanes) / 2; n > 0; n /= 2 {
		for i := range n {
			lanes[i] += lanes[n+i]
		}
	}
	sum := lanes[0]
	for l := from; l < len(row); l++ {
		sum += row[l] * x[l]
	}
	return sum
}
