package ops

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// domain is a set of classes of element types.
type domain uint8

const (
	bools domain = 1 << iota
	signed
	unsigned
	floats
	complexes
	float8s // stored, moved and converted only

	integers = signed | unsigned
	reals    = integers | floats
	numbers  = reals | complexes
	bits     = bools | integers
	plain    = bools | numbers | float8s
)

// classOf returns the class of an element type, 0 for packed and invalid types.
func classOf(d ir.DType) domain {
	switch {
	case d.IsBool():
		return bools
	case d.IsSigned():
		return signed
	case d.IsUnsigned():
		return unsigned
	case d.IsFloat8():
		return float8s
	case d.IsFloat():
		return floats
	case d.IsComplex():
		return complexes
	}
	return 0
}

// String lists the classes, as in "signed, unsigned or float".
func (d domain) String() string {
	if d == integers {
		return "integer"
	}
	var names []string
	for i, name := range []string{"bool", "signed", "unsigned", "float", "complex", "8-bit float"} {
		if d&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}

// classError reports that an element type is not in a domain. [nameOperand] adds the operand.
type classError struct {
	given ir.DType
	want  domain
}

func (e *classError) Error() string { return e.of("the element type").Error() }
func (e *classError) Unwrap() error { return ir.ErrDType }

func (e *classError) of(what string) error {
	return ir.DTypef("%s is %s, not %s", what, e.given, e.want)
}

// nameOperand adds the name of n's operand to a [classError].
func nameOperand(n *ir.Node, err error) error {
	e, ok := errors.AsType[*classError](err)
	if !ok {
		return err
	}
	names := n.Def().Operands
	for i, v := range n.Inputs() {
		if v.DType() == e.given && len(names) > 0 {
			name := strings.TrimSuffix(names[min(i, len(names)-1)], "...")
			return ir.DTypef("%s is %s, not %s", name, v.Type(), e.want)
		}
	}
	return e.of("dtype")
}

// check returns an error of kind [ir.ErrDType] unless t is in the domain.
func (d domain) check(t ir.DType) error {
	if classOf(t)&d == 0 {
		return &classError{t, d}
	}
	return nil
}

// operandName returns the name of an operand in errors: that of the definition, or its number if
// the op takes any number.
func operandName(n *ir.Node, i int) string {
	if names := n.Def().Operands; i < len(names) && !strings.HasSuffix(names[i], "...") {
		return names[i]
	}
	return "operand " + strconv.Itoa(i)
}

// checkOperand is [domain.check] of an operand.
func (d domain) checkOperand(n *ir.Node, i int) error {
	if t := n.Input(i).Type(); classOf(t.DType)&d == 0 {
		return ir.DTypef("%s is %s, not %s", operandName(n, i), t, d)
	}
	return nil
}

// checkAttr is [domain.check] of the attribute dtype.
func (d domain) checkAttr(t ir.DType) error {
	if classOf(t)&d == 0 {
		return ir.DTypef("dtype is %s, not %s", t, d)
	}
	return nil
}

// sameTypes returns the common type of all operands of n.
func sameTypes(n *ir.Node, accepted domain) (ir.Type, error) {
	t := n.Input(0).Type()
	if err := accepted.check(t.DType); err != nil {
		return t, err
	}
	for i, v := range n.Inputs() {
		if v.DType() != t.DType {
			return t, notAsFirst(n, i, v.DType(), t.DType)
		}
		if !v.Shape().Equal(t.Shape) {
			return t, ir.Shapef("%s is %s, not %s as %s is", operandName(n, i), v.Shape(), t.Shape, operandName(n, 0))
		}
	}
	return t, nil
}

// notAsFirst is the error of an operand whose element type is not that of the first.
func notAsFirst(n *ir.Node, i int, given, want ir.DType) error {
	return ir.DTypef("%s is %s, not %s as %s is", operandName(n, i), given, want, operandName(n, 0))
}

// checkAxes returns an error of kind [ir.ErrAttr] unless the axes are distinct and in [0,
// rank).
func checkAxes(axes []int, rank int) error {
	for i, a := range axes {
		if a < 0 || a >= rank {
			return ir.Attrf("axis %d is out of range: the value has rank %d", a, rank)
		}
		if slices.Contains(axes[:i], a) {
			return ir.Attrf("axis %d is named twice", a)
		}
	}
	return nil
}

// fromFront replaces negative axes, which count from the last. Axes out of range are
// unchanged, for the shape rule to refuse.
func fromFront(axes []int, rank int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = a
		if a < 0 && a >= -rank {
			out[i] = a + rank
		}
	}
	return out
}
