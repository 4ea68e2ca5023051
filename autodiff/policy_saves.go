package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// minSavedFraction is the inverse of the fraction of residual memory that a choice must save. Smaller
// savings are within the error of the estimate and not worth the recomputation.
const minSavedFraction = 16

// savesMemory estimates whether storing only the marked values reduces the peak memory of the backward
// pass. It counts bytes of values and ignores fusion. The backward pass visits needed values from
// last to first; at each node the live values are the stored ones and the recomputed ones that this
// node or an earlier one needs. For a loop body, the residuals stacked by the other steps are live
// too. Values of unknown size are assumed to save memory.
func (f Forward) savesMemory(keep []bool) bool {
	w := &backwardPass{nodes: f.Graph.Nodes(), keep: keep}
	w.needed = make([]int, len(w.nodes))
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
			w.needed[v.Node().ID()] += size
			without += size
		}
	}
	kept, peak := w.peak()
	if steps == 1 { // stacked residuals are stored even if they are cheap
		without -= w.fusedBytes()
	}
	without *= steps
	return peak+(steps-1)*kept < without-without/minSavedFraction
}

// fusedBytes returns the bytes of needed values that are elementwise functions of stored ones: kernels
// fuse them into their consumers.
func (w *backwardPass) fusedBytes() int {
	there, bytes := make([]bool, len(w.nodes)), 0
	for i, n := range w.nodes {
		made := n.Op() != ir.OpPort && n.Def().Scalar != nil
		for _, v := range n.Inputs() {
			made = made && there[v.Node().ID()]
		}
		if made {
			bytes += w.needed[i]
		}
		there[i] = made || w.needed[i] > 0 || n.Op() == ir.OpPort || len(n.Inputs()) == 0 || isView(n) && there[n.Input(0).Node().ID()]
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

// backwardPass tracks the live values of the backward pass.
type backwardPass struct {
	nodes      []*ir.Node
	keep       []bool // by node: its results are stored
	needed     []int  // by node: bytes of its results that the backward pass needs
	used       []bool // by node: it is stored and something is recomputed from it
	recomputed []bool // by node: it is recomputed
}

// peak returns the stored bytes and the peak of live bytes.
func (w *backwardPass) peak() (kept, most int) {
	w.used, w.recomputed = make([]bool, len(w.nodes)), make([]bool, len(w.nodes))
	for i := range w.nodes {
		if w.needed[i] > 0 {
			w.recompute(w.nodes[i])
		}
	}
	w.recomputed = make([]bool, len(w.nodes))
	held := 0
	for i := range w.nodes {
		held += w.storedBytes(i)
	}
	kept, most = held, held
	for i := len(w.nodes) - 1; i >= 0; i-- {
		if w.needed[i] > 0 {
			held += w.recompute(w.nodes[i])
		}
		most = max(most, held)
		if held -= w.storedBytes(i); w.recomputed[i] {
			held -= w.needed[i]
		}
	}
	return kept, most
}

// storedBytes returns the bytes of a node that are stored by the forward pass.
func (w *backwardPass) storedBytes(i int) int {
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

// recompute marks n and its inputs, up to stored values, as recomputed. It returns the needed bytes
// that this makes live.
func (w *backwardPass) recompute(n *ir.Node) int {
	bytes := 0
	for stack := []*ir.Node{n}; len(stack) > 0; {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i := x.ID()
		switch {
		case x.Op() == ir.OpPort || w.recomputed[i]:
		case w.keep[i]:
			w.used[i] = true
		default:
			w.recomputed[i] = true
			bytes += w.needed[i]
			for _, v := range x.Inputs() {
				stack = append(stack, v.Node())
			}
		}
	}
	return bytes
}
