package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// totalShare is the number of elements that a workgroup sums, 32 per thread. It is the same on
// all devices, so that the order of summation depends only on the lengths of the operands.
const totalShare = 8192

// scheduleTotal sums all elements of several operands in two steps: partial sums of shares of
// each operand, fused horizontally, then the sum of these.
func scheduleTotal(e *emitter, g *fusion.Group) []Launch {
	n := g.Members[0].Node
	d := n.Def().Lower.(*ir.TotalLowering).Sum(n)
	shares := 0
	for _, v := range n.Inputs() {
		shares += ceilDiv(elements(v), totalShare)
	}
	sums := e.p.Scratch("sums", d, shares)
	var parts []Part
	first := 0
	for i, v := range n.Inputs() {
		if elements(v) == 0 {
			continue
		}
		part := newPart(totalWork{g, i, sums}, elements(v), e.p, e.caps)
		for j, t := range part.Args {
			if t == sums {
				part.First[j] = first
			}
		}
		parts = append(parts, part)
		first += part.Groups()
	}
	return append(partsLaunch(parts), totalOfSums(e, g, sums))
}

func elements(v ir.Value) int {
	n, _ := v.Shape().Size().Const()
	return n
}

// totalWork sums shares of one operand.
type totalWork struct {
	g       *fusion.Group
	operand int
	sums    *fusion.Tensor
}

func (t totalWork) name() string { return t.g.Name() + "_shares" }

func (t totalWork) isMap() bool { return false }

func (t totalWork) share() int { return totalShare }

func (t totalWork) write(w *emitter, s segment) {
	n := t.g.Members[0].Node
	dims, _ := n.Input(t.operand).Shape().Ints()
	from := w.let("from", scalar.Mul(s.workgroup, loop.Int(totalShare)))
	to := w.let("to", scalar.Min(scalar.Add(from, loop.Int(totalShare)), s.length))
	load := w.reader().Operand(n)
	sum := w.sum(t.sums.DType, from, to, func(i scalar.Expr) scalar.Expr {
		return load(t.operand, w.unflatten(i, dims))
	})
	own := scalar.And(scalar.Eq(loop.LocalID(0, mapThreads), loop.Int(0)), scalar.Lt(from, s.length))
	w.when(own, func() { w.save(t.sums, ir.Index{scalar.Add(s.first, s.workgroup)}, sum) })
}

// totalOfSums sums the partial sums in one workgroup.
func totalOfSums(e *emitter, g *fusion.Group, sums *fusion.Tensor) Launch {
	w := e.sibling().writer(mapThreads)
	w.groups = [3]int{1, 1, 1}
	sum := w.sum(sums.DType, loop.Int(0), loop.Int(sums.Len()), func(i scalar.Expr) scalar.Expr { return w.load(sums, ir.Index{i}) })
	w.when(scalar.Eq(loop.LocalID(0, mapThreads), loop.Int(0)), func() {
		for _, t := range g.Members[0].Store {
			if t != nil {
				w.save(t, nil, scalar.Convert(sum, t.DType))
			}
		}
	})
	return w.launch(g.Name())
}

// sum sums element(i) for from ≤ i < to, bounds that are uniform in the workgroup: each thread
// takes every mapThreads-th i, then a tree combines the threads.
func (w *emitter) sum(d ir.DType, from, to scalar.Expr, element func(i scalar.Expr) scalar.Expr) scalar.Expr {
	lane := loop.LocalID(0, mapThreads)
	sum := w.variable("sum", scalar.Const(d, 0))
	w.loop("i", scalar.Add(from, lane), to, mapThreads, loop.MaxElements-1, func(i scalar.Expr) {
		w.set(sum, scalar.Add(sum, scalar.Convert(element(i), d)))
	})
	cells := w.shared("cells", d, 1, mapThreads)
	w.put(cells, lane, sum)
	w.barrier()
	for half := mapThreads / 2; half > 0; half /= 2 {
		w.when(scalar.Lt(lane, loop.Int(half)), func() {
			other := scalar.LoadAt(cells, d, scalar.Add(lane, loop.Int(half)))
			w.put(cells, lane, scalar.Add(scalar.LoadAt(cells, d, lane), other))
		})
		w.barrier()
	}
	return scalar.LoadAt(cells, d, loop.Int(0))
}
