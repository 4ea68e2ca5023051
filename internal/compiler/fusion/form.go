package fusion

import (
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// forms are those of a partition and of all that it runs, see [ir.Forms], with what is
// known of each.
type forms struct {
	*ir.Forms
	facts []*formFacts // by the number of the form
}

// formFacts is what is known of all nodes of one form.
type formFacts struct {
	fault  error // why none of them can be part of a kernel
	weight int   // simple operations of the node itself
	terms  int   // all that it is made of but its operands
	loads  []int // how often an element of it takes one of each operand
}

// factsOf returns what is known of the nodes of n's form, which has a number; long is that of [Options].
func (f *forms) factsOf(n *ir.Node, form, long int) *formFacts {
	if form == len(f.facts) {
		facts := &formFacts{fault: lowerable(n, long)}
		if facts.fault == nil {
			facts.weigh(n)
		}
		f.facts = append(f.facts, facts)
	}
	return f.facts[form]
}

// findForms gives every node the number of its form. The error is that of [Build].
func (p *Partition) findForms() error {
	if p.forms = (&forms{Forms: ir.NewForms()}); p.parent != nil {
		p.forms = p.parent.forms
	}
	p.formOf = make([]int32, len(p.Graph.Nodes()))
	for i, n := range p.Graph.Nodes() {
		form := p.forms.Of(n)
		if err := p.forms.factsOf(n, form, p.options.Long).fault; err != nil {
			return n.Fail(err)
		}
		p.formOf[i] = int32(form)
	}
	return nil
}

// findExpressions numbers by node ID what nodes compute of the stored values that they
// read, virtual operands and all: two of one number have the same expressions but for the
// names of those values, which are counted as in decisions.reads.
func (p *Partition) findExpressions() {
	nodes, d := p.Graph.Nodes(), p.decided
	d.expression = make([]int32, len(nodes))
	numbers := map[string]int32{}
	for i, n := range nodes {
		d.key = d.key[:0]
		p.writeExpression(n)
		number, known := numbers[string(d.key)]
		if !known {
			number = int32(len(numbers))
			numbers[string(d.key)] = number
		}
		d.expression[i] = number
	}
	p.spaces = make([]*nodeSpace, len(numbers))
}

// Kinds of operands in the key of an expression.
const (
	literalOperand = iota
	storedOperand
	virtualOperand
)

// writeExpression writes the form of a node and what its operands are: literals, values
// that are read, or expressions with the places of what they read.
func (p *Partition) writeExpression(n *ir.Node) {
	d, id := p.decided, n.ID()
	d.number(int(p.formOf[id]))
	if n.Op() == ops.OpCheckIndex || isLeaf(n) || d.apart[id] {
		d.number(id) // a check has a code of its own
	}
	for _, v := range n.Inputs() {
		x := v.Node()
		_, literal := d.literals[v]
		switch {
		case literal:
			d.number(literalOperand)
			d.number(x.ID())
		case d.stored(x):
			d.number(storedOperand)
			d.number(slices.Index(d.reads[id], v))
		default:
			d.number(virtualOperand)
			d.number(int(d.expression[x.ID()]))
			for _, u := range d.reads[x.ID()] {
				d.number(slices.Index(d.reads[id], u))
			}
		}
		d.number(v.Index())
	}
}

// number writes a number to the key of an expression.
func (d *decisions) number(i int) { d.key = binary.AppendUvarint(d.key, uint64(i)) }
