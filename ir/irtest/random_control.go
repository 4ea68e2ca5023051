package irtest

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxDepth bounds the nesting depth of graphs.
const maxDepth = 2

// inside returns a generator for a subgraph that may use the given values.
func (r *generator) inside(b *ir.Builder, floats []ir.Value, most []float64) *generator {
	in := &generator{Rand: r.Rand, b: b, depth: r.depth + 1, derivable: r.derivable}
	for i, v := range floats {
		in.floats = append(in.floats, bounded{v, most[i]})
	}
	in.ints = []ir.Value{ops.Iota(b, ir.I32, 0, ir.N(3))}
	in.bools = []ir.Value{ops.Const(b, ir.Bool, float64(r.IntN(2)))}
	return in
}

// some returns two float values and their bounds.
func (r *generator) some() (values []ir.Value, most []float64) {
	for range 2 {
		v := r.float()
		values, most = append(values, v.Value), append(most, v.most)
	}
	return values, most
}

func branch(r *generator) {
	if r.depth == maxDepth {
		return
	}
	operands, most := r.some()
	p := pickOne(r, r.bools)
	for p.Rank() > 0 {
		if p.Dim(0).Is(0) {
			return
		}
		p = ops.Reshape(r.b, ops.SliceAxis(r.b, p, 0, ir.N(0), ir.N(1)), p.Shape()[1:]...)
	}
	body := func(b *ir.Builder, in []ir.Value) []ir.Value {
		g := r.inside(b, in, most)
		g.grow(3)
		return []ir.Value{ops.Tanh(b, g.ofType(in[0])), g.ofType(in[1])}
	}
	out := ops.Cond(r.b, p, operands, body, body)
	r.keep(out[0], 1)
	if r.chance(50) {
		r.keep(out[1], maxBound)
	}
}

// loop has constants, carries (one may stay unchanged), slices, and values (some unused).
func loop(r *generator) {
	x := r.float()
	if r.depth == maxDepth || x.Rank() == 0 {
		return
	}
	consts, constMost := r.some()
	carries, _ := r.some()
	for i, c := range carries {
		carries[i] = ops.Tanh(r.b, c)
	}
	next, ys := ops.Scan(r.b, ops.Loop{
		Consts: consts, Carries: carries, Xs: []ir.Value{x.Value}, Reverse: r.chance(50),
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			g := r.inside(b, slices.Concat(consts, carries, xs), append(slices.Clone(constMost), 1, 1, x.most))
			g.grow(3)
			next = []ir.Value{ops.Tanh(b, g.ofType(carries[0])), carries[1]}
			if r.chance(50) {
				next[1] = ops.Tanh(b, g.ofType(carries[1]))
			}
			return next, []ir.Value{g.ofType(carries[0]), ops.Tanh(b, xs[0])}
		},
	})
	r.keep(next[0], 1)
	if r.chance(50) {
		r.keep(next[1], 1)
	}
	if r.chance(50) {
		r.keep(ys[r.IntN(2)], maxBound)
	}
}

// while counts a few steps, a number of them that the graph knows or a value
// decides, with a bound that may come before.
func while(r *generator) {
	if r.depth == maxDepth {
		return
	}
	consts, constMost := r.some()
	carries, _ := r.some()
	for i, c := range carries {
		carries[i] = ops.Tanh(r.b, c)
	}
	last := float64(r.IntN(4))
	out := ops.WhileLoop(r.b, ops.While{
		Consts: consts, Carries: append(slices.Clone(carries), ops.Zeros(r.b, ir.I32)), MaxSteps: 1 + r.IntN(4),
		Cond: func(b *ir.Builder, _, carries []ir.Value) ir.Value {
			return ops.Lt(b, carries[len(carries)-1], ops.Const(b, ir.I32, last))
		},
		Body: func(b *ir.Builder, consts, carries []ir.Value) []ir.Value {
			values, step := carries[:len(carries)-1], carries[len(carries)-1]
			most := slices.Clone(constMost)
			for range values {
				most = append(most, 1)
			}
			g := r.inside(b, slices.Concat(consts, values), most)
			g.grow(3)
			var next []ir.Value
			for _, c := range values {
				next = append(next, ops.Tanh(b, g.ofType(c)))
			}
			return append(next, ops.Add(b, step, ops.OnesLike(b, step)))
		},
	})
	r.keep(out[0], 1)
	if r.chance(50) {
		r.keep(out[1], 1)
	}
}
