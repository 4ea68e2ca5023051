package cpu

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// polyphase is a part of a contraction whose results, and the terms of their sums, have fixed remainders by a
// stride. In a transposed convolution, and in the gradients of one with strides, most factors are zeros
// between the elements of the operand: in each phase the others form a dense product.
type polyphase struct {
	at    map[string]scalar.Expr // the divided coordinates, by those of the phase
	sizes map[string]int
	empty bool // the sums have no terms
}

// maxPhases is the maximum number of phases. Contractions with fewer multiplications than phaseWork in each
// are not divided.
const (
	maxPhases = 64
	phaseWork = 1 << 14
)

// congruence is a sum of coordinates that must be a multiple of the divisor for a factor not to be zero.
type congruence struct {
	sum     affine
	divisor int
}

// holds reports whether the sum is a multiple for coordinates with the given remainders.
func (c *congruence) holds(remainders map[string]int) bool {
	sum := c.sum.constant
	for _, t := range c.sum.terms {
		sum += t.coef * remainders[t.of.Name]
	}
	return sum%c.divisor == 0
}

// congruences returns the congruences of a factor that is zero where one of them does not hold.
func congruences(factor scalar.Expr) (list []congruence) {
	if factor.Op != scalar.OpSelect {
		return nil
	}
	if c, ok := factor.Args[2].Value(); !ok || c.F != 0 {
		return nil
	}
	var add func(e scalar.Expr)
	add = func(e scalar.Expr) {
		switch e.Op {
		case scalar.OpAnd:
			add(e.Args[0])
			add(e.Args[1])
		case scalar.OpEq:
			zero, ok := e.Args[1].IntConst()
			if x := e.Args[0]; ok && zero == 0 && (x.Op == scalar.OpRem || x.Op == scalar.OpMod) {
				if d, ok := x.Args[1].IntConst(); ok && d > 1 {
					list = append(list, congruence{affineOf(x.Args[0]), int(d)})
				}
			}
		}
	}
	add(factor.Args[0])
	return list
}

// dividedAxis is a coordinate that is divided by a step.
type dividedAxis struct {
	v          scalar.Expr
	size, step int
}

// dividedAxes returns the axes that congruences divide, each with its step.
func dividedAxes(list []congruence, dims []int, at ir.Index) (out []dividedAxis) {
	for i, v := range at {
		step := 1
		for _, c := range list {
			if coef := c.sum.coef(v.Name); v.Op == scalar.OpVar && coef != 0 {
				own := c.divisor / gcd(coef, c.divisor)
				step = step / gcd(step, own) * own
			}
		}
		if step > 1 {
			out = append(out, dividedAxis{v, dims[i], step})
		}
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// eachRemainder calls f with all combinations of remainders of the axes.
func eachRemainder(axes []dividedAxis, f func(remainders map[string]int)) {
	remainders := map[string]int{}
	var next func(i int)
	next = func(i int) {
		if i == len(axes) {
			f(remainders)
			return
		}
		for r := range min(axes[i].step, axes[i].size) {
			remainders[axes[i].v.Name] = r
			next(i + 1)
		}
	}
	next(0)
}

// combinations returns the number of combinations of remainders.
func combinations(axes []dividedAxis) int {
	n := 1
	for _, a := range axes {
		if n *= min(a.step, maxPhases+1); n > maxPhases {
			return n
		}
	}
	return n
}

// polyphasesOf returns the phases of a contraction; nil where it is not divided.
func polyphasesOf(k *fusion.ContractionCode) []polyphase {
	list := slices.Concat(congruences(k.A), congruences(k.B))
	results, vars := inOrder(k)
	all := factorAxes{batch: results, rows: k.K, batchAt: vars, rowsAt: k.KAt}
	known := all.dims()
	for _, c := range list {
		if !c.sum.isOver(known) {
			return nil
		}
	}
	free, summed := dividedAxes(list, results, vars), dividedAxes(list, k.K, k.KAt)
	n := combinations(free)
	if len(free) == 0 || n > maxPhases || combinations(summed) > maxPhases || product(results)*product(k.K) < n*phaseWork || product(k.Batch) > 1 && min(product(k.M), product(k.N)) < minPhaseSide {
		return nil
	}
	var out []polyphase
	dense := true
	eachRemainder(free, func(r map[string]int) {
		one, ok := newPolyphase(free, summed, list, r)
		out, dense = append(out, one), dense && ok
	})
	if !dense {
		return nil
	}
	return out
}

// minPhaseSide is the minimum number of rows and of columns of products of a batch that are divided: narrower ones are
// stencils, or gain nothing.
const minPhaseSide = 4

// newPolyphase returns the phase of results with the given remainders; false where several remainders of the
// summed coordinates contribute.
func newPolyphase(free, summed []dividedAxis, list []congruence, remainders map[string]int) (polyphase, bool) {
	var found []map[string]int
	eachRemainder(summed, func(r map[string]int) {
		both := maps.Clone(remainders)
		maps.Copy(both, r)
		if !slices.ContainsFunc(list, func(c congruence) bool { return !c.holds(both) }) {
			found = append(found, both)
		}
	})
	p := polyphase{at: map[string]scalar.Expr{}, sizes: map[string]int{}, empty: len(found) == 0}
	chosen := remainders
	if !p.empty {
		chosen = found[0]
	}
	for _, a := range slices.Concat(free, summed) {
		r := chosen[a.v.Name]
		size := (a.size - r + a.step - 1) / a.step
		p.sizes[a.v.Name] = size
		p.at[a.v.Name] = scalar.Add(scalar.Mul(coordinateOf(a.v, size), loop.Int(a.step)), loop.Int(r))
	}
	return p, len(found) < 2
}

// coordinateOf returns the coordinate v of an axis of another size.
func coordinateOf(v scalar.Expr, size int) scalar.Expr {
	if size == 1 {
		return loop.Int(0)
	}
	return scalar.NewVar(v.Name, v.Type, 0, int64(size-1))
}

// divide makes the contraction that of the phase. It returns the step of its last row coordinate.
func (p *polyphase) divide(k *fusion.ContractionCode) (unit int) {
	part := func(dims []int, at ir.Index) ([]int, ir.Index) {
		dims, at = slices.Clone(dims), slices.Clone(at)
		for i, v := range at {
			if size, ok := p.sizes[v.Name]; ok && v.Op == scalar.OpVar {
				dims[i], at[i] = size, coordinateOf(v, size)
			}
		}
		return dims, at
	}
	k.Batch, k.BatchAt = part(k.Batch, k.BatchAt)
	k.M, k.MAt = part(k.M, k.MAt)
	k.N, k.NAt = part(k.N, k.NAt)
	k.K, k.KAt = part(k.K, k.KAt)
	k.A, k.B = scalar.Simplify(scalar.Substitute(k.A, p.divided)), scalar.Simplify(scalar.Substitute(k.B, p.divided))
	k.Outer = slices.Clone(k.Outer)
	for i, e := range k.Outer {
		k.Outer[i] = scalar.SubstituteVars(e, p.at)
	}
	unit = 1
	for _, v := range k.MAt {
		if v.Op == scalar.OpVar {
			unit = max(1, affineOf(scalar.SubstituteVars(v, p.at)).coef(v.Name))
		}
	}
	return unit
}

// divided replaces coordinates, and quotients, remainders and comparisons of their sums, which are exact: a
// comparison of multiples of a number is one of their quotients.
func (p *polyphase) divided(n scalar.Expr) (scalar.Expr, bool) {
	switch n.Op {
	case scalar.OpVar:
		e, ok := p.at[n.Name]
		return e, ok
	case scalar.OpDiv, scalar.OpFloorDiv, scalar.OpRem, scalar.OpMod:
		d, ok := n.Args[1].IntConst()
		if sum := p.affine(n.Args[0]); ok && n.Type == ir.I32 && d > 0 && sum.divides(int(d)) && sum.constant%int(d) == 0 {
			if n.Op == scalar.OpRem || n.Op == scalar.OpMod {
				return loop.Int(0), true
			}
			return sum.quotient(int(d)).expr(), true
		}
	case scalar.OpLt, scalar.OpLe, scalar.OpGt, scalar.OpGe:
		return p.dividedComparison(n)
	}
	return nil, false
}

// dividedComparison returns a comparison of two sums, whose coefficients have a common divisor, as one of quotients.
func (p *polyphase) dividedComparison(n scalar.Expr) (scalar.Expr, bool) {
	if n.Args[0].Type != ir.I32 {
		return nil, false
	}
	a, b, strict, ok := atMost(n)
	if !ok {
		return nil, false
	}
	rest := p.affine(scalar.Sub(b, a)) // at least strict
	rest.constant -= strict
	by := 0
	for _, t := range rest.terms {
		by = gcd(by, t.coef)
	}
	if by < 2 {
		return nil, false
	}
	rest.constant -= (rest.constant%by + by) % by
	rest = rest.quotient(by)
	if len(rest.terms) > 0 && rest.terms[0].coef < 0 { // constant ≥ the others
		at := rest.constant
		rest.constant = 0
		return scalar.Le(rest.quotient(-1).expr(), loop.Int(at)), true
	}
	at := -rest.constant
	rest.constant = 0
	return scalar.Le(loop.Int(at), rest.expr()), true
}

// affine returns an affine form in the coordinates of the phase.
func (p *polyphase) affine(e scalar.Expr) affine { return affineOf(scalar.SubstituteVars(e, p.at)) }

// divides reports whether a number divides all coefficients.
func (a affine) divides(by int) bool {
	return !slices.ContainsFunc(a.terms, func(t affineTerm) bool { return t.coef%by != 0 })
}

// quotient returns a multiple of a number, divided by it.
func (a affine) quotient(by int) affine {
	out := affine{constant: a.constant / by}
	for _, t := range a.terms {
		if t.coef != 0 {
			out.terms = append(out.terms, affineTerm{t.coef / by, t.of})
		}
	}
	return out
}

// expr returns the sum.
func (a affine) expr() scalar.Expr {
	sum := loop.Int(a.constant)
	for _, t := range a.terms {
		sum = scalar.Add(sum, scalar.Mul(t.of, loop.Int(t.coef)))
	}
	return scalar.Simplify(sum)
}
