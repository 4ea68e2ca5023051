package loop

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Hoist moves loop-invariant code out of loops. Drivers of large GPUs do that themselves, those
// that run on processors do not. Loads stay in place, because memory may change. Expressions
// cannot fail, so hoisting out of a branch is safe. Hoist also computes the common base of the
// addresses of neighbouring accesses once.
func Hoist(body []Stmt) []Stmt {
	h := hoister{shared: scalar.NewSimplifier()}
	return h.block(body)
}

type hoister struct {
	names  int
	shared *scalar.Simplifier
	// plain disables naming address bases: in unrolled loops, where they may become
	// constants, and in loops over lanes, where contiguity is read off the addresses.
	plain bool
}

func (h *hoister) block(body []Stmt) []Stmt {
	var out []Stmt
	if !h.plain {
		body = h.nameBases(body)
	}
	for _, s := range body {
		switch s := s.(type) {
		case *For:
			outer := h.plain
			h.plain = outer || s.Unroll || s.Lanes
			loop := s.with(s.Start, s.End, s.Step, h.block(s.Body))
			h.plain = outer
			out = append(append(out, h.hoist(loop)...), loop)
		case *If, *Roles:
			out = append(out, mapStmt(s, func(e scalar.Expr) scalar.Expr { return e }, h.block))
		default:
			out = append(out, s)
		}
	}
	return out
}

// hoist removes the loop-invariant code from the body of a loop and returns it.
func (h *hoister) hoist(loop *For) []Stmt {
	t := &invariants{h: h, lanes: loop.Lanes, changing: map[string]bool{loop.Var: true}, held: map[scalar.Expr]scalar.Expr{}}
	Walk(loop.Body, func(s Stmt) {
		switch s.(type) {
		case *Let: // varies only if its value does
		default:
			for _, names := range [2][]string{Defines(s), Assigns(s)} {
				for _, name := range names {
					t.changing[name] = true
				}
			}
		}
	})
	loop.Body = t.block(loop.Body)
	return t.out
}

// invariants collects the loop-invariant code of one loop.
type invariants struct {
	h        *hoister
	lanes    bool // a loop over lanes
	changing map[string]bool
	held     map[scalar.Expr]scalar.Expr // hoisted expressions and their variables
	out      []Stmt
}

func (t *invariants) block(body []Stmt) []Stmt {
	var out []Stmt
	for _, s := range body {
		switch s := s.(type) {
		case *Let:
			if t.invariant(s.Value) {
				t.out = append(t.out, s)
				continue
			}
			t.changing[s.Name] = true
			out = append(out, &Let{s.Name, t.expr(s.Value)})
		default:
			out = append(out, mapStmt(s, t.expr, t.block))
		}
	}
	return out
}

// invariant reports whether e is loop-invariant.
func (t *invariants) invariant(e scalar.Expr) bool { return invariant(e, t.changing) }

// invariant reports whether e depends on none of the changing variables, on no memory, and
// checks no index.
func invariant(e scalar.Expr, changing map[string]bool) bool {
	return !scalar.Any(e, func(n scalar.Expr) bool {
		return n.Op == scalar.OpLoad || n.Op == scalar.OpCheck || n.Op == scalar.OpVar && changing[n.Name]
	})
}

// minHoistOps is the number of operations from which an expression gets a variable: a single
// one may be free as part of an address or an instruction.
const minHoistOps = 2

// expr replaces the largest loop-invariant subexpressions of e by variables.
func (t *invariants) expr(e scalar.Expr) scalar.Expr {
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		if len(n.Args) == 0 || !t.invariant(n) {
			return nil, false
		}
		if t.lanes && n.Op == scalar.OpAdd && n.Args[1].Op == scalar.OpConst {
			return nil, false // a constant offset is free in an address
		}
		if scalar.Count(n) < minHoistOps {
			return n, true
		}
		key := t.h.shared.Shared(n)
		v, ok := t.held[key]
		if !ok {
			v = t.h.variable("steady", n)
			t.out = append(t.out, &Let{v.Name, n})
			t.held[key] = v
		}
		return v, true
	})
}

// variable returns a new variable with the range of e.
func (h *hoister) variable(prefix string, e scalar.Expr) scalar.Expr {
	h.names++
	name := prefix + strconv.Itoa(h.names)
	if lo, hi, ok := h.shared.Range(e); ok {
		return scalar.NewVar(name, e.Type, lo, hi)
	}
	return scalar.FreeVar(name, e.Type)
}

// minNeighbours is the number of accesses from which their common base gets a name.
const minNeighbours = 4

// base is an address that others in a block differ from by constants.
type base struct {
	at          scalar.Expr
	name        scalar.Expr
	accesses    int
	first, last int // first and last statement of the block that uses it
}

// nameBases names the common base of neighbouring addresses in a block, such as those of a
// thread's results. Otherwise the base is up to a quarter of the text of a product, which a
// driver would parse and eliminate by CSE 64 times.
func (h *hoister) nameBases(body []Stmt) []Stmt {
	bases, order := h.bases(body)
	if len(order) == 0 {
		return body
	}
	var out []Stmt
	for i, s := range body {
		for _, b := range order {
			if b.first == i {
				b.name = h.variable("base", b.at)
				out = append(out, &Let{b.name.Name, b.at})
			}
		}
		out = append(out, mapPlaces(s, func(at scalar.Expr) scalar.Expr {
			place, offset := splitOffset(h.shared.Shared(at))
			if b := bases[place]; b != nil && b.name != nil {
				return scalar.Add(b.name, scalar.ConstI(at.Type, offset))
			}
			return at
		}))
	}
	return out
}

// bases returns the bases that deserve a name and are unchanged between their first and last
// use, by address and in order. A base first used under a condition is left out, because the
// ranges of its variables may hold only there.
func (h *hoister) bases(body []Stmt) (byPlace map[scalar.Expr]*base, order []*base) {
	byPlace = map[scalar.Expr]*base{}
	for i, s := range body {
		_, conditional := s.(*If)
		eachPlace(s, func(at scalar.Expr) {
			place, _ := splitOffset(h.shared.Shared(at))
			b := byPlace[place]
			if b == nil {
				if conditional {
					return
				}
				b = &base{at: place, first: i}
				byPlace[place] = b
				order = append(order, b)
			}
			b.accesses++
			b.last = i
		})
	}
	kept := order[:0]
	for _, b := range order {
		if b.accesses < minNeighbours || scalar.Count(b.at) < minHoistOps || changes(body[b.first:b.last+1], b.at) {
			delete(byPlace, b.at)
			continue
		}
		kept = append(kept, b)
	}
	return byPlace, kept
}

// eachPlace calls f for the addresses that a statement loads and stores, as in [mapPlaces].
func eachPlace(s Stmt, f func(at scalar.Expr)) {
	switch s.(type) {
	case *For, *Roles:
		return
	}
	EachNode(s, func(n scalar.Expr) {
		if n.Op == scalar.OpLoad {
			f(n.Args[0])
		}
	})
	if at := address(s); at != nil {
		f(*at)
	}
	bodies(s, func(body *[]Stmt) {
		for _, s := range *body {
			eachPlace(s, f)
		}
	})
}

// address returns the address of a statement that loads or stores, nil for others.
func address(s Stmt) *scalar.Expr {
	switch s := s.(type) {
	case *LoadVec:
		return &s.At
	case *Store:
		return &s.At
	case *StoreVec:
		return &s.At
	}
	return nil
}

// mapPlaces maps the addresses that a statement, or for a condition its branches, loads and
// stores through f. Loops have bases of their own, which [Hoist] moves out.
func mapPlaces(s Stmt, f func(at scalar.Expr) scalar.Expr) Stmt {
	var loads func(e scalar.Expr) scalar.Expr
	loads = func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
			if n.Op != scalar.OpLoad {
				return nil, false
			}
			return scalar.LoadAt(n.Ref, n.Type, f(loads(n.Args[0]))), true
		})
	}
	each := func(body []Stmt) []Stmt {
		out := make([]Stmt, len(body))
		for i, s := range body {
			out[i] = mapPlaces(s, f)
		}
		return out
	}
	switch s.(type) {
	case *For, *Roles:
		return s
	}
	s = mapStmt(s, loads, each)
	if at := address(s); at != nil {
		*at = f(*at)
	}
	return s
}

// splitOffset splits an index into a base and a constant offset.
func splitOffset(at scalar.Expr) (place scalar.Expr, offset int64) {
	if at.Op == scalar.OpAdd {
		if c, ok := at.Args[1].IntConst(); ok {
			return at.Args[0], c
		}
	}
	return at, 0
}

// changes reports whether the value of e may change in body: body defines or changes a
// variable of it, or e reads memory.
func changes(body []Stmt, e scalar.Expr) bool {
	names := map[string]bool{}
	Walk(body, func(s Stmt) {
		for _, name := range append(Defines(s), Assigns(s)...) {
			names[name] = true
		}
	})
	return !invariant(e, names)
}
