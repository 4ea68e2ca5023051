package loop

import "github.com/rlx-go/rlx/ir/scalar"

// MapExprs returns statements like body with each expression taken through f.
func MapExprs(body []Stmt, f func(scalar.Expr) scalar.Expr) []Stmt {
	out := make([]Stmt, len(body))
	for i, s := range body {
		out[i] = mapStmt(s, f)
	}
	return out
}

func mapStmt(s Stmt, f func(scalar.Expr) scalar.Expr) Stmt {
	switch s := s.(type) {
	case *Let:
		return &Let{s.Name, f(s.Value)}
	case *Var:
		return &Var{s.Name, f(s.Init)}
	case *Assign:
		return &Assign{s.Name, f(s.Value)}
	case *Store:
		return &Store{s.Array, f(s.At), f(s.Value)}
	case *LoadVec:
		return &LoadVec{s.Names, s.Array, f(s.At)}
	case *StoreVec:
		values := make([]scalar.Expr, len(s.Values))
		for i, v := range s.Values {
			values[i] = f(v)
		}
		return &StoreVec{s.Array, f(s.At), values}
	case *For:
		return s.with(f(s.Start), f(s.End), f(s.Step), MapExprs(s.Body, f))
	case *If:
		return &If{f(s.Cond), MapExprs(s.Then, f), MapExprs(s.Else, f)}
	case *AtomicOp:
		return &AtomicOp{s.Op, s.Array, f(s.At), f(s.Value), s.Old}
	case *Subgroup:
		return &Subgroup{s.Op, s.Name, f(s.Value)}
	case *Shuffle:
		return &Shuffle{s.Name, f(s.Value), s.Xor}
	case *FragmentLoad:
		out := *s
		out.At = f(s.At)
		return &out
	case *FragmentStore:
		out := *s
		out.At = f(s.At)
		return &out
	}
	if withAsync {
		return mapAsync(s, f)
	}
	return s
}

// Arrays shows the array numbers that a statement itself has, besides those of loads in
// its expressions.
func Arrays(s Stmt, f func(array *int)) {
	switch s := s.(type) {
	case *Store:
		f(&s.Array)
	case *LoadVec:
		f(&s.Array)
	case *StoreVec:
		f(&s.Array)
	case *AtomicOp:
		f(&s.Array)
	case *FragmentLoad:
		f(&s.Array)
	case *FragmentStore:
		f(&s.Array)
	default:
		if withAsync {
			asyncArrays(s, f)
		}
	}
}

// WalkArrays shows the array numbers of every statement, see [Arrays].
func WalkArrays(body []Stmt, f func(array *int)) {
	Walk(body, func(s Stmt) { Arrays(s, f) })
}

// WalkStores shows the arrays that statements write.
func WalkStores(body []Stmt, f func(array int)) {
	Walk(body, func(s Stmt) {
		switch s := s.(type) {
		case *Store:
			f(s.Array)
		case *StoreVec:
			f(s.Array)
		case *AtomicOp:
			f(s.Array)
		case *FragmentStore:
			f(s.Array)
		default:
			if withAsync {
				asyncStores(s, f)
			}
		}
	})
}
