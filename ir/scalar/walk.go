package scalar

// Walk calls visit for every node of e once, operands before the nodes that use
// them, in the order of the operands.
func Walk(e Expr, visit func(Expr)) {
	if len(e.Args) == 0 {
		visit(e)
		return
	}
	var seen memo[struct{}]
	var walk func(n *Node)
	walk = func(n *Node) {
		if _, ok := seen.get(n); ok {
			return
		}
		seen.set(n, struct{}{})
		for _, a := range n.Args {
			walk(a)
		}
		visit(n)
	}
	walk(e)
}

// Count returns the number of operations of e, a shared one counted once and
// constants, arguments and variables not at all.
func Count(e Expr) int {
	ops := 0
	Walk(e, func(n Expr) {
		if !n.Op.isLeaf() {
			ops++
		}
	})
	return ops
}

// Substitute returns e with each node for which with returns true replaced by
// the node it returns, and everything above rebuilt by the constructors, which
// fold and simplify on the way. with is called once for every node of e, from
// the roots down; what it returns is not looked into again. Replacements must
// have the type of what they replace.
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
		if r, ok := done.get(n); ok {
			return r
		}
		r, replaced := with(n)
		if !replaced {
			r = rebuilt(n, visit)
		}
		done.set(n, r)
		return r
	}
	return visit(e)
}

// memo maps nodes to values. Most expressions are small, and few entries are
// found faster without a map.
type memo[V any] struct {
	keys   [32]*Node
	values [32]V
	n      int
	more   map[*Node]V
}

func (m *memo[V]) get(n *Node) (v V, ok bool) {
	for i, k := range m.keys[:m.n] {
		if k == n {
			return m.values[i], true
		}
	}
	v, ok = m.more[n]
	return v, ok
}

// set adds an entry for a node that has none.
func (m *memo[V]) set(n *Node, v V) {
	if m.n < len(m.keys) {
		m.keys[m.n], m.values[m.n] = n, v
		m.n++
		return
	}
	if m.more == nil {
		m.more = map[*Node]V{}
	}
	m.more[n] = v
}

// TakeChecks returns e without its checks, and tells f the condition and the code of each,
// those within a condition first.
func TakeChecks(e Expr, f func(cond Expr, code int)) Expr {
	return Substitute(e, func(n Expr) (Expr, bool) {
		if n.Op != OpCheck {
			return nil, false
		}
		f(TakeChecks(n.Args[1], f), n.Ref)
		return TakeChecks(n.Args[0], f), true
	})
}
