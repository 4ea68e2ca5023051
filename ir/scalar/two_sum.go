package scalar

// TwoSum returns a + b, rounded, and what rounding left out, which is a float of the same
// type: Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B. Where
// the sum is not finite, what is left out is NaN. It holds where each operation is rounded
// as it is written: not where a compiler may change the order of sums.
func TwoSum(a, b Expr) (sum, rest Expr) {
	sum = Add(a, b)
	part := Sub(sum, a)
	return sum, Add(Sub(a, Sub(sum, part)), Sub(b, part))
}

// Compensated returns a sum with what was left out of it on the way, by [TwoSum]: the sum
// itself where that is not finite.
func Compensated(sum, rest Expr) Expr {
	return Select(Eq(rest, rest), Add(sum, rest), sum)
}
