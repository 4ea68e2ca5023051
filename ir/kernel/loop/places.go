package loop

import "github.com/rlx-go/rlx/ir/scalar"

// leastNeighbours is from how many stores on the place that they are counted from is named.
const leastNeighbours = 4

// base is a place that stores of a block lie at constant distances from.
type base struct {
	at          scalar.Expr
	name        scalar.Expr
	stores      int
	first, last int // statements of the block that have such stores in them
}

// nameBases returns statements that do the same as a block, where what the places of
// neighbouring stores have in common has a name, such as those of the results of a thread.
// Written out it was up to a quarter of the text of a product, which a driver would read,
// and find to be equal again, 64 times.
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
		out = append(out, h.fromBases(s, bases))
	}
	return out
}

// bases returns the bases that are worth a name, and can have one from before the first
// statement with such a store to the last, by their places and in order.
func (h *hoister) bases(body []Stmt) (byPlace map[scalar.Expr]*base, order []*base) {
	byPlace = map[scalar.Expr]*base{}
	for i, s := range body {
		walkPlaces(s, func(at scalar.Expr) {
			at, _ = splitOffset(h.shared.Shared(at))
			b := byPlace[at]
			if b == nil {
				b = &base{at: at, first: i}
				byPlace[at] = b
				order = append(order, b)
			}
			b.stores++
			b.last = i
		})
	}
	kept := order[:0]
	for _, b := range order {
		if b.stores < leastNeighbours || scalar.Count(b.at) < worthHolding || changes(body[b.first:b.last+1], b.at) {
			delete(byPlace, b.at)
			continue
		}
		kept = append(kept, b)
	}
	return byPlace, kept
}

// fromBases returns s with places counted from bases that have names.
func (h *hoister) fromBases(s Stmt, bases map[scalar.Expr]*base) Stmt {
	from := func(at scalar.Expr) scalar.Expr {
		place, offset := splitOffset(h.shared.Shared(at))
		if b := bases[place]; b != nil {
			return scalar.Add(b.name, scalar.ConstI(at.Type, offset))
		}
		return at
	}
	each := func(body []Stmt) []Stmt {
		out := make([]Stmt, len(body))
		for i, s := range body {
			out[i] = h.fromBases(s, bases)
		}
		return out
	}
	switch s := s.(type) {
	case *Store:
		return &Store{s.Array, from(s.At), s.Value}
	case *StoreVec:
		return &StoreVec{s.Array, from(s.At), s.Values}
	case *If:
		return &If{s.Cond, each(s.Then), each(s.Else)}
	}
	return s
}

// walkPlaces shows the places of the stores of s and, where it is a condition, under it.
// Loops have bases of their own, which [Hoist] takes out of them.
func walkPlaces(s Stmt, f func(at scalar.Expr)) {
	switch s := s.(type) {
	case *Store:
		f(s.At)
	case *StoreVec:
		f(s.At)
	case *If:
		for _, s := range s.Then {
			walkPlaces(s, f)
		}
		for _, s := range s.Else {
			walkPlaces(s, f)
		}
	}
}

// splitOffset returns an index as a sum with a constant.
func splitOffset(at scalar.Expr) (place scalar.Expr, offset int64) {
	if at.Op == scalar.OpAdd {
		if c, ok := at.Args[1].IntConst(); ok {
			return at.Args[0], c
		}
	}
	return at, 0
}

// changes reports whether the value of e before some statements may not be what it is among
// them: they define or change a variable of it, or it reads memory.
func changes(body []Stmt, e scalar.Expr) bool {
	names := map[string]bool{}
	Walk(body, func(s Stmt) {
		for _, name := range append(Defines(s), Assigns(s)...) {
			names[name] = true
		}
	})
	return !steady(e, names)
}
