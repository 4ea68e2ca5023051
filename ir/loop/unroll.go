package loop

import (
	"maps"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Unroll replaces loops marked Unroll by copies of their bodies, and then promotes private
// arrays with only constant indices to variables, so that no compiler puts them in memory.
// Names defined in an unrolled body get the iteration as a suffix. k must pass [Check].
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

// unroller unrolls loops.
type unroller struct {
	taken map[string]bool
}

// bind is the replacement of a variable inside an unrolled body: the variable called name, or
// the number value if name is "".
type bind struct {
	name  string
	value int64
}

// binds maps variables to their replacements.
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

// name returns the replacement of a defined name.
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

// loop returns the body of f for each of its iterations.
func (u *unroller) loop(f *For, b binds) []Stmt {
	start, _ := f.Start.IntConst()
	end, _ := f.End.IntConst()
	step, _ := f.Step.IntConst()
	var out []Stmt
	for iteration, at := 0, start; at < end; iteration, at = iteration+1, at+step {
		inner := binds{}
		maps.Copy(inner, b)
		inner[f.Var] = bind{value: at}
		walkNames(f.Body, func(name string) {
			inner[name] = bind{name: u.fresh(b.name(name), iteration)}
		})
		out = append(out, u.block(f.Body, inner)...)
	}
	return out
}

// fresh returns a new name for name in an iteration of an unrolled loop.
func (u *unroller) fresh(name string, iteration int) string {
	base := name + "_" + strconv.Itoa(iteration)
	out := base
	for i := 2; u.taken[out]; i++ {
		out = base + "_" + strconv.Itoa(i)
	}
	u.taken[out] = true
	return out
}

// stmt returns a copy of s, which is not an unrolled loop, with b applied.
func (u *unroller) stmt(s Stmt, b binds) Stmt {
	s = mapStmt(s, b.apply, func(body []Stmt) []Stmt { return u.block(body, b) })
	names(s, func(name *string, _ naming) { *name = b.name(*name) })
	return s
}

// walkNames calls f for every name that statements define.
func walkNames(body []Stmt, f func(name string)) {
	Walk(body, func(s Stmt) {
		for _, name := range Defines(s) {
			f(name)
		}
	})
}

// maxRegisters bounds the length of a private array that is promoted to variables.
const maxRegisters = 256

// promote replaces private arrays that are only accessed at constant indices by variables
// (scalar replacement of aggregates). It modifies the statements of k.
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

// dynamicArrays returns the arrays accessed at an index that is not constant.
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

// registers holds the variables that replace a private array.
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

// place declares each variable at the store of its first value, if that is in the innermost
// block with all its uses, else as zero at the start of the kernel.
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

// firstStore finds the store that precedes all other uses of element i in body, if any, and
// reports whether body uses the element.
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

// uses reports whether s or its body loads or stores element i.
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

// rewrite replaces elements by variables. Stores in first define them.
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
		store, ok := s.(*Store)
		if !ok || store.Array != r.array {
			out[i] = mapStmt(s, load, func(body []Stmt) []Stmt { return r.rewrite(body, first) })
			continue
		}
		at, _ := store.At.IntConst()
		out[i] = &Assign{r.names[at], load(store.Value)}
		if first[s] {
			out[i] = &Var{r.names[at], load(store.Value)}
		}
	}
	return out
}

// dropArrays removes the arrays of length 0, which are unused, and renumbers the others.
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
	k.TensorMaps = renumberTensorMaps(k.TensorMaps, place)
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
