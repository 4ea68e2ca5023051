package irtest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

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
				return ir.Errorf(ir.ErrIndex, "index %d is out of range on axis %d", v[i].I, i)
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
		return ir.DTypef("keys are %s; they must be u32 or u64", e.Type)
	}
	key, err := l.compile(env, []ir.DType{e.Type}, e)
	if err != nil {
		return err
	}
	lines := slices.Clone(x.Dims)
	length := lines[axis]
	lines[axis] = 1
	return newSpace("i", lines).each(env, func(pos []int) error {
		keys, places := make([]uint64, length), make([]int, length)
		for i := range length {
			pos[axis] = i
			places[i] = i
			env.Vars["x"] = x.Element(flat(x.Dims, pos))
			v, err := key.values()
			if err != nil {
				return err
			}
			keys[i] = uint64(v[0].I)
			if bits := lower.Bits(l.n); bits < 64 && keys[i]>>bits != 0 {
				return ir.Errorf(ir.ErrAttr, "key %#x is too large; it must fit in %d bits", keys[i], bits)
			}
		}
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
		for i, from := range places[:out.Dims[axis]] {
			pos[axis] = i
			out.I[flat(out.Dims, pos)] = int64(from)
		}
		pos[axis] = 0
		return nil
	})
}

// flat returns the row-major offset of a position.
func flat(dims, pos []int) int {
	place := 0
	for i, d := range dims {
		place = place*d + pos[i]
	}
	return place
}

// running is a compiled scan: its expressions, the variables of the accumulators and of
// the next element, and the initial values.
type running struct {
	l                         *interpreter
	lower                     *ir.PrefixLowering
	env                       *scalar.Env
	points                    space
	values, next              []scalar.Expr
	start                     []scalar.Value
	element, combine, results *expressions
}

func (l *interpreter) prefix(lower *ir.PrefixLowering) error {
	r := &running{l: l, lower: lower, env: l.env(), points: newSpace("i", l.out[0].Dims)}
	if err := r.compile(); err != nil {
		return err
	}
	lines := slices.Clone(r.points.dims)
	lines[lower.Axis(l.n)] = 1
	return newSpace("i", lines).each(r.env, func(pos []int) error { return r.line(slices.Clone(pos)) })
}

func (r *running) compile() (err error) {
	l, lower := r.l, r.lower
	var types, results []ir.DType
	var init []scalar.Expr
	for i, a := range lower.Accumulators(l.n) {
		types, init = append(types, a.DType), append(init, a.Init)
		r.values = append(r.values, scalar.FreeVar(fmt.Sprint("running", i), a.DType))
		r.next = append(r.next, scalar.FreeVar(fmt.Sprint("next", i), a.DType))
	}
	for _, out := range l.out {
		results = append(results, out.DType)
	}
	if r.start, err = l.constants(types, init); err != nil {
		return err
	}
	if r.element, err = l.compile(r.env, types, lower.Element(l.n, r.points.vars, l.load)...); err != nil {
		return err
	}
	if r.combine, err = l.compile(r.env, types, lower.Combine(l.n, r.values, r.next)...); err != nil {
		return err
	}
	finish := r.values
	if lower.Finish != nil {
		finish = lower.Finish(l.n, r.values)
	}
	r.results, err = l.compile(r.env, results, finish...)
	return err
}

// line scans the line through pos along the axis.
func (r *running) line(pos []int) error {
	axis, exclusive := r.lower.Axis(r.l.n), r.lower.Exclusive(r.l.n)
	length := r.points.dims[axis]
	r.set(r.values, r.start)
	for k := range length {
		if pos[axis] = k; r.lower.Reverse(r.l.n) {
			pos[axis] = length - 1 - k
		}
		r.env.Vars[r.points.vars[axis].Name] = scalar.Value{I: int64(pos[axis])}
		if exclusive {
			if err := r.keep(pos); err != nil {
				return err
			}
		}
		v, err := r.element.values()
		if err != nil {
			return err
		}
		r.set(r.next, v)
		if v, err = r.combine.values(); err != nil {
			return err
		}
		r.set(r.values, v)
		if !exclusive {
			if err := r.keep(pos); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *running) set(vars []scalar.Expr, v []scalar.Value) {
	for i, x := range vars {
		r.env.Vars[x.Name] = v[i]
	}
}

// keep stores the results at a position.
func (r *running) keep(pos []int) error {
	v, err := r.results.values()
	for i := range v {
		r.l.out[i].SetElement(flat(r.l.out[i].Dims, pos), v[i])
	}
	return err
}
