package forms

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// elementwise translates a node by its scalar rule.
func elementwise(e *Emitter, n *ir.Node, in []Value) Value {
	args := make([]scalar.Expr, len(in))
	refs := make([]mil.Ref, len(in))
	for i, v := range in {
		args[i], refs[i] = scalar.Arg(i, n.Input(i).DType()), v.Ref
	}
	return e.scalars(n.Def().Scalar(n, args), refs, whole(n.Types()[0]))
}

// scalars emits an expression, given its arguments, with a result of the given shape.
func (e *Emitter) scalars(x scalar.Expr, args []mil.Ref, dims []int) Value {
	p := &scalarPrinter{e, args, map[scalar.Expr]mil.Ref{}}
	r := p.print(x)
	if e.Err() == nil && len(r.Type.Dims) == 0 {
		r = e.filled(r, []int{1})
	}
	return Value{r, fold(dims)}
}

// scalarPrinter emits scalar expressions as operations on tensors.
type scalarPrinter struct {
	e    *Emitter
	args []mil.Ref
	done map[scalar.Expr]mil.Ref
}

func (p *scalarPrinter) print(x scalar.Expr) mil.Ref {
	if r, ok := p.done[x]; ok || p.e.Err() != nil {
		return r
	}
	r := p.one(x)
	p.done[x] = r
	return r
}

// operations maps scalar operations to MIL's for floats. Integer operations are included where MIL
// defines them alike.
var operations = map[scalar.Op]string{
	scalar.OpAbs: "abs", scalar.OpSign: "sign", scalar.OpFloor: "floor", scalar.OpCeil: "ceil", scalar.OpRound: "round",
	scalar.OpExp: "exp", scalar.OpSqrt: "sqrt", scalar.OpSin: "sin", scalar.OpCos: "cos", scalar.OpTan: "tan",
	scalar.OpAsin: "asin", scalar.OpAcos: "acos", scalar.OpAtan: "atan", scalar.OpSinh: "sinh", scalar.OpCosh: "cosh",
	scalar.OpTanh: "tanh", scalar.OpSigmoid: "sigmoid", scalar.OpErf: "erf",
	scalar.OpAdd: "add", scalar.OpSub: "sub", scalar.OpMul: "mul", scalar.OpDiv: "real_div", scalar.OpPow: "pow",
	scalar.OpMin: "minimum", scalar.OpMax: "maximum",
	scalar.OpEq: "equal", scalar.OpNe: "not_equal", scalar.OpLt: "less", scalar.OpLe: "less_equal", scalar.OpGt: "greater", scalar.OpGe: "greater_equal",
}

// logical lists the operations on bools.
var logical = map[scalar.Op]string{
	scalar.OpAnd: "logical_and", scalar.OpOr: "logical_or", scalar.OpXor: "logical_xor", scalar.OpNe: "logical_xor",
}

// bitwise lists the operations that MIL has only for bools, if at all.
var bitwise = map[scalar.Op]bool{
	scalar.OpAnd: true, scalar.OpOr: true, scalar.OpXor: true, scalar.OpNot: true, scalar.OpShl: true, scalar.OpShr: true, scalar.OpPopCount: true,
}

// one emits a node of an expression that was not emitted yet.
func (p *scalarPrinter) one(x scalar.Expr) mil.Ref {
	switch x.Op {
	case scalar.OpConst:
		return p.constant(x)
	case scalar.OpArg:
		return p.args[x.Ref]
	case scalar.OpConvert:
		return p.convert(p.print(x.Args[0]), x.Args[0].Type, x.Type)
	case scalar.OpCheck:
		return p.print(x.Args[0]) // check.go handles index checks
	case scalar.OpBitcast:
		if x.Type == x.Args[0].Type {
			return p.print(x.Args[0])
		}
		return p.refuse("MIL has no bitcast of " + x.Args[0].Type.String())
	}
	if _, err := p.e.dtype(x.Type); err != nil {
		p.e.Fail(err)
		return mil.Ref{}
	}
	if y := plain.Rewrite(x); y != nil {
		return p.print(y)
	}
	if rule, ok := rules[x.Op]; ok {
		if y := rule(x); y != nil {
			return p.print(y)
		}
	}
	args := make([]mil.Ref, len(x.Args))
	for i, a := range x.Args {
		args[i] = p.print(a)
	}
	if p.e.Err() != nil {
		return mil.Ref{}
	}
	return p.apply(x, args)
}

// apply emits an operation on emitted operands.
func (p *scalarPrinter) apply(x scalar.Expr, args []mil.Ref) mil.Ref {
	of := x.Args[len(x.Args)-1].Type
	switch {
	case of == ir.Bool && x.Op != scalar.OpSelect:
		return p.ofBools(x.Op, args)
	case bitwise[x.Op]:
		return p.refuse("MIL has no bitwise operations on " + of.String())
	case x.Op == scalar.OpSelect:
		return p.e.choose(args[0], args[1], args[2])
	case x.Op == scalar.OpNeg:
		return p.e.op2("mul", args[0], p.e.number(args[0].Type.DType, -1))
	case x.Op == scalar.OpRecip:
		return p.e.op2("real_div", p.e.number(args[0].Type.DType, 1), args[0])
	case x.Op == scalar.OpRsqrt:
		return p.e.op2("real_div", p.e.number(args[0].Type.DType, 1), p.e.op1("sqrt", args[0]))
	case x.Op == scalar.OpRem:
		return p.remainder(args[0], args[1])
	case x.Op == scalar.OpFma:
		return p.e.op2("add", p.e.op2("mul", args[0], args[1]), args[2])
	case x.Op == scalar.OpLog:
		return p.e.Op("log", mil.Args{"x": args[0], "epsilon": 0.0})
	case of == ir.I32 && x.Op == scalar.OpFloorDiv:
		return p.e.op2("floor_div", args[0], args[1])
	case x.Op == scalar.OpMod:
		return p.e.op2("mod", args[0], args[1])
	}
	kind, ok := operations[x.Op]
	switch {
	case !ok || of == ir.I32 && x.Op == scalar.OpDiv:
		return p.refuse(fmt.Sprintf("MIL has no operation %d on %s", x.Op, of))
	case len(args) == 1:
		return p.e.op1(kind, args[0])
	}
	return p.e.op2(kind, args[0], args[1])
}

// remainder has the sign of the dividend; MIL's mod has that of the divisor.
func (p *scalarPrinter) remainder(x, y mil.Ref) mil.Ref {
	zero := p.e.number(x.Type.DType, 0)
	if x.Type.DType == mil.Int32 {
		y = p.e.choose(p.e.op2("equal", y, zero), p.e.number(mil.Int32, 1), y)
	}
	r := p.e.op2("mod", p.e.op1("abs", x), p.e.op1("abs", y))
	return p.e.choose(p.e.op2("less", x, zero), p.e.op2("mul", r, p.e.number(r.Type.DType, -1)), r)
}

// ofBools emits an operation on bools, ordered as 0 and 1.
func (p *scalarPrinter) ofBools(op scalar.Op, args []mil.Ref) mil.Ref {
	switch {
	case op == scalar.OpNot:
		return p.e.op1("logical_not", args[0])
	case op == scalar.OpEq:
		return p.e.op1("logical_not", p.e.op2("logical_xor", args[0], args[1]))
	case logical[op] != "":
		return p.e.op2(logical[op], args[0], args[1])
	}
	if operations[op] == "" || len(args) != 2 {
		return p.refuse("MIL has no such operation on bools")
	}
	return p.e.op2(operations[op], p.e.cast(args[0], mil.Int32), p.e.cast(args[1], mil.Int32))
}

func (p *scalarPrinter) refuse(reason string) mil.Ref {
	p.e.Fail(ir.Errorf(ir.ErrUnsupported, "%s", reason))
	return mil.Ref{}
}

func (p *scalarPrinter) constant(x scalar.Expr) mil.Ref {
	d, err := p.e.dtype(x.Type)
	if err != nil {
		p.e.Fail(err)
		return mil.Ref{}
	}
	if x.Type.IsFloat() {
		return p.e.number(d, math.Float64frombits(x.Bits))
	}
	return p.e.number(d, float64(int64(x.Bits)))
}

// convert converts numbers as rlx does: float to integer by truncation, saturating, with 0 for NaN.
func (p *scalarPrinter) convert(x mil.Ref, from, to ir.DType) mil.Ref {
	d, err := p.e.dtype(to)
	if err != nil {
		p.e.Fail(err)
	}
	if p.e.Err() != nil {
		return mil.Ref{}
	}
	switch {
	case to == ir.Bool && from != ir.Bool:
		return p.e.op2("not_equal", x, p.e.number(x.Type.DType, 0))
	case to != ir.I32 || !from.IsFloat():
		return p.e.cast(x, d)
	}
	x = p.e.choose(p.e.op2("equal", x, x), x, p.e.number(x.Type.DType, 0))
	x = p.e.cast(x, mil.Float32)
	// The largest f32 below 2³¹; larger ones become the largest integer.
	inside := p.e.op2("minimum", p.e.op2("maximum", x, p.e.number(mil.Float32, math.MinInt32)), p.e.number(mil.Float32, 1<<31-128))
	return p.e.choose(p.e.op2("less", x, p.e.number(mil.Float32, 1<<31)), p.e.cast(inside, mil.Int32), p.e.number(mil.Int32, math.MaxInt32))
}
