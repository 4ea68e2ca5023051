package ir

import (
	"cmp"
	"slices"
)

// Builder builds one graph. Its methods and the op constructors of package ops return values and no
// errors. The builder records the first error with the caller's source position; after it,
// everything returns the zero Value. [Build] returns the error.
type Builder struct {
	name    string
	nodes   []*Node
	ports   []Port
	outputs []Output
	named   map[portName]int // index in ports or outputs
	err     error
	label   string
	scope   string // the open scopes, joined by slashes
	at      Pos
	done    bool
	context map[any]any // by keys of other packages
	capture func(v Value) Value

	// placeless is set for parsers and transforms: the caller's position is not that of the node.
	placeless bool
}

func newBuilder(name string) *Builder {
	return &Builder{name: name, named: map[portName]int{}}
}

// Build calls f with a new builder and returns the graph, or the first error: an [*OpError] if an
// op was rejected.
func Build(name string, f func(b *Builder)) (*Graph, error) { return newBuilder(name).run(f) }

// Transform is [Build] for graphs derived from others: nodes get the positions set by
// [Builder.Copy] and [Builder.At], never that of the caller.
func Transform(name string, f func(b *Builder)) (*Graph, error) {
	b := newBuilder(name)
	b.placeless = true
	return b.run(f)
}

func (b *Builder) run(f func(b *Builder)) (g *Graph, err error) {
	defer func() {
		// After an error f works with zero Values and may index an empty shape. The recorded error
		// is the cause of the panic.
		if b.err != nil {
			if r := recover(); r != nil {
				g, err = nil, b.err
			}
		}
	}()
	if f == nil {
		return nil, Errorf(ErrGraph, "no function given to build graph %q", b.name)
	}
	f(b)
	return b.finish()
}

// NewBuilder returns a builder for hosts that build a graph over many calls, and the function that
// finishes it. Other users call [Build].
func NewBuilder(name string) (b *Builder, finish func() (*Graph, error)) {
	b = newBuilder(name)
	return b, b.finish
}

func (b *Builder) finish() (*Graph, error) {
	b.done = true
	if b.err != nil {
		return nil, b.err
	}
	for _, p := range b.ports {
		if _, updated := b.named[portName{p.Name, spaceStates}]; p.Kind == StatePort && !updated {
			return nil, Errorf(ErrGraph, "state %q of graph %q has no new value: call SetState", p.Name, b.name)
		}
	}
	return &Graph{b.name, b.nodes, b.ports, b.outputs, b.named}, nil
}

// Err returns the first error, or nil.
func (b *Builder) Err() error { return b.err }

// TakeErr returns the first error and clears it, for hosts that report each error and continue. The
// rejected node is not part of the graph.
func (b *Builder) TakeErr() error {
	err := b.err
	b.err = nil
	return err
}

// Fail records an error; only the first one is kept. Op constructors use it for checks outside the
// shape rule.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Failf records an [*OpError] for an op that could not be added, with the label that its node would
// have had: see [Builder.Label].
func (b *Builder) Failf(op Op, in []Value, err error) {
	b.Fail(&OpError{Op: op, In: typesOf(in), Label: b.label, Pos: callerPos(), Err: err})
}

// Constant adds a literal of type t from a copy of its bytes (little endian, row-major).
func (b *Builder) Constant(t Type, data []byte) Value {
	if b.err != nil {
		return Value{}
	}
	if err := checkConstant(t, data); err != nil {
		b.Failf(OpConstant, nil, err)
		return Value{}
	}
	return b.constant(Type{t.DType, t.Shape.Clone()}, slices.Clone(data))
}

// constant adds a literal that owns data. It normalises booleans to 0 and 1, so that equal literals
// have equal bytes.
func (b *Builder) constant(t Type, data []byte) Value {
	if t.DType == Bool {
		for i, x := range data {
			data[i] = min(x, 1)
		}
	}
	n := &Node{op: OpConstant, def: mustDef(OpConstant), attrs: &ConstantAttrs{t, data}, types: []Type{t}, label: b.label}
	return b.appendNode(n).Result(0)
}

// Label sets the label of the nodes added until the next call. Errors, the text form and kernel
// names show it. In a [Builder.Scope] it is prefixed by the scope.
func (b *Builder) Label(label string) {
	b.label = b.scope
	if label != "" {
		b.label = b.scoped(label)
	}
}

// At sets the source position of the nodes added until the next call. Transforms give nodes the
// position of the node that they derive from. With the zero Pos, the default, a node has the
// position of the caller.
func (b *Builder) At(p Pos) { b.at = p }

// Origin returns the label and position set by Label and At, for restoring them.
func (b *Builder) Origin() (label string, at Pos) { return b.label, b.at }

// Subgraph builds a closed graph for a node to own. Its nodes begin with the position of [Builder.At].
func (b *Builder) Subgraph(name string, f func(b *Builder)) *Graph {
	if b.err != nil {
		return nil
	}
	sub := newBuilder(name)
	sub.placeless, sub.at = b.placeless, b.at
	g, err := sub.run(f)
	if err != nil {
		b.Fail(err)
	}
	return g
}

// Add adds a node and returns its results. After an error it returns zero Values: as many as the
// results if known, at least one.
func (b *Builder) Add(op Op, attrs Attrs, in ...Value) []Value {
	return b.AddNode(op, attrs, nil, in...)
}

// Add1 adds a node with one result.
func (b *Builder) Add1(op Op, attrs Attrs, in ...Value) Value {
	return b.AddNode(op, attrs, nil, in...)[0]
}

// AddNode adds a node with subgraphs.
func (b *Builder) AddNode(op Op, attrs Attrs, subs []*Graph, in ...Value) []Value {
	d, _ := Lookup(op) // nil for an unknown op, which insert reports
	n := &Node{op: op, def: d, attrs: attrs, subs: subs, inputs: append([]Value(nil), in...), label: b.label}
	out := b.insert(n)
	if b.err != nil {
		return out
	}
	if err := checkScalar(n); err != nil {
		b.Fail(n.Fail(err))
		return []Value{{}}
	}
	return out
}

// Copy adds a copy of n, a node of this or another graph, with the given operands. It keeps the
// label and position of n; if n has none, it uses those of [Builder.Label] and [Builder.At]. The
// types of the results are inferred again.
func (b *Builder) Copy(n *Node, in []Value) []Value {
	return b.CopyWith(n, n.attrs, n.subs, in)
}

// CopyWith is [Builder.Copy] with other attributes and subgraphs.
func (b *Builder) CopyWith(n *Node, attrs Attrs, subs []*Graph, in []Value) []Value {
	c := &Node{op: n.op, def: n.def, attrs: attrs, subs: subs, inputs: append([]Value(nil), in...), label: cmp.Or(n.label, b.label), pos: n.pos}
	if b.err == nil && b.sameInference(n, c) {
		c.types = n.types
		return b.appendNode(c).Results()
	}
	return b.insert(c)
}

// sameInference reports whether the result types of n hold for its copy c, so that inference can
// be skipped: passes copy most nodes unchanged.
func (b *Builder) sameInference(n, c *Node) bool {
	if n.attrs != c.attrs || len(n.inputs) != len(c.inputs) || !slices.Equal(n.subs, c.subs) {
		return false
	}
	for i, v := range c.inputs {
		if v.node == nil || v.node.owner != b || !v.Type().Equal(n.inputs[i].Type()) {
			return false
		}
	}
	return true
}

// insert checks a node against its definition and adds it.
func (b *Builder) insert(n *Node) []Value {
	if b.err != nil {
		return []Value{{}}
	}
	types, err := b.check(n)
	if err != nil {
		n.pos = b.posOf(n)
		b.Fail(n.Fail(err))
		return []Value{{}}
	}
	n.types = types
	return b.appendNode(n).Results()
}

// posOf returns the position of a new node: its own if it is a copy, else that of [Builder.At],
// else the caller's.
func (b *Builder) posOf(n *Node) Pos {
	switch {
	case n.pos != Pos{}:
		return n.pos
	case b.at != Pos{} || b.placeless:
		return b.at
	}
	return callerPos()
}

// check checks that the operands are values of this graph and that the definition accepts the node,
// and returns the result types.
func (b *Builder) check(n *Node) ([]Type, error) {
	for i, v := range n.inputs {
		if v.node == nil {
			return nil, Errorf(ErrGraph, "operand %d is not a value", i)
		}
		if v.node.owner != b && b.capture != nil {
			v = b.capture(v)
			n.inputs[i] = v
		}
		if v.node == nil || v.node.owner != b {
			return nil, Errorf(ErrGraph, "operand %d belongs to another graph: pass it to the loop or branch", i)
		}
	}
	return infer(n)
}

// SetCapture sets the function that replaces an operand which belongs to another graph by a value of
// this one, as functions that build a graph for a part of another do for the values around it. Without it
// such an operand is an error. The builders of subgraphs have none.
func (b *Builder) SetCapture(f func(v Value) Value) { b.capture = f }

// appendNode appends n to the nodes of the graph.
func (b *Builder) appendNode(n *Node) *Node {
	if b.done {
		b.Fail(Errorf(ErrGraph, "graph %q is built already", b.name))
	}
	n.id, n.owner, n.pos = len(b.nodes), b, b.posOf(n)
	b.nodes = append(b.nodes, n)
	return n
}

func typesOf(in []Value) []Type {
	out := make([]Type, len(in))
	for i, v := range in {
		out[i] = v.Type()
	}
	return out
}

// portName is the key under which names must be unique: ports share one namespace; plain outputs
// and state updates have one each.
type portName struct {
	name  string
	space portSpace
}

type portSpace uint8

const (
	spacePorts portSpace = iota
	spaceOutputs
	spaceStates
)

// Input declares an input, a value given at every run.
func (b *Builder) Input(name string, d DType, axes ...Dim) Value {
	return b.Port(InputPort, name, Type{d, axes})
}

// Param declares a parameter, a persistent value that must be set before the first run that reads
// it. [Builder.SetState] may update it, as training does.
func (b *Builder) Param(name string, d DType, axes ...Dim) Value {
	return b.Port(ParamPort, b.scoped(name), Type{d, axes})
}

// State declares a state and returns its value at the start of a run. [Builder.SetState] sets its
// value at the end.
func (b *Builder) State(name string, d DType, axes ...Dim) Value {
	return b.Port(StatePort, b.scoped(name), Type{d, axes})
}

// Scope calls f and prefixes names with name and a slash: those of [Builder.Param], [Builder.State]
// and [Builder.SetState], those of parameters and states declared by [Builder.Call], and labels; a
// node without a label gets the scope's name. Scopes nest. Inputs, outputs and ports declared by
// [Builder.Port] keep their names. The error is of kind [ErrGraph] if the name is empty or f is
// nil.
func (b *Builder) Scope(name string, f func()) {
	const word Op = "scope"
	if !b.Require(word, "name", name != "") || !b.Require(word, "function", f != nil) {
		return
	}
	scope, label := b.scope, b.label
	b.scope = b.scoped(name)
	b.Label("")
	f()
	b.scope, b.label = scope, label
}

// scoped returns a name prefixed by the open scopes. An empty name stays empty and is rejected
// later.
func (b *Builder) scoped(name string) string {
	if b.scope == "" || name == "" {
		return name
	}
	return b.scope + "/" + name
}

// Port declares a port of any kind.
func (b *Builder) Port(kind PortKind, name string, t Type) Value {
	return b.port(name, kind, &PortAttrs{Name: name, Kind: kind}, []Type{{t.DType, t.Shape.Clone()}})
}

// port declares a port from attributes and types that are not modified later.
func (b *Builder) port(name string, kind PortKind, attrs Attrs, types []Type) Value {
	if b.err != nil {
		return Value{}
	}
	if err := b.checkPort(kind, name, types[0]); err != nil {
		b.failDeclared(kindWord(kind), name, err)
		return Value{}
	}
	n := &Node{op: OpPort, def: mustDef(OpPort), attrs: attrs, types: types}
	v := b.appendNode(n).Result(0)
	b.named[portName{name, spacePorts}] = len(b.ports)
	b.ports = append(b.ports, Port{name, kind, v})
	return v
}

func (b *Builder) checkPort(kind PortKind, name string, t Type) error {
	if kind > StatePort {
		return Errorf(ErrGraph, "unknown port kind %d", kind)
	}
	if err := checkType(t); err != nil {
		return err
	}
	if name == "" {
		return Errorf(ErrName, "the %s has no name", kind)
	}
	if i, taken := b.named[portName{name, spacePorts}]; taken {
		return b.declaredTwice(name, b.ports[i])
	}
	return nil
}

// declaredTwice returns the error for a second port of the same name. It occurs when a function
// that declares its parameters is called twice.
func (b *Builder) declaredTwice(name string, first Port) error {
	at := first.Value.node.pos.String()
	if at != "" {
		at = ", at " + at
	}
	remedy := ""
	if first.Kind != InputPort {
		remedy = ": to share it, pass on the value that was declared first; for another one, give it another name, or call what declares it within a scope"
	}
	return Errorf(ErrName, "%q is declared twice, first as %s %s%s%s", name, first.Kind, first.Value.Type(), at, remedy)
}

// Output declares an output.
func (b *Builder) Output(name string, v Value) {
	b.output(spaceOutputs, Output{Name: name, Value: v})
}

// SetState declares the value of a state or parameter after a run. Its type must be that of the
// state.
func (b *Builder) SetState(name string, v Value) {
	if p, ok := b.stateNamed(name); ok && b.fits(p, v) {
		b.output(spaceStates, Output{Name: p.Name, State: true, Value: v})
	}
}

// UpdateState sets the value of a state or parameter after a run to f(now), where now is the value that an earlier call
// of SetState or UpdateState has set, or else that at the start of the run: a part of a model that a graph has twice
// moves its state twice. The error is of kind [ErrName] for an unknown state, and [ErrGraph] if f is nil.
func (b *Builder) UpdateState(name string, f func(now Value) Value) {
	p, ok := b.stateNamed(name)
	if !ok || !b.Require(wordState, "function", f != nil) {
		return
	}
	i, set := b.named[portName{p.Name, spaceStates}]
	if !set {
		b.SetState(name, f(p.Value))
	} else if v := f(b.outputs[i].Value); b.fits(p, v) {
		b.outputs[i].Value = v
	}
}

// stateNamed returns the state or parameter of a name in the open scopes.
func (b *Builder) stateNamed(name string) (Port, bool) {
	name = b.scoped(name)
	p, ok := b.Declared(name)
	if !ok || p.Kind == InputPort {
		b.failDeclared(wordState, name, Errorf(ErrName, "unknown state %q", name))
	}
	return p, b.err == nil
}

// fits reports whether v is a value of the graph of the type of a state, and records an error if it is not.
func (b *Builder) fits(p Port, v Value) bool {
	if t := p.Value.Type(); b.owns(wordState, p.Name, v) && !t.Equal(v.Type()) {
		b.failDeclared(wordState, p.Name, mismatch(t, v.Type(), "state %q is %s, its new value %s", p.Name, t, v.Type()))
	}
	return b.err == nil
}

func (b *Builder) output(space portSpace, o Output) {
	word := wordOutput
	if o.State {
		word = wordState
	}
	if b.err != nil || !b.owns(word, o.Name, o.Value) {
		return
	}
	key := portName{o.Name, space}
	if _, taken := b.named[key]; taken {
		b.failDeclared(word, o.Name, Errorf(ErrName, "%q is declared twice", o.Name))
		return
	}
	if o.Name == "" {
		b.failDeclared(word, o.Name, Errorf(ErrName, "the output has no name"))
		return
	}
	b.named[key] = len(b.outputs)
	b.outputs = append(b.outputs, o)
}

// The names of declarations in errors.
const (
	wordState  Op = "state"
	wordOutput Op = "output"
)

// kindWord returns the name of a port kind, which may be invalid.
func kindWord(kind PortKind) Op {
	if kind > StatePort {
		return OpPort
	}
	return Op(kind.String())
}

// failDeclared records an [*OpError] for a port or an output.
func (b *Builder) failDeclared(word Op, name string, err error) {
	b.Fail(&OpError{Op: word, Label: name, Pos: callerPos(), Err: err, declared: true})
}

// Require records an [*OpError] of kind [ErrGraph] unless given: a required part of an op, such as
// a function, is missing. It reports whether b has no error.
func (b *Builder) Require(op Op, what string, given bool) bool {
	if b.err == nil && !given {
		b.failDeclared(op, "", Errorf(ErrGraph, "no %s given", what))
	}
	return b.err == nil
}

// owns records an error unless v is a value of this builder. word and name describe the declaration
// in the error.
func (b *Builder) owns(word Op, name string, v Value) bool {
	switch {
	case b.err != nil:
		return false
	case v.node == nil:
		b.failDeclared(word, name, Errorf(ErrGraph, "no value given"))
		return false
	case v.node.owner != b:
		b.failDeclared(word, name, Errorf(ErrGraph, "the value belongs to another graph"))
		return false
	}
	return true
}
