package group

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// measure finds the weight of a node's expression, with its virtual operands in
// place, and what it reads.
func (p *Partition) measure(n *ir.Node) {
	d := p.decided
	reads := d.scratch[:0]
	w := p.forms.facts[p.formOf[n.ID()]].weight
	for _, in := range n.Inputs() {
		id := in.Node().ID()
		if !d.virtual[id] {
			reads = withValue(reads, in)
			continue
		}
		w += d.weight[id]
		for _, v := range d.reads[id] {
			reads = withValue(reads, v)
		}
	}
	d.scratch = reads
	if _, literal := d.literals[n.Result(0)]; literal {
		w, reads = 0, nil
	}
	d.weight[n.ID()] = w
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

// ownWeight counts the simple operations of a node itself. Index arithmetic is
// free: it is there with or without fusion. A reduction's is that of what it
// takes in, counted as one.
func ownWeight(n *ir.Node) int {
	var e scalar.Expr
	d := n.Def()
	lower, view := d.Lower.(*ir.MapLowering)
	switch {
	case d.Scalar != nil:
		x := make([]scalar.Expr, len(n.Inputs()))
		for i, in := range n.Inputs() {
			x[i] = scalar.Arg(i, in.DType())
		}
		e = d.Scalar(n, x)
	case view:
		dims, _ := n.Types()[0].Shape.Ints()
		load := func(operand int, at ir.Index) scalar.Expr { return scalar.Arg(operand, n.Input(operand).DType()) }
		e = lower.Element(n, 0, Coords("a", dims), load)
	case isLeaf(n):
		return 0
	default:
		return 1
	}
	w := 0
	scalar.Walk(e, func(x scalar.Expr) {
		switch {
		case x.Op == scalar.OpConst || x.Op == scalar.OpArg || x.Op == scalar.OpVar || x.Type == ir.I32 || x.Type == ir.Bool:
		case transcendental[x.Op]:
			w += 8
		default:
			w++
		}
	})
	if view && w <= 2 {
		return 0 // a select between loads, as pad and concatenate have
	}
	return w
}

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
