package sparse

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir/scalar"
)

// number is the value of an expression, if known, and its differentiable dependencies.
type number struct {
	v     scalar.Value
	known bool
	deps  []int32
}

// isZero reports whether x is known to be zero.
func (x number) isZero() bool { return x.known && x.v == scalar.Value{} }

// sequence is a list of expressions, each once and after its operands.
type sequence struct {
	code  []step
	roots []int
	out   []number
}

type step struct {
	e    scalar.Expr
	args [3]int
	x    number
}

func compile(roots ...scalar.Expr) *sequence {
	p := &sequence{out: make([]number, len(roots))}
	at := map[scalar.Expr]int{}
	for _, r := range roots {
		scalar.Walk(r, func(e scalar.Expr) {
			if _, done := at[e]; done {
				return
			}
			s := step{e: e}
			for i, a := range e.Args {
				s.args[i] = at[a]
			}
			at[e] = len(p.code)
			p.code = append(p.code, s)
		})
		p.roots = append(p.roots, at[r])
	}
	return p
}

// run returns the numbers of the roots. The next run overwrites them.
func (p *sequence) run(m *machine) []number {
	for i := range p.code {
		s := &p.code[i]
		s.x = m.step(s.e, func(k int) number { return p.code[s.args[k]].x })
	}
	for i, r := range p.roots {
		p.out[i] = p.code[r].x
	}
	return p.out
}

// step evaluates one node of an expression from its operands.
func (m *machine) step(e scalar.Expr, arg func(k int) number) number {
	if v, ok := e.Value(); ok {
		return number{v: v, known: true}
	}
	switch e.Op {
	case scalar.OpVar:
		return number{v: scalar.Value{I: m.pos[e.Name]}, known: true}
	case scalar.OpArg:
		return m.in[e.Ref].element(m.at)
	case scalar.OpLoad:
		if at := arg(0); at.known {
			return m.in[e.Ref].element(int(at.v.I))
		}
		return number{deps: m.in[e.Ref].all()}
	case scalar.OpSelect:
		if c := arg(0); c.known {
			return arg(2 - int(c.v.I))
		}
		return number{deps: union(arg(1).deps, arg(2).deps)}
	case scalar.OpMul, scalar.OpMulZero:
		if arg(0).isZero() || arg(1).isZero() {
			return number{known: true}
		}
	}
	return combine(e, arg)
}

// combine evaluates any operation: its dependencies are the union of those of its operands.
func combine(e scalar.Expr, arg func(k int) number) number {
	x := number{known: true}
	var v [3]scalar.Value
	for k := range e.Args {
		a := arg(k)
		v[k] = a.v
		x.known = x.known && a.known
		x.deps = union(x.deps, a.deps)
	}
	if x.known {
		x.v = scalar.Apply(e, v)
	}
	if !derive.Differentiable(e.Type) {
		x.deps = nil
	}
	return x
}

// element returns element i. It returns an empty number for an index out of range, which an
// enclosing select discards.
func (v *traced) element(i int) number {
	switch {
	case v.known != nil && i >= 0 && i < v.known.Len():
		return number{v: v.known.Element(i), known: true}
	case i >= 0 && i < len(v.sets):
		return number{deps: v.sets[i]}
	}
	return number{}
}
