package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// canceller cancels transposes around elementwise ops and reductions: nodes between a transpose and its inverse, or
// a reduction, are computed in the order of the transpose's operand. A batch norm of planes, for example, is written
// as one of channels last between two transposes; each of its kernels would read or write one array in strides. A
// reshape that splits or joins axes, as the groups of a group norm, may be among these nodes.
type canceller struct {
	g    *ir.Graph
	uses [][]*ir.Node
	out  map[*ir.Node]bool // nodes with an output
	// perm is by node ID the permutation of a transpose. An elementwise node or a reshape that is computed before
	// the transpose has that of the transpose. It is nil for other nodes.
	perm [][]int
}

// cancelTransposes returns a graph without the transposes that a [canceller] cancels, g itself where there are none.
func cancelTransposes(g *ir.Graph) (*ir.Graph, error) {
	if !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpTranspose }) {
		return g, nil
	}
	t := &canceller{g: g, uses: g.Uses(), out: map[*ir.Node]bool{}, perm: make([][]int, len(g.Nodes()))}
	for _, o := range g.Outputs() {
		t.out[o.Value.Node()] = true
	}
	for _, n := range g.Nodes() {
		t.seed(n)
	}
	for changed := true; changed; {
		changed = false
		for _, n := range g.Nodes() {
			if p := t.perm[n.ID()]; p != nil && n.Op() != ops.OpTranspose && !(t.hasOperands(n, p) && t.hasUsers(n)) {
				t.perm[n.ID()], changed = nil, true
			}
		}
	}
	if !slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return n.Op() != ops.OpTranspose && t.perm[n.ID()] != nil }) {
		return g, nil
	}
	return ir.Transform(g.Name(), t.copy)
}

// seed sets perm for a transpose, and for an elementwise node or a reshape that has one for its operands.
func (t *canceller) seed(n *ir.Node) {
	if n.Op() == ops.OpTranspose {
		if !t.undoes(n) {
			t.perm[n.ID()] = n.Attrs().(*ops.TransposeAttrs).Perm
		}
		return
	}
	if n.Op() == ops.OpReshape {
		t.perm[n.ID()] = t.reshaped(n)
		return
	}
	if n.Def().Scalar == nil || n.NumResults() != 1 {
		return
	}
	for _, v := range n.Inputs() {
		if p := t.perm[v.Node().ID()]; p != nil && t.hasOperands(n, p) {
			t.perm[n.ID()] = p
			return
		}
	}
}

// undoes reports whether a node is a transpose of an elementwise node that undoes the one before that node.
func (t *canceller) undoes(n *ir.Node) bool {
	if n.Op() != ops.OpTranspose {
		return false
	}
	x := n.Input(0).Node()
	p := t.perm[x.ID()]
	return p != nil && x.Op() != ops.OpTranspose && slices.Equal(n.Attrs().(*ops.TransposeAttrs).Perm, permute.Inverse(p)) && !t.needs(n, p, maxBetween)
}

// maxBetween is the number of elementwise nodes between two transposes up to which [canceller.needs] looks.
const maxBetween = 3

// needs reports whether what reads a value, after up to depth elementwise nodes, needs its transpose by perm, as
// the windows of a pool after a batch norm do. The values before are then better transposed, too.
func (t *canceller) needs(n *ir.Node, perm []int, depth int) bool {
	return slices.ContainsFunc(t.uses[n.ID()], func(u *ir.Node) bool {
		if u.Op() == ops.OpTranspose {
			return slices.Equal(u.Attrs().(*ops.TransposeAttrs).Perm, perm) && slices.ContainsFunc(t.uses[u.ID()], func(w *ir.Node) bool {
				_, reduces := w.Def().Lower.(*ir.ReduceLowering)
				return w.Def().Scalar == nil && !reduces
			})
		}
		return depth > 0 && u.Def().Scalar != nil && t.needs(u, perm, depth-1)
	})
}

// reshaped returns the axes of the transpose that a reshape of a transpose is of a reshape; nil where it is none.
func (t *canceller) reshaped(n *ir.Node) []int {
	perm := t.perm[n.Input(0).Node().ID()]
	from, ok1 := n.Input(0).Shape().Ints()
	to, ok2 := n.Result(0).Shape().Ints()
	if perm == nil || !ok1 || !ok2 {
		return nil
	}
	parts := reshapedParts(from, to)
	if parts == nil {
		return nil
	}
	for _, p := range parts {
		for i := p.from + 1; i < p.fromEnd; i++ {
			if perm[i] != perm[i-1]+1 {
				return nil // the axes are not side by side in memory
			}
		}
	}
	slices.SortFunc(parts, func(a, b reshapedPart) int { return perm[a.from] - perm[b.from] })
	out, next := make([]int, len(to)), 0
	for _, p := range parts {
		for i := p.to; i < p.toEnd; i++ {
			out[i] = next
			next++
		}
	}
	return out
}

// reshapedPart is a range of axes that a reshape makes another range of axes.
type reshapedPart struct{ from, fromEnd, to, toEnd int }

// reshapedParts returns the parts of a reshape, the smallest ones; nil where one would be without axes.
func reshapedParts(from, to []int) (parts []reshapedPart) {
	if product(from) == 0 {
		return nil
	}
	for i, j := 0, 0; i < len(from) || j < len(to); {
		if i == len(from) || j == len(to) {
			return nil
		}
		p, a, b := reshapedPart{from: i, to: j}, from[i], to[j]
		for i, j = i+1, j+1; a != b; {
			if a < b {
				a *= from[i]
				i++
			} else {
				b *= to[j]
				j++
			}
		}
		p.fromEnd, p.toEnd = i, j
		parts = append(parts, p)
	}
	return parts
}

// hasOperands reports whether all operands of a node are transposes by perm, or can be in any order; of a reshape,
// whether it is a transpose by perm.
func (t *canceller) hasOperands(n *ir.Node, perm []int) bool {
	if n.Op() == ops.OpReshape {
		return slices.Equal(t.reshaped(n), perm)
	}
	found := false
	for _, v := range n.Inputs() {
		x := v.Node()
		switch {
		case v.Rank() != len(perm):
			return false
		case t.perm[x.ID()] != nil && slices.Equal(t.perm[x.ID()], perm):
			found = true
		case x.Op() == ops.OpBroadcastInDim:
			if _, axes := broadcastAxes(x); !slices.IsSorted(permute.Pick(perm, axes)) {
				return false
			}
		case x.Op() != ir.OpConstant:
			return false
		}
	}
	return found
}

// broadcastAxes returns the sizes of the axes of a broadcast's operand that are not 1, and their axes of the result.
func broadcastAxes(n *ir.Node) (sizes ir.Shape, axes []int) {
	for i, d := range n.Input(0).Shape() {
		if !d.Is(1) {
			sizes, axes = append(sizes, d), append(axes, n.Attrs().(*ops.BroadcastAttrs).Axes[i])
		}
	}
	return sizes, axes
}

// hasUsers reports whether all users of an elementwise node or a reshape do without its transpose.
func (t *canceller) hasUsers(n *ir.Node) bool {
	return !t.out[n] && !slices.ContainsFunc(t.uses[n.ID()], func(u *ir.Node) bool {
		moved := t.perm[u.ID()] != nil && u.Op() != ops.OpTranspose
		return !moved && !t.reduces(u) && !t.undoes(u)
	})
}

// reduces reports whether a node is a reduction of a transpose by perm whose other axes keep their order.
func (t *canceller) reduces(n *ir.Node) bool {
	a, ok := n.Attrs().(*ops.AxesAttrs)
	if _, is := n.Def().Lower.(*ir.ReduceLowering); !is || !ok || len(n.Inputs()) != 1 {
		return false
	}
	perm := t.perm[n.Input(0).Node().ID()]
	var kept []int
	for i, p := range perm {
		if !slices.Contains(a.Axes, i) {
			kept = append(kept, p)
		}
	}
	return perm != nil && slices.IsSorted(kept)
}

// copy copies the graph without the transposes. before maps nodes with a perm to their values before the transpose.
func (t *canceller) copy(b *ir.Builder) {
	to, before := ir.NewMapping(t.g), ir.NewMapping(t.g)
	b.CopyPorts(t.g, to)
	for _, n := range t.g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		b.Label(n.Label())
		b.At(n.Pos())
		perm := t.perm[n.ID()]
		switch {
		case n.Op() == ops.OpTranspose && perm != nil:
			before.Set(n.Result(0), to.Get(n.Input(0)))
			to.SetAll(n, b.CopyWith(n, n.Attrs(), nil, to.Inputs(n)))
		case n.Op() == ops.OpReshape && perm != nil:
			shape := operandShape(n.Result(0).Shape(), perm)
			before.SetAll(n, b.CopyWith(n, &ops.ReshapeAttrs{Shape: shape}, nil, []ir.Value{before.Get(n.Input(0))}))
		case perm != nil:
			in := make([]ir.Value, len(n.Inputs()))
			for i, v := range n.Inputs() {
				in[i] = t.operand(b, v, perm, to, before)
			}
			before.SetAll(n, b.CopyWith(n, n.Attrs(), nil, in))
		case t.undoes(n):
			to.Set(n.Result(0), before.Get(n.Input(0)))
		case t.reduces(n):
			axes := permute.Pick(t.perm[n.Input(0).Node().ID()], n.Attrs().(*ops.AxesAttrs).Axes)
			slices.Sort(axes)
			to.SetAll(n, b.CopyWith(n, &ops.AxesAttrs{Axes: axes}, nil, []ir.Value{before.Get(n.Input(0))}))
		default:
			to.SetAll(n, b.CopyWith(n, n.Attrs(), n.Subgraphs(), to.Inputs(n)))
		}
	}
	for _, o := range t.g.Outputs() {
		b.CopyOutput(o, to.Get(o.Value))
	}
}

// operand returns an operand in the order that it has before a transpose by perm.
func (t *canceller) operand(b *ir.Builder, v ir.Value, perm []int, to, before *ir.Mapping) ir.Value {
	x := v.Node()
	if t.perm[x.ID()] != nil {
		return before.Get(v)
	}
	if x.Op() != ops.OpBroadcastInDim {
		return ops.Transpose(b, to.Get(v), permute.Inverse(perm)...)
	}
	from := to.Get(x.Input(0))
	sizes, axes := broadcastAxes(x)
	if len(sizes) < from.Rank() {
		from = ops.Reshape(b, from, sizes...)
	}
	return ops.BroadcastInDim(b, from, operandShape(x.Result(0).Shape(), perm), permute.Pick(perm, axes))
}

// operandShape returns the shape of what has the given one when transposed by perm.
func operandShape(s ir.Shape, perm []int) ir.Shape {
	out := make(ir.Shape, len(perm))
	for i, p := range perm {
		out[p] = s[i]
	}
	return out
}
