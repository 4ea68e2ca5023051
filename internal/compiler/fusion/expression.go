package fusion

import (
	"encoding/binary"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// forms holds the forms of a partition and its inner partitions, see [ir.Forms], with
// facts about each.
type forms struct {
	*ir.Forms
	facts []*formFacts // by form number
}

// formFacts holds what all nodes of one form have in common.
type formFacts struct {
	fault  error // why the nodes cannot be part of a kernel
	weight int   // simple operations of the node itself
	terms  int   // all terms of its expression without the operands
	loads  []int // for each operand, the number of its elements per result element
}

// factsOf returns the facts of n's form, whose number is form; long is [Options.Long].
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

// findForms numbers the form of every node. The error is that of [Build].
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

// findExpressions numbers the expressions of nodes over the stored values they read, with
// virtual operands inlined. Nodes of one number have the same expression up to the names
// of those values, which decisions.reads lists.
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

// The kinds of operand in the key of an expression.
const (
	literalOperand = iota
	storedOperand
	virtualOperand
)

// writeExpression appends the form of a node and its operands to the key: literals,
// stored values, or expressions with the indices of the values they read.
func (p *Partition) writeExpression(n *ir.Node) {
	d, id := p.decided, n.ID()
	d.number(int(p.formOf[id]))
	if n.Op() == ops.OpCheckIndex || isLeaf(n) || d.apart[id] {
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
func (p *Partition) measure(n *ir.Node) {
	d := p.decided
	reads := d.scratch[:0]
	own := p.forms.facts[p.formOf[n.ID()]]
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

// weigh counts the operations of a node's own expression. Index arithmetic has no weight,
// because it is needed with or without fusion; a reduction or contraction has weight 1.
// Terms count everything except the operands.
func (f *formFacts) weigh(n *ir.Node) {
	f.loads, f.terms = make([]int, len(n.Inputs())), 1
	load := func(operand int, _ ir.Index) scalar.Expr {
		f.loads[operand]++
		return scalar.Arg(operand, n.Input(operand).DType())
	}
	var e scalar.Expr
	d := n.Def()
	lower, view := d.Lower.(*ir.MapLowering)
	switch {
	case d.Scalar != nil:
		x := make([]scalar.Expr, len(f.loads))
		for i := range x {
			x[i] = load(i, nil)
		}
		e = d.Scalar(n, x)
	case view:
		dims, _ := n.Types()[0].Shape.Ints()
		e = lower.Element(n, 0, Coords("a", dims), load)
	default:
		for i := range f.loads {
			f.loads[i] = 1
		}
		if !isLeaf(n) {
			f.weight = 1
		}
		return
	}
	scalar.Walk(e, func(x scalar.Expr) {
		switch {
		case x.Op == scalar.OpConst || x.Op == scalar.OpArg || x.Op == scalar.OpVar:
			return
		case x.Op == scalar.OpCheck:
			f.terms += checkTerms
		case x.Type == ir.I32 || x.Type == ir.Bool:
		case transcendental[x.Op]:
			f.weight += 8
		default:
			f.weight++
		}
		f.terms++
	})
	if view && f.weight <= 2 {
		f.weight = 0 // a select between loads, as in pad and concatenate
	}
}

// checkTerms is the extra length of an index check: a condition and the words it records.
const checkTerms = 8

var transcendental = map[scalar.Op]bool{
	scalar.OpExp: true, scalar.OpExpm1: true, scalar.OpLog: true, scalar.OpLog1p: true,
	scalar.OpSin: true, scalar.OpCos: true, scalar.OpTan: true, scalar.OpAsin: true, scalar.OpAcos: true,
	scalar.OpAtan: true, scalar.OpAtan2: true, scalar.OpSinh: true, scalar.OpCosh: true, scalar.OpTanh: true,
	scalar.OpSigmoid: true, scalar.OpErf: true, scalar.OpErfc: true, scalar.OpPow: true,
}

func bytesOf(t ir.Type) int {
	n, _ := t.Shape.Size().Const()
	return n * loop.DeviceSize(t.DType)
}
