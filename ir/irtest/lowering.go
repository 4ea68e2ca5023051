// Package irtest supports tests of the packages that make, transform and run
// graphs.
package irtest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// SampleGraph returns the graph of a single node of an op: a sample with
// inputs "0", "1", … for its operands and outputs for its results.
func SampleGraph(op ir.Op, s ir.Sample) (*ir.Graph, *ir.Node, error) {
	var n *ir.Node
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Port(ir.InputPort, fmt.Sprint(i), a.Type())
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output(fmt.Sprint(i), v)
			n = v.Node()
		}
	})
	return g, n, err
}

// SampleInputs returns the operands of a sample by the names that
// [SampleGraph] gives them.
func SampleInputs(s ir.Sample) map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for i, a := range s.In {
		in[fmt.Sprint(i)] = a
	}
	return in
}

// EvalLowering computes the results of a node from its Scalar rule or its
// Lowering, element by element, as literally as the types of package ir define
// them, so that it shares nothing with what compiles them. rewrite, if not nil,
// is applied to every expression first. Loads outside an operand, failed
// checks, and expressions of the wrong element type are errors. Ops that run
// subgraphs are refused with an error of kind [ir.ErrUnsupported].
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

type interpreter struct {
	n       *ir.Node
	in, out []*ir.Array
	rewrite func(scalar.Expr) scalar.Expr
	failed  int // code of the last check that failed
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

// load is what lowerings get elements by: a load from the operand's slot, of
// an index that is -1 unless the position lies inside along every axis.
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

// space is a set of positions, and the variables that stand for them.
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

// each calls f for all positions in row-major order, after entering them in
// env, and stops at an error.
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
				return scalar.Value{}, ir.DTypef("operand %d is %s, loaded as %s", slot, a.DType, t)
			}
			if index < 0 || index >= int64(a.Len()) {
				return scalar.Value{}, ir.Errorf(ir.ErrIndex, "load outside operand %d", slot)
			}
			return a.Element(int(index)), nil
		},
	}
}

// expressions is a compiled list of expressions.
type expressions struct {
	program *scalar.Program
	env     *scalar.Env
	scratch []scalar.Value
	failed  *int
}

// compile checks the element types of expressions and makes them ready to run.
func (l *interpreter) compile(env *scalar.Env, want []ir.DType, list ...scalar.Expr) (*expressions, error) {
	if len(want) != len(list) {
		return nil, ir.DTypef("%d expressions for %d values", len(list), len(want))
	}
	rewritten := make([]scalar.Expr, len(list))
	for i, e := range list {
		if e.Type != want[i] {
			return nil, ir.DTypef("expression %d is %s, not %s: %s", i, e.Type, want[i], e)
		}
		rewritten[i] = l.rewrite(e)
	}
	return &expressions{program: scalar.Compile(rewritten...), env: env, failed: &l.failed}, nil
}

func (x *expressions) values() ([]scalar.Value, error) {
	v, err := x.program.Run(x.env, x.scratch)
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

// partials is how many partial results a reduction is computed in before they
// are merged, which a lowering must allow.
const partials = 3

func (l *interpreter) reduce(lower *ir.ReduceLowering) error {
	env := l.env()
	at, r := newSpace("i", l.out[0].Dims), newSpace("r", lower.Space(l.n))
	var types []ir.DType
	var inits, accA, accB []scalar.Expr
	for i, a := range lower.Accumulators(l.n) {
		types, inits = append(types, a.DType), append(inits, a.Init)
		accA = append(accA, scalar.FreeVar(fmt.Sprint("a", i), a.DType))
		accB = append(accB, scalar.FreeVar(fmt.Sprint("b", i), a.DType))
	}
	init, err := l.constants(types, inits)
	if err != nil {
		return err
	}
	combine, err := l.compile(env, types, lower.Combine(l.n, accA, accB)...)
	if err != nil {
		return err
	}
	merge := func(acc, with []scalar.Value) ([]scalar.Value, error) {
		for i := range acc {
			env.Vars[accA[i].Name], env.Vars[accB[i].Name] = acc[i], with[i]
		}
		v, err := combine.values()
		return slices.Clone(v), err
	}
	total := func() ([]scalar.Value, error) { return l.total(lower, env, at, r, types, init, merge) }
	if lower.Finish == nil {
		return l.finish(env, at, types, accA, accA, total)
	}
	return l.finish(env, at, types, accA, lower.Finish(l.n, at.vars, accA), total)
}

// constants evaluates expressions without leaves.
func (l *interpreter) constants(types []ir.DType, list []scalar.Expr) ([]scalar.Value, error) {
	x, err := l.compile(l.env(), types, list...)
	if err != nil {
		return nil, err
	}
	return x.values()
}

// total combines the reduced space of the position that env holds, by turns
// into a few partial results that are merged at the end.
func (l *interpreter) total(lower *ir.ReduceLowering, env *scalar.Env, at, r space, types []ir.DType, init []scalar.Value,
	merge func(acc, with []scalar.Value) ([]scalar.Value, error),
) ([]scalar.Value, error) {
	acc := make([][]scalar.Value, partials)
	for p := range acc {
		acc[p] = init
	}
	turn := 0
	var elements *expressions
	err := r.each(env, func([]int) (err error) {
		if elements == nil {
			if elements, err = l.compile(env, types, lower.Element(l.n, at.vars, r.vars, l.load)...); err != nil {
				return err
			}
		}
		v, err := elements.values()
		if err != nil {
			return err
		}
		acc[turn%partials], err = merge(acc[turn%partials], v)
		turn++
		return err
	})
	sum := acc[0]
	for _, part := range acc[1:] {
		if err == nil {
			sum, err = merge(sum, part)
		}
	}
	return sum, err
}

// finish stores, for every result position, what the final expressions make of
// the accumulators that total returns.
func (l *interpreter) finish(env *scalar.Env, at space, types []ir.DType, acc, final []scalar.Expr, total func() ([]scalar.Value, error)) error {
	want := make([]ir.DType, len(l.out))
	for i, out := range l.out {
		want[i] = out.DType
	}
	results, err := l.compile(env, want, final...)
	if err != nil {
		return err
	}
	i := 0
	return at.each(env, func([]int) error {
		v, err := total()
		if err != nil {
			return err
		}
		for k := range types {
			env.Vars[acc[k].Name] = v[k]
		}
		if v, err = results.values(); err != nil {
			return err
		}
		for k, out := range l.out {
			out.SetElement(i, v[k])
		}
		i++
		return nil
	})
}

func (l *interpreter) contract(c ir.Contraction) error {
	env := l.env()
	batch, m, n, k := newSpace("b", c.Batch), newSpace("m", c.M), newSpace("n", c.N), newSpace("k", c.K)
	factor := func(operand int, at ir.Index, valid scalar.Expr) scalar.Expr {
		x := scalar.Convert(l.load(operand, at), c.Acc)
		if valid == nil {
			return x
		}
		return scalar.Select(valid, x, scalar.Const(c.Acc, 0))
	}
	atA, validA := c.A(batch.vars, m.vars, k.vars)
	atB, validB := c.B(batch.vars, n.vars, k.vars)
	sum := scalar.FreeVar("sum", c.Acc)
	step := scalar.Add(sum, scalar.Mul(factor(0, atA, validA), factor(1, atB, validB)))
	out := l.out[0]
	place, dims := constant(0), out.Dims
	for i, at := range c.Out(batch.vars, m.vars, n.vars) {
		place = scalar.Add(scalar.Mul(place, constant(dims[i])), at)
	}
	final, err := l.compile(env, []ir.DType{out.DType, ir.I32}, scalar.Convert(sum, out.DType), place)
	if err != nil {
		return err
	}
	next, err := l.compile(env, []ir.DType{c.Acc}, step)
	if err != nil {
		return err
	}
	outer := space{dims: slices.Concat(batch.dims, m.dims, n.dims), vars: slices.Concat(batch.vars, m.vars, n.vars)}
	return outer.each(env, func([]int) error {
		env.Vars["sum"] = scalar.Value{}
		err := k.each(env, func([]int) error {
			v, err := next.values()
			if err == nil {
				env.Vars["sum"] = v[0]
			}
			return err
		})
		if err != nil {
			return err
		}
		v, err := final.values()
		if err == nil {
			out.SetElement(int(v[1].I), v[0])
		}
		return err
	})
}

func (l *interpreter) scatter(lower *ir.ScatterLowering) error {
	env, out := l.env(), l.out[0]
	for i := range out.Len() {
		out.SetElement(i, l.in[0].Element(i))
	}
	positions, window := lower.Space(l.n)
	p, w := newSpace("p", positions), newSpace("w", window)
	all := space{dims: slices.Concat(p.dims, w.dims), vars: slices.Concat(p.vars, w.vars)}
	if slices.Contains(all.dims, 0) {
		return nil
	}
	at, inside := lower.Target(l.n, p.vars, w.vars, l.load)
	update := l.load(2, lower.Update(l.n, p.vars, w.vars))
	list := append(slices.Clone(at), inside, update)
	types := append(slices.Repeat([]ir.DType{ir.I32}, len(at)), ir.Bool, out.DType)
	x, err := l.compile(env, types, list...)
	if err != nil {
		return err
	}
	a, b := scalar.FreeVar("a", out.DType), scalar.FreeVar("b", out.DType)
	sum, err := l.compile(env, []ir.DType{out.DType}, lower.Mode.Combine(a, b))
	if err != nil {
		return err
	}
	return all.each(env, func([]int) error {
		v, err := x.values()
		if err != nil || v[len(at)].I == 0 {
			return err
		}
		place := 0
		for i, d := range out.Dims {
			if v[i].I < 0 || v[i].I >= int64(d) {
				return ir.Errorf(ir.ErrIndex, "target %d is outside along axis %d", v[i].I, i)
			}
			place = place*d + int(v[i].I)
		}
		env.Vars["a"], env.Vars["b"] = out.Element(place), v[len(at)+1]
		if v, err = sum.values(); err == nil {
			out.SetElement(place, v[0])
		}
		return err
	})
}

// sort orders the elements of each line by their keys, as unsigned numbers.
func (l *interpreter) sort(lower *ir.SortLowering) error {
	env, x, out, axis := l.env(), l.in[0], l.out[0], lower.Axis(l.n)
	element0 := scalar.FreeVar("x", x.DType)
	e := lower.Key(l.n, element0)
	if e.Type != ir.U32 && e.Type != ir.U64 {
		return ir.DTypef("keys are %s", e.Type)
	}
	key, err := l.compile(env, []ir.DType{e.Type}, e)
	if err != nil {
		return err
	}
	lines := slices.Clone(out.Dims)
	length := lines[axis]
	lines[axis] = 1
	return newSpace("i", lines).each(env, func(pos []int) error {
		keys, places := make([]uint64, length), make([]int, length)
		for i := range length {
			pos[axis] = i
			places[i] = i
			env.Vars["x"] = x.Element(flat(out.Dims, pos))
			v, err := key.values()
			if err != nil {
				return err
			}
			keys[i] = uint64(v[0].I)
			if bits := lower.Bits(l.n); bits < 64 && keys[i]>>bits != 0 {
				return ir.Errorf(ir.ErrAttr, "key %#x has more than %d bits", keys[i], bits)
			}
		}
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
		for i, from := range places {
			pos[axis] = i
			out.I[flat(out.Dims, pos)] = int64(from)
		}
		pos[axis] = 0
		return nil
	})
}

// flat returns the place of a position in row-major order.
func flat(dims, pos []int) int {
	place := 0
	for i, d := range dims {
		place = place*d + pos[i]
	}
	return place
}

func (l *interpreter) prefix(lower *ir.PrefixLowering) error {
	env, axis := l.env(), lower.Axis(l.n)
	var types, results []ir.DType
	var init, running, next []scalar.Expr
	for i, a := range lower.Accumulators(l.n) {
		types, init = append(types, a.DType), append(init, a.Init)
		running = append(running, scalar.FreeVar(fmt.Sprint("running", i), a.DType))
		next = append(next, scalar.FreeVar(fmt.Sprint("next", i), a.DType))
	}
	for _, out := range l.out {
		results = append(results, out.DType)
	}
	start, err := l.constants(types, init)
	if err != nil {
		return err
	}
	points := newSpace("i", l.out[0].Dims)
	element, err := l.compile(env, types, lower.Element(l.n, points.vars, l.load)...)
	if err != nil {
		return err
	}
	combine, err := l.compile(env, types, lower.Combine(l.n, running, next)...)
	if err != nil {
		return err
	}
	finish := running
	if lower.Finish != nil {
		finish = lower.Finish(l.n, running)
	}
	final, err := l.compile(env, results, finish...)
	if err != nil {
		return err
	}
	set := func(vars []scalar.Expr, v []scalar.Value) {
		for i, x := range vars {
			env.Vars[x.Name] = v[i]
		}
	}
	keep := func(pos []int) error {
		v, err := final.values()
		for i := range v {
			l.out[i].SetElement(flat(l.out[i].Dims, pos), v[i])
		}
		return err
	}
	lines := slices.Clone(points.dims)
	length := lines[axis]
	lines[axis] = 1
	return newSpace("i", lines).each(env, func(pos []int) error {
		pos = slices.Clone(pos)
		set(running, start)
		for k := range length {
			if pos[axis] = k; lower.Reverse(l.n) {
				pos[axis] = length - 1 - k
			}
			env.Vars[points.vars[axis].Name] = scalar.Value{I: int64(pos[axis])}
			if lower.Exclusive(l.n) {
				if err := keep(pos); err != nil {
					return err
				}
			}
			v, err := element.values()
			if err != nil {
				return err
			}
			set(next, v)
			if v, err = combine.values(); err != nil {
				return err
			}
			set(running, v)
			if !lower.Exclusive(l.n) {
				if err := keep(pos); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
