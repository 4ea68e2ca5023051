package scalar

import (
	"maps"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

func TestBindSharedBindsRepeatedSubexpressions(t *testing.T) {
	x, y := Arg(0, dtype.F32), Arg(1, dtype.F32)
	e := Exp(Neg(x))
	s := BindShared("v", Add(e, Mul(Exp(Neg(x)), y)), e, Neg(x), y, y)
	want := []string{"v0 = exp(neg(%0:f32))", "add(v0:f32, mul(v0:f32, %1:f32))", "v0:f32", "neg(%0:f32)", "%1:f32", "%1:f32"}
	var got []string
	for _, b := range s.Locals {
		got = append(got, b.Var.Name+" = "+Print(b.Value))
	}
	for _, r := range s.Roots {
		got = append(got, Print(r))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkBindShared runs shared locals as a printer's target would, one at a
// time, and compares with the roots.
func checkBindShared(t *testing.T, env *Env, roots []Expr) {
	t.Helper()
	s := BindShared("v", roots...)
	with := &Env{Args: env.Args, Vars: map[string]Value{}}
	maps.Copy(with.Vars, env.Vars)
	for _, b := range s.Locals {
		if _, known := with.Vars[b.Var.Name]; known {
			t.Fatalf("%s is bound twice", b.Var.Name)
		}
		v, err := Eval(b.Value, with)
		if err != nil {
			t.Fatalf("%s is used before it is bound: %v", b.Var.Name, err)
		}
		with.Vars[b.Var.Name] = v
	}
	for i, r := range s.Roots {
		got, err := Eval(r, with)
		want, _ := Eval(roots[i], env)
		if err != nil || got != want {
			t.Fatalf("root %d: %v, %v; want %v\n%s", i, got, err, want, Print(roots[i]))
		}
	}
	checkUses(t, s)
}

// checkUses reports operations that are still used more than once, and
// variables that are used only once.
func checkUses(t *testing.T, s WithLocals) {
	t.Helper()
	uses := map[string]int{}
	count := func(e Expr) {
		for e, n := range treeUses(e) {
			if n > 1 && !trivial(e) {
				t.Errorf("%v is written %d times", e, n)
			}
			if e.Op == OpVar {
				uses[e.Name] += n
			}
		}
	}
	for _, b := range s.Locals {
		count(b.Value)
	}
	for _, r := range s.Roots {
		count(r)
	}
	for _, b := range s.Locals {
		if uses[b.Var.Name] < 2 {
			t.Errorf("%s is used %d times", b.Var.Name, uses[b.Var.Name])
		}
	}
}

// treeUses counts the uses of each node of e, structurally equal ones together.
func treeUses(e Expr) map[*Node]int {
	root := newInterner().intern(e)
	var uses memo[use]
	countUses([]Expr{root}, &uses)
	out := map[*Node]int{}
	Walk(root, func(n Expr) {
		u, _ := uses.at(n)
		out[n] = u.count
	})
	return out
}

func TestBindSharedKeepsValues(t *testing.T) {
	for seed := range int64(400) {
		g := newGrower(pickRandom(seed), dtype.I32)
		g.grow(4 + int(seed%20))
		pick := pickRandom(seed + 1)
		var roots []Expr
		for range 1 + pick(3) {
			roots = append(roots, g.pool[pick(len(g.pool))])
		}
		runs := 0
		g.values(func(env *Env) {
			if runs++; runs < 4 {
				checkBindShared(t, env, roots)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestBindSharedOfExpandedFunctionsSharesTheReduction(t *testing.T) {
	x := Arg(0, dtype.F32)
	sin, cos := Expand(Sin(x), Portable), Expand(Cos(x), Portable)
	s := BindShared("v", sin, cos)
	ops := 0
	for _, b := range s.Locals {
		ops += Count(b.Value)
	}
	for _, r := range s.Roots {
		ops += Count(r)
	}
	if alone := Count(sin); ops > alone+20 {
		t.Errorf("sine and cosine take %d operations, sine alone %d", ops, alone)
	}
	env := &Env{Args: []Value{{F: 12345.678}}}
	checkBindShared(t, env, []Expr{sin, cos})
}
