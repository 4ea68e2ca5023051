package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// realArithmetic makes code compute the parts of complex numbers with real numbers, which kernels have. Functions
// stay complex.
func realArithmetic(code *fusion.Code) {
	p := complexParts{}
	p.sumParts(code)
	p.bindParts(code)
	rewriteExprs(code, func(e scalar.Expr) scalar.Expr { return scalar.Substitute(e, p.partOf) }, unchanged)
	for i := range code.Rows {
		s := &code.Rows[i]
		if s.Value.Type.IsComplex() && splits(s.Value) {
			parts := p.of(s.Value)
			s.Value = scalar.MakeComplex(parts[0], parts[1])
		}
	}
}

// sumParts makes sums of complex numbers sums of their parts.
func (p complexParts) sumParts(code *fusion.Code) {
	values := map[string]scalar.Expr{}
	for i := range code.Stages {
		s := &code.Stages[i]
		var list []fusion.Reduction
		for _, r := range s.Reductions {
			if !isComplexSum(r) {
				list = append(list, r)
				continue
			}
			sum := r.Running[0]
			parts, running := newParts(sum), newParts(scalar.FreeVar(sum.Name+"_running", sum.Type))
			values[sum.Name] = scalar.MakeComplex(parts[0], parts[1])
			for k, element := range p.of(r.Elements[0]) {
				list = append(list, fusion.Reduction{
					Accumulators: []ir.Accumulator{{DType: element.Type, Init: scalar.Const(element.Type, 0)}},
					Elements:     []scalar.Expr{element},
					Combine:      func(a, b []scalar.Expr) []scalar.Expr { return []scalar.Expr{scalar.Add(a[0], b[0])} },
					Running:      running[k : k+1],
					Results:      []scalar.Local{{Var: parts[k], Value: running[k]}},
				})
			}
			last := &list[len(list)-1]
			last.Results = append(last.Results, r.Results...)
		}
		s.Reductions = list
	}
	if len(values) > 0 {
		replaceVars(code, values)
	}
}

// isComplexSum reports whether a reduction is a sum of complex numbers.
func isComplexSum(r fusion.Reduction) bool {
	if len(r.Elements) != 1 || !r.Elements[0].Type.IsComplex() {
		return false
	}
	other := scalar.FreeVar("other", r.Elements[0].Type)
	sum := r.Combine(r.Running, []scalar.Expr{other})[0]
	return sum.Op == scalar.OpAdd && scalar.Equal(sum.Args[0], r.Running[0]) && scalar.Equal(sum.Args[1], other)
}

// bindParts binds the parts of complex numbers to names in place of the numbers.
func (p complexParts) bindParts(code *fusion.Code) {
	values := map[string]scalar.Expr{}
	bind := func(list []scalar.Local) (out []scalar.Local) {
		for _, b := range list {
			if !b.Var.Type.IsComplex() {
				out = append(out, b)
				continue
			}
			names := newParts(b.Var)
			values[b.Var.Name] = scalar.MakeComplex(names[0], names[1])
			for k, value := range p.of(b.Value) {
				out = append(out, scalar.Local{Var: names[k], Value: value})
			}
		}
		return out
	}
	for i := range code.Stages {
		s := &code.Stages[i]
		s.Lets = bind(s.Lets)
		for k := range s.Reductions {
			s.Reductions[k].Results = bind(s.Reductions[k].Results)
		}
	}
	if len(values) > 0 {
		replaceVars(code, values)
	}
}

// newParts returns variables for the parts of one.
func newParts(x scalar.Expr) []scalar.Expr {
	d := partType(x.Type)
	return []scalar.Expr{scalar.FreeVar(x.Name+"_re", d), scalar.FreeVar(x.Name+"_im", d)}
}

// complexParts are the real and imaginary parts of expressions.
type complexParts map[scalar.Expr][2]scalar.Expr

// partOf replaces a part of an operation that has a rule by what computes that part.
func (p complexParts) partOf(x scalar.Expr) (scalar.Expr, bool) {
	if (x.Op == scalar.OpReal || x.Op == scalar.OpImag) && splits(x.Args[0]) {
		return p.of(x.Args[0])[x.Op-scalar.OpReal], true
	}
	return x, false
}

// splits reports whether the parts of a complex number have rules of their own.
func splits(x scalar.Expr) bool {
	switch x.Op {
	case scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpMulZero, scalar.OpDiv, scalar.OpNeg, scalar.OpConj, scalar.OpSelect, scalar.OpConvert, scalar.OpMakeComplex:
		return true
	}
	return false
}

// of returns the parts of a complex number.
func (p complexParts) of(x scalar.Expr) [2]scalar.Expr {
	if parts, ok := p[x]; ok {
		return parts
	}
	parts := p.compute(x)
	p[x] = parts
	return parts
}

func (p complexParts) compute(x scalar.Expr) [2]scalar.Expr {
	each := func(f func(part int) scalar.Expr) [2]scalar.Expr { return [2]scalar.Expr{f(0), f(1)} }
	arg := func(i, part int) scalar.Expr { return p.of(x.Args[i])[part] }
	switch x.Op {
	case scalar.OpAdd, scalar.OpSub:
		return each(func(k int) scalar.Expr { return scalar.New(x.Op, arg(0, k), arg(1, k)) })
	case scalar.OpNeg:
		return each(func(k int) scalar.Expr { return scalar.Neg(arg(0, k)) })
	case scalar.OpConj:
		return [2]scalar.Expr{arg(0, 0), scalar.Neg(arg(0, 1))}
	case scalar.OpSelect:
		return each(func(k int) scalar.Expr { return scalar.Select(x.Args[0], arg(1, k), arg(2, k)) })
	case scalar.OpMul:
		return complexProduct(p.of(x.Args[0]), p.of(x.Args[1]))
	case scalar.OpMulZero:
		a, b := p.of(x.Args[0]), p.of(x.Args[1])
		zero := scalar.Const(a[0].Type, 0)
		isZero := func(v [2]scalar.Expr) scalar.Expr { return scalar.And(scalar.Eq(v[0], zero), scalar.Eq(v[1], zero)) }
		either, parts := scalar.Or(isZero(a), isZero(b)), complexProduct(a, b)
		return each(func(k int) scalar.Expr { return scalar.Select(either, zero, parts[k]) })
	case scalar.OpDiv:
		return quotient(p.of(x.Args[0]), p.of(x.Args[1]))
	case scalar.OpMakeComplex:
		return [2]scalar.Expr{x.Args[0], x.Args[1]}
	case scalar.OpConvert:
		d := partType(x.Type)
		if from := x.Args[0]; !from.Type.IsComplex() {
			return [2]scalar.Expr{scalar.Convert(from, d), scalar.Const(d, 0)}
		}
		return each(func(k int) scalar.Expr { return scalar.Convert(arg(0, k), d) })
	}
	return [2]scalar.Expr{scalar.Real(x), scalar.Imag(x)}
}

// complexProduct returns the parts of x · y.
func complexProduct(x, y [2]scalar.Expr) [2]scalar.Expr {
	return [2]scalar.Expr{
		scalar.Sub(scalar.Mul(x[0], y[0]), scalar.Mul(x[1], y[1])),
		scalar.Add(scalar.Mul(x[0], y[1]), scalar.Mul(x[1], y[0])),
	}
}

// quotient returns the parts of x / y: by the ratio of y's parts, as R. L. Smith (Algorithm 116, CACM 5, 1962), and
// where both parts of that are NaN, infinities and zeros as annex G.5.1 of C99 has them.
func quotient(x, y [2]scalar.Expr) [2]scalar.Expr {
	add, mul, div, pick := scalar.Add, scalar.Mul, scalar.Div, scalar.Select
	number := func(v float64) scalar.Expr { return scalar.Const(x[0].Type, v) }
	byReal := scalar.Ge(scalar.Abs(y[0]), scalar.Abs(y[1]))
	large, small := pick(byReal, y[0], y[1]), pick(byReal, y[1], y[0])
	ratio := div(small, large)
	whole := add(large, mul(ratio, small))
	first, second := pick(byReal, x[0], x[1]), pick(byReal, x[1], x[0])
	re := div(add(first, mul(second, ratio)), whole)
	difference := scalar.Sub(second, mul(first, ratio)) // of the imaginary part, negated where y's imaginary part is larger
	im := div(pick(byReal, difference, scalar.Neg(difference)), whole)

	infinity, zero := number(math.Inf(1)), number(0)
	isInf := func(v scalar.Expr) scalar.Expr { return scalar.Eq(scalar.Abs(v), infinity) }
	anyInf := func(v [2]scalar.Expr) scalar.Expr { return scalar.Or(isInf(v[0]), isInf(v[1])) }
	finite := func(v [2]scalar.Expr) scalar.Expr { return scalar.And(scalar.IsFinite(v[0]), scalar.IsFinite(v[1])) }
	isZero := scalar.And(scalar.Eq(y[0], zero), scalar.Eq(y[1], zero))
	isFar, isNear := scalar.And(anyInf(x), finite(y)), scalar.And(anyInf(y), finite(x))
	ones := func(v [2]scalar.Expr, where scalar.Expr) (out [2]scalar.Expr) { // v, or its infinite parts as ±1 and others as 0
		for i, part := range v {
			out[i] = pick(where, pick(isInf(part), pick(scalar.Gt(part, zero), number(1), number(-1)), zero), part)
		}
		return out
	}
	a, b := ones(x, isFar), ones(y, isNear)
	limit, isLimit := pick(isFar, infinity, zero), scalar.Or(isFar, isNear)
	isNaN := scalar.And(scalar.IsNaN(re), scalar.IsNaN(im))
	fixed := func(part, numerator, sum scalar.Expr) scalar.Expr {
		special := pick(isZero, mul(scalar.Recip(y[0]), numerator), pick(isLimit, mul(limit, sum), part))
		return pick(isNaN, special, part)
	}
	return [2]scalar.Expr{
		fixed(re, x[0], add(mul(a[0], b[0]), mul(a[1], b[1]))),
		fixed(im, x[1], scalar.Sub(mul(a[1], b[0]), mul(a[0], b[1]))),
	}
}
