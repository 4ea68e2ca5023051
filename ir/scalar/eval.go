package scalar

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Env holds the values of the leaves of an expression.
type Env struct {
	// Args holds the values of Arg leaves by number.
	Args []Value
	// Vars holds the values of variables by name.
	Vars map[string]Value
	// Slots, if not nil, holds the values of variables in the order of Evaluator.Vars and replaces
	// Vars.
	Slots []Value
	// Load returns an element of a buffer. An error stops the evaluation.
	Load func(slot int, t dtype.DType, index int64) (Value, error)
	// Failed, if not nil, is called with the code of each Check whose condition is false.
	Failed func(code int)
	// Rounding is the rounding mode of results.
	Rounding Rounding
}

// EvalError reports a leaf without a value in an Env.
type EvalError struct {
	Leaf string
}

func (e *EvalError) Error() string {
	return format.Sprintf("scalar: no value for %s", e.Leaf)
}

// Eval returns the value of e in env. The error is an *EvalError for a leaf without a value, or the
// error of env.Load. To evaluate an expression repeatedly, Compile it.
func Eval(e Expr, env *Env) (Value, error) {
	v, err := Compile(e).Run(env, nil)
	if err != nil {
		return Value{}, err
	}
	return v[0], nil
}

// Evaluator holds expressions prepared for repeated evaluation, as a sequence of instructions
// without duplicates. It is immutable and safe for concurrent use.
type Evaluator struct {
	code  []instr
	roots []int
	vars  []string
}

// instr computes one node from earlier results.
type instr struct {
	node *Node
	args [3]int // numbers of earlier instructions
	slot int    // number of a Var in Evaluator.vars
}

// Compile returns an evaluator of roots.
func Compile(roots ...Expr) *Evaluator {
	p := &Evaluator{}
	number := map[*Node]int{}
	names := map[string]int{}
	for _, r := range roots {
		Walk(r, func(n Expr) {
			if _, done := number[n]; done {
				return
			}
			in := instr{node: n}
			for i, a := range n.Args {
				in.args[i] = number[a]
			}
			if n.Op == OpVar {
				k, known := names[n.Name]
				if !known {
					k = len(p.vars)
					names[n.Name] = k
					p.vars = append(p.vars, n.Name)
				}
				in.slot = k
			}
			number[n] = len(p.code)
			p.code = append(p.code, in)
		})
		p.roots = append(p.roots, number[r])
	}
	return p
}

// Vars returns the names of the variables of the expressions, without duplicates, in the order of
// Env.Slots.
func (p *Evaluator) Vars() []string { return slices.Clone(p.vars) }

// variable returns the value of the variable called name.
func (env *Env) variable(name string, slot int) (Value, bool) {
	if env.Slots == nil {
		v, ok := env.Vars[name]
		return v, ok
	}
	if slot >= len(env.Slots) {
		return Value{}, false
	}
	return env.Slots[slot], true
}

// Run returns the values of the roots in env. scratch, if not nil, is reused as memory and holds
// the results: pass the slice that the last Run returned, so that repeated runs do not allocate.
// The errors are those of Eval.
func (p *Evaluator) Run(env *Env, scratch []Value) ([]Value, error) {
	need := len(p.roots) + len(p.code)
	if cap(scratch) < need {
		scratch = make([]Value, need)
	}
	scratch = scratch[:need]
	out, regs := scratch[:len(p.roots)], scratch[len(p.roots):]
	for i := range p.code {
		v, err := p.step(&p.code[i], regs, env)
		if err != nil {
			return scratch[:0], err
		}
		regs[i] = v
	}
	for i, r := range p.roots {
		out[i] = regs[r]
	}
	return out, nil
}

// step evaluates one instruction.
func (p *Evaluator) step(in *instr, regs []Value, env *Env) (Value, error) {
	n := in.node
	switch n.Op {
	case OpConst:
		v, _ := n.Value()
		return v, nil
	case OpArg:
		if n.Ref < 0 || n.Ref >= len(env.Args) {
			return Value{}, &EvalError{Leaf: format.Sprintf("argument %d", n.Ref)}
		}
		return env.Args[n.Ref].round(n.Type, env.Rounding), nil
	case OpVar:
		v, ok := env.variable(n.Name, in.slot)
		if !ok {
			return Value{}, &EvalError{Leaf: format.Sprintf("variable %s", n.Name)}
		}
		return v.round(n.Type, env.Rounding), nil
	case OpLoad:
		if env.Load == nil {
			return Value{}, &EvalError{Leaf: format.Sprintf("buffer slot %d", n.Ref)}
		}
		return env.Load(n.Ref, n.Type, regs[in.args[0]].I)
	}
	var v [3]Value
	for i := range n.Args {
		v[i] = regs[in.args[i]]
	}
	if n.Op == OpCheck && v[1].I == 0 && env.Failed != nil {
		env.Failed(n.Ref)
	}
	return apply(n, v, env.Rounding), nil
}
