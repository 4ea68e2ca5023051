package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// measure finds the weight of a node's expression, with its virtual operands in
// place, and what it reads.
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

// withValue returns a list with a value at its end, unless the list has it.
func withValue(list []ir.Value, v ir.Value) []ir.Value {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// weigh finds what an element of a node is made of itself. In its weight index arithmetic
// is free: it is there with or without fusion. A reduction's is that of what it takes in,
// counted as one. Its terms are all that is written out but its operands.
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
		f.weight = 0 // a select between loads, as pad and concatenate have
	}
}

// checkTerms is what else a check takes: a condition, and the words that it records.
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
