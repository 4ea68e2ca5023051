package scalar

// TwoSum returns the rounded sum a + b and its rounding error, a float of the same type (Knuth, The
// Art of Computer Programming, volume 2, section 4.2.2, theorem B). If the sum is not finite, the
// error is NaN. It requires that each operation is rounded as written: a compiler must not
// reassociate sums.
func TwoSum(a, b Expr) (sum, rest Expr) {
	sum = Add(a, b)
	part := Sub(sum, a)
	return sum, Add(Sub(a, Sub(sum, part)), Sub(b, part))
}

// Compensated returns sum + rest, where rest is the accumulated rounding error from [TwoSum]; sum
// itself if that is not finite.
func Compensated(sum, rest Expr) Expr {
	return Select(Eq(rest, rest), Add(sum, rest), sum)
}
