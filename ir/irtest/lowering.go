// Package irtest supports tests of the packages that build, transform and run graphs: a
// reference interpreter of lowerings, random graphs, models, benchmarks and tolerances.
//
// Its graphs are inputs of all packages below ir in the pipeline, and its results what these are
// compared to. Start reading at lowering.go, which evaluates the lowerings that the compiler works from,
// and random.go, which builds graphs.
package irtest

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// EvalLowering computes the results of a node from its Scalar rule or its
// Lowering, element by element, as literally as the types of package ir define them,
// independently of the compiler. rewrite, if not nil, is applied to every expression
// first. Loads outside an operand, failed checks, and expressions of the wrong element
// type are errors. Ops that run subgraphs are refused with an error of kind
// [ir.ErrUnsupported].
func EvalLowering(n *ir.Node, in []*ir.Array, rewrite func(scalar.Expr) scalar.Expr) ([]*ir.Array, error) {
	if rewrite == nil {
		rewrite = func(e scalar.Expr) scalar.Expr { return e }
	}
	l := &interpreter{n: n, in: in, rewrite: rewrite}
	for _, t := range n.Types() {
		dims, ok := t.Shape.Ints()
		if !ok {
			return nil, ir.Errorf(ir.ErrSymbol, "%s has a symbolic size", t)
		}
		l.out = append(l.out, ir.NewArray(t.DType, dims...))
	}
	return l.out, l.run()
}

// EvalForms computes the result of a contraction as [EvalLowering] does by its other forms: undivided, and by its phases,
// of which it returns the number.
func EvalForms(n *ir.Node, in []*ir.Array) (undivided, byPhases *ir.Array, phases int, err error) {
	of := n.Def().Lower.(*ir.ContractLowering).Phase
	dims, _ := n.Types()[0].Shape.Ints()
	add := func(out *ir.Array, i int) {
		l := &interpreter{n: n, in: in, out: []*ir.Array{out}, rewrite: func(e scalar.Expr) scalar.Expr { return e }}
		var c ir.Contraction
		c, phases = of(n, i)
		if failed := l.contract(c); err == nil {
			err = failed
		}
	}
	undivided, byPhases = ir.NewArray(n.Types()[0].DType, dims...), ir.NewArray(n.Types()[0].DType, dims...)
	add(undivided, ir.Undivided)
	for i := 0; i == 0 || i < phases; i++ {
		add(byPhases, i)
	}
	return undivided, byPhases, phases, err
}

type interpreter struct {
	n       *ir.Node
	in, out []*ir.Array
	rewrite func(scalar.Expr) scalar.Expr
	failed  int // code of the last failed check
}

func (l *interpreter) run() error {
	d := l.n.Def()
	if d.Scalar != nil {
		return l.elementwise()
	}
	switch lower := d.Lower.(type) {
	case *ir.MapLowering:
		return l.mapped(lower)
	case *ir.ReduceLowering:
		return l.reduce(lower)
	case *ir.ContractLowering:
		return l.contract(lower.Spec(l.n))
	case *ir.ScatterLowering:
		return l.scatter(lower)
	case *ir.SortLowering:
		return l.sort(lower)
	case *ir.PrefixLowering:
		return l.prefix(lower)
	}
	return ir.Errorf(ir.ErrUnsupported, "%s has no lowering of its own", d.Op)
}

// load is the [ir.Load] of lowerings: a load from the operand's slot, of an index that is
// -1 if the position is out of bounds along any axis.
func (l *interpreter) load(operand int, at ir.Index) scalar.Expr {
	a := l.in[operand]
	place, inside := constant(0), scalar.ConstBool(len(at) == len(a.Dims))
	for i, d := range a.Dims {
		if i >= len(at) {
			break
		}
		ok := scalar.And(scalar.Ge(at[i], constant(0)), scalar.Lt(at[i], constant(d)))
		inside = scalar.And(inside, ok)
		place = scalar.Add(scalar.Mul(place, constant(d)), at[i])
	}
	return scalar.LoadAt(operand, a.DType, scalar.Select(inside, place, constant(-1)))
}

func constant(x int) scalar.Expr { return scalar.ConstI(ir.I32, int64(x)) }

// space is an index space and its variables.
type space struct {
	dims []int
	vars ir.Index
}

func newSpace(prefix string, dims []int) space {
	s := space{dims: dims}
	for i, d := range dims {
		s.vars = append(s.vars, scalar.NewVar(fmt.Sprint(prefix, i), ir.I32, 0, int64(max(d-1, 0))))
	}
	return s
}

// each calls f for all positions in row-major order, with the variables set in env, and
// stops at an error.
func (s space) each(env *scalar.Env, f func(pos []int) error) error {
	count := 1
	for _, d := range s.dims {
		count *= d
	}
	pos := make([]int, len(s.dims))
	for i := range count {
		for a := len(pos) - 1; a >= 0; a-- {
			pos[a], i = i%s.dims[a], i/s.dims[a]
			env.Vars[s.vars[a].Name] = scalar.Value{I: int64(pos[a])}
		}
		if err := f(pos); err != nil {
			return err
		}
	}
	return nil
}

// env returns an environment in which the slots are the operands.
func (l *interpreter) env() *scalar.Env {
	return &scalar.Env{
		Vars:   map[string]scalar.Value{},
		Failed: func(code int) { l.failed = code },
		Load: func(slot int, t ir.DType, index int64) (scalar.Value, error) {
			a := l.in[slot]
			if t != a.DType {
				return scalar.Value{}, ir.DTypef("operand %d is %s; it is loaded as %s", slot, a.DType, t)
			}
			if index < 0 || index >= int64(a.Len()) {
				return scalar.Value{}, ir.Errorf(ir.ErrIndex, "a load of operand %d is out of bounds", slot)
			}
			return a.Element(int(index)), nil
		},
	}
}

// expressions is a compiled list of expressions.
type expressions struct {
	evaluator *scalar.Evaluator
	env       *scalar.Env
	scratch   []scalar.Value
	failed    *int
}

// compile checks the element types of expressions and compiles them.
func (l *interpreter) compile(env *scalar.Env, want []ir.DType, list ...scalar.Expr) (*expressions, error) {
	if len(want) != len(list) {
		return nil, ir.DTypef("%d expressions given for %d values", len(list), len(want))
	}
	rewritten := make([]scalar.Expr, len(list))
	for i, e := range list {
		if e.Type != want[i] {
			return nil, ir.DTypef("expression %d is %s; it must be %s: %s", i, e.Type, want[i], e)
		}
		rewritten[i] = l.rewrite(e)
	}
	return &expressions{evaluator: scalar.Compile(rewritten...), env: env, failed: &l.failed}, nil
}

func (x *expressions) values() ([]scalar.Value, error) {
	v, err := x.evaluator.Run(x.env, x.scratch)
	x.scratch = v
	if err == nil && *x.failed != 0 {
		err = ir.Errorf(ir.ErrIndex, "check %d failed", *x.failed)
	}
	return v, err
}

func (l *interpreter) elementwise() error {
	env := l.env()
	args := make([]scalar.Expr, len(l.in))
	for i, a := range l.in {
		args[i] = scalar.Arg(i, a.DType)
	}
	x, err := l.compile(env, []ir.DType{l.out[0].DType}, l.n.Def().Scalar(l.n, args))
	if err != nil {
		return err
	}
	env.Args = make([]scalar.Value, len(l.in))
	for i := range l.out[0].Len() {
		for k, a := range l.in {
			env.Args[k] = a.Element(i)
		}
		v, err := x.values()
		if err != nil {
			return err
		}
		l.out[0].SetElement(i, v[0])
	}
	return nil
}

func (l *interpreter) mapped(lower *ir.MapLowering) error {
	for result, out := range l.out {
		if out.Len() == 0 {
			continue
		}
		env, s := l.env(), newSpace("i", out.Dims)
		x, err := l.compile(env, []ir.DType{out.DType}, lower.Element(l.n, result, s.vars, l.load))
		if err != nil {
			return err
		}
		i := 0
		err = s.each(env, func([]int) error {
			v, err := x.values()
			if err == nil {
				out.SetElement(i, v[0])
			}
			i++
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
