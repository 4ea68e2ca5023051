package ir

import "strconv"

func itoa(i int) string { return strconv.Itoa(i) }

// Splice adds all nodes of g to b, with in as the values of its ports in order, and returns the
// values of its outputs, including state updates, in order.
func (b *Builder) Splice(g *Graph, in []Value) []Value {
	if err := g.NotNil(); err != nil {
		b.Fail(err)
		return nil
	}
	m := NewMapping(g)
	m.SetPorts(g, in)
	for _, n := range g.nodes {
		if n.op == OpPort {
			continue
		}
		b.CopyNode(n, m)
	}
	return m.Outputs(g)
}

// Mapping maps the values of one graph to values of another during a transform.
type Mapping struct {
	to    []Value // of all results of all nodes, in order
	first []int32 // by node ID, the index in to of its first result
}

// NewMapping returns an empty mapping for the values of g.
func NewMapping(g *Graph) *Mapping {
	m, results := &Mapping{first: make([]int32, len(g.nodes))}, 0
	for i, n := range g.nodes {
		m.first[i] = int32(results)
		results += len(n.types)
	}
	m.to = make([]Value, results)
	return m
}

// Get returns the value that v is mapped to, or the zero Value.
func (m *Mapping) Get(v Value) Value {
	if v.node == nil {
		return Value{}
	}
	return m.to[int(m.first[v.node.id])+v.index]
}

// Set maps v to w.
func (m *Mapping) Set(v, w Value) { m.to[int(m.first[v.node.id])+v.index] = w }

// SetAll maps the results of n to the given values, in order.
func (m *Mapping) SetAll(n *Node, out []Value) {
	copy(m.to[m.first[n.id]:][:len(n.types)], out)
}

// SetPorts maps the ports of g to the given values, in order.
func (m *Mapping) SetPorts(g *Graph, in []Value) {
	for i, p := range g.ports[:min(len(in), len(g.ports))] {
		m.Set(p.Value, in[i])
	}
}

// Outputs returns the values that the outputs of g are mapped to.
func (m *Mapping) Outputs(g *Graph) []Value {
	out := make([]Value, len(g.outputs))
	for i, o := range g.outputs {
		out[i] = m.Get(o.Value)
	}
	return out
}

// Inputs returns the mapped operands of n.
func (m *Mapping) Inputs(n *Node) []Value {
	return m.AppendInputs(make([]Value, 0, len(n.inputs)), n)
}

// AppendInputs appends the mapped operands of n to list.
func (m *Mapping) AppendInputs(list []Value, n *Node) []Value {
	for _, v := range n.inputs {
		list = append(list, m.Get(v))
	}
	return list
}

// Reserve allocates space for the nodes, ports and outputs of g.
func (b *Builder) Reserve(g *Graph) {
	if len(b.nodes) == 0 {
		b.nodes, b.ports, b.outputs = make([]*Node, 0, len(g.nodes)), make([]Port, 0, len(g.ports)), make([]Output, 0, len(g.outputs))
		b.named = make(map[portName]int, len(g.named))
	}
}

// CopyPorts declares the ports of g in b with the same names and kinds, and returns them. It maps them, too, unless m is
// nil.
func (b *Builder) CopyPorts(g *Graph, m *Mapping) []Value {
	in := make([]Value, len(g.ports))
	for i, p := range g.ports {
		in[i] = b.CopyPort(p)
	}
	if m != nil {
		m.SetPorts(g, in)
	}
	return in
}

// CopyNode copies a node to b with the operands that m maps its own to, and maps its results.
func (b *Builder) CopyNode(n *Node, m *Mapping) { m.SetAll(n, b.Copy(n, m.Inputs(n))) }

// CopyOutputs declares the outputs of g in b, with the values that they are mapped to.
func (b *Builder) CopyOutputs(g *Graph, m *Mapping) {
	for _, o := range g.outputs {
		b.CopyOutput(o, m.Get(o.Value))
	}
}

// CopyPort declares a port of another graph in b, with the same name and kind, and returns its
// value. Its position is that of [Builder.At].
func (b *Builder) CopyPort(p Port) Value {
	return b.port(p.Name, p.Kind, p.Value.node.attrs, p.Value.node.types)
}

// CopyOutput declares an output of another graph in b, with the value v of b.
func (b *Builder) CopyOutput(o Output, v Value) {
	if o.State {
		b.SetState(o.Name, v)
		return
	}
	b.Output(o.Name, v)
}

// Bind returns the graph with its symbolic dimensions replaced by numbers, also in subgraphs. The
// error is of kind [ErrSymbol] if a symbol is missing, and [ErrShape] if a size is not an integer
// or an op does not accept it.
func (g *Graph) Bind(values map[string]int) (*Graph, error) {
	return g.withSizes(func(d Dim) (Dim, error) { return bindDim(d, values) })
}

func bindDim(d Dim, values map[string]int) (Dim, error) {
	n, err := d.Bind(values)
	return N(n), err
}

// Substitute returns the graph with symbolic dimensions replaced by sizes, some of which may be
// symbolic, also in subgraphs. Symbols without a size remain. The error is of kind [ErrShape] if a
// size is not valid or an op does not accept it.
func (g *Graph) Substitute(values map[string]Dim) (*Graph, error) {
	return g.withSizes(func(d Dim) (Dim, error) {
		to := d.Substitute(values)
		if !to.Valid() {
			return to, Shapef("size %s is negative, too large or no integer for the given sizes", d)
		}
		return to, nil
	})
}

// sizeRule replaces a size.
type sizeRule func(d Dim) (Dim, error)

func (g *Graph) withSizes(rule sizeRule) (*Graph, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	return Transform(g.name, func(b *Builder) { rule.graph(b, g) })
}

func (r sizeRule) graph(b *Builder, g *Graph) {
	m := NewMapping(g)
	for _, n := range g.nodes {
		if a, ok := n.attrs.(*PortAttrs); ok {
			b.At(n.pos)
			t := Type{n.types[0].DType, r.dims(b, n.types[0].Shape)}
			m.Set(n.Result(0), b.portWith(a.Name, a.Kind, a.Options, t))
			continue
		}
		subs := make([]*Graph, len(n.subs))
		for i, s := range n.subs {
			subs[i] = b.Subgraph(s.name, func(sb *Builder) { r.graph(sb, s) })
		}
		m.SetAll(n, b.CopyWith(n, r.attrs(b, n), subs, m.Inputs(n)))
	}
	b.CopyOutputs(g, m)
}

func (r sizeRule) dims(b *Builder, dims []Dim) []Dim {
	out := make([]Dim, len(dims))
	for i, d := range dims {
		var err error
		if out[i], err = r(d); err != nil {
			b.Fail(err)
		}
	}
	return out
}

// attrs returns a copy of the node's attributes with all lists of sizes replaced.
func (r sizeRule) attrs(b *Builder, n *Node) Attrs {
	c := CopyAttrs(n)
	if c == nil {
		return nil
	}
	c.Visit(dimVisitor{func(p *[]Dim) { *p = r.dims(b, *p) }})
	return c
}

// dimVisitor changes the lists of sizes of an attribute struct.
type dimVisitor struct{ change func(p *[]Dim) }

func (dimVisitor) Int(string, *int)          {}
func (dimVisitor) Ints(string, *[]int)       {}
func (dimVisitor) Float(string, *float64)    {}
func (dimVisitor) Bool(string, *bool)        {}
func (dimVisitor) Text(string, *string)      {}
func (dimVisitor) DType(string, *DType)      {}
func (v dimVisitor) Dims(_ string, p *[]Dim) { v.change(p) }
