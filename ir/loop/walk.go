package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Walk calls f for every statement, outer ones before those of their bodies.
func Walk(body []Stmt, f func(Stmt)) {
	for _, s := range body {
		f(s)
		bodies(s, func(inner *[]Stmt) { Walk(*inner, f) })
	}
}

// bodies calls f with the bodies of a statement.
func bodies(s Stmt, f func(body *[]Stmt)) {
	switch s := s.(type) {
	case *For:
		f(&s.Body)
	case *If:
		f(&s.Then)
		f(&s.Else)
	case *Roles:
		for i := range s.List {
			f(&s.List[i].Body)
		}
	}
}

// Defines returns the names that a statement itself defines, without its body.
func Defines(s Stmt) []string { return namesOf(s, definition) }

// Assigns returns the variables that a statement itself changes, without its body.
func Assigns(s Stmt) []string { return namesOf(s, assignment) }

// A naming is what a statement does with a name outside of its expressions.
type naming int

const (
	definition naming = iota
	assignment
	use
)

func namesOf(s Stmt, which naming) (out []string) {
	names(s, func(name *string, n naming) {
		if n == which {
			out = append(out, *name)
		}
	})
	return out
}

// names calls f with the names of a statement itself, outside of its body and expressions.
func names(s Stmt, f func(name *string, n naming)) {
	list := func(names []string, n naming) {
		for i := range names {
			f(&names[i], n)
		}
	}
	switch s := s.(type) {
	case *Let:
		f(&s.Name, definition)
	case *Var:
		f(&s.Name, definition)
	case *Assign:
		f(&s.Name, assignment)
	case *LoadVec:
		list(s.Names, definition)
	case *For:
		f(&s.Var, definition)
	case *AtomicOp:
		if s.Old != "" {
			f(&s.Old, definition)
		}
	case *Subgroup:
		f(&s.Name, definition)
	case *Shuffle:
		f(&s.Name, definition)
	}
	if withAsync {
		switch s := s.(type) {
		case *FragmentZero:
			f(&s.Name, definition)
		case *FragmentLoad:
			f(&s.Name, definition)
		case *FragmentMulAdd:
			f(&s.Sum, assignment)
			f(&s.A, use)
			f(&s.B, use)
		case *FragmentStore:
			f(&s.Name, use)
		case *Pack:
			f(&s.Name, assignment)
		case *Mma:
			for _, t := range s.Terms {
				list(t.Sums, assignment)
				list(t.LeftRegisters, use)
			}
		case *MmaWait:
			list(s.Names, use)
		}
	}
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
func EachExpr(s Stmt, f func(scalar.Expr)) { exprs(s, func(e *scalar.Expr) { f(*e) }) }

// exprs calls f with the expressions of the statement itself, without its body.
func exprs(s Stmt, f func(e *scalar.Expr)) {
	switch s := s.(type) {
	case *Let:
		f(&s.Value)
	case *Var:
		f(&s.Init)
	case *Assign:
		f(&s.Value)
	case *Store:
		f(&s.At)
		f(&s.Value)
	case *LoadVec:
		f(&s.At)
	case *StoreVec:
		f(&s.At)
		for i := range s.Values {
			f(&s.Values[i])
		}
	case *For:
		f(&s.Start)
		f(&s.End)
		f(&s.Step)
	case *If:
		f(&s.Cond)
	case *AtomicOp:
		f(&s.At)
		f(&s.Value)
	case *Subgroup:
		f(&s.Value)
	case *Shuffle:
		f(&s.Value)
	}
	if withAsync {
		asyncExprs(s, f)
	}
}

// asyncExprs is exprs for fragments and asynchronous statements.
func asyncExprs(s Stmt, f func(e *scalar.Expr)) {
	switch s := s.(type) {
	case *FragmentLoad:
		f(&s.At)
	case *FragmentStore:
		f(&s.At)
	case *Pack:
		f(&s.Low)
		f(&s.High)
	case *CopyAsync:
		f(&s.ToAt)
		f(&s.FromAt)
		if s.Valid != nil {
			f(&s.Valid)
		}
	case *Mma:
		for i := range s.Terms {
			if t := &s.Terms[i]; t.LeftRegisters == nil {
				f(&t.A.At)
			}
			f(&s.Terms[i].B.At)
		}
	case *CopyTMA:
		for i := range s.From {
			f(&s.From[i])
		}
		for i := range s.Offset {
			f(&s.Offset[i])
		}
		f(&s.ToAt)
		f(&s.At)
	case *Arrive:
		f(&s.At)
	case *Await:
		f(&s.At)
		f(&s.Phase)
	}
}

// exprsOf returns the expressions of the statement itself.
func exprsOf(s Stmt) (out []scalar.Expr) {
	EachExpr(s, func(e scalar.Expr) { out = append(out, e) })
	return out
}

// MapExprs returns a copy of body with each expression mapped by f.
func MapExprs(body []Stmt, f func(scalar.Expr) scalar.Expr) []Stmt {
	out := make([]Stmt, len(body))
	for i, s := range body {
		out[i] = mapStmt(s, f, func(body []Stmt) []Stmt { return MapExprs(body, f) })
	}
	return out
}

// mapStmt returns a copy of a statement with its expressions mapped by f, and then its bodies by
// block.
func mapStmt(s Stmt, f func(scalar.Expr) scalar.Expr, block func([]Stmt) []Stmt) Stmt {
	out := s.clone()
	exprs(out, func(e *scalar.Expr) { *e = f(*e) })
	bodies(out, func(body *[]Stmt) { *body = block(*body) })
	return out
}

// shallow returns a copy of a statement that shares its slices.
func shallow[S any](s *S) *S {
	out := *s
	return &out
}

func (s *Let) clone() Stmt            { return shallow(s) }
func (s *Var) clone() Stmt            { return shallow(s) }
func (s *Assign) clone() Stmt         { return shallow(s) }
func (s *Store) clone() Stmt          { return shallow(s) }
func (s *For) clone() Stmt            { return shallow(s) }
func (s *If) clone() Stmt             { return shallow(s) }
func (s *Barrier) clone() Stmt        { return shallow(s) }
func (s *AtomicOp) clone() Stmt       { return shallow(s) }
func (s *Subgroup) clone() Stmt       { return shallow(s) }
func (s *Shuffle) clone() Stmt        { return shallow(s) }
func (s *FragmentZero) clone() Stmt   { return shallow(s) }
func (s *FragmentLoad) clone() Stmt   { return shallow(s) }
func (s *FragmentMulAdd) clone() Stmt { return shallow(s) }
func (s *FragmentStore) clone() Stmt  { return shallow(s) }
func (s *CopyAsync) clone() Stmt      { return shallow(s) }
func (s *CopyCommit) clone() Stmt     { return s }
func (s *CopyWait) clone() Stmt       { return shallow(s) }
func (s *ProxyFence) clone() Stmt     { return s }
func (s *Pack) clone() Stmt           { return shallow(s) }
func (s *Arrive) clone() Stmt         { return shallow(s) }
func (s *Await) clone() Stmt          { return shallow(s) }
func (s *LoadVec) clone() Stmt        { return &LoadVec{slices.Clone(s.Names), s.Array, s.At} }
func (s *StoreVec) clone() Stmt       { return &StoreVec{s.Array, s.At, slices.Clone(s.Values)} }
func (s *MmaWait) clone() Stmt        { return &MmaWait{s.Pending, slices.Clone(s.Names)} }
func (s *Roles) clone() Stmt          { return &Roles{slices.Clone(s.List)} }

func (s *Mma) clone() Stmt {
	out := &Mma{s.Shape, slices.Clone(s.Terms)}
	for i := range out.Terms {
		t := &out.Terms[i]
		t.Sums, t.LeftRegisters = slices.Clone(t.Sums), slices.Clone(t.LeftRegisters)
	}
	return out
}

func (s *CopyTMA) clone() Stmt {
	out := shallow(s)
	out.From, out.Offset = slices.Clone(s.From), slices.Clone(s.Offset)
	return out
}

// Arrays calls f with the array numbers of a statement itself, except those of loads in its
// expressions.
func Arrays(s Stmt, f func(array *int)) {
	arrays(s, func(array *int, _ bool) { f(array) })
}

// WalkArrays calls f with the array numbers of every statement, see [Arrays].
func WalkArrays(body []Stmt, f func(array *int)) {
	Walk(body, func(s Stmt) { Arrays(s, f) })
}

// WalkStores calls f with the arrays that statements write.
func WalkStores(body []Stmt, f func(array int)) {
	Walk(body, func(s Stmt) {
		arrays(s, func(array *int, written bool) {
			if written {
				f(*array)
			}
		})
	})
}

// arrays is [Arrays] with whether the statement writes the array.
func arrays(s Stmt, f func(array *int, written bool)) {
	switch s := s.(type) {
	case *Store:
		f(&s.Array, true)
	case *LoadVec:
		f(&s.Array, false)
	case *StoreVec:
		f(&s.Array, true)
	case *AtomicOp:
		f(&s.Array, true)
	}
	if !withAsync {
		return
	}
	switch s := s.(type) {
	case *FragmentLoad:
		f(&s.Array, false)
	case *FragmentStore:
		f(&s.Array, true)
	case *CopyAsync:
		f(&s.To, true)
		f(&s.From, false)
	case *Mma:
		for i := range s.Terms {
			if t := &s.Terms[i]; t.LeftRegisters == nil {
				f(&t.A.Array, false)
			}
			f(&s.Terms[i].B.Array, false)
		}
	case *CopyTMA:
		f(&s.To, true)
	}
}
