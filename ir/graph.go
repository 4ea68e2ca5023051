package ir

import (
	"strings"

	"github.com/rlx-go/rlx/internal/format"
)

// Op names an operation. It is the name of the text form, and the key under
// which the operation's [Def] is registered.
type Op string

// The ops that the builder itself makes; all others live in package ops.
const (
	// OpPort is the value of an input, a parameter or a state.
	OpPort Op = "port"
	// OpConstant is a literal, see [ConstantAttrs].
	OpConstant Op = "constant"
)

// Value is one result of a node. The zero Value stands for "no value": what a
// builder returns after an error, and a derivative that is known to be zero.
type Value struct {
	node  *Node
	index int
}

// Valid reports whether v is a value at all.
func (v Value) Valid() bool { return v.node != nil }

// Node returns the node that makes the value, nil for the zero Value.
func (v Value) Node() *Node { return v.node }

// Index returns which result of its node the value is.
func (v Value) Index() int { return v.index }

// Type returns element type and shape; the zero Type for the zero Value.
func (v Value) Type() Type {
	if v.node == nil {
		return Type{}
	}
	return v.node.types[v.index]
}

// DType returns the element type.
func (v Value) DType() DType { return v.Type().DType }

// Shape returns the shape. It is shared with the graph: do not change it.
func (v Value) Shape() Shape { return v.Type().Shape }

// Rank returns the number of axes.
func (v Value) Rank() int { return len(v.Type().Shape) }

// Dim returns the size of an axis; a negative axis counts from the last, as
// in -1. It is invalid where there is no such axis.
func (v Value) Dim(axis int) Dim {
	s := v.Type().Shape
	if axis < 0 {
		axis += len(s)
	}
	if axis < 0 || axis >= len(s) {
		return invalidDim
	}
	return s[axis]
}

// Node is one application of an op: operands in, one or more results out. A
// node may own closed subgraphs (the body of a scan, the branches of a cond).
// Nodes are immutable once their graph is built.
type Node struct {
	id     int
	op     Op
	def    *Def // of op: looking it up at each call takes longer than most calls
	attrs  Attrs
	inputs []Value
	types  []Type
	subs   []*Graph
	label  string
	pos    Pos
	owner  *Builder
}

// ID returns the node's place in the order of its graph, from 0.
func (n *Node) ID() int { return n.id }

// Op returns the operation.
func (n *Node) Op() Op { return n.op }

// Def returns the operation's definition.
func (n *Node) Def() *Def { return n.def }

// Attrs returns the attributes, nil where the op has none. They are shared
// with the graph: do not change them.
func (n *Node) Attrs() Attrs { return n.attrs }

// Inputs returns the operands, shared with the graph.
func (n *Node) Inputs() []Value { return n.inputs }

// Input returns operand i.
func (n *Node) Input(i int) Value { return n.inputs[i] }

// Types returns the types of the results, shared with the graph.
func (n *Node) Types() []Type { return n.types }

// NumResults returns the number of results.
func (n *Node) NumResults() int { return len(n.types) }

// Result returns result i as a value.
func (n *Node) Result(i int) Value { return Value{n, i} }

// Results returns all results as values.
func (n *Node) Results() []Value {
	out := make([]Value, len(n.types))
	for i := range out {
		out[i] = Value{n, i}
	}
	return out
}

// Subgraphs returns the graphs the node owns, shared with the graph.
func (n *Node) Subgraphs() []*Graph { return n.subs }

// Label returns the name a user or a transform gave the node, "" without.
func (n *Node) Label() string { return n.label }

// Pos returns where the node was asked for.
func (n *Node) Pos() Pos { return n.pos }

// InTypes returns the types of the operands.
func (n *Node) InTypes() []Type {
	out := make([]Type, len(n.inputs))
	for i, v := range n.inputs {
		out[i] = v.Type()
	}
	return out
}

// String returns the op, the name of a port or the label of the node, and the types of
// the results: `matmul "head" f32[2,3]`, `param "w" f32[3]`.
func (n *Node) String() string {
	if n == nil {
		return "no node"
	}
	name, label := string(n.op), n.label
	if p, ok := n.attrs.(*PortAttrs); ok {
		name, label = p.Kind.String(), p.Name
	}
	var sb strings.Builder
	sb.WriteString(name)
	if label != "" {
		sb.WriteString(format.Sprintf(" %q", label))
	}
	for i, t := range n.types {
		if i > 0 {
			sb.WriteByte(',')
		}
		sb.WriteByte(' ')
		sb.WriteString(t.String())
	}
	return sb.String()
}

// Fail wraps a reason into an [OpError] that names this node, and the port that
// it is.
func (n *Node) Fail(err error) error {
	if p, ok := n.attrs.(*PortAttrs); ok {
		return &OpError{Op: Op(p.Kind.String()), Label: p.Name, Pos: n.pos, Err: err, declared: true}
	}
	return &OpError{Op: n.op, In: n.InTypes(), Attrs: FormatAttrs(n.attrs), Label: n.label, Pos: n.pos, Err: err}
}

// PortKind says how a graph gets a value from outside.
type PortKind uint8

// The kinds of port.
const (
	// InputPort: given anew with every run.
	InputPort PortKind = iota
	// ParamPort: persistent, and without a value until its owner gives it one. A graph
	// that trains it replaces it at the end of a run, as it does a state. Another entry of
	// the same [Module] may hold it as state of the same name.
	ParamPort
	// StatePort: persistent, zeros until something else is said, read at the start of a
	// run and replaced at its end by the output that forms a pair with it.
	StatePort
)

// String returns "input", "param" or "state", as in the text form.
func (k PortKind) String() string { return [...]string{"input", "param", "state"}[k] }

// Port is a named value that a graph gets from outside.
type Port struct {
	Name  string
	Kind  PortKind
	Value Value
}

// Output is a named value that a graph gives. With State set it is the new
// value of the state or the parameter of that name, the other half of the pair.
type Output struct {
	Name  string
	State bool
	Value Value
}

// Graph is a pure function from its ports to its outputs. It is immutable and
// safe for concurrent use.
type Graph struct {
	name    string
	nodes   []*Node
	ports   []Port
	outputs []Output
	named   map[portName]int // index in ports or outputs
}

// ReadPorts returns the names of the ports whose value a node of g takes, or an output. A
// state, or a parameter, that only stays as it was is not read.
func (g *Graph) ReadPorts() map[string]bool {
	read := map[string]bool{}
	note := func(v Value, but string) {
		if p, ok := v.node.attrs.(*PortAttrs); ok && p.Name != but {
			read[p.Name] = true
		}
	}
	for _, n := range g.nodes {
		for _, v := range n.inputs {
			note(v, "")
		}
	}
	for _, o := range g.outputs {
		if o.State {
			note(o.Value, o.Name)
		} else {
			note(o.Value, "")
		}
	}
	return read
}

// Updates reports whether g gives a state or a parameter of that name its value for the next
// run.
func (g *Graph) Updates(name string) bool {
	_, ok := g.named[portName{name, spaceStates}]
	return ok
}

// Given returns an error of kind [ErrGraph] where g is nil. Whoever takes a graph asks it
// first: all other methods need one.
func (g *Graph) Given() error {
	if g == nil {
		return Errorf(ErrGraph, "no graph given")
	}
	return nil
}

// Name returns the graph's name.
func (g *Graph) Name() string { return g.name }

// Nodes returns all nodes, operands before their users. Shared: do not change.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Ports returns inputs, parameters and states in order of declaration. Shared.
func (g *Graph) Ports() []Port { return g.ports }

// Outputs returns the outputs in order of declaration, state updates
// included. Shared.
func (g *Graph) Outputs() []Output { return g.outputs }

// Port returns the port of that name.
func (g *Graph) Port(name string) (Port, bool) {
	i, ok := g.named[portName{name, spacePorts}]
	if !ok {
		return Port{}, false
	}
	return g.ports[i], true
}

// Output returns the plain (not state) output of that name.
func (g *Graph) Output(name string) (Output, bool) {
	i, ok := g.named[portName{name, spaceOutputs}]
	if !ok {
		return Output{}, false
	}
	return g.outputs[i], true
}

// Symbols returns the names of all symbolic dimensions of the graph's ports,
// sorted.
func (g *Graph) Symbols() []string {
	set := map[string]bool{}
	for _, p := range g.ports {
		for _, d := range p.Value.Shape() {
			for _, s := range d.Symbols() {
				set[s] = true
			}
		}
	}
	return sortedKeys(set)
}

// Uses returns, for each node by its ID, the nodes that take one of its
// results, in order and without repetition. Outputs do not count.
func (g *Graph) Uses() [][]*Node {
	uses := make([][]*Node, len(g.nodes))
	for _, n := range g.nodes {
		for _, in := range n.inputs {
			u := uses[in.node.id]
			if len(u) == 0 || u[len(u)-1] != n {
				uses[in.node.id] = append(u, n)
			}
		}
	}
	return uses
}

// Entry is a graph under the name it is run by.
type Entry struct {
	Name  string
	Graph *Graph
}

// Module is a set of graphs that share persistent values by name: a parameter
// "w" of entry "eval" is the state "w" of entry "step". It is what a device
// compiles.
type Module struct {
	Name    string
	Entries []Entry
}

// NewModule returns a module, or an error of kind [ErrName] where two entries
// have one name, [ErrShape] or [ErrDType] where two entries hold a persistent
// value of one name with different types, and [ErrGraph] for an entry without
// a graph or whose graph has neither outputs nor states.
func NewModule(name string, entries ...Entry) (*Module, error) {
	seen := map[string]bool{}
	held := map[string]Type{}
	for _, e := range entries {
		if e.Name == "" || seen[e.Name] {
			return nil, Errorf(ErrName, "entry %q of module %q is unnamed or named twice", e.Name, name)
		}
		if e.Graph == nil {
			return nil, Errorf(ErrGraph, "entry %q of module %q has no graph", e.Name, name)
		}
		if len(e.Graph.outputs) == 0 {
			return nil, Errorf(ErrGraph, "graph %q, entry %q of module %q, has no outputs and no states: nothing would be computed", e.Graph.name, e.Name, name)
		}
		seen[e.Name] = true
		for _, p := range e.Graph.ports {
			if p.Kind == InputPort {
				continue
			}
			t, ok := held[p.Name]
			if ok && !t.Equal(p.Value.Type()) {
				return nil, mismatch(t, p.Value.Type(), "%q is %s in one entry of module %q and %s in entry %q", p.Name, t, name, p.Value.Type(), e.Name)
			}
			held[p.Name] = p.Value.Type()
		}
	}
	return &Module{name, entries}, nil
}
