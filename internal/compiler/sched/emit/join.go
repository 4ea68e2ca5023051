package emit

import "github.com/rlx-go/rlx/ir/scalar"

// JoinLoads returns x with each select between two elements of an array as a load of the selected address. The results
// are the same: only the element of the branch that is taken is loaded. A convolution of what is padded by reflection,
// which is a concatenation of three slices along each axis, then loads one element where it loads nine.
func (e *Emitter) JoinLoads(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpSelect {
			return nil, false
		}
		a, b := e.JoinLoads(n.Args[1]), e.JoinLoads(n.Args[2])
		if a.Op == scalar.OpLoad && b.Op == scalar.OpLoad && a.Ref == b.Ref {
			return scalar.LoadAt(a.Ref, a.Type, e.Simplifier.SelectSum(n.Args[0], a.Args[0], b.Args[0])), true
		}
		return scalar.Select(n.Args[0], a, b), true
	})
}
