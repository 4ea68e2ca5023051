package ir

import "github.com/rlx-go/rlx/ir/scalar"

// infer checks a node against its definition and returns the types of its results.
func infer(n *Node) ([]Type, error) {
	d := n.def
	if d == nil {
		return nil, Errorf(ErrName, "unknown op %q", string(n.op))
	}
	if n.op == OpPort || n.op == OpConstant {
		return nil, Errorf(ErrGraph, "%s needs its own method of Builder", n.op)
	}
	minArgs, maxArgs := d.arity()
	if len(n.inputs) < minArgs || maxArgs >= 0 && len(n.inputs) > maxArgs {
		return nil, Shapef("%d operands given; it needs %s", len(n.inputs), arityString(minArgs, maxArgs))
	}
	if (d.NewAttrs == nil) != (n.attrs == nil) {
		return nil, Attrf("attributes of another type given")
	}
	if len(n.subs) != d.Subgraphs {
		return nil, Errorf(ErrGraph, "%d subgraphs given; it needs %d", len(n.subs), d.Subgraphs)
	}
	for _, s := range n.subs {
		if err := checkClosed(s); err != nil {
			return nil, err
		}
	}
	types, err := d.Infer(n)
	if err != nil {
		return nil, err
	}
	if len(types) == 0 {
		return nil, Errorf(ErrGraph, "the shape rule returned no result")
	}
	for _, t := range types {
		if err := checkType(t); err != nil {
			return nil, err
		}
	}
	return types, nil
}

// checkScalar checks the body of an elementwise node against the types of its operands and its
// result, so that a mistake is reported where the node is added.
func checkScalar(n *Node) error {
	body := n.def.Scalar
	if body == nil {
		return nil
	}
	result := n.types[0]
	x := make([]scalar.Expr, len(n.inputs))
	for i, v := range n.inputs {
		if !v.Shape().Equal(result.Shape) {
			return Shapef("its Scalar body reads %s; it must read the shape of %s", v.Type(), result)
		}
		x[i] = scalar.Arg(i, v.DType())
	}
	e, err := scalar.Catch(func() scalar.Expr { return body(n, x) })
	switch {
	case err != nil:
		return DTypef("its Scalar body is wrong: %v", err)
	case e == nil || e.Type != result.DType:
		return DTypef("its Scalar body must return %s", result.DType)
	}
	return nil
}

// checkClosed checks that a graph can be owned by a node: its only ports are plain inputs.
func checkClosed(g *Graph) error {
	if g == nil {
		return Errorf(ErrGraph, "no subgraph given")
	}
	for _, p := range g.ports {
		if p.Kind != InputPort {
			return Errorf(ErrGraph, "%s %q in subgraph %q: a subgraph must not own persistent values", p.Kind, p.Name, g.name)
		}
	}
	return nil
}

func arityString(minArgs, maxArgs int) string {
	switch {
	case maxArgs < 0:
		return "at least " + itoa(minArgs)
	case minArgs != maxArgs:
		return itoa(minArgs) + " to " + itoa(maxArgs)
	}
	return itoa(minArgs)
}

// checkType checks that values of type t can exist.
func checkType(t Type) error {
	if !t.DType.Valid() {
		return DTypef("the element type is missing")
	}
	for i, d := range t.Shape {
		if !d.Valid() {
			return Shapef("axis %d of %s is negative or too large", i, t)
		}
	}
	if !t.Shape.Size().Valid() {
		return Shapef("%s has too many elements", t)
	}
	return nil
}

func checkConstant(t Type, data []byte) error {
	if err := checkType(t); err != nil {
		return err
	}
	size, err := t.Bytes()
	if err != nil {
		return err
	}
	if size != len(data) {
		return Shapef("the constant has %d bytes; %s needs %d", len(data), t, size)
	}
	return nil
}

// mismatch returns an error of kind ErrDType or ErrShape, depending on what differs.
func mismatch(a, b Type, format string, args ...any) error {
	if a.DType != b.DType {
		return kindf(ErrDType, format, args)
	}
	return kindf(ErrShape, format, args)
}
