package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A product of one row with packed weights may round the row first, in blocks with a scale each, the largest magnitude of
// the block divided by a constant. Threads that hold the block's elements find that magnitude by themselves: where products
// use tensor cores, the maximum and all that follows it up to the sums is computed where it is used, in the kernel of the
// product, instead of in a kernel before.

// Bounds of what is looked for: the elements of a block, and the nodes from its maximum to the sums.
const (
	maxBlock      = 32
	maxBlockNodes = 48
)

// BlockMaxima returns the largest magnitudes of blocks of rows that kernels of products compute.
func (p *Partition) BlockMaxima() []ir.Value { return p.decided.maxima }

// findBlockMaxima marks the nodes from the maxima of blocks to the products that round with them, which are computed
// where they are used.
func findBlockMaxima(d *decisions, nodes []*ir.Node, output map[*ir.Node]bool) {
	for _, n := range nodes {
		if !isBlockMaximum(n) {
			continue
		}
		w := blockWalk{d: d, output: output, length: sizeOf(n.Input(0).Type()), seen: map[*ir.Node]bool{n: true}}
		if !w.reachesSums(n) {
			continue
		}
		d.maxima = append(d.maxima, n.Result(0))
		if d.inProducts == nil {
			d.inProducts, d.rounded = map[*ir.Node]bool{}, map[*ir.Node]bool{}
		}
		for x := range w.seen {
			d.inProducts[x] = true
		}
		if magnitude := n.Input(0).Node(); !output[magnitude] && len(d.uses[magnitude.ID()]) == 1 {
			d.inProducts[magnitude] = true
			findRounded(d, magnitude.Input(0).Node(), output)
		}
	}
}

// findRounded marks the row that is rounded, and what shows it as blocks: products are all that reads it.
func findRounded(d *decisions, x *ir.Node, output map[*ir.Node]bool) {
	other := func(u *ir.Node) bool { return !d.inProducts[u] }
	for isMap(x) && !output[x] && !slices.ContainsFunc(d.uses[x.ID()], other) {
		if !isReshape(x) {
			d.rounded[x] = true
			return
		}
		d.inProducts[x], x = true, x.Input(0).Node()
	}
}

// inProduct reports whether a map is computed in the kernels of products that round, and whether this is known.
func (d *decisions) inProduct(n *ir.Node) (inside, known bool) {
	if d.rounded[n] {
		return d.weight[n.ID()] <= d.traffic.CheapOps, true
	}
	return true, d.inProducts[n]
}

// isBlockMaximum reports whether a node computes the largest magnitude of each block along the last axis.
func isBlockMaximum(n *ir.Node) bool {
	a, ok := n.Attrs().(*ops.AxesAttrs)
	if !ok || n.Op() != ops.OpReduceMax || n.Types()[0].DType != ir.F32 || n.Input(0).Node().Op() != ops.OpAbs {
		return false
	}
	dims := dimsOf(n.Input(0))
	return len(a.Axes) == 1 && a.Axes[0] == len(dims)-1 && dims[len(dims)-1] == maxBlock
}

// blockWalk follows the users of the maxima of a row's blocks.
type blockWalk struct {
	d      *decisions
	output map[*ir.Node]bool
	length int // of the row
	seen   map[*ir.Node]bool
}

// reachesSums reports whether all that depends on a node are maps, and at last sums of products with packed weights.
func (w *blockWalk) reachesSums(n *ir.Node) bool {
	users := w.d.uses[n.ID()]
	if len(users) == 0 || w.output[n] || len(w.seen) > maxBlockNodes {
		return false
	}
	for _, u := range users {
		if w.seen[u] || w.isSum(u) {
			continue
		}
		if !isMap(u) {
			return false
		}
		w.seen[u] = true
		if !w.reachesSums(u) {
			return false
		}
	}
	return true
}

// isSum reports whether a node sums up products of one row with rows of packed weights.
func (w *blockWalk) isSum(n *ir.Node) bool {
	outer := sizeOf(n.Types()[0])
	return n.Op() == ops.OpReduceSum && n.Types()[0].DType == ir.F32 && outer > 1 && sizeOf(n.Input(0).Type()) == outer*w.length &&
		readsBytes(n.Input(0).Node(), outer, map[*ir.Node]bool{})
}

// readsBytes reports whether maps compute a node from at least n bytes.
func readsBytes(x *ir.Node, n int, seen map[*ir.Node]bool) bool {
	if seen[x] {
		return false
	}
	seen[x] = true
	if t := x.Types()[0]; !isMap(x) {
		return t.DType == ir.U8 && sizeOf(t) >= n
	}
	return slices.ContainsFunc(x.Inputs(), func(v ir.Value) bool { return readsBytes(v.Node(), n, seen) })
}

// unrolled returns an element of a reduction of few elements that is computed where it is used.
func unrolled(r *Reader, n *ir.Node, l *ir.ReduceLowering, at ir.Index) scalar.Expr {
	dims := l.Space(n)
	var total []scalar.Expr
	for i := range Product(dims) {
		point := make(ir.Index, len(dims))
		for axis, rest := len(dims)-1, i; axis >= 0; axis-- {
			point[axis] = scalar.ConstI(ir.I32, int64(rest%dims[axis]))
			rest /= dims[axis]
		}
		x := l.Element(n, at, point, r.Operand(n))
		if total == nil {
			total = x
		} else {
			total = l.Combine(n, total, x)
		}
	}
	if l.Finish != nil {
		total = l.Finish(n, at, total)
	}
	return total[0]
}
