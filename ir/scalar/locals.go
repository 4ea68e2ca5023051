package scalar

import (
	"slices"
	"strconv"
)

// Local is a local variable that a printer declares: Var, a variable of
// Value's type, stands for Value. Value refers only to variables bound before.
type Local struct {
	Var   Expr
	Value Expr
}

// WithLocals is a list of expressions as printers write it: the locals in order, then the roots
// with the bound parts replaced by their variables.
type WithLocals struct {
	Locals []Local
	Roots  []Expr
}

// BindShared binds each operation that roots use more than once, counting structurally equal ones
// together, to a variable called prefix followed by a number from 0 (common subexpression
// elimination). Leaves are not bound, nor are the negation, complement or bitcast of a leaf. A
// variable has the range of its value. No variable in roots may have such a name. The result
// depends only on the structure of roots.
func BindShared(prefix string, roots ...Expr) WithLocals {
	return NewSimplifier().BindShared(prefix, roots...)
}

// BindShared is [BindShared] for roots that share parts with earlier arguments of the Simplifier.
func (s *Simplifier) BindShared(prefix string, roots ...Expr) WithLocals {
	if fewAndDistinct(roots) {
		return WithLocals{Roots: slices.Clone(roots)}
	}
	out := WithLocals{Roots: make([]Expr, len(roots))}
	for i, r := range roots {
		out.Roots[i] = s.in.intern(r)
	}
	var uses memo[use]
	countUses(out.Roots, &uses)

	var visit func(n *Node) Expr
	visit = func(n *Node) Expr {
		u, _ := uses.at(n)
		if u.form != nil {
			return u.form
		}
		u.form = withArgs(n, visit)
		if u.count > 1 && !trivial(n) {
			v := s.variable(prefix+strconv.Itoa(len(out.Locals)), n)
			out.Locals = append(out.Locals, Local{Var: v, Value: u.form})
			u.form = v
		}
		return u.form
	}
	for i, r := range out.Roots {
		out.Roots[i] = visit(r)
	}
	return out
}

// variable returns a variable for the interned node n.
func (s *Simplifier) variable(name string, n *Node) Expr {
	if r := s.interval(n); r.known && n.Type.IsInteger() && r != fullRange(n.Type) {
		return NewVar(name, n.Type, r.lo, r.hi)
	}
	return FreeVar(name, n.Type)
}

// fewAndDistinct reports whether roots have a handful of operations, all different: a common case
// that is quickly checked.
func fewAndDistinct(roots []Expr) bool {
	var found [6]*Node
	n := 0
	var add func(e *Node) bool
	add = func(e *Node) bool {
		if len(e.Args) == 0 {
			return true
		}
		if n == len(found) || slices.ContainsFunc(found[:n], func(old *Node) bool { return sameTree(old, e) }) {
			return false
		}
		found[n] = e
		n++
		for _, a := range e.Args {
			if !add(a) {
				return false
			}
		}
		return true
	}
	for _, r := range roots {
		if !add(r) {
			return false
		}
	}
	return true
}

// sameTree is Equal for small expressions.
func sameTree(a, b *Node) bool {
	if a == b {
		return true
	}
	same := a.Op == b.Op && a.Type == b.Type && a.Bits == b.Bits && a.Ref == b.Ref && a.Name == b.Name && a.Lo == b.Lo && a.Hi == b.Hi
	return same && slices.EqualFunc(a.Args, b.Args, sameTree)
}

// use counts the uses of a node as an operand or root, and holds its bound form, nil until it is
// known.
type use struct {
	count int
	form  Expr
}

// countUses counts the uses of every node of roots.
func countUses(roots []Expr, uses *memo[use]) {
	var visit func(n *Node)
	visit = func(n *Node) {
		u, _ := uses.at(n)
		if u.count++; u.count > 1 {
			return
		}
		for _, a := range n.Args {
			visit(a)
		}
	}
	for _, r := range roots {
		visit(r)
	}
}

// trivial reports whether n costs no more than a variable.
func trivial(n *Node) bool {
	switch n.Op {
	case OpNeg, OpNot, OpBitcast:
		return n.Args[0].Op.isLeaf()
	case OpMakeComplex:
		_, isConst := n.Value()
		return isConst
	}
	return n.Op.isLeaf()
}
