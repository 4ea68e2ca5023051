package loop

import (
	"maps"
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

// bind is what a variable stands for inside an unrolled body: the variable
// called name, or the number value where name is "".
type bind struct {
	name  string
	value int64
}

// binds are the variables that stand for something else, by name.
type binds map[string]bind

// apply returns e with the variables of b replaced.
func (b binds) apply(e scalar.Expr) scalar.Expr {
	if len(b) == 0 {
		return e
	}
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		to, ok := b[n.Name]
		switch {
		case n.Op != scalar.OpVar || !ok:
			return nil, false
		case to.name == "":
			return scalar.ConstI(n.Type, to.value), true
		}
		return scalar.NewVar(to.name, n.Type, n.Lo, n.Hi), true
	})
}

// name returns the name that a variable defined as name has.
func (b binds) name(name string) string {
	if to, ok := b[name]; ok {
		return to.name
	}
	return name
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
		inner := binds{}
		maps.Copy(inner, b)
		inner[f.Var] = bind{value: at}
		walkNames(f.Body, func(name string) {
			inner[name] = bind{name: u.fresh(b.name(name), turn)}
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

// stmt returns a copy of s, not an unrolled loop, with b applied.
func (u *unroller) stmt(s Stmt, b binds) Stmt {
	switch s := s.(type) {
	case *For:
		f := s.with(b.apply(s.Start), b.apply(s.End), s.Step, u.block(s.Body, b))
		f.Var = b.name(s.Var)
		return f
	case *If:
		return &If{b.apply(s.Cond), u.block(s.Then, b), u.block(s.Else, b)}
	case *Roles:
		return s.each(func(body []Stmt) []Stmt { return u.block(body, b) })
	}
	if withAsync {
		switch s := s.(type) {
		case *Mma:
			return s.mapped(b.apply, b.name)
		case *MmaWait:
			return &MmaWait{s.Pending, mapNames(s.Names, b.name)}
		}
	}
	switch s := s.(type) {
	case *FragmentZero:
		return &FragmentZero{b.name(s.Name)}
	case *FragmentMulAdd:
		return &FragmentMulAdd{b.name(s.Sum), b.name(s.A), b.name(s.B)}
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
	case *Shuffle:
		s.Name = b.name(s.Name)
	case *Pack:
		s.Name = b.name(s.Name)
	case *FragmentLoad:
		s.Name = b.name(s.Name)
	case *FragmentStore:
		s.Name = b.name(s.Name)
	}
	return s
}

// walkNames shows every name that statements define.
func walkNames(body []Stmt, f func(name string)) {
	Walk(body, func(s Stmt) {
		for _, name := range Defines(s) {
			f(name)
		}
	})
}
