package scalar

// Range returns bounds of the integer or bool expression e that hold for every
// value of its leaves within their ranges. ok is false for other types, and for
// a u64 that may be 2⁶³ or more.
func Range(e Expr) (lo, hi int64, ok bool) {
	return e.Type.IntRange()
}
