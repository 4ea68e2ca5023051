package kernel

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Unroll returns a kernel that does the same without loops marked Unroll, their
// bodies written out instead, and without private arrays whose every index is a
// constant then: these become variables, which no compiler puts into memory.
// Names defined in an unrolled body get the number of the turn as a suffix. k
// must pass [Check].
func Unroll(k *Kernel) *Kernel {
	u := unroller{taken: map[string]bool{}}
	for _, a := range k.Arrays {
		u.taken[a.Name] = true
	}
	walkNames(k.Body, func(name string) { u.taken[name] = true })
	out := *k
	out.Body = u.block(k.Body, nil)
	return promote(&out)
}

// unroller writes out loops.
type unroller struct {
	taken map[string]bool
}

// binds says what variables stand for inside an unrolled body.
type binds map[string]func(v scalar.Expr) scalar.Expr

// apply returns e with the variables of b replaced.
func (b binds) apply(e scalar.Expr) scalar.Expr {
	if len(b) == 0 {
		return e
	}
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op == scalar.OpVar && b[n.Name] != nil {
			return b[n.Name](n), true
		}
		return nil, false
	})
}

// name returns the name that a variable defined as name has.
func (b binds) name(name string) string {
	if b[name] == nil {
		return name
	}
	return b[name](scalar.FreeVar(name, 0)).Name
}

// with returns b and one more.
func (b binds) with(name string, f func(scalar.Expr) scalar.Expr) binds {
	out := binds{name: f}
	for k, v := range b {
		if k != name {
			out[k] = v
		}
	}
	return out
}

func (u *unroller) block(body []Stmt, b binds) []Stmt {
	var out []Stmt
	for _, s := range body {
		if f, ok := s.(*For); ok && f.Unroll {
			out = append(out, u.loop(f, b)...)
			continue
		}
		out = append(out, u.stmt(s, b))
	}
	return out
}

// loop writes out the body of f for each of its turns.
func (u *unroller) loop(f *For, b binds) []Stmt {
	start, _ := f.Start.IntConst()
	end, _ := f.End.IntConst()
	step, _ := f.Step.IntConst()
	var out []Stmt
	for turn, at := 0, start; at < end; turn, at = turn+1, at+step {
		inner := b.with(f.Var, func(v scalar.Expr) scalar.Expr { return scalar.ConstI(v.Type, at) })
		walkNames(f.Body, func(name string) {
			inner = inner.with(name, renamed(u.fresh(b.name(name), turn)))
		})
		out = append(out, u.block(f.Body, inner)...)
	}
	return out
}

// fresh returns a name for what is called name in a turn of an unrolled loop.
func (u *unroller) fresh(name string, turn int) string {
	base := name + "_" + strconv.Itoa(turn)
	out := base
	for i := 2; u.taken[out]; i++ {
		out = base + "_" + strconv.Itoa(i)
	}
	u.taken[out] = true
	return out
}

func renamed(name string) func(scalar.Expr) scalar.Expr {
	return func(v scalar.Expr) scalar.Expr { return scalar.NewVar(name, v.Type, v.Lo, v.Hi) }
}

// stmt returns a copy of s, not an unrolled loop, with b applied.
func (u *unroller) stmt(s Stmt, b binds) Stmt {
	switch s := s.(type) {
	case *For:
		return &For{b.name(s.Var), b.apply(s.Start), b.apply(s.End), s.Step, false, u.block(s.Body, b)}
	case *If:
		return &If{b.apply(s.Cond), u.block(s.Then, b), u.block(s.Else, b)}
	}
	s = mapStmt(s, b.apply)
	switch s := s.(type) {
	case *Let:
		s.Name = b.name(s.Name)
	case *Var:
		s.Name = b.name(s.Name)
	case *Assign:
		s.Name = b.name(s.Name)
	case *LoadVec:
		names := make([]string, len(s.Names))
		for i, name := range s.Names {
			names[i] = b.name(name)
		}
		s.Names = names
	case *AtomicOp:
		s.Old = b.name(s.Old)
	case *Subgroup:
		s.Name = b.name(s.Name)
	}
	return s
}

// walkNames shows every name that statements define.
func walkNames(body []Stmt, f func(name string)) {
	for _, s := range body {
		switch s := s.(type) {
		case *Let:
			f(s.Name)
		case *Var:
			f(s.Name)
		case *LoadVec:
			for _, name := range s.Names {
				f(name)
			}
		case *For:
			f(s.Var)
			walkNames(s.Body, f)
		case *If:
			walkNames(s.Then, f)
			walkNames(s.Else, f)
		case *AtomicOp:
			if s.Old != "" {
				f(s.Old)
			}
		case *Subgroup:
			f(s.Name)
		}
	}
}
