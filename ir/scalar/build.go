package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// New returns op applied to args, simplified if an identity applies. It serves code that treats
// operations as data. It accepts all operations with operands except Load, Convert, Bitcast and
// Check, which need more than their operands. If I32 and I64 operands are mixed, the I32 ones are
// converted to I64.
func New(op Op, args ...Expr) Expr {
	if op.info().result == ofNode {
		fail(op, nil, "has a constructor of its own")
	}
	if mixesWidths(args) {
		wide := promoted(args)
		return New(op, wide[:len(args)]...)
	}
	checkOperands(op, args)
	last := args[len(args)-1].Type
	t := resultType(op, last)
	if t == dtype.Invalid {
		fail(op, []dtype.DType{last}, "the type is not allowed")
	}
	return reduced(op, t, args)
}

// Rebuild returns n with other operands, simplified as its constructor would. The operands must
// have the types of those that they replace.
func Rebuild(n Expr, args ...Expr) Expr {
	switch n.Op {
	case OpConst, OpArg, OpVar:
		return n
	case OpLoad:
		return LoadAt(n.Ref, n.Type, args[0])
	case OpConvert:
		return Convert(args[0], n.Type)
	case OpBitcast:
		return Bitcast(args[0], n.Type)
	case OpCheck:
		return Check(args[0], args[1], n.Ref)
	}
	return New(n.Op, args...)
}

// reduced returns the operation as a constant if its operands are constants, as an operand or a
// smaller node if an identity applies, or as a node.
func reduced(op Op, t dtype.DType, args []Expr) Expr {
	if e := reduce(&Node{Op: op, Type: t, Args: args}); e != nil {
		return e
	}
	return operation(op, t, 0, args)
}

// reduce returns a simpler expression equal to n by constant folding or an identity, or nil. It
// does not retain n.
func reduce(n *Node) Expr {
	if e := fold(n); e != nil {
		return e
	}
	return identity(n)
}

// operation returns a node with a copy of the operands. Node and operands share one allocation,
// since the compiler allocates mostly such nodes.
func operation(op Op, t dtype.DType, ref int, args []Expr) Expr {
	if len(args) == 1 {
		n := &struct {
			Node
			args [1]Expr
		}{Node: Node{Op: op, Type: t, Ref: ref}}
		n.args[0] = args[0]
		n.Args = n.args[:]
		return &n.Node
	}
	n := &struct {
		Node
		args [3]Expr
	}{Node: Node{Op: op, Type: t, Ref: ref}}
	n.Args = n.args[:copy(n.args[:], args)]
	return &n.Node
}

// fold evaluates a node whose operands are all constants. The bits of a NaN stay in a Bitcast,
// since a constant would not keep them.
func fold(n *Node) Expr {
	if n.Op == OpMakeComplex {
		return nil // MakeComplex of two constants is itself a constant
	}
	var v [3]Value
	for i, a := range n.Args {
		var ok bool
		if v[i], ok = a.Value(); !ok {
			return nil
		}
	}
	r := apply(n, v, Exact)
	if n.Op == OpBitcast && math.IsNaN(r.F) {
		return nil
	}
	return constant(n.Type, r)
}

// Convert returns a converted to type to. Floats round to nearest even. Float to integer truncates,
// saturates, and gives 0 for NaN. Integers wrap. To Bool it is x ≠ 0; from Bool it is 0 or 1. A
// real number gets imaginary part 0; for complex to real use Real.
func Convert(a Expr, to dtype.DType) Expr {
	checkOperands(OpConvert, []Expr{a})
	checkLeaf(OpConvert, to, kAny)
	if a.Type.IsComplex() && !to.IsComplex() {
		fail(OpConvert, []dtype.DType{a.Type, to}, "drops the imaginary part")
	}
	if a.Type == to {
		return a
	}
	return reduced(OpConvert, to, []Expr{a})
}

// Bitcast returns the bits of a read as type to. Both are integers or floats of
// the same width.
func Bitcast(a Expr, to dtype.DType) Expr {
	checkOperands(OpBitcast, []Expr{a})
	checkLeaf(OpBitcast, to, kReal)
	if a.Type.Size() != to.Size() {
		fail(OpBitcast, []dtype.DType{a.Type, to}, "the widths differ")
	}
	if a.Type == to {
		return a
	}
	return reduced(OpBitcast, to, []Expr{a})
}

// Check returns x, and records code, a number above 0, in the status word of the run if cond, a
// bool, is false. It takes effect only if the value is used: put it around a result rather than
// around an index, which simplification may replace by a constant, and keep the load in bounds by
// other means.
func Check(x, cond Expr, code int) Expr {
	checkOperands(OpCheck, []Expr{x, cond})
	if cond.isInt(1) {
		return x
	}
	return operation(OpCheck, x.Type, code, []Expr{x, cond})
}
