package emit

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// NarrowBranches restricts the number of a vector in the branches of selects on it: of a chain of selects, the value for
// numbers below n that are not below m is computed at max(m, min(number, n-1)). The results are the same. A part of a
// concatenation that begins and ends at whole vectors is then read in vectors, as its positions need no
// bounds of single elements, and all elements of a vector share the condition.
func NarrowBranches(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(e scalar.Expr) (scalar.Expr, bool) {
		vector, n, ok := firstVectors(e)
		if !ok {
			return nil, false
		}
		return narrowChain(e, vector, 0, n), true
	})
}

// narrowChain narrows a chain of selects on a vector's number, of which the first is true below n. The number is
// not below least.
func narrowChain(e, vector scalar.Expr, least, n int) scalar.Expr {
	from := scalar.Max(vector, loop.Int(least))
	part := NarrowBranches(replace(e.Args[1], vector, scalar.Min(from, loop.Int(n-1))))
	rest := e.Args[2]
	if next, m, ok := firstVectors(rest); ok && m > n && scalar.Equal(next, vector) {
		rest = narrowChain(rest, vector, n, m)
	} else {
		rest = NarrowBranches(replace(rest, vector, scalar.Max(vector, loop.Int(n))))
	}
	return scalar.Select(scalar.Lt(vector, loop.Int(n)), part, rest)
}

// firstVectors splits a select that is true for the elements of the first n vectors, 4·vector + k < 4n.
func firstVectors(e scalar.Expr) (vector scalar.Expr, n int, ok bool) {
	if e.Op != scalar.OpSelect || e.Args[0].Op != scalar.OpLt {
		return nil, 0, false
	}
	at, element := e.Args[0].Args[0], int64(0)
	if at.Op == scalar.OpAdd {
		if element, ok = at.Args[1].IntConst(); !ok || element < 0 || element >= VectorWidth {
			return nil, 0, false
		}
		at = at.Args[0]
	}
	end, whole := e.Args[0].Args[1].IntConst()
	if !whole || end <= 0 || end%VectorWidth != 0 || at.Op != scalar.OpMul {
		return nil, 0, false
	}
	width, ok := at.Args[1].IntConst()
	return at.Args[0], int(end / VectorWidth), ok && width == VectorWidth
}

// replace returns x with one expression in place of another.
func replace(x, from, to scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(e scalar.Expr) (scalar.Expr, bool) {
		if !scalar.Equal(e, from) {
			return nil, false
		}
		return to, true
	})
}
