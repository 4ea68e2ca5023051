package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/scalar"
)

// maxRegisters bounds the elements of a private array that become variables.
const maxRegisters = 256

// promote turns private arrays that are accessed by constants alone into
// variables. It changes the statements of k, which nobody else may hold.
func promote(k *Kernel) *Kernel {
	if !slices.ContainsFunc(k.Arrays, func(a Array) bool { return a.Space == Private }) {
		return k
	}
	dynamic := dynamicArrays(k.Body)
	for i, a := range k.Arrays {
		if a.Space == Private && a.Width == 1 && a.Len <= maxRegisters && !dynamic[i] {
			newRegisters(k, i).place()
			k.Arrays[i].Len = 0
		}
	}
	return dropArrays(k)
}

// dynamicArrays returns the arrays with an access by other than a constant.
func dynamicArrays(body []Stmt) map[int]bool {
	out := map[int]bool{}
	note := func(array int, at scalar.Expr) {
		if _, ok := at.IntConst(); !ok {
			out[array] = true
		}
	}
	Walk(body, func(s Stmt) {
		EachNode(s, func(n scalar.Expr) {
			if n.Op == scalar.OpLoad {
				note(n.Ref, n.Args[0])
			}
		})
		if s, ok := s.(*Store); ok {
			note(s.Array, s.At)
		}
	})
	return out
}

// registers are the variables that one private array becomes.
type registers struct {
	k     *Kernel
	array int
	names []string
}

func newRegisters(k *Kernel, array int) *registers {
	k.Arrays = slices.Clone(k.Arrays)
	a := k.Arrays[array]
	u := unroller{taken: map[string]bool{}}
	walkNames(k.Body, func(name string) { u.taken[name] = true })
	for _, other := range k.Arrays {
		u.taken[other.Name] = true
	}
	r := &registers{k: k, array: array}
	for i := range a.Len {
		r.names = append(r.names, u.fresh(a.Name, i))
	}
	return r
}

// place declares each variable where its first value is stored, if that is in
// the innermost block with all its uses, and at the start of the kernel, as
// zero, if it is not.
func (r *registers) place() {
	first := map[Stmt]bool{}
	var early []Stmt
	a := r.k.Arrays[r.array]
	for i, name := range r.names {
		switch store, used := r.firstStore(r.k.Body, int64(i)); {
		case store != nil:
			first[store] = true
		case used:
			early = append(early, &Var{name, scalar.Const(a.DType, 0)})
		}
	}
	r.k.Body = append(early, r.rewrite(r.k.Body, first)...)
}

// firstStore looks at the statements of body that use element i. It returns the
// store that comes before all other uses, and whether there are any.
func (r *registers) firstStore(body []Stmt, i int64) (store Stmt, used bool) {
	var users []Stmt
	for _, s := range body {
		if r.uses(s, i) {
			users = append(users, s)
		}
	}
	if len(users) == 0 {
		return nil, false
	}
	switch s := users[0].(type) {
	case *Store:
		if s.Array == r.array && !r.loads(s.Value, i) {
			return s, true
		}
	case *For:
		if len(users) == 1 {
			store, _ = r.firstStore(s.Body, i)
		}
	case *If:
		if len(users) == 1 && !r.usedIn(s.Else, i) {
			store, _ = r.firstStore(s.Then, i)
		}
	case *Roles:
		for _, role := range s.List {
			if len(users) == 1 && store == nil {
				store, _ = r.firstStore(role.Body, i)
			}
		}
	}
	return store, true
}

// uses reports whether s, or a statement in it, loads or stores element i.
func (r *registers) uses(s Stmt, i int64) bool { return r.usedIn([]Stmt{s}, i) }

func (r *registers) usedIn(body []Stmt, i int64) bool {
	found := false
	Walk(body, func(s Stmt) {
		EachExpr(s, func(e scalar.Expr) { found = found || r.loads(e, i) })
		if s, ok := s.(*Store); ok && s.Array == r.array {
			at, _ := s.At.IntConst()
			found = found || at == i
		}
	})
	return found
}

func (r *registers) loads(e scalar.Expr, i int64) bool {
	found := false
	scalar.Walk(e, func(n scalar.Expr) {
		if n.Op == scalar.OpLoad && n.Ref == r.array {
			at, _ := n.Args[0].IntConst()
			found = found || at == i
		}
	})
	return found
}

// rewrite puts variables in the place of elements. Stores in first define them.
func (r *registers) rewrite(body []Stmt, first map[Stmt]bool) []Stmt {
	load := func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
			if n.Op != scalar.OpLoad || n.Ref != r.array {
				return nil, false
			}
			at, _ := n.Args[0].IntConst()
			return scalar.FreeVar(r.names[at], n.Type), true
		})
	}
	out := make([]Stmt, len(body))
	for i, s := range body {
		switch s := s.(type) {
		case *For:
			out[i] = s.with(load(s.Start), load(s.End), s.Step, r.rewrite(s.Body, first))
			continue
		case *If:
			out[i] = &If{load(s.Cond), r.rewrite(s.Then, first), r.rewrite(s.Else, first)}
			continue
		case *Roles:
			out[i] = s.each(func(body []Stmt) []Stmt { return r.rewrite(body, first) })
			continue
		case *Store:
			if s.Array == r.array {
				at, _ := s.At.IntConst()
				out[i] = &Assign{r.names[at], load(s.Value)}
				if first[s] {
					out[i] = &Var{r.names[at], load(s.Value)}
				}
				continue
			}
		}
		out[i] = mapStmt(s, load)
	}
	return out
}

// dropArrays removes the arrays of length 0, which nothing uses any more, and
// renumbers the others.
func dropArrays(k *Kernel) *Kernel {
	place := make([]int, len(k.Arrays))
	var kept []Array
	for i, a := range k.Arrays {
		place[i] = len(kept)
		if a.Len > 0 || a.Space == Storage {
			kept = append(kept, a)
		}
	}
	if len(kept) == len(k.Arrays) {
		return k
	}
	k.Arrays = kept
	k.Body = MapExprs(k.Body, func(e scalar.Expr) scalar.Expr { return renumberLoads(e, place) })
	WalkArrays(k.Body, func(array *int) { *array = place[*array] })
	k.Boxes = renumberBoxes(k.Boxes, place)
	return k
}

func renumberLoads(e scalar.Expr, place []int) scalar.Expr {
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		return scalar.LoadAt(place[n.Ref], n.Type, renumberLoads(n.Args[0], place)), true
	})
}
