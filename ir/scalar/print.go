package scalar

import (
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Print returns e as text, one line for each part that is used more than once
// and a last line for e itself:
//
//	t0 = exp(%0:f32)
//	add(t0, mul(t0, 0.5:f32))
//
// Leaves carry their type: a constant is 0.5:f32, an argument %0:f32, a
// variable i:i32, with its range if known as in i:i32[0..127]. Operations are
// written by name; those whose type does not follow from the operands carry it:
// load.f32(2, i:i32), convert.f16(x), bitcast.u32(x). Floats are written with
// the fewest digits that give them back; NaN with its bits. Two expressions
// print the same if and only if they are Equal.
func Print(e Expr) string {
	var b strings.Builder
	s := Schedule(freePrefix(e), e)
	for _, l := range s.Bindings {
		b.WriteString(l.Var.Name)
		b.WriteString(" = ")
		printTree(&b, l.Value)
		b.WriteByte('\n')
	}
	printTree(&b, s.Roots[0])
	return b.String()
}

// String returns Print(n), for use with package fmt.
func (n *Node) String() string { return Print(n) }

// freePrefix returns t, or t with as many underscores as keep it from being the
// beginning of a variable of e.
func freePrefix(e Expr) string {
	prefix := "t"
	Walk(e, func(n Expr) {
		for n.Op == OpVar && strings.HasPrefix(n.Name, prefix) {
			prefix += "_"
		}
	})
	return prefix
}

func printTree(b *strings.Builder, n *Node) {
	switch n.Op {
	case OpConst:
		b.WriteString(constText(n))
	case OpArg:
		b.WriteByte('%')
		b.WriteString(strconv.Itoa(n.Ref))
		b.WriteByte(':')
		b.WriteString(n.Type.String())
	case OpVar:
		printVar(b, n)
	default:
		printOp(b, n)
	}
}

// printOp writes an operation and its operands.
func printOp(b *strings.Builder, n *Node) {
	b.WriteString(n.Op.String())
	if n.Op.info().result == ofNode {
		b.WriteByte('.')
		b.WriteString(n.Type.String())
	}
	b.WriteByte('(')
	if n.Op == OpLoad {
		b.WriteString(strconv.Itoa(n.Ref))
		b.WriteString(", ")
	}
	for i, a := range n.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		printTree(b, a)
	}
	b.WriteByte(')')
}

// printVar writes a variable: its type and range too, unless it is a local that
// Print made, which was defined above.
func printVar(b *strings.Builder, n *Node) {
	b.WriteString(n.Name)
	b.WriteByte(':')
	b.WriteString(n.Type.String())
	if n.Lo <= n.Hi {
		b.WriteByte('[')
		b.WriteString(strconv.FormatInt(n.Lo, 10))
		b.WriteString("..")
		b.WriteString(strconv.FormatInt(n.Hi, 10))
		b.WriteByte(']')
	}
}

// constText returns a constant as value:type.
func constText(n *Node) string {
	var s string
	v, _ := n.Value()
	switch {
	case n.Type.IsBool():
		return strconv.FormatBool(v.I != 0)
	case n.Type == dtype.U64:
		s = strconv.FormatUint(uint64(v.I), 10)
	case n.Type.IsInteger():
		s = strconv.FormatInt(v.I, 10)
	case math.IsNaN(v.F):
		s = "nan(0x" + strconv.FormatUint(n.Bits, 16) + ")"
	case math.IsInf(v.F, 0):
		s = strings.ToLower(strconv.FormatFloat(v.F, 'g', -1, 64))
	case n.Type == dtype.F64:
		s = strconv.FormatFloat(v.F, 'g', -1, 64)
	default:
		s = strconv.FormatFloat(v.F, 'g', -1, 32)
	}
	return s + ":" + n.Type.String()
}
