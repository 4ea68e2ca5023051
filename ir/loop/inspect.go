package loop

import "github.com/rlx-go/rlx/ir/scalar"

// Walk shows every statement, those of nested bodies after their own.
func Walk(body []Stmt, f func(Stmt)) {
	for _, s := range body {
		f(s)
		switch s := s.(type) {
		case *For:
			Walk(s.Body, f)
		case *If:
			Walk(s.Then, f)
			Walk(s.Else, f)
		case *Roles:
			for _, r := range s.List {
				Walk(r.Body, f)
			}
		}
	}
}

// Defines returns the names that a statement itself defines.
func Defines(s Stmt) []string {
	switch s := s.(type) {
	case *Let:
		return []string{s.Name}
	case *Var:
		return []string{s.Name}
	case *LoadVec:
		return s.Names
	case *For:
		return []string{s.Var}
	case *AtomicOp:
		if s.Old != "" {
			return []string{s.Old}
		}
	case *Subgroup:
		return []string{s.Name}
	case *Shuffle:
		return []string{s.Name}
	case *FragmentZero:
		return []string{s.Name}
	case *FragmentLoad:
		return []string{s.Name}
	}
	return nil
}

// Assigns returns the names of variables that a statement itself changes.
func Assigns(s Stmt) []string {
	switch s := s.(type) {
	case *Assign:
		return []string{s.Name}
	case *Pack:
		return []string{s.Name}
	case *FragmentMulAdd:
		return []string{s.Sum}
	case *Mma:
		var out []string
		for _, t := range s.Terms {
			out = append(out, t.Sums...)
		}
		return out
	}
	return nil
}

// AnyNode reports whether f holds for a node of an expression of a statement itself, see
// [scalar.Any].
func AnyNode(s Stmt, f func(scalar.Expr) bool) (found bool) {
	EachExpr(s, func(e scalar.Expr) { found = found || scalar.Any(e, f) })
	return found
}

// EachNode shows every node of each expression of a statement itself, see [scalar.Walk].
func EachNode(s Stmt, f func(scalar.Expr)) {
	EachExpr(s, func(e scalar.Expr) { scalar.Walk(e, f) })
}

// EachExpr shows the expressions of a statement itself.
func EachExpr(s Stmt, f func(scalar.Expr)) {
	switch s := s.(type) {
	case *Let:
		f(s.Value)
	case *Var:
		f(s.Init)
	case *Assign:
		f(s.Value)
	case *Store:
		f(s.At)
		f(s.Value)
	case *LoadVec:
		f(s.At)
	case *StoreVec:
		f(s.At)
		each(s.Values, f)
	case *For:
		f(s.Start)
		f(s.End)
		f(s.Step)
	case *If:
		f(s.Cond)
	case *AtomicOp:
		f(s.At)
		f(s.Value)
	case *Subgroup:
		f(s.Value)
	case *Shuffle:
		f(s.Value)
	case *FragmentLoad:
		f(s.At)
	case *FragmentStore:
		f(s.At)
	default:
		if withAsync {
			asyncExprs(s, f)
		}
	}
}

func each(list []scalar.Expr, f func(scalar.Expr)) {
	for _, e := range list {
		f(e)
	}
}
