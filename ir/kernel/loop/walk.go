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
	case *Pack:
		return &Pack{s.Name, s.Type, f(s.Low), f(s.High)}
	case *CopyAsync:
		out := *s
		out.ToAt, out.FromAt = f(s.ToAt), f(s.FromAt)
		if s.Valid != nil {
			out.Valid = f(s.Valid)
		}
		return &out
	case *FragmentLoad:
		out := *s
		out.At = f(s.At)
		return &out
	case *FragmentStore:
		out := *s
		out.At = f(s.At)
		return &out
	case *Mma:
		return s.mapped(f, func(name string) string { return name })
	case *CopyBox:
		return s.with(f)
	case *Arrive:
		return &Arrive{s.Mbarrier, f(s.At)}
	case *Await:
		return &Await{s.Mbarrier, f(s.At), f(s.Phase)}
	case *Roles:
		return s.each(func(body []Stmt) []Stmt { return MapExprs(body, f) })
	}
	return s
}

// WalkArrays shows the array number of every statement that has one.
func WalkArrays(body []Stmt, f func(array *int)) {
	for _, s := range body {
		switch s := s.(type) {
		case *Store:
			f(&s.Array)
		case *LoadVec:
			f(&s.Array)
		case *StoreVec:
			f(&s.Array)
		case *AtomicOp:
			f(&s.Array)
		case *CopyAsync:
			f(&s.To)
			f(&s.From)
		case *FragmentLoad:
			f(&s.Array)
		case *FragmentStore:
			f(&s.Array)
		case *Mma:
			s.arrays(f)
		case *CopyBox:
			f(&s.To)
		case *Roles:
			for _, r := range s.List {
				WalkArrays(r.Body, f)
			}
		case *For:
			WalkArrays(s.Body, f)
		case *If:
			WalkArrays(s.Then, f)
			WalkArrays(s.Else, f)
		}
	}
}

// WalkStores shows the arrays that statements write.
func WalkStores(body []Stmt, f func(array int)) {
	for _, s := range body {
		switch s := s.(type) {
		case *Store:
			f(s.Array)
		case *StoreVec:
			f(s.Array)
		case *AtomicOp:
			f(s.Array)
		case *CopyAsync:
			f(s.To)
		case *FragmentStore:
			f(s.Array)
		case *CopyBox:
			f(s.To)
		case *Roles:
			for _, r := range s.List {
				WalkStores(r.Body, f)
			}
		case *For:
			WalkStores(s.Body, f)
		case *If:
			WalkStores(s.Then, f)
			WalkStores(s.Else, f)
		}
	}
}
