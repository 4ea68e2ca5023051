package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Expr is an expression: a pointer to an immutable node. Equal pointers are equal expressions; use
// Equal to compare structures.
type Expr = *Node

// Node is an operation with its operands. Make nodes with the constructors, which check the fields.
type Node struct {
	Op   Op
	Type dtype.DType

	// Args holds the operands, Op.Arity of them.
	Args []Expr

	// Bits is the value of a constant: the float64 bits of a float, the int64
	// of an integer or bool. Complex constants are MakeComplex of two.
	Bits uint64

	// Ref is the number of an Arg, the buffer slot of a Load or the code of a Check.
	Ref int

	// Name is the name of a Var.
	Name string

	// Lo and Hi are the inclusive range of an integer Var if Lo ≤ Hi. A Var with Lo > Hi has the
	// range of its type.
	Lo, Hi int64

	own *interned // facts cached by the interner that made the node; nil for other nodes
}

// ConstF returns a constant of float type t, rounded to it, or of complex type t with imaginary
// part 0. Each type has one NaN.
func ConstF(t dtype.DType, x float64) Expr {
	if t.IsComplex() {
		return ConstC(t, complex(x, 0))
	}
	checkLeaf(OpConst, t, kFloat)
	bits := math.Float64bits(t.Round(x))
	if math.IsNaN(x) {
		bits = 0x7ff8000000000000
	}
	return &Node{Op: OpConst, Type: t, Bits: bits}
}

// ConstC returns a constant of complex type t: MakeComplex of two constants.
func ConstC(t dtype.DType, c complex128) Expr {
	checkLeaf(OpConst, t, kComplex)
	re, im := ConstF(t.Real(), real(c)), ConstF(t.Real(), imag(c))
	return operation(OpMakeComplex, t, 0, []Expr{re, im})
}

// ConstI returns a constant of integer type t, wrapped to it; a u64 is given by its bit pattern.
func ConstI(t dtype.DType, x int64) Expr {
	if t == dtype.I32 && uint64(x) < uint64(len(smallConsts)) {
		return &smallConsts[x]
	}
	checkLeaf(OpConst, t, kInt)
	return &Node{Op: OpConst, Type: t, Bits: uint64(t.Wrap(x))}
}

// smallConsts are preallocated small constants, the most common ones in index arithmetic: 0 to
// 1,023, below the size of the largest workgroup. They take 88 KB.
var smallConsts = func() (nodes [1024]Node) {
	for i := range nodes {
		nodes[i] = Node{Op: OpConst, Type: dtype.I32, Bits: uint64(i)}
	}
	return nodes
}()

// ConstBool returns a constant of type Bool.
func ConstBool(b bool) Expr {
	n := &Node{Op: OpConst, Type: dtype.Bool}
	if b {
		n.Bits = 1
	}
	return n
}

// Const returns the number x as a constant of any type except packed ones: rounded for floats,
// truncated for integers, x ≠ 0 for Bool. It serves bodies that are written once for all types.
func Const(t dtype.DType, x float64) Expr {
	if t.IsFloat() || t.IsComplex() {
		return ConstF(t, x)
	}
	return constant(t, convert(Value{F: x}, dtype.F64, t, Exact))
}

// constant returns v as a constant of type t.
func constant(t dtype.DType, v Value) Expr {
	switch {
	case t.IsBool():
		return ConstBool(v.I != 0)
	case t.IsInteger():
		return ConstI(t, v.I)
	case t.IsComplex():
		return ConstC(t, v.C)
	}
	return ConstF(t, v.F)
}

// Arg returns operand number i of an elementwise body.
func Arg(i int, t dtype.DType) Expr {
	checkLeaf(OpArg, t, kAny)
	return &Node{Op: OpArg, Type: t, Ref: i}
}

// NewVar returns the variable called name. For an integer type, lo ≤ hi is its inclusive range; if
// the range is unknown, pass lo > hi or use FreeVar. All variables of the same name in an
// expression must have the same type and range.
func NewVar(name string, t dtype.DType, lo, hi int64) Expr {
	checkLeaf(OpVar, t, kAny)
	if lo > hi || !t.IsInteger() {
		lo, hi = 1, 0
	}
	return &Node{Op: OpVar, Type: t, Name: name, Lo: lo, Hi: hi}
}

// FreeVar returns the variable called name with the full range of its type.
func FreeVar(name string, t dtype.DType) Expr { return NewVar(name, t, 1, 0) }

// LoadAt returns the element of type t at index, an integer, of buffer slot.
func LoadAt(slot int, t dtype.DType, index Expr) Expr {
	checkLeaf(OpLoad, t, kAny)
	checkOperands(OpLoad, []Expr{index})
	return operation(OpLoad, t, slot, []Expr{index})
}

// Value returns the value of a constant; ok is false for other nodes.
func (n *Node) Value() (v Value, ok bool) {
	switch {
	case n.Op == OpConst && n.Type.IsFloat():
		return Value{F: math.Float64frombits(n.Bits)}, true
	case n.Op == OpConst:
		return Value{I: int64(n.Bits)}, true
	case n.Op == OpMakeComplex && n.Args[0].Op == OpConst && n.Args[1].Op == OpConst:
		re, im := math.Float64frombits(n.Args[0].Bits), math.Float64frombits(n.Args[1].Bits)
		return Value{C: complex(re, im)}, true
	}
	return Value{}, false
}

// IntConst returns the value of an integer or bool constant; ok is false for other nodes.
func (n *Node) IntConst() (x int64, ok bool) {
	if n.Op != OpConst || n.Type.IsFloat() {
		return 0, false
	}
	return int64(n.Bits), true
}

// isFloat reports whether n is the float constant x, distinguishing signed zeros.
func (n *Node) isFloat(x float64) bool {
	return n.Op == OpConst && n.Type.IsFloat() && n.Bits == math.Float64bits(x)
}

// isInt reports whether n is the integer or bool constant x.
func (n *Node) isInt(x int64) bool {
	v, ok := n.IntConst()
	return ok && v == x
}
