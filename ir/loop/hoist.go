package loop

import (
	"strconv"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Hoist returns statements that do the same as body, with what a loop would
// compute in each turn alike computed once before it. Drivers for large GPUs do
// that by themselves, those that run on processors do not. Loads stay where they
// are: what they read may change. No expression fails, so one that only a branch
// needs may be computed before the loop too. And what the places of neighbouring
// stores have in common is computed once before these.
func Hoist(body []Stmt) []Stmt {
	h := hoister{shared: scalar.NewSimplifier()}
	return h.block(body)
}

type hoister struct {
	names  int
	shared *scalar.Simplifier
	// plain says that places stay as they are, in loops that are written out, after which
	// they may be constants, or over lanes, where it is seen by them what lies side by side.
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
			out = append(append(out, h.before(loop)...), loop)
		case *If:
			out = append(out, &If{s.Cond, h.block(s.Then), h.block(s.Else)})
		case *Roles:
			out = append(out, s.each(h.block))
		default:
			out = append(out, s)
		}
	}
	return out
}

// before takes what does not change out of the body of a loop and returns it.
func (h *hoister) before(loop *For) []Stmt {
	t := &turn{h: h, lanes: loop.Lanes, changing: map[string]bool{loop.Var: true}, held: map[scalar.Expr]scalar.Expr{}}
	Walk(loop.Body, func(s Stmt) {
		switch s.(type) {
		case *Let: // changes if its value does
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

// turn is one turn of a loop.
type turn struct {
	h        *hoister
	lanes    bool // of a loop over lanes
	changing map[string]bool
	held     map[scalar.Expr]scalar.Expr // variables made for expressions
	out      []Stmt
}

func (t *turn) block(body []Stmt) []Stmt {
	var out []Stmt
	for _, s := range body {
		switch s := s.(type) {
		case *Let:
			if t.steady(s.Value) {
				t.out = append(t.out, s)
				continue
			}
			t.changing[s.Name] = true
			out = append(out, &Let{s.Name, t.expr(s.Value)})
		case *For:
			out = append(out, s.with(t.expr(s.Start), t.expr(s.End), s.Step, t.block(s.Body)))
		case *If:
			out = append(out, &If{t.expr(s.Cond), t.block(s.Then), t.block(s.Else)})
		default:
			changes := false
			EachExpr(s, func(e scalar.Expr) { changes = changes || t.expr(e) != e })
			if changes {
				s = mapStmt(s, t.expr)
			}
			out = append(out, s)
		}
	}
	return out
}

// steady reports whether e is the same in every turn.
func (t *turn) steady(e scalar.Expr) bool { return steady(e, t.changing) }

// steady reports whether e is the same wherever nothing changes but some variables, and
// memory.
func steady(e scalar.Expr, changing map[string]bool) bool {
	return !scalar.Any(e, func(n scalar.Expr) bool {
		return n.Op == scalar.OpLoad || n.Op == scalar.OpCheck || n.Op == scalar.OpVar && changing[n.Name]
	})
}

// worthHolding is from how many operations on an expression is kept in a
// variable: one may be part of an address, or of an instruction, for nothing.
const worthHolding = 2

// expr replaces the largest parts of e that do not change by variables.
func (t *turn) expr(e scalar.Expr) scalar.Expr {
	return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
		if len(n.Args) == 0 || !t.steady(n) {
			return nil, false
		}
		if t.lanes && n.Op == scalar.OpAdd && n.Args[1].Op == scalar.OpConst {
			return nil, false // what is added stays: in an address it costs nothing
		}
		if scalar.Count(n) < worthHolding {
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

// variable returns a new variable of the range of e.
func (h *hoister) variable(prefix string, e scalar.Expr) scalar.Expr {
	h.names++
	name := prefix + strconv.Itoa(h.names)
	if lo, hi, ok := h.shared.Range(e); ok {
		return scalar.NewVar(name, e.Type, lo, hi)
	}
	return scalar.FreeVar(name, e.Type)
}
