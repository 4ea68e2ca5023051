package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
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

// nodeForms are the forms of the nodes of a partition.
type nodeForms struct {
	*forms
	of []int32 // by node ID: its form number
}

// formsOf numbers the form of every node. The error is that of [Build].
func formsOf(p *Partition) (*nodeForms, error) {
	nodes := p.Graph.Nodes()
	x := &nodeForms{of: make([]int32, len(nodes))}
	if p.parent != nil {
		x.forms = p.parent.forms.forms
	} else {
		x.forms = &forms{Forms: ir.NewForms()}
	}
	for i, n := range nodes {
		form := x.Of(n)
		if err := x.factsOf(n, form, p.options.Long).fault; err != nil {
			return nil, n.Fail(err)
		}
		x.of[i] = int32(form)
	}
	return x, nil
}

// factsAbout returns the facts of a node's form.
func (x *nodeForms) factsAbout(n *ir.Node) *formFacts { return x.facts[x.of[n.ID()]] }

// text returns the text of a node's form, see [ir.Forms].
func (x *nodeForms) text(n *ir.Node) string { return x.Text(int(x.of[n.ID()])) }

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
