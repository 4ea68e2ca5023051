package autodiff

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// leastSaved is the inverse of the part of the memory of needed values that a choice must
// save: less is lost again to what the count below does not see, and not worth the work.
const leastSaved = 16

// saves reports whether the way back is likely to take less memory where only
// what is marked is kept. It counts the bytes of values and knows nothing of
// kernels. The way back comes to what it needs from the last to the first: before
// it is at a node there are, of this node and those before, the kept ones and what
// had to be computed again for nodes after it and is needed. Of the body of a loop
// there is besides what all other steps keep. Where a size is not known yet, it is
// taken to save.
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
	if steps == 1 { // what is stacked is there, however cheap it is
		without -= w.cheap()
	}
	without *= steps
	return peak+(steps-1)*kept < without-without/leastSaved
}

// cheap returns the bytes of needed values that are made element by element of
// others that are there: kernels compute such values where they read them.
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

// isView reports whether a node moves elements alone.
func isView(n *ir.Node) bool {
	switch n.Op() {
	case ops.OpReshape, ops.OpTranspose, ops.OpBroadcastInDim:
		return true
	}
	return false
}

// wayBack follows what is there while gradients are taken.
type wayBack struct {
	nodes []*ir.Node
	keep  []bool // by node
	want  []int  // by node: the bytes of it that are needed
	used  []bool // by node: it is kept, and something is computed from it
	again []bool // by node: it is computed again
}

// peak returns the bytes that are kept, and the most that are there at once.
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

// kept returns what a node takes from the way forward on.
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

// compute marks n and what it is computed from as computed again, up to what is
// kept, and returns the bytes of it that are needed and were not there.
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
