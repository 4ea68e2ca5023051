package loop

import "github.com/rlx-go/rlx/ir/scalar"

// mapAsync is mapStmt for asynchronous work.
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

// asyncArrays is [Arrays] for asynchronous work, asyncStores [WalkStores].
func asyncArrays(s Stmt, f func(array *int)) {
	switch s := s.(type) {
	case *CopyAsync:
		f(&s.To)
		f(&s.From)
	case *Mma:
		s.arrays(f)
	case *CopyBox:
		f(&s.To)
	}
}

func asyncStores(s Stmt, f func(array int)) {
	switch s := s.(type) {
	case *CopyAsync:
		f(s.To)
	case *CopyBox:
		f(s.To)
	}
}

// asyncExprs is [EachExpr] for asynchronous work.
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
	case *CopyBox:
		each(s.exprs(), f)
	case *Arrive:
		f(s.At)
	case *Await:
		f(s.At)
		f(s.Phase)
	}
}
