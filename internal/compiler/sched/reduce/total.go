package reduce

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// totalShare is the number of elements that a workgroup sums, 32 per thread. It is the same on
// all devices, so that the order of summation depends only on the lengths of the operands.
const totalShare = 8192

// Total sums all elements of several operands in two steps: partial sums of shares of
// each operand, fused horizontally, then the sum of these.
func Total(e *emit.Emitter, g *fusion.Group) []emit.Launch {
	n := g.Members[0].Node
	d := n.Def().Lower.(*ir.TotalLowering).Sum(n)
	shares := 0
	for _, v := range n.Inputs() {
		shares += emit.CeilDiv(elements(v), totalShare)
	}
	sums := e.Partition.Scratch("sums", d, shares)
	var parts []emit.Part
	first := 0
	for i, v := range n.Inputs() {
		if elements(v) == 0 {
			continue
		}
		part := emit.NewPart(totalWork{g, i, sums}, elements(v), e.Partition, e.Caps)
		for j, t := range part.Args {
			if t == sums {
				part.First[j] = first
			}
		}
		parts = append(parts, part)
		first += part.Groups()
	}
	return append(emit.PartsLaunch(parts), totalOfSums(e, g, sums))
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

// Name returns the kernel's name.
func (t totalWork) Name() string { return t.g.Name() + "_shares" }

// IsMap reports whether the work is an element-wise map.
func (t totalWork) IsMap() bool { return false }

// Share returns the maximum number of elements per workgroup.
func (t totalWork) Share() int { return totalShare }

// Write writes the work of a workgroup.
func (t totalWork) Write(w *emit.Emitter, s emit.Segment) {
	n := t.g.Members[0].Node
	dims, _ := n.Input(t.operand).Shape().Ints()
	from := w.Let("from", scalar.Mul(s.Workgroup, loop.Int(totalShare)))
	to := w.Let("to", scalar.Min(scalar.Add(from, loop.Int(totalShare)), s.Length))
	load := w.Reader().Operand(n)
	sum := sum(w, t.sums.DType, from, to, func(i scalar.Expr) scalar.Expr {
		return load(t.operand, w.Unflatten(i, dims))
	})
	own := scalar.And(scalar.Eq(loop.LocalID(0, emit.GroupThreads), loop.Int(0)), scalar.Lt(from, s.Length))
	w.When(own, func() { w.Save(t.sums, ir.Index{scalar.Add(s.First, s.Workgroup)}, sum) })
}

// totalOfSums sums the partial sums in one workgroup.
func totalOfSums(e *emit.Emitter, g *fusion.Group, sums *fusion.Tensor) emit.Launch {
	w := e.Sibling().WithThreads(emit.GroupThreads)
	w.Groups = [3]int{1, 1, 1}
	sum := sum(w, sums.DType, loop.Int(0), loop.Int(sums.Len()), func(i scalar.Expr) scalar.Expr { return w.Load(sums, ir.Index{i}) })
	w.When(scalar.Eq(loop.LocalID(0, emit.GroupThreads), loop.Int(0)), func() {
		for _, t := range g.Members[0].Store {
			if t != nil {
				w.Save(t, nil, scalar.Convert(sum, t.DType))
			}
		}
	})
	return w.Launch(g.Name())
}

// sum sums element(i) for from ≤ i < to, bounds that are uniform in the workgroup: each thread
// takes every GroupThreads-th i, then a tree combines the threads.
func sum(w *emit.Emitter, d ir.DType, from, to scalar.Expr, element func(i scalar.Expr) scalar.Expr) scalar.Expr {
	lane := loop.LocalID(0, emit.GroupThreads)
	sum := w.Var("sum", scalar.Const(d, 0))
	w.Loop("i", scalar.Add(from, lane), to, emit.GroupThreads, loop.MaxElements-1, func(i scalar.Expr) {
		w.Set(sum, scalar.Add(sum, scalar.Convert(element(i), d)))
	})
	cells := w.Shared("cells", d, 1, emit.GroupThreads)
	w.Put(cells, lane, sum)
	w.Barrier()
	for half := emit.GroupThreads / 2; half > 0; half /= 2 {
		w.When(scalar.Lt(lane, loop.Int(half)), func() {
			other := scalar.LoadAt(cells, d, scalar.Add(lane, loop.Int(half)))
			w.Put(cells, lane, scalar.Add(scalar.LoadAt(cells, d, lane), other))
		})
		w.Barrier()
	}
	return scalar.LoadAt(cells, d, loop.Int(0))
}
