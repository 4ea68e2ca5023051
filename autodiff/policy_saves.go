package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// leastSaved is the inverse of the fraction of residual memory that a choice must save. Smaller
// savings are within the error of the estimate and not worth the recomputation.
const leastSaved = 16

// saves estimates whether storing only the marked values reduces the peak memory of the backward
// pass. It counts bytes of values and ignores fusion. The backward pass visits needed values from
// last to first; at each node the live values are the stored ones and the recomputed ones that this
// node or an earlier one needs. For a loop body, the residuals stacked by the other steps are live
// too. Values of unknown size are assumed to save memory.
func (f Forward) saves(keep []bool) bool {
	w := &wayBack{nodes: f.Graph.Nodes(), keep: keep}
	w.want = make([]int, len(w.nodes))
	steps, ok := f.Steps.Const()
	if !ok {
		return true
	}
	without := 0
	for _, v := range f.Needed {
		size, err := v.Type().Bytes()
		if err != nil || !constant(v.Shape()) {
			return true
		}
		if v.Node().Op() != ir.OpPort {
			w.want[v.Node().ID()] += size
			without += size
		}
	}
	kept, peak := w.peak()
	if steps == 1 { // stacked residuals are stored even if they are cheap
		without -= w.cheap()
	}
	without *= steps
	return peak+(steps-1)*kept < without-without/leastSaved
}

// cheap returns the bytes of needed values that are elementwise functions of stored ones: kernels
// fuse them into their consumers.
func (w *wayBack) cheap() int {
	there, bytes := make([]bool, len(w.nodes)), 0
	for i, n := range w.nodes {
		made := n.Op() != ir.OpPort && n.Def().Scalar != nil
		for _, v := range n.Inputs() {
			made = made && there[v.Node().ID()]
		}
		if made {
			bytes += w.want[i]
		}
		there[i] = made || w.want[i] > 0 || n.Op() == ir.OpPort || len(n.Inputs()) == 0 || isView(n) && there[n.Input(0).Node().ID()]
	}
	return bytes
}

// isView reports whether a node only moves elements.
func isView(n *ir.Node) bool {
	switch n.Op() {
	case ops.OpReshape, ops.OpTranspose, ops.OpBroadcastInDim:
		return true
	}
	return false
}

// wayBack tracks the live values of the backward pass.
type wayBack struct {
	nodes []*ir.Node
	keep  []bool // by node: its results are stored
	want  []int  // by node: bytes of its results that the backward pass needs
	used  []bool // by node: it is stored and something is recomputed from it
	again []bool // by node: it is recomputed
}

// peak returns the stored bytes and the peak of live bytes.
func (w *wayBack) peak() (kept, most int) {
	w.used, w.again = make([]bool, len(w.nodes)), make([]bool, len(w.nodes))
	for i := range w.nodes {
		if w.want[i] > 0 {
			w.compute(w.nodes[i])
		}
	}
	w.again = make([]bool, len(w.nodes))
	held := 0
	for i := range w.nodes {
		held += w.kept(i)
	}
	kept, most = held, held
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if w.want[i] > 0 {
			held += w.compute(w.nodes[i])
		}
		most = max(most, held)
		if held -= w.kept(i); w.again[i] {
			held -= w.want[i]
		}
	}
	return kept, most
}

// kept returns the bytes of a node that are stored by the forward pass.
func (w *wayBack) kept(i int) int {
	if !w.used[i] {
		return 0
	}
	size := 0
	for _, t := range w.nodes[i].Types() {
		n, err := t.Bytes()
		if err == nil && constant(t.Shape) {
			size += n
		}
	}
	return size
}

// compute marks n and its inputs, up to stored values, as recomputed. It returns the needed bytes
// that this makes live.
func (w *wayBack) compute(n *ir.Node) int {
	bytes := 0
	for stack := []*ir.Node{n}; len(stack) > 0; {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i := x.ID()
		switch {
		case x.Op() == ir.OpPort || w.again[i]:
		case w.keep[i]:
			w.used[i] = true
		default:
			w.again[i] = true
			bytes += w.want[i]
			for _, v := range x.Inputs() {
				stack = append(stack, v.Node())
			}
		}
	}
	return bytes
}
