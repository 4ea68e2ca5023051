package ops

import (
	"errors"
	"strconv"

	"github.com/rlx-go/rlx/ir"
)

// composite describes an op defined by a body of other ops. Its shape rule is that of the
// body: it refuses what the body refuses, and the types of the results are the body's.
type composite struct {
	op          ir.Op
	doc         string
	constraints []string
	operands    []string // "x" where nil
	optional    int
	ones        []string // see [ir.Def.Ones]
	newAttrs    func() ir.Attrs
	// types are the accepted types of operand 0, checked before check and body.
	types   domain
	check   func(n *ir.Node) error // nil: no further checks
	reduces func(n *ir.Node) []int // the axes that the result lacks; nil: no reduction
	// body may read the attributes and operands of n, but not its results.
	body func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value
	// bodies replaces body for an op with several results.
	bodies  func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value
	jvp     jvpRule // nil: that of the body
	noGrad  string
	routine bool // whether a backend may implement the op as a routine
}

func defineComposite(c composite) {
	if c.operands == nil {
		c.operands = []string{"x"}
	}
	body := c.bodies
	if body == nil {
		body = func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value { return []ir.Value{c.body(b, n, in)} }
	}
	var lower ir.Lowering
	if c.routine {
		lower = &ir.RoutineLowering{}
	}
	define(&ir.Def{
		Op: c.op, Doc: c.doc, Operands: c.operands, Optional: c.optional, Ones: c.ones, NewAttrs: c.newAttrs,
		Constraints: numbered(append([]string{"the element type of " + c.operands[0] + " is " + c.types.String()}, c.constraints...)...),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if len(n.Inputs()) == 0 {
				return nil, ir.Shapef("there is no operand")
			}
			if err := c.types.check(n.Input(0).DType()); err != nil {
				return nil, err
			}
			if c.check != nil {
				if err := c.check(n); err != nil {
					return nil, err
				}
			}
			return bodyTypes(n, body)
		},
		Reduces: c.reduces,
		JVP:     c.jvp, NoGrad: c.noGrad, NoTranspose: "taken of its body",
		Body:  body,
		Lower: lower,
	})
}

// oneDType reports an error unless all operands have one element type.
func oneDType(n *ir.Node) error {
	d := n.Input(0).DType()
	for i, v := range n.Inputs() {
		if v.DType() != d {
			return ir.DTypef("operand %d is %s, not %s as operand 0 is", i, v.DType(), d)
		}
	}
	return nil
}

// bodyTypes returns the types of the results of a body for the operands of a node. An
// error is stripped of the body's node: the caller knows only the composite.
func bodyTypes(n *ir.Node, body func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value) ([]ir.Type, error) {
	var types []ir.Type
	_, err := ir.Transform(string(n.Op()), func(b *ir.Builder) {
		in := make([]ir.Value, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = b.Port(ir.InputPort, strconv.Itoa(i), v.Type())
		}
		for i, v := range body(b, n, in) {
			b.Output(strconv.Itoa(i), v)
			types = append(types, v.Type())
		}
	})
	if e := (*ir.OpError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return types, err
}
