package scalar

// Walk calls visit for every node of e once, operands first, in operand order.
func Walk(e Expr, visit func(Expr)) {
	if len(e.Args) == 0 {
		visit(e)
		return
	}
	var seen memo[struct{}]
	var walk func(n *Node)
	walk = func(n *Node) {
		if _, known := seen.at(n); known {
			return
		}
		for _, a := range n.Args {
			walk(a)
		}
		visit(n)
	}
	walk(e)
}

// Any reports whether f is true for a node of e. f may be called more than once for a node.
func Any(e Expr, f func(Expr) bool) bool {
	// Most expressions have fewer nodes than this, even if shared ones count repeatedly; a plain
	// walk is then faster than tracking visited nodes.
	left := 64
	var holds func(n *Node) bool
	holds = func(n *Node) bool {
		left--
		if f(n) {
			return true
		}
		for _, a := range n.Args {
			if left > 0 && holds(a) {
				return true
			}
		}
		return false
	}
	if holds(e) {
		return true
	}
	found := false
	if left <= 0 {
		Walk(e, func(n Expr) { found = found || f(n) })
	}
	return found
}

// Count returns the number of operations of e; a shared one counts once, constants, arguments and
// variables do not count.
func Count(e Expr) int {
	ops := 0
	Walk(e, func(n Expr) {
		if !n.Op.isLeaf() {
			ops++
		}
	})
	return ops
}

// SubstituteVars returns e with the variables that have a value in values, by name, replaced by it,
// once: not in the values themselves.
func SubstituteVars(e Expr, values map[string]Expr) Expr {
	return Substitute(e, func(n Expr) (Expr, bool) {
		if n.Op != OpVar {
			return nil, false
		}
		v, ok := values[n.Name]
		return v, ok
	})
}

// Substitute returns e with each node for which with returns true replaced by the returned node;
// nodes above are rebuilt by their constructors, which fold and simplify. with is called once for
// every node of e, from the roots down, but not for the nodes of replacements. A replacement must
// have the type of the node that it replaces.
func Substitute(e Expr, with func(Expr) (Expr, bool)) Expr {
	if len(e.Args) == 0 {
		if r, replaced := with(e); replaced {
			return r
		}
		return e
	}
	var done memo[Expr]
	var visit func(n *Node) Expr
	visit = func(n *Node) Expr {
		r, known := done.at(n)
		if known {
			return *r
		}
		replaced := false
		if *r, replaced = with(n); !replaced {
			*r = rebuilt(n, visit)
		}
		return *r
	}
	return visit(e)
}

// Conjuncts returns the conditions whose conjunction is cond: cond itself unless its operation is And.
func Conjuncts(cond Expr) []Expr {
	if cond.Op != OpAnd || !cond.Type.IsBool() {
		return []Expr{cond}
	}
	return append(Conjuncts(cond.Args[0]), Conjuncts(cond.Args[1])...)
}

// Assume returns e for where conditions hold: true replaces them and their [Conjuncts].
func Assume(e Expr, conds ...Expr) Expr {
	known := map[string]bool{}
	for _, cond := range conds {
		known[Key(cond)] = true
		for _, c := range Conjuncts(cond) {
			known[Key(c)] = true
		}
	}
	return Simplify(Substitute(e, func(n Expr) (Expr, bool) {
		return ConstBool(true), n.Type.IsBool() && known[Key(n)]
	}))
}

// memo maps nodes to values. It searches a short list before it uses a map, since most expressions
// are small.
type memo[V any] struct {
	keys   [32]*Node
	values [32]V
	n      int
	more   map[*Node]*V
}

// at returns the value of a node, and whether it existed. A new value is zero and set by the
// caller.
func (m *memo[V]) at(n *Node) (v *V, known bool) {
	for i, k := range m.keys[:m.n] {
		if k == n {
			return &m.values[i], true
		}
	}
	if m.n < len(m.keys) {
		m.keys[m.n] = n
		m.n++
		return &m.values[m.n-1], false
	}
	more, known := m.more[n]
	if !known {
		if m.more == nil {
			m.more = map[*Node]*V{}
		}
		more = new(V)
		m.more[n] = more
	}
	return more, known
}

// TakeChecks returns e without its checks, and calls f with the condition and the code of each,
// those within a condition first.
func TakeChecks(e Expr, f func(cond Expr, code int)) Expr {
	if !Any(e, func(n Expr) bool { return n.Op == OpCheck }) {
		return e
	}
	return Substitute(e, func(n Expr) (Expr, bool) {
		if n.Op != OpCheck {
			return nil, false
		}
		f(TakeChecks(n.Args[1], f), n.Ref)
		return TakeChecks(n.Args[0], f), true
	})
}
