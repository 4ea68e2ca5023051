package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// maxScaleDepth bounds the expressions in which scales are looked for.
const maxScaleDepth = 8

// pulledScales returns the scales s of sums Σ s·x·w, each with the number of results that it scales. s is a factor of
// all terms, and is itself computed from a sum of equally many terms: an example is a product of weights with a row that
// is divided by its root mean square. It skips scales whose results cost more to scale than a kernel for s alone.
func pulledScales(g *ir.Graph, policy Policy) map[ir.Value]int {
	results := map[ir.Value]int{}
	for _, n := range g.Nodes() {
		if s := sumScale(n); s.Valid() {
			results[s] += sizeOf(n.Types()[0])
		}
	}
	for s, n := range results {
		if !policy.RepeatsRow(n, lengthOf(s, maxScaleDepth)) {
			delete(results, s)
		}
	}
	return results
}

// sumScale returns the scale of a sum of several results, or an invalid value.
func sumScale(n *ir.Node) (s ir.Value) {
	x, w := factors(n)
	if results := sizeOf(n.Types()[0]); w.Valid() && results > 1 {
		if found, _ := scaleOf(x, maxScaleDepth); found.Valid() && lengthOf(found, maxScaleDepth)*results == sizeOf(w.Type()) {
			s = found
		}
	}
	return s
}

// factors returns the row x and the matrix w of a product of x with the rows of w, the terms of a sum as both, and invalid values for
// other nodes.
func factors(n *ir.Node) (x, w ir.Value) {
	t := n.Types()[0]
	if t.DType != ir.F32 {
		return x, w
	}
	if n.Op() == ops.OpReduceSum {
		return n.Input(0), n.Input(0)
	}
	if a, ok := n.Attrs().(*ops.DotAttrs); ok {
		row, rows, axes := n.Input(0), n.Input(1), a.RhsContract
		if sizeOf(row.Type()) > sizeOf(rows.Type()) {
			row, rows, axes = rows, row, a.LhsContract
		}
		if len(axes) == 1 && axes[0] == rows.Rank()-1 && sizeOf(rows.Type())/max(sizeOf(t), 1) == sizeOf(row.Type()) {
			return row, rows
		}
	}
	return x, w
}

// scaleOf returns a number that is a factor of all elements of a value, if it is computed from a sum, and which operand of
// the value's node has it.
func scaleOf(v ir.Value, depth int) (s ir.Value, operand int) {
	n := v.Node()
	if n.Op() != ops.OpReshape && n.Op() != ops.OpBroadcastInDim && n.Op() != ops.OpMul || depth == 0 {
		return s, 0
	}
	for i, in := range n.Inputs() {
		if s = broadcastNumber(in); !s.Valid() || n.Op() != ops.OpMul {
			s, _ = scaleOf(in, depth-1)
		}
		if s.Valid() {
			return s, i
		}
	}
	return s, 0
}

// broadcastNumber returns the number whose broadcast a value is, if it is computed from a sum.
func broadcastNumber(v ir.Value) (s ir.Value) {
	n := v.Node()
	if n.Op() == ops.OpBroadcastInDim && v.DType() == ir.F32 && lengthOf(n.Input(0), maxScaleDepth) > 0 {
		s = n.Input(0)
	}
	return s
}

// lengthOf returns the number of terms of the sum that a number is computed from, or 0.
func lengthOf(v ir.Value, depth int) (length int) {
	n := v.Node()
	switch {
	case sizeOf(v.Type()) != 1 || depth == 0:
	case n.Op() == ops.OpReduceSum:
		length = sizeOf(n.Input(0).Type())
	case isMap(n):
		for _, in := range n.Inputs() {
			length = max(length, lengthOf(in, depth-1))
		}
	}
	return length
}

// scaleWriter rewrites sums Σ s·x·w, also products of a row, as s·Σ x·w, with an s of their own: then both sums are one stage of one
// kernel, which takes a launch and a pass over memory less than to store the scaled row before.
type scaleWriter struct {
	b       *ir.Builder
	m       *ir.Mapping
	last, s ir.Value // the scale of the last sum, in the old and in the new graph
	of      ir.Type  // the type of the last sum
}

// product returns a sum from which the scale s is pulled out. Sums of one type in turn share theirs, as one kernel may compute them.
func (w *scaleWriter) product(n *ir.Node, s ir.Value) ir.Value {
	t := n.Types()[0]
	if s != w.last || !t.Equal(w.of) {
		w.last, w.of, w.s = s, t, ops.Reshape(w.b, w.repeated(s))
	}
	x, rows := factors(n)
	if x = w.without(x); n.Op() == ops.OpReduceSum {
		x = w.b.Copy(n, []ir.Value{x})[0]
	} else {
		w.b.Label(n.Label())
		rows = w.m.Get(rows)
		last := rows.Rank() - 1
		x = ops.BroadcastTo(w.b, ops.Reshape(w.b, x, rows.Dim(last)), rows.Shape())
		x = ops.ReduceSum(w.b, ops.Mul(w.b, x, rows), last)
		w.b.Label("")
	}
	return ops.Reshape(w.b, ops.Mul(w.b, x, ops.BroadcastInDim(w.b, w.s, x.Shape(), nil)), t.Shape...)
}

// repeated returns a copy of a number and of the sum that it is computed from.
func (w *scaleWriter) repeated(v ir.Value) ir.Value {
	n := v.Node()
	in := w.m.Inputs(n)
	if lengthOf(v, maxScaleDepth) == 0 {
		return w.m.Get(v)
	}
	if n.Op() != ops.OpReduceSum {
		for i, x := range n.Inputs() {
			in[i] = w.repeated(x)
		}
	}
	return w.b.Copy(n, in)[0]
}

// without returns a value without its scale.
func (w *scaleWriter) without(v ir.Value) ir.Value {
	n := v.Node()
	_, i := scaleOf(v, maxScaleDepth)
	if n.Op() == ops.OpMul && broadcastNumber(n.Input(i)).Valid() {
		return w.m.Get(n.Input(1 - i))
	}
	in := w.m.Inputs(n)
	in[i] = w.without(n.Input(i))
	return w.b.Copy(n, in)[0]
}

// isScaledSum reports whether a node is a sum times a number that is computed from a sum, as scaleWriter writes it: stored
// instead of the sum, both are one kernel.
func isScaledSum(n *ir.Node) bool {
	if n.Op() != ops.OpMul || n.Input(0).Node().Op() != ops.OpReduceSum {
		return false
	}
	return broadcastNumber(n.Input(1)).Valid()
}
