package fusion

import (
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// findExpressions numbers the expressions of nodes over the stored values they read, with
// virtual operands inlined. Nodes of one number have the same expression up to the names
// of those values, which decisions.reads lists.
func (d *decisions) findExpressions(graph *ir.Graph) {
	nodes := graph.Nodes()
	d.expression = make([]int32, len(nodes))
	numbers := map[string]int32{}
	for i, n := range nodes {
		d.key = d.key[:0]
		d.writeExpression(n)
		number, known := numbers[string(d.key)]
		if !known {
			number = int32(len(numbers))
			numbers[string(d.key)] = number
		}
		d.expression[i] = number
	}
	d.expressions = len(numbers)
}

// The kinds of operand in the key of an expression.
const (
	literalOperand = iota
	storedOperand
	virtualOperand
)

// writeExpression appends the form of a node and its operands to the key: literals,
// stored values, or expressions with the indices of the values they read.
func (d *decisions) writeExpression(n *ir.Node) {
	id := n.ID()
	d.number(int(d.forms.of[id]))
	if n.Op() == ops.OpCheckIndex || isLeaf(n) || d.ownKernels[id] {
		d.number(id) // each check has its own status code
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

// number appends a number to the key of an expression.
func (d *decisions) number(i int) { d.key = binary.AppendUvarint(d.key, uint64(i)) }

// measure computes the weight, the terms and the reads of a node's expression, with
// virtual operands inlined.
func (d *decisions) measure(n *ir.Node) {
	reads := d.scratch[:0]
	own := d.forms.factsAbout(n)
	w, terms := own.weight, own.terms
	for i, in := range n.Inputs() {
		id := in.Node().ID()
		if !d.virtual[id] {
			terms += own.loads[i]
			reads = withValue(reads, in)
			continue
		}
		w += d.weight[id]
		terms += own.loads[i] * d.terms[id]
		for _, v := range d.reads[id] {
			reads = withValue(reads, v)
		}
	}
	d.scratch = reads
	if _, literal := d.literals[n.Result(0)]; literal {
		w, terms, reads = 0, 1, nil
	}
	d.weight[n.ID()], d.terms[n.ID()] = w, terms
	if !slices.Equal(d.reads[n.ID()], reads) {
		d.reads[n.ID()] = slices.Clone(reads)
	}
}

// withValue appends v to list unless it is there already.
func withValue(list []ir.Value, v ir.Value) []ir.Value {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
