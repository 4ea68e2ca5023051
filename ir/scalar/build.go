package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// New returns op applied to args, simplified where an identity applies. It
// serves code that treats operations as data and all operations with operands
// but Load, Convert, Bitcast and Check, which need more than their operands.
// An I32 beside an I64 becomes one.
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

// Rebuild returns n with other operands, as its constructor would make it. The
// operands must have the types of those they replace.
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

// reduced returns the operation as a constant if its operands are constants, as one of its
// operands or a smaller node if an identity applies, or as a node.
func reduced(op Op, t dtype.DType, args []Expr) Expr {
	if e := reduce(&Node{Op: op, Type: t, Args: args}); e != nil {
		return e
	}
	return operation(op, t, 0, args)
}

// reduce returns what n is the same as by its operands alone, nil where that is nothing
// smaller. It does not keep n.
func reduce(n *Node) Expr {
	if e := fold(n); e != nil {
		return e
	}
	return identity(n)
}

// operation returns a node with a copy of the operands, which lie behind it: one piece of
// memory, as most of what the compiler allocates is such nodes.
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

// fold evaluates a node whose operands are all constants. The bits of a NaN stay
// in a Bitcast, as a constant would not keep them.
func fold(n *Node) Expr {
	if n.Op == OpMakeComplex {
		return nil // of two constants it is the constant
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

// Convert returns a as type to. Floats round to nearest even; float to integer
// truncates, saturates, and gives 0 for NaN; integers wrap; Bool is x ≠ 0 one
// way and 0 or 1 the other; a real number gets imaginary part 0, and complex
// to real must be written as Real.
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

// Check returns x, and records code, a number above 0, in the status word of
// the run where cond, a bool, is false. It has an effect only if the value is
// used: put it around a result rather than around an index, which rewriting may
// find to be constant, and keep the load in bounds by other means.
func Check(x, cond Expr, code int) Expr {
	checkOperands(OpCheck, []Expr{x, cond})
	if cond.isInt(1) {
		return x
	}
	return operation(OpCheck, x.Type, code, []Expr{x, cond})
}
