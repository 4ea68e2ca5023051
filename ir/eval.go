package ir

import "github.com/rlx-go/rlx/internal/format"

// EvalOptions are the options of [Eval].
type EvalOptions struct {
	// Reference computes floating values of any element type in float64 without intermediate
	// rounding, for measuring the error of a device. Conversions between floating types do not
	// round either. Conversions to integers, bitcasts and random bits are unchanged.
	Reference bool
	// Bodies evaluates composites through their body, even if the op has an Eval. A module for the
	// browser has no such Evals, so this gives the same results there.
	Bodies bool
}

// EvalContext is passed to the reference implementation of an op.
type EvalContext struct {
	Options EvalOptions
}

// Round rounds an array to its element type, unless [EvalOptions.Reference] is set.
func (c *EvalContext) Round(a *Array) *Array {
	if !c.Options.Reference || a.F == nil && a.C == nil {
		a.Round()
	}
	return a
}

// Call evaluates a subgraph of a node. in holds the values of its ports, the result those of its
// outputs, both in order.
func (c *EvalContext) Call(g *Graph, in []*Array) ([]*Array, error) {
	values := map[string]*Array{}
	for i, p := range g.ports {
		values[p.Name] = in[i]
	}
	return evalGraph(c, g, values)
}

// Eval computes the outputs of a graph with the reference implementation of its ops, in the order
// of [Graph.Outputs]. Tests compare devices with it; it is not meant for running models. All shapes
// must be constant. The error is of kind [ErrName], [ErrShape] or [ErrDType] for an input that is
// missing, unknown or of the wrong type, and [ErrUnsupported] for a node with more than 2³⁰ result
// elements.
func Eval(g *Graph, inputs map[string]*Array, o EvalOptions) ([]*Array, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	for name := range inputs {
		if _, ok := g.Port(name); !ok {
			return nil, Errorf(ErrName, "unknown port %q of graph %q", name, g.name)
		}
	}
	return evalGraph(&EvalContext{Options: o}, g, inputs)
}

func evalGraph(c *EvalContext, g *Graph, inputs map[string]*Array) ([]*Array, error) {
	values := make([][]*Array, len(g.nodes))
	at := func(v Value) *Array { return values[v.node.id][v.index] }
	for _, n := range g.nodes {
		results, err := evalNode(c, n, at, inputs)
		if err != nil {
			return nil, n.Fail(err)
		}
		values[n.id] = results
	}
	out := make([]*Array, len(g.outputs))
	for i, o := range g.outputs {
		out[i] = at(o.Value)
	}
	return out, nil
}

// maxEval limits the result elements of a node in [Eval]; they take 8 GiB.
const maxEval = 1 << 30

// checkSize returns an error if the results of a node are larger than maxEval, since running out of
// memory ends the process.
func checkSize(n *Node) error {
	left := maxEval
	for _, t := range n.types {
		dims, constant := t.Shape.Ints()
		elements := 1
		for _, d := range dims {
			if d > 0 && elements > left/d {
				return Errorf(ErrUnsupported, "%s is too large; Eval computes up to %d elements", t, maxEval)
			}
			elements *= d
		}
		if constant {
			left -= elements
		}
	}
	return nil
}

func evalNode(c *EvalContext, n *Node, at func(Value) *Array, inputs map[string]*Array) ([]*Array, error) {
	switch a := n.attrs.(type) {
	case *PortAttrs:
		x := inputs[a.Name]
		if x == nil {
			return nil, Errorf(ErrName, "no value given")
		}
		if err := x.check(n.types[0]); err != nil {
			return nil, err
		}
		return []*Array{x}, nil
	case *ConstantAttrs:
		x, err := ArrayOf(a.Type, a.Data)
		return []*Array{x}, err
	}
	in := make([]*Array, len(n.inputs))
	for i, v := range n.inputs {
		in[i] = at(v)
	}
	if err := checkSize(n); err != nil {
		return nil, err
	}
	d := n.def
	if d.Eval == nil && d.Body == nil {
		return nil, Errorf(ErrNoRule, "%s has no Eval", n.op)
	}
	if d.Eval == nil || c.Options.Bodies && d.Body != nil {
		body, err := Inline(n)
		if err != nil {
			return nil, err
		}
		return c.Call(body, in)
	}
	out, err := d.Eval(c, n, in)
	if err != nil {
		return nil, err
	}
	return out, checkResults(n, out)
}

// checkResults checks the results of a reference implementation against the shape rule.
func checkResults(n *Node, out []*Array) error {
	if len(out) != len(n.types) {
		return Errorf(ErrGraph, "Eval returned %d results; Infer returned %d", len(out), len(n.types))
	}
	for i, x := range out {
		if err := x.check(n.types[i]); err != nil {
			return format.Errorf("Eval, result %d: %w", i, err)
		}
	}
	return nil
}

// Inline returns the body of a composite, or the decomposition of a scan ([PrefixLowering]), as a
// graph with inputs named "0", "1", … for the operands and outputs for the results. Its nodes have
// the label and position of n.
func Inline(n *Node) (*Graph, error) { return inline(n, n.label, n.pos) }

// Body is [Inline] without the label and position of n, so that the graph is the same for all nodes
// of its form (see [Forms]).
func Body(n *Node) (*Graph, error) { return inline(n, "", Pos{}) }

func inline(n *Node, label string, at Pos) (*Graph, error) {
	d := n.def
	body := d.Body
	if l, ok := d.Lower.(*PrefixLowering); ok {
		body = l.Decompose
	}
	if body == nil {
		return nil, Errorf(ErrNoRule, "%s is a primitive", n.op)
	}
	return Transform(string(n.op), func(b *Builder) {
		in := make([]Value, len(n.inputs))
		for i, v := range n.inputs {
			in[i] = b.Port(InputPort, itoa(i), v.Type())
		}
		b.Label(label)
		b.At(at)
		for i, v := range body(b, n, in) {
			b.Output(itoa(i), v)
		}
	})
}
