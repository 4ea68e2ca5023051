package loop

import (
	"github.com/rlx-go/rlx/ir/scalar"
)

// Walk calls f for every statement, outer ones before those of their bodies.
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

// Defines returns the names that a statement itself defines, without its body.
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

// Assigns returns the variables that a statement itself changes, without its body.
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

// AnyNode reports whether f is true for a node of an expression of the statement itself, see
// [scalar.Any].
func AnyNode(s Stmt, f func(scalar.Expr) bool) (found bool) {
	EachExpr(s, func(e scalar.Expr) { found = found || scalar.Any(e, f) })
	return found
}

// EachNode calls f for every node of each expression of the statement itself, see
// [scalar.Walk].
func EachNode(s Stmt, f func(scalar.Expr)) {
	EachExpr(s, func(e scalar.Expr) { scalar.Walk(e, f) })
}

// EachExpr calls f for the expressions of the statement itself, without its body.
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

// MapExprs returns a copy of body with each expression mapped by f.
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

// Arrays calls f with the array numbers of a statement itself, except those of loads in its
// expressions.
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

// WalkArrays calls f with the array numbers of every statement, see [Arrays].
func WalkArrays(body []Stmt, f func(array *int)) {
	Walk(body, func(s Stmt) { Arrays(s, f) })
}

// WalkStores calls f with the arrays that statements write.
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

// mapAsync is mapStmt for asynchronous statements.
func mapAsync(s Stmt, f func(scalar.Expr) scalar.Expr) Stmt {
	switch s := s.(type) {
	case *Pack:
		return &Pack{s.Name, s.Type, f(s.Low), f(s.High)}
	case *CopyAsync:
		out := *s
		out.ToAt, out.FromAt = f(s.ToAt), f(s.FromAt)
		if s.Valid != nil {
			out.Valid = f(s.Valid)
		}
		return &out
	case *Mma:
		return s.mapped(f, func(name string) string { return name })
	case *CopyTMA:
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

// asyncArrays is [Arrays] for asynchronous statements, asyncStores is [WalkStores].
func asyncArrays(s Stmt, f func(array *int)) {
	switch s := s.(type) {
	case *CopyAsync:
		f(&s.To)
		f(&s.From)
	case *Mma:
		s.arrays(f)
	case *CopyTMA:
		f(&s.To)
	}
}

func asyncStores(s Stmt, f func(array int)) {
	switch s := s.(type) {
	case *CopyAsync:
		f(s.To)
	case *CopyTMA:
		f(s.To)
	}
}

// asyncExprs is [EachExpr] for asynchronous statements.
func asyncExprs(s Stmt, f func(scalar.Expr)) {
	switch s := s.(type) {
	case *Pack:
		f(s.Low)
		f(s.High)
	case *CopyAsync:
		f(s.ToAt)
		f(s.FromAt)
		if s.Valid != nil {
			f(s.Valid)
		}
	case *Mma:
		each(s.exprs(), f)
	case *CopyTMA:
		each(s.exprs(), f)
	case *Arrive:
		f(s.At)
	case *Await:
		f(s.At)
		f(s.Phase)
	}
}
