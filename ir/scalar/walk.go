package scalar

// Walk calls visit for every node of e once, operands before the nodes that use
// them, in the order of the operands.
func Walk(e Expr, visit func(Expr)) {
	seen := map[*Node]bool{}
	var walk func(n *Node)
	walk = func(n *Node) {
		if seen[n] {
			return
		}
		seen[n] = true
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
	done := map[*Node]Expr{}
	var visit func(n *Node) Expr
	visit = func(n *Node) Expr {
		if r, ok := done[n]; ok {
			return r
		}
		r, replaced := with(n)
		if !replaced {
			r = n
			if c := withArgs(n, visit); c != n {
				r = Rebuild(c, c.Args...)
			}
		}
		done[n] = r
		return r
	}
	return visit(e)
}
