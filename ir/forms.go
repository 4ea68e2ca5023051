package ir

import (
	"bytes"
	"encoding/binary"
)

// Forms numbers the forms of nodes. Nodes of one form have the same op and attributes, the same
// types of operands and results, and equal subgraphs. Results that follow from a node's definition
// are computed once for each form, of which a model of equal layers has few. The name of a port and
// the elements of a literal are not part of the form. Forms must not be used by two goroutines at
// once.
type Forms struct {
	numbers map[string]int
	texts   []string // by number
	key     []byte   // of the current node
	attrs   attrFormatter
}

// NewForms returns an empty set of forms.
func NewForms() *Forms { return &Forms{numbers: map[string]int{}} }

// Of returns the number of a node's form. Numbers start at 0, in the order of first use.
func (f *Forms) Of(n *Node) int {
	f.key = f.key[:0]
	f.node(n)
	number, known := f.numbers[string(f.key)]
	if !known {
		number = len(f.numbers)
		text := string(f.key)
		f.numbers[text], f.texts = number, append(f.texts, text)
	}
	return number
}

// Text returns a key with everything that nodes of a form share. The key of a form is always the
// same.
func (f *Forms) Text(number int) string { return f.texts[number] }

// node writes the key of a node. Each item is delimited or has a fixed length, so that different
// forms have different keys.
func (f *Forms) node(n *Node) {
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
		var text bytes.Buffer
		(&digest{&text}).graph(g)
		f.text(text.String())
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
