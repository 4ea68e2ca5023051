package plansim_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
)

// inBlocks is a target that computes all attention in blocks.
func inBlocks() plan.Target {
	t := plan.WebGPU()
	t.F16 = true
	t.ScoreBytes = 1
	return t
}

// TestAttentionInBlocksEqualsItsMeaning runs all samples, by themselves and in
// one graph, in kernels that keep no scores.
func TestAttentionInBlocksEqualsItsMeaning(t *testing.T) {
	for _, op := range []ir.Op{ops.OpAttentionForward, ops.OpAttentionBackward} {
		d, _ := ir.Lookup(op)
		for _, s := range d.Samples() {
			t.Run(string(op)+"/"+s.Name, func(t *testing.T) {
				names := checkSampleOn(t, inBlocks(), op, s)
				empty := slices.ContainsFunc(s.In, func(a *ir.Array) bool { return a.Len() == 0 })
				if !empty && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "attend_") }) {
					t.Errorf("kernels %v: none of them is of attention", names)
				}
			})
		}
		t.Run(string(op), func(t *testing.T) { checkSampleOn(t, inBlocks(), op, d.Samples()...) })
	}
}

// attention is a case with random operands.
type attention struct {
	name    string
	q, k, v []int
	mask    []int // of floats; nil for none
	seen    bool  // the mask is boolean
	ops.AttentionAttrs
}

var attentions = []attention{
	{name: "blocks of keys", q: []int{70, 8}, k: []int{150, 8}, v: []int{150, 5}},
	{name: "blocks, causal", q: []int{130, 6}, k: []int{130, 6}, v: []int{130, 6}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "whole blocks", q: []int{1, 2, 64, 16}, k: []int{1, 2, 64, 16}, v: []int{1, 2, 64, 32}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "more queries than keys, causal", q: []int{150, 4}, k: []int{70, 4}, v: []int{70, 3}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "more keys than queries, causal", q: []int{40, 4}, k: []int{170, 4}, v: []int{170, 3}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "shared heads", q: []int{2, 6, 67, 7}, k: []int{2, 2, 35, 7}, v: []int{2, 2, 35, 9}, mask: []int{6, 1, 35}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "depth 96", q: []int{35, 96}, k: []int{70, 96}, v: []int{70, 130}, AttentionAttrs: ops.AttentionAttrs{Softcap: 3}},
	{name: "depth 256", q: []int{33, 256}, k: []int{40, 256}, v: []int{40, 256}, mask: []int{33, 40}},
	{name: "wide values", q: []int{20, 3}, k: []int{140, 3}, v: []int{140, 200}, seen: true, mask: []int{140}},
	{name: "mask of queries", q: []int{2, 3, 70, 5}, k: []int{2, 3, 40, 5}, v: []int{2, 3, 40, 5}, mask: []int{2, 1, 70, 1}},
	{name: "mask of keys", q: []int{2, 3, 70, 5}, k: []int{2, 3, 40, 5}, v: []int{2, 3, 40, 5}, mask: []int{3, 1, 40}},
	{name: "mask of heads", q: []int{2, 3, 70, 5}, k: []int{2, 3, 40, 5}, v: []int{2, 3, 40, 5}, mask: []int{2, 3, 1, 1}},
	{name: "mask of one", q: []int{2, 3, 70, 5}, k: []int{2, 3, 40, 5}, v: []int{2, 3, 40, 5}, mask: []int{}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "mask of scores", q: []int{2, 3, 70, 5}, k: []int{2, 3, 40, 5}, v: []int{2, 3, 40, 5}, mask: []int{70, 40}},
	{name: "seen", q: []int{3, 70, 5}, k: []int{3, 40, 5}, v: []int{3, 40, 5}, seen: true, mask: []int{3, 1, 40}, AttentionAttrs: ops.AttentionAttrs{Softcap: 2, Causal: true}},
}

// samples returns the case as one of the forward and one of the backward op.
func (c attention) samples() map[ir.Op]ir.Sample {
	rng := rand.New(rand.NewPCG(3, 4))
	draw := func(dims ...int) *ir.Array {
		a := ir.NewArray(ir.F32, dims...)
		for i := range a.F {
			a.F[i] = rng.NormFloat64() / 4
		}
		a.Round()
		return a
	}
	attrs := c.AttentionAttrs
	attrs.Scale = 0.3
	qkv := []*ir.Array{draw(c.q...), draw(c.k...), draw(c.v...)}
	var mask []*ir.Array
	switch {
	case c.seen:
		a := ir.NewArray(ir.Bool, c.mask...)
		for i := range a.I {
			a.I[i] = rng.Int64N(3) / 2
		}
		mask = append(mask, a)
	case c.mask != nil:
		mask = append(mask, draw(c.mask...))
	}
	rows := c.q[:len(c.q)-1]
	rest := []*ir.Array{draw(rows...), draw(rows...), draw(slices.Concat(rows, c.v[len(c.v)-1:])...)}
	for i := range rest[0].F {
		rest[0].F[i] += 2
	}
	return map[ir.Op]ir.Sample{
		ops.OpAttentionForward:  {Attrs: &attrs, In: slices.Concat(qkv, mask)},
		ops.OpAttentionBackward: {Attrs: &attrs, In: slices.Concat(qkv, rest, mask)},
	}
}

func TestAttentionInBlocksOfAllSizes(t *testing.T) {
	for _, c := range attentions {
		for op, s := range c.samples() {
			t.Run(c.name+", "+string(op), func(t *testing.T) {
				t.Parallel()
				checkSampleOn(t, inBlocks(), op, s)
			})
		}
	}
}
