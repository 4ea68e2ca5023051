package ir

import (
	"slices"

	"github.com/rlx-go/rlx/internal/format"
)

// Verify checks the invariants of a graph: operands come before their users and belong to the same
// graph, the shape rules give the stored types, names are not empty and unique, states come in
// pairs, subgraphs are closed, and attributes round-trip through their text. A graph made by
// [Build] always passes; tests verify the results of transforms. The error is of kind [ErrGraph],
// or the one that building such a graph gives.
func Verify(g *Graph) error {
	if err := g.NotNil(); err != nil {
		return err
	}
	v := &verifier{g: g, named: map[portName]bool{}}
	for i, n := range g.nodes {
		if err := v.node(i, n); err != nil {
			return format.Errorf("graph %q, node %d: %w", g.name, i, &OpError{Op: n.op, Label: n.label, Pos: n.pos, Err: err})
		}
	}
	if err := v.ends(); err != nil {
		return format.Errorf("graph %q: %w", g.name, err)
	}
	return nil
}

type verifier struct {
	g     *Graph
	ports int // port nodes seen so far
	named map[portName]bool
}

func (v *verifier) node(i int, n *Node) error {
	if n.id != i || n.owner != v.g.nodes[0].owner {
		return Errorf(ErrGraph, "it is node %d of another graph", n.id)
	}
	if d, _ := Lookup(n.op); d != n.def {
		return Errorf(ErrGraph, "its definition is that of another op")
	}
	for j, in := range n.inputs {
		if err := v.operand(in, i); err != nil {
			return format.Errorf("operand %d: %w", j, err)
		}
	}
	switch a := n.attrs.(type) {
	case *PortAttrs:
		return v.port(n, a)
	case *ConstantAttrs:
		if len(n.types) != 1 || !n.types[0].Equal(a.Type) {
			return Errorf(ErrGraph, "a literal of %s is stored as %s", a.Type, formatTypes(n.types))
		}
		return checkConstant(a.Type, a.Data)
	}
	return v.call(n)
}

// operand checks that in is a result of a node before node number limit.
func (v *verifier) operand(in Value, limit int) error {
	n := in.node
	if n == nil {
		return Errorf(ErrGraph, "it is not a value")
	}
	if n.id >= limit || v.g.nodes[n.id] != n {
		return Errorf(ErrGraph, "it is a later value or one of another graph")
	}
	if in.index < 0 || in.index >= len(n.types) {
		return Errorf(ErrGraph, "it is result %d; the node has %d", in.index, len(n.types))
	}
	return nil
}

func (v *verifier) port(n *Node, a *PortAttrs) error {
	if v.ports == len(v.g.ports) {
		return Errorf(ErrGraph, "%s %q is not declared", a.Kind, a.Name)
	}
	p := v.g.ports[v.ports]
	v.ports++
	if p.Value != n.Result(0) || p.Name != a.Name || p.Kind != a.Kind || len(n.types) != 1 {
		return Errorf(ErrGraph, "%s %q is declared as %s %q", a.Kind, a.Name, p.Kind, p.Name)
	}
	return v.name(p.Name, spacePorts)
}

func (v *verifier) name(name string, space portSpace) error {
	key := portName{name, space}
	if name == "" || v.named[key] {
		return Errorf(ErrName, "the name %q is empty or declared twice", name)
	}
	v.named[key] = true
	return nil
}

func (v *verifier) call(n *Node) error {
	for _, s := range n.subs {
		if err := Verify(s); err != nil {
			return err
		}
	}
	types, err := infer(n)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(types, n.types, Type.Equal) {
		return Errorf(ErrGraph, "the node is %s; the shape rule returned %s", formatTypes(n.types), formatTypes(types))
	}
	return checkAttrs(n)
}

// checkAttrs checks that attributes round-trip through their text.
func checkAttrs(n *Node) error {
	text := FormatAttrs(n.attrs)
	p := &parser{text: text}
	again := p.attrs(n.Def())
	if p.err != nil {
		return Errorf(ErrAttr, "%s cannot be read back: %s", text, p.err.Msg)
	}
	if s := FormatAttrs(again); s != text {
		return Errorf(ErrAttr, "%s reads back as %s", text, s)
	}
	return nil
}

// ends checks ports and outputs.
func (v *verifier) ends() error {
	if v.ports != len(v.g.ports) {
		return Errorf(ErrGraph, "%d ports declared; the graph has %d", len(v.g.ports), v.ports)
	}
	for _, o := range v.g.outputs {
		if err := v.output(o); err != nil {
			return format.Errorf("output %q: %w", o.Name, err)
		}
	}
	for _, p := range v.g.ports {
		if p.Kind == StatePort && !v.named[portName{p.Name, spaceStates}] {
			return Errorf(ErrGraph, "state %q has no new value", p.Name)
		}
	}
	return nil
}

func (v *verifier) output(o Output) error {
	if err := v.operand(o.Value, len(v.g.nodes)); err != nil {
		return err
	}
	if !o.State {
		return v.name(o.Name, spaceOutputs)
	}
	p, ok := v.g.Port(o.Name)
	if !ok || p.Kind == InputPort {
		return Errorf(ErrName, "unknown state %q", o.Name)
	}
	if t, u := p.Value.Type(), o.Value.Type(); !t.Equal(u) {
		return mismatch(t, u, "the state is %s, its new value %s", t, u)
	}
	return v.name(o.Name, spaceStates)
}
