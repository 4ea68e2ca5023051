package scalar

// Simplify returns an expression with the value of e for all values of its
// leaves within their ranges.
func Simplify(e Expr) Expr { return newInterner().tree(e) }
