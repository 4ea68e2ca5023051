package ir

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
)

// Op names an operation in the text form and in the registry of [Def]s.
type Op string

// The ops added by the builder itself; all others are in package ops.
const (
	// OpPort is the value of an input, a parameter or a state.
	OpPort Op = "port"
	// OpConstant is a literal, see [ConstantAttrs].
	OpConstant Op = "constant"
)

// Value is one result of a node. The zero Value means no value: the result of a builder after an
// error, or a derivative that is known to be zero.
type Value struct {
	node  *Node
	index int
}

// Valid reports whether v is not the zero Value.
func (v Value) Valid() bool { return v.node != nil }

// Node returns the node that computes the value, or nil for the zero Value.
func (v Value) Node() *Node { return v.node }

// Index returns the index of the value among the results of its node.
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

// Shape returns the shape, which is shared with the graph and must not be changed.
func (v Value) Shape() Shape { return v.Type().Shape }

// Rank returns the number of axes.
func (v Value) Rank() int { return len(v.Type().Shape) }

// Dim returns the size of an axis. A negative axis counts from the end: -1 is the last. The size is
// not valid if there is no such axis.
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

// Node is an application of an op to operands, with one or more results. It may own closed
// subgraphs, such as the body of a scan or the branches of a cond. Nodes are immutable once their
// graph is built.
type Node struct {
	id     int
	op     Op
	def    *Def // of op, cached because lookups are frequent
	attrs  Attrs
	inputs []Value
	types  []Type
	subs   []*Graph
	label  string
	pos    Pos
	owner  *Builder
}

// ID returns the index of the node in its graph.
func (n *Node) ID() int { return n.id }

// Op returns the operation.
func (n *Node) Op() Op { return n.op }

// Def returns the operation's definition.
func (n *Node) Def() *Def { return n.def }

// Attrs returns the attributes, or nil if the op has none. They are shared with the graph and must
// not be changed.
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

// Subgraphs returns the graphs that the node owns, shared with the graph.
func (n *Node) Subgraphs() []*Graph { return n.subs }

// Label returns the name given by a user or a transform, or "".
func (n *Node) Label() string { return n.label }

// Pos returns the source position at which the node was added.
func (n *Node) Pos() Pos { return n.pos }

// InTypes returns the types of the operands.
func (n *Node) InTypes() []Type {
	out := make([]Type, len(n.inputs))
	for i, v := range n.inputs {
		out[i] = v.Type()
	}
	return out
}

// String returns the op, the name of a port or the label of the node, and the types of the results:
// `matmul "head" f32[2,3]`, `param "w" f32[3]`.
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

// Fail wraps a cause in an [OpError] for this node or port.
func (n *Node) Fail(err error) error {
	if p, ok := n.attrs.(*PortAttrs); ok {
		return &OpError{Op: Op(p.Kind.String()), Label: p.Name, Pos: n.pos, Err: err, declared: true}
	}
	return &OpError{Op: n.op, In: n.InTypes(), Attrs: FormatAttrs(n.attrs), Label: n.label, Pos: n.pos, Err: err}
}

// PortKind is the kind of a port.
type PortKind uint8

// The kinds of port.
const (
	// InputPort is an input, a value given at every run.
	InputPort PortKind = iota
	// ParamPort is a parameter: persistent and without a value until its owner sets one. A graph
	// that trains it updates it at the end of a run, like a state. Another entry of the same
	// [Module] may declare it as a state of the same name.
	ParamPort
	// StatePort is a state: persistent, initially zeros, read at the start of a run and updated at
	// its end by the output of the same name.
	StatePort
)

// String returns "input", "param" or "state", as in the text form.
func (k PortKind) String() string { return [...]string{"input", "param", "state"}[k] }

// Port is a named value that a graph receives.
type Port struct {
	Name  string
	Kind  PortKind
	Value Value
}

// Output is a named value that a graph returns. With State set it is the new value of the state or
// parameter of that name.
type Output struct {
	Name  string
	State bool
	Value Value
}

// Graph is a pure function from its ports to its outputs. It is immutable and safe for concurrent
// use.
type Graph struct {
	name    string
	nodes   []*Node
	ports   []Port
	outputs []Output
	named   map[portName]int // index in ports or outputs
}

// ReadPorts returns the names of the ports that a node or an output of g uses. A state or parameter
// that is only passed through unchanged is not read.
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

// Updates reports whether g updates the state or parameter of that name.
func (g *Graph) Updates(name string) bool {
	_, ok := g.named[portName{name, spaceStates}]
	return ok
}

// NotNil returns an error of kind [ErrGraph] if g is nil. Functions that take a graph call it first;
// all other methods require a graph.
func (g *Graph) NotNil() error {
	if g == nil {
		return Errorf(ErrGraph, "no graph given")
	}
	return nil
}

// Name returns the graph's name.
func (g *Graph) Name() string { return g.name }

// Nodes returns all nodes, operands before their users. The slice is shared and must not be
// changed.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Ports returns inputs, parameters and states in order of declaration. The slice is shared and must
// not be changed.
func (g *Graph) Ports() []Port { return g.ports }

// Outputs returns the outputs, including state updates, in order of declaration. The slice is
// shared and must not be changed.
func (g *Graph) Outputs() []Output { return g.outputs }

// OutputValues returns the values of the outputs, in their order.
func (g *Graph) OutputValues() []Value {
	out := make([]Value, len(g.outputs))
	for i, o := range g.outputs {
		out[i] = o.Value
	}
	return out
}

// Port returns the port of that name.
func (g *Graph) Port(name string) (Port, bool) {
	i, ok := g.named[portName{name, spacePorts}]
	if !ok {
		return Port{}, false
	}
	return g.ports[i], true
}

// Output returns the plain output of that name, not a state update.
func (g *Graph) Output(name string) (Output, bool) {
	i, ok := g.named[portName{name, spaceOutputs}]
	if !ok {
		return Output{}, false
	}
	return g.outputs[i], true
}

// UnknownOutput returns the error, of kind [ErrName], for an output that the graph does not have. It names
// those that it has, without new states.
func (g *Graph) UnknownOutput(name string) error {
	var have []string
	for _, o := range g.outputs {
		if !o.State {
			have = append(have, o.Name)
		}
	}
	return Errorf(ErrName, "unknown output %q of graph %q: it has %q", name, g.name, have)
}

// UnknownPort is [Graph.UnknownOutput] for a port.
func (g *Graph) UnknownPort(name string) error {
	have := make([]string, len(g.ports))
	for i, p := range g.ports {
		have[i] = p.Name
	}
	return Errorf(ErrName, "unknown port %q of graph %q: it has %q", name, g.name, have)
}

// Symbols returns the names of the symbolic dimensions of the graph's ports, sorted.
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

// Uses returns, for each node by ID, the nodes that use one of its results, in order and without
// repetition. Outputs are not included.
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

// Entry is a graph and the name to run it by.
type Entry struct {
	Name  string
	Graph *Graph
}

// Module is a set of graphs that share persistent values by name: parameter "w" of entry "eval" is
// state "w" of entry "step". It is the unit of compilation.
type Module struct {
	Name    string
	Entries []Entry
}

// NewModule returns a module. The error is of kind [ErrName] if two entries have the same name, and
// [ErrShape] or [ErrDType] if a persistent value has different types in two entries. It is of kind
// [ErrGraph] for an entry without a graph or whose graph has neither outputs nor states.
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
			return nil, Errorf(ErrGraph, "graph %q, entry %q of module %q, has no outputs and no states; it needs one", e.Graph.name, e.Name, name)
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

// InitAsOnes returns the names of the parameters and states that should start as ones unless
// initialised otherwise: a node of the graph, or of a loop's body, a branch or a checkpoint that it is passed to, uses
// them directly as an operand listed in [Def.Ones].
func (g *Graph) InitAsOnes() map[string]bool {
	ones := map[string]bool{}
	g.eachScale(func(v Value) {
		if p := v.node.attrs.(*PortAttrs); p.Kind != InputPort {
			ones[p.Name] = true
		}
	})
	return ones
}

// eachScale calls f for the ports that are operands listed in [Def.Ones].
func (g *Graph) eachScale(f func(Value)) {
	for _, n := range g.nodes {
		use := func(i int) {
			if _, isPort := n.inputs[i].node.attrs.(*PortAttrs); isPort {
				f(n.inputs[i])
			}
		}
		for i, name := range n.def.Operands {
			if i < len(n.inputs) && slices.Contains(n.def.Ones, name) {
				use(i)
			}
		}
		for _, sub := range n.subs {
			first := len(n.inputs) - len(sub.ports) // operand that is the first port: a branch has no predicate
			if first == 0 || first == 1 {
				sub.eachScale(func(v Value) {
					use(first + slices.IndexFunc(sub.ports, func(p Port) bool { return p.Value == v }))
				})
			}
		}
	}
}
