package group

import (
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// forms are those of a program and of all that it runs, see [ir.Forms], with what is
// known of each.
type forms struct {
	*ir.Forms
	facts []*formFacts // by the number of the form
}

// formFacts is what is known of all nodes of one form.
type formFacts struct {
	fault  error // why none of them can be part of a kernel
	weight int   // of the node itself, see ownWeight
}

// factsOf returns what is known of the nodes of n's form, which has a number.
func (f *forms) factsOf(n *ir.Node, form int) *formFacts {
	if form == len(f.facts) {
		facts := &formFacts{fault: lowerable(n)}
		if facts.fault == nil {
			facts.weight = ownWeight(n)
		}
		f.facts = append(f.facts, facts)
	}
	return f.facts[form]
}

// findForms gives every node the number of its form. The error is that of [Build].
func (p *Program) findForms() error {
	if p.forms = (&forms{Forms: ir.NewForms()}); p.parent != nil {
		p.forms = p.parent.forms
	}
	p.formOf = make([]int32, len(p.Graph.Nodes()))
	for i, n := range p.Graph.Nodes() {
		form := p.forms.Of(n)
		if err := p.forms.factsOf(n, form).fault; err != nil {
			return n.Fail(err)
		}
		p.formOf[i] = int32(form)
	}
	return nil
}

// findExpressions numbers by node ID what nodes compute of the stored values that they
// read, virtual operands and all: two of one number have the same expressions but for the
// names of those values, which are counted as in plan.reads.
func (p *Program) findExpressions() {
	nodes, pl := p.Graph.Nodes(), p.plan
	pl.expression = make([]int32, len(nodes))
	numbers := map[string]int32{}
	for i, n := range nodes {
		pl.key = pl.key[:0]
		p.writeExpression(n)
		number, known := numbers[string(pl.key)]
		if !known {
			number = int32(len(numbers))
			numbers[string(pl.key)] = number
		}
		pl.expression[i] = number
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
func (p *Program) writeExpression(n *ir.Node) {
	pl, id := p.plan, n.ID()
	pl.number(int(p.formOf[id]))
	if n.Op() == ops.OpCheckIndex || isLeaf(n) || pl.apart[id] {
		pl.number(id) // a check has a code of its own
	}
	for _, v := range n.Inputs() {
		x := v.Node()
		_, literal := pl.literals[v]
		switch {
		case literal:
			pl.number(literalOperand)
			pl.number(x.ID())
		case pl.stored(x):
			pl.number(storedOperand)
			pl.number(slices.Index(pl.reads[id], v))
		default:
			pl.number(virtualOperand)
			pl.number(int(pl.expression[x.ID()]))
			for _, u := range pl.reads[x.ID()] {
				pl.number(slices.Index(pl.reads[id], u))
			}
		}
		pl.number(v.Index())
	}
}

// number writes a number to the key of an expression.
func (pl *plan) number(i int) { pl.key = binary.AppendUvarint(pl.key, uint64(i)) }
