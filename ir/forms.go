package ir

import (
	"bytes"
	"encoding/binary"
)

// Forms numbers the forms of nodes. Nodes of one form have the same op and attributes, the same
// types of operands and results, and equal subgraphs. Facts that follow from a node's definition
// are computed once per form; a model of equal layers has few forms. The name of a port and the
// elements of a literal are not part of the form. Forms is not safe for concurrent use.
type Forms struct {
	numbers map[string]int
	texts   []string       // by number; with numbers of graphs in place of their texts
	nodes   []*Node        // by number: the first of the form
	graphs  map[*Graph]int // numbers of subgraphs: equal ones have one number
	graphOf map[string]int // the same by text
	key     []byte         // of the current node
	attrs   attrFormatter
}

// NewForms returns an empty set of forms.
func NewForms() *Forms {
	return &Forms{numbers: map[string]int{}, graphs: map[*Graph]int{}, graphOf: map[string]int{}}
}

// Of returns the number of a node's form. Numbers start at 0, in the order of first use.
func (f *Forms) Of(n *Node) int {
	f.key = f.key[:0]
	f.node(n, func(g *Graph) { f.int(f.graph(g)) })
	number, known := f.numbers[string(f.key)]
	if !known {
		number = len(f.numbers)
		text := string(f.key)
		f.numbers[text], f.texts, f.nodes = number, append(f.texts, text), append(f.nodes, n)
	}
	return number
}

// Text returns a key with everything that nodes of a form share. The key of a form is always the
// same.
func (f *Forms) Text(number int) string {
	n := f.nodes[number]
	if len(n.subs) == 0 {
		return f.texts[number]
	}
	f.key = f.key[:0]
	f.node(n, func(g *Graph) { f.text(textOf(g)) })
	return string(f.key)
}

// graph returns the number of a subgraph. Passes ask for the same graph again and again.
func (f *Forms) graph(g *Graph) int {
	if number, known := f.graphs[g]; known {
		return number
	}
	text := textOf(g)
	number, known := f.graphOf[text]
	if !known {
		number = len(f.graphOf)
		f.graphOf[text] = number
	}
	f.graphs[g] = number
	return number
}

// textOf returns a text that equal graphs have alone.
func textOf(g *Graph) string {
	var text bytes.Buffer
	(&digest{&text}).graph(g)
	return text.String()
}

// node writes the key of a node, and its subgraphs by the function graph. Each item is delimited or
// has a fixed length, so that different forms have different keys.
func (f *Forms) node(n *Node, graph func(*Graph)) {
	f.text(string(n.op))
	f.int(len(n.inputs))
	for _, v := range n.inputs {
		f.typ(v.node.types[v.index])
	}
	f.int(len(n.types))
	for _, t := range n.types {
		f.typ(t)
	}
	for _, g := range n.subs {
		graph(g)
	}
	if n.attrs != nil {
		f.attrs.out = f.attrs.out[:0]
		n.attrs.Visit(&f.attrs)
		f.key = append(f.key, f.attrs.out...)
	}
}

func (f *Forms) typ(t Type) {
	f.int(int(t.DType))
	f.int(len(t.Shape))
	for _, d := range t.Shape {
		f.int(int(d.n))
		f.text(d.sym)
	}
}

func (f *Forms) int(n int) { f.key = binary.AppendUvarint(f.key, uint64(n)) }

func (f *Forms) text(s string) {
	f.int(len(s))
	f.key = append(f.key, s...)
}
