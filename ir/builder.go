package ir

import "fmt"

// Builder builds one graph. Its methods, and the op constructors of package
// ops, return values and no errors: the first error is kept, with the place in
// the caller's source, and everything after it returns the zero Value. [Build]
// gives the error at the end.
type Builder struct {
	name    string
	nodes   []*Node
	ports   []Port
	outputs []Output
	err     error
	label   string
	at      Pos
	done    bool
}

// Build runs f on a new builder and returns the graph it built, or the first
// error: an [*OpError] for an op that was refused.
func Build(name string, f func(b *Builder)) (g *Graph, err error) {
	b := &Builder{name: name}
	defer func() {
		// After an error f works with zero Values and may well index an empty
		// shape; what counts is the error it did not look at.
		if b.err != nil {
			if r := recover(); r != nil {
				g, err = nil, b.err
			}
		}
	}()
	f(b)
	return b.finish()
}

func (b *Builder) finish() (*Graph, error) {
	b.done = true
	if b.err != nil {
		return nil, b.err
	}
	g := &Graph{name: b.name, nodes: b.nodes, ports: b.ports, outputs: b.outputs}
	if err := checkPairs(g); err != nil {
		return nil, err
	}
	return g, nil
}

// checkPairs makes sure that each state has exactly one new value.
func checkPairs(g *Graph) error {
	updated := map[string]bool{}
	for _, o := range g.outputs {
		if o.State {
			updated[o.Name] = true
		}
	}
	for _, p := range g.ports {
		if p.Kind == StatePort && !updated[p.Name] {
			return Errorf(ErrGraph, "state %q of graph %q has no new value: set one with Builder.SetState", p.Name, g.name)
		}
	}
	return nil
}

// Err returns the first error, nil while there is none.
func (b *Builder) Err() error { return b.err }

// Fail records an error, of which only the first counts. Op constructors use
// it for what the shape rule cannot see.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Failf records an [*OpError] for an op that could not even be asked for.
func (b *Builder) Failf(op Op, in []Value, err error) {
	b.Fail(&OpError{Op: op, In: typesOf(in), Pos: callerPos(), Err: err})
}

// Input declares an input: a value given anew with every run.
func (b *Builder) Input(name string, d DType, axes ...Dim) Value {
	return b.Port(InputPort, name, Type{d, axes})
}

// Param declares a parameter: a persistent value that this graph only reads.
func (b *Builder) Param(name string, d DType, axes ...Dim) Value {
	return b.Port(ParamPort, name, Type{d, axes})
}

// State declares a state and returns its value at the start of a run.
// [Builder.SetState] gives its value at the end.
func (b *Builder) State(name string, d DType, axes ...Dim) Value {
	return b.Port(StatePort, name, Type{d, axes})
}

// Port declares a port of any kind.
func (b *Builder) Port(kind PortKind, name string, t Type) Value {
	if b.err != nil {
		return Value{}
	}
	if err := checkType(t); err != nil {
		b.Failf(OpPort, nil, fmt.Errorf("%s %q: %w", kind, name, err))
		return Value{}
	}
	if name == "" {
		b.Failf(OpPort, nil, Errorf(ErrName, "%s without a name", kind))
		return Value{}
	}
	for _, p := range b.ports {
		if p.Name == name {
			b.Failf(OpPort, nil, Errorf(ErrName, "%q is declared twice", name))
			return Value{}
		}
	}
	n := b.append(&Node{op: OpPort, attrs: &PortAttrs{name, kind}, types: []Type{{t.DType, t.Shape.Clone()}}})
	v := n.Result(0)
	b.ports = append(b.ports, Port{name, kind, v})
	return v
}

// Output declares an output.
func (b *Builder) Output(name string, v Value) { b.output(Output{Name: name, Value: v}) }

// SetState declares the value a state has after a run. Its type must be that
// of the state.
func (b *Builder) SetState(name string, v Value) {
	if b.err != nil {
		return
	}
	for _, p := range b.ports {
		if p.Name == name && p.Kind == StatePort {
			if b.owns(OpPort, v) && !p.Value.Type().Equal(v.Type()) {
				b.Failf(OpPort, []Value{v}, Shapef("state %q is %s", name, p.Value.Type()))
				return
			}
			b.output(Output{Name: name, State: true, Value: v})
			return
		}
	}
	b.Failf(OpPort, []Value{v}, Errorf(ErrName, "there is no state %q", name))
}

func (b *Builder) output(o Output) {
	if b.err != nil || !b.owns(OpPort, o.Value) {
		return
	}
	for _, p := range b.outputs {
		if p.Name == o.Name && p.State == o.State {
			b.Failf(OpPort, []Value{o.Value}, Errorf(ErrName, "output %q is declared twice", o.Name))
			return
		}
	}
	if o.Name == "" {
		b.Failf(OpPort, []Value{o.Value}, Errorf(ErrName, "output without a name"))
		return
	}
	b.outputs = append(b.outputs, o)
}

// Constant adds a literal from its type and its bytes (little endian,
// row-major).
func (b *Builder) Constant(t Type, data []byte) Value {
	if b.err != nil {
		return Value{}
	}
	size, err := t.Bytes()
	if err == nil && size != len(data) {
		err = Shapef("%s takes %d bytes, not %d", t, size, len(data))
	}
	if err != nil {
		b.Failf(OpConstant, nil, err)
		return Value{}
	}
	n := b.append(&Node{op: OpConstant, attrs: &ConstantAttrs{t, data}, types: []Type{t}})
	return n.Result(0)
}

// Label sets the name of the nodes added until the next call: it shows in
// errors, in the text form and in the names of kernels.
func (b *Builder) Label(label string) { b.label = label }

// At sets the place of the nodes added until the next call. A transform gives
// them the place of the node they derive from; with the zero Pos, as at the
// start, a node's place is that of the caller.
func (b *Builder) At(p Pos) { b.at = p }

// Subgraph builds a closed graph for a node to own.
func (b *Builder) Subgraph(name string, f func(b *Builder)) *Graph {
	if b.err != nil {
		return nil
	}
	g, err := Build(name, f)
	if err != nil {
		b.Fail(err)
	}
	return g
}

// Add adds a node and returns its results; after an error it returns as many
// zero Values as it can tell, at least one.
func (b *Builder) Add(op Op, attrs Attrs, in ...Value) []Value {
	return b.AddNode(op, attrs, nil, in...)
}

// Add1 adds a node with one result.
func (b *Builder) Add1(op Op, attrs Attrs, in ...Value) Value {
	return b.AddNode(op, attrs, nil, in...)[0]
}

// AddNode adds a node that may own subgraphs.
func (b *Builder) AddNode(op Op, attrs Attrs, subs []*Graph, in ...Value) []Value {
	n := &Node{op: op, attrs: attrs, subs: subs, inputs: append([]Value(nil), in...), label: b.label}
	return b.insert(n)
}

// Copy adds a node like n, of this or another graph, with the given operands.
// Label and place stay those of n; the types of the results are inferred anew.
func (b *Builder) Copy(n *Node, in []Value) []Value {
	c := &Node{op: n.op, attrs: n.attrs, subs: n.subs, inputs: append([]Value(nil), in...), label: n.label, pos: n.pos}
	if n.op == OpConstant {
		a := n.attrs.(*ConstantAttrs)
		return []Value{b.Constant(a.Type, a.Data)}
	}
	return b.insert(c)
}

// insert checks a node against its definition and adds it.
func (b *Builder) insert(n *Node) []Value {
	if b.err != nil {
		return []Value{{}}
	}
	if n.pos == (Pos{}) {
		n.pos = b.at
	}
	if n.pos == (Pos{}) {
		n.pos = callerPos()
	}
	types, err := b.check(n)
	if err != nil {
		b.Fail(n.Fail(err))
		return []Value{{}}
	}
	n.types = types
	return b.append(n).Results()
}

func (b *Builder) check(n *Node) ([]Type, error) {
	d, ok := Lookup(n.op)
	if !ok {
		return nil, Errorf(ErrName, "there is no op %q", string(n.op))
	}
	for i, v := range n.inputs {
		if v.node == nil {
			return nil, Errorf(ErrGraph, "operand %d is no value", i)
		}
		if v.node.owner != b {
			return nil, Errorf(ErrGraph, "operand %d belongs to another graph", i)
		}
	}
	most, least := len(d.Operands), len(d.Operands)-d.Optional
	if d.Variadic() {
		most, least = len(n.inputs), least-1
	}
	if len(n.inputs) < least || len(n.inputs) > most {
		return nil, Shapef("%d operands given, %d wanted", len(n.inputs), len(d.Operands))
	}
	if (d.NewAttrs == nil) != (n.attrs == nil) {
		return nil, Attrf("attributes missing or not wanted")
	}
	if len(n.subs) != d.Subgraphs {
		return nil, Errorf(ErrGraph, "%d subgraphs given, %d wanted", len(n.subs), d.Subgraphs)
	}
	types, err := d.Infer(n)
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		if err := checkType(t); err != nil {
			return nil, err
		}
	}
	return types, nil
}

func (b *Builder) append(n *Node) *Node {
	if b.done {
		b.Fail(Errorf(ErrGraph, "graph %q is built already", b.name))
	}
	n.id, n.owner = len(b.nodes), b
	b.nodes = append(b.nodes, n)
	return n
}

// owns records an error unless v is a value of this builder.
func (b *Builder) owns(op Op, v Value) bool {
	switch {
	case b.err != nil:
		return false
	case v.node == nil:
		b.Failf(op, nil, Errorf(ErrGraph, "no value given"))
		return false
	case v.node.owner != b:
		b.Failf(op, []Value{v}, Errorf(ErrGraph, "the value belongs to another graph"))
		return false
	}
	return true
}

func checkType(t Type) error {
	if t.DType == 0 {
		return DTypef("no element type")
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

func typesOf(in []Value) []Type {
	out := make([]Type, len(in))
	for i, v := range in {
		out[i] = v.Type()
	}
	return out
}
