package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Attention is split into blocks of queries, each with the keys that at least one of its
// queries attends to: keys after all of them, or before their windows, cost nothing, and
// only the scores of one block are in memory, mostly in a cache. Each block is an attention
// op itself: with a causal mask its last query is aligned with its last key.

// Minimum numbers of queries per block, with a window, where each block computes extra scores for
// as many keys as it has queries, and without; and the maximum number of blocks, since each is
// compiled separately.
const (
	windowBlock        = 128
	plainBlock         = 256
	maxAttentionBlocks = 32
)

// attentionBlockSize returns the number of queries in a block of an attention, 0 if it is not
// split. The sizes must be constant and large enough; a causal attention needs as many queries as
// keys, and a window must be causal.
func attentionBlockSize(n *ir.Node) int {
	a, ok := n.Attrs().(*ops.AttentionAttrs)
	if !ok || n.Op() == ops.OpAttention || a.Window > 0 && !a.Causal {
		return 0
	}
	queries, known := n.Input(0).Dim(-2).Const()
	keys, alsoKnown := n.Input(1).Dim(-2).Const()
	if !known || !alsoKnown || a.Causal && queries != keys || n.Op() == ops.OpAttentionBackward && !sumsGradients(n) {
		return 0
	}
	minSize := plainBlock
	if a.Window > 0 && a.Window < int(keys) {
		minSize = windowBlock
	}
	size := max(minSize, (int(queries)+maxAttentionBlocks-1)/maxAttentionBlocks)
	if int(queries) < 4*size || int(keys) < 2*plainBlock {
		return 0
	}
	return size
}

// sumsGradients reports whether gradients of keys and values can be accumulated over blocks in
// the type of the operands, and none of a mask is needed.
func sumsGradients(n *ir.Node) bool {
	d := n.Input(0).DType()
	return (d == ir.F32 || d == ir.F64) && (len(n.Inputs()) == 6 || n.Input(6).DType().IsBool())
}

// hasBlockedAttention reports whether a graph has an attention to split.
func hasBlockedAttention(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return attentionBlockSize(n) > 0 || slices.ContainsFunc(n.Subgraphs(), hasBlockedAttention)
	})
}

// blockAttention copies a graph with its attention split into blocks.
func blockAttention(b *ir.Builder, g *ir.Graph) {
	to := ir.NewMapping(g)
	b.CopyPorts(g, to)
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		b.Label(n.Label())
		b.At(n.Pos())
		if size := attentionBlockSize(n); size > 0 {
			to.SetAll(n, newAttentionBlocks(b, n, to.Inputs(n), size).results())
			continue
		}
		subs := slices.Clone(n.Subgraphs())
		for i, sub := range subs {
			subs[i] = b.Subgraph(sub.Name(), func(b *ir.Builder) { blockAttention(b, sub) })
		}
		to.SetAll(n, b.CopyWith(n, n.Attrs(), subs, to.Inputs(n)))
	}
	for _, o := range g.Outputs() {
		b.CopyOutput(o, to.Get(o.Value))
	}
}

// attentionBlocks emits the blocks of an attention, forward or backward.
type attentionBlocks struct {
	b      *ir.Builder
	n      *ir.Node
	in     []ir.Value
	axis   int // sequence axis of q, k and v, and of the log-sum-exp
	size   int // queries of a block
	causal bool
	// The numbers of queries, of keys, and of keys that a query attends to.
	queries, keys, window int
}

func newAttentionBlocks(b *ir.Builder, n *ir.Node, in []ir.Value, size int) *attentionBlocks {
	queries, _ := in[0].Dim(-2).Const()
	keys, _ := in[1].Dim(-2).Const()
	a := n.Attrs().(*ops.AttentionAttrs)
	c := &attentionBlocks{
		b: b, n: n, in: in, axis: in[0].Rank() - 2, size: size,
		causal: a.Causal, queries: int(queries), keys: int(keys), window: int(keys),
	}
	if a.Window > 0 {
		c.window = min(c.window, a.Window)
	}
	return c
}

// interval is a range [from, end) of positions.
type interval struct{ from, end int }

func (s interval) of(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return ops.SliceAxis(b, x, axis, ir.N(s.from), ir.N(s.end-s.from))
}

// visibleKeys returns the keys that a block of queries attends to, rounded to whole blocks.
func (c *attentionBlocks) visibleKeys(queries interval) interval {
	if !c.causal {
		return interval{0, c.keys}
	}
	return interval{max(0, queries.from-c.window+1) / c.size * c.size, queries.end}
}

// results returns the results of the whole attention.
func (c *attentionBlocks) results() []ir.Value {
	parts := make([][]ir.Value, len(c.n.Types()))
	for from := 0; from < c.queries && c.b.Err() == nil; from += c.size {
		queries := interval{from, min(from+c.size, c.queries)}
		keys := c.visibleKeys(queries)
		for i, r := range c.b.Add(c.n.Op(), c.n.Attrs(), c.operands(queries, keys)...) {
			if c.n.Op() == ops.OpAttentionBackward && i > 0 {
				parts[i] = c.accumulate(parts[i], r, keys)
			} else {
				parts[i] = append(parts[i], r)
			}
		}
	}
	out := make([]ir.Value, len(parts))
	for i, p := range parts {
		out[i] = ops.Concatenate(c.b, c.axis, p...)
	}
	return out
}

// operands returns the operands of a block of queries and its keys.
func (c *attentionBlocks) operands(queries, keys interval) []ir.Value {
	out := []ir.Value{queries.of(c.b, c.in[0], c.axis), keys.of(c.b, c.in[1], c.axis), keys.of(c.b, c.in[2], c.axis)}
	mask := 3
	if c.n.Op() == ops.OpAttentionBackward {
		mask = 6
		for _, x := range c.in[3:mask] { // the log-sum-exp, delta and the cotangent
			out = append(out, queries.of(c.b, x, c.axis))
		}
	}
	for _, m := range c.in[mask:] {
		for fromEnd, s := range []interval{keys, queries} { // the last axis of a mask is the keys
			if axis := m.Rank() - 1 - fromEnd; axis >= 0 && m.Dim(axis) != ir.N(1) {
				m = s.of(c.b, m, axis)
			}
		}
		out = append(out, m)
	}
	return out
}

// accumulate adds a block's gradients of its keys or values to those of the blocks before.
func (c *attentionBlocks) accumulate(sums []ir.Value, r ir.Value, keys interval) []ir.Value {
	for at := keys.from; at < keys.end; at += c.size {
		part := interval{at - keys.from, min(at+c.size, keys.end) - keys.from}.of(c.b, r, c.axis)
		if i := at / c.size; i < len(sums) {
			sums[i] = ops.Add(c.b, sums[i], part)
		} else {
			sums = append(sums, part)
		}
	}
	return sums
}
