package scalar

import (
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Print returns e as text, one line for each part that is used more than once and a last line for e
// itself:
//
//	t0 = exp(%0:f32)
//	add(t0, mul(t0, 0.5:f32))
//
// Leaves show their type: a constant is 0.5:f32, an argument %0:f32, a variable i:i32, with its
// range if known as in i:i32[0..127]. Operations whose type does not follow from the operands show
// it: load.f32(2, i:i32), check.f32(code, x, cond), convert.f16(x). Floats have the fewest digits
// that round-trip. Two expressions print the same if and only if they are Equal.
func Print(e Expr) string {
	lines, text := PrintAll(e)
	return strings.Join(append(lines, text[0]), "\n")
}

// PrintAll returns the texts of several expressions, and a line for each part that they use more
// than once, in the form of [Print].
func PrintAll(roots ...Expr) (lines, texts []string) {
	p := printer{local: freePrefix(roots)}
	s := BindShared(p.local, roots...)
	for _, l := range s.Locals {
		lines = append(lines, l.Var.Name+" = "+p.text(l.Value))
	}
	for _, r := range s.Roots {
		texts = append(texts, p.text(r))
	}
	return lines, texts
}

// printer collects the text of an expression. Variables whose name begins with local are made by
// the printer.
type printer struct {
	strings.Builder
	local string
}

// String returns Print(n), for use with package fmt.
func (n *Node) String() string { return Print(n) }

// freePrefix returns t followed by enough underscores that it is not a prefix of a variable of
// roots.
func freePrefix(roots []Expr) string {
	prefix := "t"
	for _, r := range roots {
		Walk(r, func(n Expr) {
			for n.Op == OpVar && strings.HasPrefix(n.Name, prefix) {
				prefix += "_"
			}
		})
	}
	return prefix
}

// text returns the text of n, which shares no operations.
func (p *printer) text(n *Node) string {
	p.Reset()
	p.tree(n)
	return p.String()
}

func (p *printer) tree(n *Node) {
	switch n.Op {
	case OpConst:
		p.WriteString(constText(n))
	case OpArg:
		p.WriteString("%" + strconv.Itoa(n.Ref) + ":" + n.Type.String())
	case OpVar:
		p.variable(n)
	default:
		p.operation(n)
	}
}

// operation writes an operation and its operands.
func (p *printer) operation(n *Node) {
	p.WriteString(n.Op.String())
	if n.Op.info().result == ofNode {
		p.WriteString("." + n.Type.String())
	}
	p.WriteByte('(')
	if n.Op == OpLoad || n.Op == OpCheck {
		p.WriteString(strconv.Itoa(n.Ref) + ", ")
	}
	for i, a := range n.Args {
		if i > 0 {
			p.WriteString(", ")
		}
		p.tree(a)
	}
	p.WriteByte(')')
}

// variable writes a variable: the printer's own by name, others with type and range.
func (p *printer) variable(n *Node) {
	p.WriteString(n.Name)
	if strings.HasPrefix(n.Name, p.local) {
		return
	}
	p.WriteString(":" + n.Type.String())
	if n.Lo <= n.Hi {
		p.WriteString("[" + strconv.FormatInt(n.Lo, 10) + ".." + strconv.FormatInt(n.Hi, 10) + "]")
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
		s = "nan"
	case math.IsInf(v.F, 1):
		s = "+inf"
	case math.IsInf(v.F, -1):
		s = "-inf"
	case n.Type == dtype.F64:
		s = strconv.FormatFloat(v.F, 'g', -1, 64)
	default:
		s = strconv.FormatFloat(v.F, 'g', -1, 32)
	}
	return s + ":" + n.Type.String()
}
