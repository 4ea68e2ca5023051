package loop

import "github.com/rlx-go/rlx/ir/scalar"

// leastNeighbours is from how many accesses on the place that they are counted from is named.
const leastNeighbours = 4

// base is a place that others in a block lie at constant distances from.
type base struct {
	at          scalar.Expr
	name        scalar.Expr
	accesses    int
	first, last int // statements of the block that have such places in them
}

// nameBases returns statements that do the same as a block, where what neighbouring places
// have in common has a name, such as those of the results of a thread. Written out it was up
// to a quarter of the text of a product, which a driver would read, and find to be equal
// again, 64 times.
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

// bases returns the bases that are worth a name, and can have one from before the first
// statement with such a place to the last, by their places and in order. What begins under a
// condition stays there: the ranges of its variables may hold there alone.
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
		if b.accesses < leastNeighbours || scalar.Count(b.at) < worthHolding || changes(body[b.first:b.last+1], b.at) {
			delete(byPlace, b.at)
			continue
		}
		kept = append(kept, b)
	}
	return byPlace, kept
}

// eachPlace shows the places of what a statement loads and stores, as [mapPlaces] has them.
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
	switch s := s.(type) {
	case *If:
		for _, body := range [2][]Stmt{s.Then, s.Else} {
			for _, s := range body {
				eachPlace(s, f)
			}
		}
	case *LoadVec:
		f(s.At)
	case *Store:
		f(s.At)
	case *StoreVec:
		f(s.At)
	}
}

// mapPlaces returns a statement with the places of what it loads and stores taken through f,
// and of what stands under it where it is a condition. Loops have bases of their own, which
// [Hoist] takes out of them.
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
	switch s := s.(type) {
	case *For, *Roles:
		return s
	case *If:
		return &If{loads(s.Cond), each(s.Then), each(s.Else)}
	}
	s = mapStmt(s, loads)
	switch s := s.(type) {
	case *LoadVec:
		s.At = f(s.At)
	case *Store:
		s.At = f(s.At)
	case *StoreVec:
		s.At = f(s.At)
	}
	return s
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
