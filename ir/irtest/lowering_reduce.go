package irtest

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// partials is the number of partial results of a reduction before they are merged, which a
// lowering must allow.
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

// total reduces the space of the position in env round-robin into partial results, which
// are merged at the end.
func (l *interpreter) total(lower *ir.ReduceLowering, env *scalar.Env, at, r space, types []ir.DType, init []scalar.Value,
	merge func(acc, with []scalar.Value) ([]scalar.Value, error),
) ([]scalar.Value, error) {
	acc := make([][]scalar.Value, partials)
	for p := range acc {
		acc[p] = init
	}
	next := 0
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
		acc[next%partials], err = merge(acc[next%partials], v)
		next++
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

// finish stores, for every result position, the final expressions of the accumulators that
// total returns.
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
	final, err := l.compile(env, []ir.DType{out.DType, ir.I32, ir.Bool}, scalar.Convert(sum, out.DType), place, c.Stored(batch.vars, m.vars, n.vars))
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
		if err == nil && v[2].I != 0 {
			out.SetElement(int(v[1].I), v[0])
		}
		return err
	})
}
