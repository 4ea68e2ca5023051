package sched

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// loadVector loads four values at once where they lie side by side, at a multiple
// of four, and names them.
func (te *tileEmitter) loadVector(values []scalar.Expr) bool {
	first := values[0]
	if first.Op != scalar.OpLoad {
		return false
	}
	for j, x := range values {
		if x.Op != scalar.OpLoad || x.Ref != first.Ref {
			return false
		}
		if n, ok := te.Simplify(scalar.Sub(x.Args[0], first.Args[0])).IntConst(); !ok || n != int64(j) {
			return false
		}
	}
	if rest, ok := te.Simplify(scalar.Mod(first.Args[0], loop.Int(4))).IntConst(); !ok || rest != 0 {
		return false
	}
	names := make([]string, 4)
	for j := range names {
		names[j] = te.name("x")
		values[j] = scalar.FreeVar(names[j], first.Type)
	}
	at := te.Simplify(scalar.FloorDiv(first.Args[0], loop.Int(4)))
	te.body = append(te.body, &loop.LoadVec{Names: names, Array: first.Ref, At: at})
	te.wide[first.Ref] = 4
	return true
}
