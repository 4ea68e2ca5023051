package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// realArithmetic makes code compute the parts of complex numbers with real numbers, which kernels have. Divisions
// and functions stay complex.
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
	case scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpNeg, scalar.OpConj, scalar.OpSelect, scalar.OpConvert, scalar.OpMakeComplex:
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
		return [2]scalar.Expr{
			scalar.Sub(scalar.Mul(arg(0, 0), arg(1, 0)), scalar.Mul(arg(0, 1), arg(1, 1))),
			scalar.Add(scalar.Mul(arg(0, 0), arg(1, 1)), scalar.Mul(arg(0, 1), arg(1, 0))),
		}
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
