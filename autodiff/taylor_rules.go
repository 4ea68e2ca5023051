package autodiff

import (
	"strings"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// isProduct reports whether an op of two operands is bilinear: coefficient k of its result is the
// sum over i of the products of coefficients i and k−i.
func isProduct(op ir.Op) bool {
	switch op {
	case ops.OpMul, ops.OpMulZero, ops.OpDotGeneral, ops.OpConvGeneral:
		return true
	}
	return false
}

// product returns the series of a bilinear op with two moving operands.
func (a *applied) product() *series {
	b, x, y := a.w.b, a.in[0], a.in[1]
	return a.w.series(min(x.degree+y.degree, unbounded), func(k int) ir.Value {
		if k == 0 {
			return a.value(0)
		}
		return a.withOrigin(func() ir.Value {
			return sumOfProducts(b, x, y, 0, k, func(p, q ir.Value) ir.Value {
				if a.n.Op() == ops.OpMul { // see the comment of mul_zero
					return ops.MulZero(b, p, q)
				}
				return b.Copy(a.n, []ir.Value{p, q})[0]
			})
		})
	})
}

// sumOfProducts returns the sum for i in [least, k] of the products of coefficient k−i of x and
// coefficient i of y.
func sumOfProducts(b *ir.Builder, x, y *series, least, k int, product func(p, q ir.Value) ir.Value) ir.Value {
	var terms []ir.Value
	for i := least; i <= k; i++ {
		if p, q := x.at(k-i), y.at(i); p.Valid() && q.Valid() {
			terms = append(terms, product(p, q))
		}
	}
	return derive.Sum(b, terms)
}

// quotient returns the series of z = x/y with a moving y. It solves coefficient k of x = z·y for
// coefficient k of z.
func (a *applied) quotient() *series {
	b, x, y := a.w.b, a.in[0], a.in[1]
	var z *series
	var inverse ir.Value
	z = a.w.series(unbounded, func(k int) ir.Value {
		if k == 0 {
			return a.value(0)
		}
		return a.withOrigin(func() ir.Value {
			if !inverse.Valid() {
				inverse = ops.Div(b, ops.OnesLike(b, y.at(0)), y.at(0))
			}
			lower := sumOfProducts(b, z, y, 1, k, func(p, q ir.Value) ir.Value { return ops.MulZero(b, p, q) })
			rest := x.at(k)
			switch {
			case !lower.Valid() && !rest.Valid():
				return ir.Value{}
			case !lower.Valid():
			case rest.Valid():
				rest = ops.Sub(b, rest, lower)
			default:
				rest = ops.Neg(b, lower)
			}
			return ops.MulZero(b, rest, inverse)
		})
	})
	return z
}

// stepRule is the JVP rule of an op as a graph. Its ports are the operands and the tangents of the
// moving operands; its outputs are the nonzero tangents of the results.
type stepRule struct {
	g      *ir.Graph
	moving []int // the operands with tangents
	result []int // for each output, the result that it is the tangent of
	// affine reports that the tangents do not depend on the values of the moving operands: the rule
	// has zero higher derivatives.
	affine bool
}

// rule returns the rule of the op for the given moving operands.
func (a *applied) rule(moving []int) *stepRule {
	var sb strings.Builder
	writeOp(&sb, a.n)
	for i, t := range a.n.InTypes() {
		sb.WriteString(" " + position(t.String(), i))
	}
	for _, i := range moving {
		sb.WriteString(position(" moving", i))
	}
	key := sb.String()
	if r, ok := a.w.rules[key]; ok {
		return r
	}
	r, err := newStepRule(a.n, moving)
	if err != nil {
		a.w.b.Fail(err)
		r = &stepRule{moving: moving, affine: true}
	}
	a.w.rules[key] = r
	return r
}

func newStepRule(n *ir.Node, moving []int) (*stepRule, error) {
	r := &stepRule{moving: moving}
	single, err := ir.Transform(string(n.Op()), func(b *ir.Builder) {
		for i, v := range b.Copy(n, declare(b, "in", n.InTypes())) {
			b.Output(position("out", i), v)
		}
	})
	if err != nil {
		return nil, err
	}
	r.g, err = ir.Transform(string(n.Op()), func(b *ir.Builder) {
		in, t := declare(b, "in", n.InTypes()), make([]ir.Value, len(n.Inputs()))
		for _, i := range moving {
			t[i] = b.Port(ir.InputPort, position("tangent", i), n.Input(i).Type())
		}
		_, tout := derive.JVP(b, single, in, t)
		for i, v := range tout {
			if v.Valid() {
				r.result = append(r.result, i)
				b.Output(position("out", i), v)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = ir.Transform(string(n.Op()), func(b *ir.Builder) {
		in, t := inputs(b, r.g), make([]ir.Value, len(r.g.Ports()))
		for _, i := range moving {
			t[i] = b.Port(ir.InputPort, position("second", i), in[i].Type())
		}
		_, tout := derive.JVP(b, r.g, in, t)
		r.affine = true
		for _, v := range tout {
			r.affine = r.affine && !v.Valid()
		}
	})
	return r, err
}

// byRule returns the series of an op from its JVP rule. An affine rule maps coefficients to
// coefficients. Any other rule is the differential equation dy/ds = JVP(x, dx/ds): coefficient k−1
// of the right side, which needs no higher coefficient of y, gives coefficient k of y.
func (a *applied) byRule() []*series {
	var moving []int
	degree := 0
	for i, s := range a.in {
		if !s.isConstant() && derive.Differentiable(a.n.Input(i).DType()) {
			moving = append(moving, i)
			degree = max(degree, s.degree)
		}
	}
	r := a.rule(moving)
	higher := &equation{a: a, rule: r}
	term := higher.term
	if r.affine {
		term = (&affine{a: a, parts: map[string]*affinePart{}}).term
	} else {
		degree = unbounded
	}
	out := a.constants()
	for _, i := range r.result {
		out[i] = a.w.series(degree, func(k int) ir.Value {
			if k == 0 {
				return a.value(i)
			}
			return a.withOrigin(func() ir.Value { return term(i, k) })
		})
	}
	return out
}

// equation is the differential equation of a node.
type equation struct {
	a     *applied
	rule  *stepRule
	right []*series // by output of the rule
}

// term returns coefficient k of a result.
func (e *equation) term(result, k int) ir.Value {
	if e.right == nil {
		in := append([]*series(nil), e.a.in...)
		for _, i := range e.rule.moving {
			in = append(in, e.a.w.derivative(e.a.in[i]))
		}
		e.right = e.a.w.graph(e.rule.g, in)
	}
	for i, r := range e.rule.result {
		if r == result && i < len(e.right) {
			return divide(e.a.w.b, e.right[i].at(k-1), float64(k))
		}
	}
	return ir.Value{}
}
