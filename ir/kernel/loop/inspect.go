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

// Exprs returns the expressions of a statement itself.
func Exprs(s Stmt) []scalar.Expr {
	switch s := s.(type) {
	case *Let:
		return []scalar.Expr{s.Value}
	case *Var:
		return []scalar.Expr{s.Init}
	case *Assign:
		return []scalar.Expr{s.Value}
	case *Store:
		return []scalar.Expr{s.At, s.Value}
	case *LoadVec:
		return []scalar.Expr{s.At}
	case *StoreVec:
		return append([]scalar.Expr{s.At}, s.Values...)
	case *For:
		return []scalar.Expr{s.Start, s.End, s.Step}
	case *If:
		return []scalar.Expr{s.Cond}
	case *AtomicOp:
		return []scalar.Expr{s.At, s.Value}
	case *Subgroup:
		return []scalar.Expr{s.Value}
	case *Shuffle:
		return []scalar.Expr{s.Value}
	case *FragmentLoad:
		return []scalar.Expr{s.At}
	case *FragmentStore:
		return []scalar.Expr{s.At}
	}
	if withAsync {
		return asyncExprs(s)
	}
	return nil
}
