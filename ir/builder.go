package ir

import (
	"cmp"
	"slices"
)

// Builder builds one graph. Its methods, and the op constructors of package
// ops, return values and no errors: the first error is kept, with the place in
// the caller's source, and everything after it returns the zero Value. [Build]
// gives the error at the end.
type Builder struct {
	name    string
	nodes   []*Node
	ports   []Port
	outputs []Output
	named   map[portName]int // index in ports or outputs
	err     error
	label   string
	scope   string // the open ones, joined by slashes
	at      Pos
	done    bool

	// placeless is set by parser and transforms, whose caller's line is no
	// place of a node.
	placeless bool
}

func newBuilder(name string) *Builder {
	return &Builder{name: name, named: map[portName]int{}}
}

// Build runs f on a new builder and returns the graph it built, or the first
// error: an [*OpError] for an op that was refused.
func Build(name string, f func(b *Builder)) (*Graph, error) { return newBuilder(name).run(f) }

// Transform is [Build] for graphs that are made of other ones: nodes have the
// places that [Builder.Copy] and [Builder.At] give them, and never that of the
// caller.
func Transform(name string, f func(b *Builder)) (*Graph, error) {
	b := newBuilder(name)
	b.placeless = true
	return b.run(f)
}

func (b *Builder) run(f func(b *Builder)) (g *Graph, err error) {
	defer func() {
		// After an error f works with zero Values and may well index an empty
		// shape; what counts is the error it did not look at.
		if b.err != nil {
			if r := recover(); r != nil {
				g, err = nil, b.err
			}
		}
	}()
	if f == nil {
		return nil, Errorf(ErrGraph, "no function given that builds graph %q", b.name)
	}
	f(b)
	return b.finish()
}

// NewBuilder returns a builder for hosts that build a graph over many calls, and
// the function that ends it. [Build] is the way for everybody else.
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
			return nil, Errorf(ErrGraph, "state %q of graph %q has no new value: each run sets one", p.Name, b.name)
		}
	}
	return &Graph{b.name, b.nodes, b.ports, b.outputs, b.named}, nil
}

// Err returns the first error, nil while there is none.
func (b *Builder) Err() error { return b.err }

// TakeErr returns the first error and forgets it, for hosts that tell each error
// where it happens and go on: what was refused is not part of the graph.
func (b *Builder) TakeErr() error {
	err := b.err
	b.err = nil
	return err
}

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

// Constant adds a literal from its type and its bytes (little endian,
// row-major), which are copied.
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

// constant adds a literal that nothing else refers to. A boolean has one true
// value, so that equal literals have equal bytes.
func (b *Builder) constant(t Type, data []byte) Value {
	if t.DType == Bool {
		for i, x := range data {
			data[i] = min(x, 1)
		}
	}
	n := &Node{op: OpConstant, def: mustDef(OpConstant), attrs: &ConstantAttrs{t, data}, types: []Type{t}, label: b.label}
	return b.place(n).Result(0)
}

// Label sets the name of the nodes added until the next call: it shows in
// errors, in the text form and in the names of kernels. In a [Builder.Scope] it
// comes behind the scope's.
func (b *Builder) Label(label string) {
	b.label = b.scope
	if label != "" {
		b.label = b.within(label)
	}
}

// At sets the place of the nodes added until the next call. A transform gives
// them the place of the node they derive from; with the zero Pos, as at the
// start, a node's place is that of the caller.
func (b *Builder) At(p Pos) { b.at = p }

// Origin returns what Label and At have set, so that it can be set again.
func (b *Builder) Origin() (label string, at Pos) { return b.label, b.at }

// Subgraph builds a closed graph for a node to own.
func (b *Builder) Subgraph(name string, f func(b *Builder)) *Graph {
	if b.err != nil {
		return nil
	}
	sub := newBuilder(name)
	sub.placeless = b.placeless
	g, err := sub.run(f)
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
	d, _ := Lookup(op) // none: insert says so
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

// Copy adds a node like n, of this or another graph, with the given operands.
// Label and place stay those of n, or are what [Builder.Label] and [Builder.At] say
// where it has none; the types of the results are inferred anew.
func (b *Builder) Copy(n *Node, in []Value) []Value {
	return b.CopyWith(n, n.attrs, n.subs, in)
}

// CopyWith is [Builder.Copy] with other attributes and subgraphs.
func (b *Builder) CopyWith(n *Node, attrs Attrs, subs []*Graph, in []Value) []Value {
	c := &Node{op: n.op, def: n.def, attrs: attrs, subs: subs, inputs: append([]Value(nil), in...), label: cmp.Or(n.label, b.label), pos: n.pos}
	if b.err == nil && b.inferredBefore(n, c) {
		c.types = n.types
		return b.place(c).Results()
	}
	return b.insert(c)
}

// inferredBefore reports whether the definition has seen all that it would see
// of the copy when n was added: passes copy most nodes as they are.
func (b *Builder) inferredBefore(n, c *Node) bool {
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
	return b.place(n).Results()
}

// posOf returns the place of a node about to be added: its own, if it is a
// copy, then what [Builder.At] says, then the caller's.
func (b *Builder) posOf(n *Node) Pos {
	switch {
	case n.pos != Pos{}:
		return n.pos
	case b.at != Pos{} || b.placeless:
		return b.at
	}
	return callerPos()
}

// check makes sure that the operands are values of this graph and that the
// definition accepts the node, and returns the types of its results.
func (b *Builder) check(n *Node) ([]Type, error) {
	for i, v := range n.inputs {
		if v.node == nil {
			return nil, Errorf(ErrGraph, "operand %d is no value", i)
		}
		if v.node.owner != b {
			return nil, Errorf(ErrGraph, "operand %d belongs to another graph: what a loop or branch needs is passed to it", i)
		}
	}
	return infer(n)
}

// place makes n the next node of the graph.
func (b *Builder) place(n *Node) *Node {
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
