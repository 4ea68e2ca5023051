package plansim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// inBlocks is a target that computes all attention in blocks.
func inBlocks() plan.Target {
	t := plan.WebGPU()
	t.F16 = true
	t.ScoreBytes = 1
	return t
}

// TestAttentionInBlocksEqualsReference runs all samples, by themselves and in
// one graph, in kernels that keep no scores.
func TestAttentionInBlocksEqualsReference(t *testing.T) {
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
	{name: "window", q: []int{150, 4}, k: []int{150, 4}, v: []int{150, 3}, AttentionAttrs: ops.AttentionAttrs{Causal: true, Window: 40}},
	{name: "window of one", q: []int{130, 4}, k: []int{130, 4}, v: []int{130, 3}, AttentionAttrs: ops.AttentionAttrs{Causal: true, Window: 1}},
	{name: "window to all later keys", q: []int{150, 4}, k: []int{200, 4}, v: []int{200, 3}, AttentionAttrs: ops.AttentionAttrs{Window: 33}},
	{name: "window, more queries than keys", q: []int{200, 4}, k: []int{70, 4}, v: []int{70, 3}, AttentionAttrs: ops.AttentionAttrs{Causal: true, Window: 20}},
	{name: "window and a mask", q: []int{2, 130, 5}, k: []int{2, 140, 5}, v: []int{2, 140, 5}, mask: []int{130, 140}, AttentionAttrs: ops.AttentionAttrs{Causal: true, Window: 30, Softcap: 2}},
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

// TestAttentionInBlocksInAGridOfTwoAxes has more workgroups than an axis of a
// dispatch takes.
func TestAttentionInBlocksInAGridOfTwoAxes(t *testing.T) {
	target := inBlocks()
	target.Limits.Groups = 5
	for op, s := range attentions[slices.IndexFunc(attentions, func(c attention) bool { return c.name == "shared heads" })].samples() {
		t.Run(string(op), func(t *testing.T) { checkSampleOn(t, target, op, s) })
	}
}

// TestMaskSumsInParts has more heads that share a mask than workgroups to split its sums for, so that the last part is
// short, and more workgroups, so that parts are added up in a loop.
func TestMaskSumsInParts(t *testing.T) {
	c := attention{name: "heads that share a mask", q: []int{11, 33, 5}, k: []int{11, 40, 5}, v: []int{11, 40, 5}, mask: []int{33, 40}}
	for _, processors := range []int{3, 100} {
		target := schedtest.Hopper()
		target.ScoreBytes, target.Mma, target.TF32 = 1, false, false
		target.Multiprocessors = processors
		names := checkSampleOn(t, target, ops.OpAttentionBackward, c.samples()[ops.OpAttentionBackward])
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "_mask_join") }) {
			t.Errorf("%d processors: kernels %v: no sums are split", processors, names)
		}
	}
}

// TestAttentionInBlocksAmongOtherThings has it where results are not wanted, where
// a state or a carry takes them, and where a mask that is added hides all keys.
func TestAttentionInBlocksAmongOtherThings(t *testing.T) {
	cases := map[string]func(b *ir.Builder, q, k, v ir.Value){
		"the sum alone": func(b *ir.Builder, q, k, v ir.Value) {
			_, lse := ops.AttentionForward(b, q, k, v, ir.Value{}, ops.AttentionAttrs{})
			b.Output("y", lse)
		},
		"the cotangent of the queries": func(b *ir.Builder, q, k, v ir.Value) { backwardOf(b, q, k, v, 0) },
		"the cotangent of the keys":    func(b *ir.Builder, q, k, v ir.Value) { backwardOf(b, q, k, v, 1) },
		"the cotangent of the values":  func(b *ir.Builder, q, k, v ir.Value) { backwardOf(b, q, k, v, 2) },
		"views of operands": func(b *ir.Builder, q, k, v ir.Value) {
			turned := func(x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }
			b.Output("y", ops.Attention(b, turned(q), turned(k), turned(v), ir.Value{}, ops.AttentionAttrs{}))
		},
		"a mask of places": func(b *ir.Builder, q, k, v ir.Value) {
			at := func(axis int) ir.Value { return ops.Iota(b, ir.I32, axis, ir.Dims(5, 6)...) }
			near := ops.Lt(b, ops.Abs(b, ops.Sub(b, at(0), at(1))), ops.Const(b, ir.I32, 2))
			b.Output("y", ops.Attention(b, q, k, v, near, ops.AttentionAttrs{}))
		},
		"nothing seen": func(b *ir.Builder, q, k, v ir.Value) {
			mask := ops.Mul(b, ops.Const(b, ir.F32, math.Inf(-1)), ops.OnesLike(b, q))
			mask = ops.SliceAxis(b, mask, 2, ir.N(0), ir.N(1))
			b.Output("y", ops.Attention(b, q, k, v, mask, ops.AttentionAttrs{}))
		},
		"a carry": func(b *ir.Builder, q, k, v ir.Value) {
			carries, ys := ops.Scan(b, ops.Loop{
				Consts: []ir.Value{k, v}, Carries: []ir.Value{q}, Length: ir.N(3),
				Body: func(b *ir.Builder, kv, q, _ []ir.Value) (next, ys []ir.Value) {
					out, lse := ops.AttentionForward(b, q[0], kv[0], kv[1], ir.Value{}, ops.AttentionAttrs{})
					return []ir.Value{out}, []ir.Value{lse, out}
				},
			})
			b.Output("y", carries[0])
			b.Output("sums", ys[0])
			b.Output("all", ys[1])
		},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			inputs := map[string]*ir.Array{}
			rng := rand.New(rand.NewPCG(5, 6))
			g := schedtest.Build(t, func(b *ir.Builder) {
				f(b, drawnInput(b, rng, inputs, "q", 2, 5, 4), drawnInput(b, rng, inputs, "k", 2, 6, 4), drawnInput(b, rng, inputs, "v", 2, 6, 4))
			})
			names := checkGraphOn(t, inBlocks(), g, inputs)
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "attend_") }) {
				t.Errorf("kernels %v: none of them is of attention", names)
			}
		})
	}
}

// backwardOf outputs one cotangent of attention.
func backwardOf(b *ir.Builder, q, k, v ir.Value, which int) {
	row := ops.ReduceSum(b, q, 2)
	b.Output("y", ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k, V: v}, ops.AttentionResiduals{LSE: row, Delta: row, DOut: q}, ops.AttentionAttrs{Scale: 0.5})[which])
}

// drawnInput adds an input with random values.
func drawnInput(b *ir.Builder, rng *rand.Rand, inputs map[string]*ir.Array, name string, dims ...int) ir.Value {
	a := ir.NewArray(ir.F32, dims...)
	for i := range a.F {
		a.F[i] = rng.NormFloat64() / 2
	}
	a.Round()
	inputs[name] = a
	return b.Input(name, ir.F32, ir.Dims(dims...)...)
}
