package ir

import (
	"strconv"
	"strings"
)

// String returns the text form of the graph, which [Parse] reads: one line for each node and an
// indented block for each subgraph. It contains everything except source positions. Values are
// numbered in order.
//
//	graph "affine" {
//	  %0 = input "x" : f32[batch,4]
//	  %1 = constant 2.5 : f32[]
//	  %2 = broadcast_in_dim(%1) {shape=[batch,4] axes=[]} : f32[batch,4]
//	  %3 = mul(%0, %2) : f32[batch,4] #"scale"
//	  output "y" = %3
//	}
func (g *Graph) String() string {
	pr := &printer{}
	pr.graph(g, "")
	return pr.sb.String()
}

const indentStep = "  "

// The words of [PortOptions].
const (
	wordInitial = "init"
	wordFrozen  = "frozen"
)

type printer struct {
	sb     strings.Builder
	splats splatBudget
}

func (pr *printer) write(parts ...string) {
	for _, s := range parts {
		pr.sb.WriteString(s)
	}
}

func (pr *printer) graph(g *Graph, indent string) { pr.named(g, g.name, indent) }

// named writes a graph with a name that may be another than its own.
func (pr *printer) named(g *Graph, title, indent string) {
	first := make([]int, len(g.nodes)) // number of each node's first result
	total := 0
	for i, n := range g.nodes {
		first[i], total = total, total+len(n.types)
	}
	name := func(v Value) string { return "%" + itoa(first[v.node.id]+v.index) }

	pr.write(indent, "graph ", strconv.Quote(title), " {\n")
	for _, n := range g.nodes {
		pr.node(n, indent+indentStep, name)
	}
	for _, o := range g.outputs {
		keyword := "output "
		if o.State {
			keyword = "state "
		}
		pr.write(indent, indentStep, keyword, strconv.Quote(o.Name), " = ", name(o.Value), "\n")
	}
	pr.write(indent, "}\n")
}

func (pr *printer) node(n *Node, indent string, name func(Value) string) {
	pr.write(indent)
	for i, v := range n.Results() {
		if i > 0 {
			pr.write(", ")
		}
		pr.write(name(v))
	}
	pr.write(" = ")
	switch a := n.attrs.(type) {
	case *PortAttrs:
		pr.write(a.Kind.String(), " ", strconv.Quote(a.Name))
	case *ConstantAttrs:
		pr.write("constant ", formatLiteral(a, &pr.splats))
	default:
		pr.call(n, name)
	}
	pr.write(" : ", formatTypes(n.types))
	if a, ok := n.attrs.(*PortAttrs); ok {
		pr.options(a.Options)
	}
	if n.label != "" {
		pr.write(" #", strconv.Quote(n.label))
	}
	pr.write("\n")
	for _, s := range n.subs {
		pr.graph(s, indent+indentStep)
	}
}

// options writes the options of a port: ` init normal(0,1) frozen`.
func (pr *printer) options(o PortOptions) {
	if !o.Initial.IsZero() {
		pr.write(" ", wordInitial, " ", o.Initial.String())
	}
	if o.Frozen {
		pr.write(" ", wordFrozen)
	}
}

func (pr *printer) call(n *Node, name func(Value) string) {
	pr.write(string(n.op), "(")
	for i, v := range n.inputs {
		if i > 0 {
			pr.write(", ")
		}
		pr.write(name(v))
	}
	pr.write(")")
	if a := FormatAttrs(n.attrs); a != "" {
		pr.write(" ", a)
	}
}

// formatTypes returns "f32[4]" for one type and "(f32[4], i32[])" for others.
func formatTypes(types []Type) string {
	if len(types) == 1 {
		return types[0].String()
	}
	var sb strings.Builder
	sb.WriteByte('(')
	for i, t := range types {
		if i > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString(t.String())
	}
	sb.WriteByte(')')
	return sb.String()
}

// String returns the text form of a module, which [ParseModule] reads: that of its graphs, each with
// the name of its entry. An entry without a graph, which no module has, is left out.
func (m *Module) String() string {
	pr := &printer{}
	for _, e := range m.Entries {
		if e.Graph != nil {
			pr.named(e.Graph, e.Name, "")
		}
	}
	return pr.sb.String()
}

// ParseModule reads one graph or several in the text form ([Parse]) as the entries of a module with
// the given name. Each graph is the entry of its name. The errors are those of Parse, a
// [*SyntaxError] with the kinds of [NewModule] for graphs that make no module.
func ParseModule(name, text string) (*Module, error) {
	p := &parser{text: text, splats: &splatBudget{}}
	var entries []Entry
	start := p.space()
	for p.err == nil && (len(entries) == 0 || p.pos < len(p.text)) {
		g := p.graph(0)
		p.space()
		if p.err == nil {
			entries = append(entries, Entry{g.Name(), g})
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	m, err := NewModule(name, entries...)
	if err != nil {
		p.fail(start, err, err.Error())
		return nil, p.err
	}
	return m, nil
}
