package plansim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// byMma is a target that computes all attention by multiply-adds of warp groups,
// where they can.
func byMma() plan.Target {
	l := schedtest.Hopper().Limits
	return plan.Target{Name: "hopper", ScoreBytes: 1, Caps: loop.Caps{
		Dialect: dtype.CUDA, Limits: l, Mma: true, Shuffles: true, MmaBytes: 227 << 10, Multiprocessors: 132,
	}}
}

// matrices are cases that multiply-adds serve.
var matrices = []attention{
	{name: "whole blocks", q: []int{2, 256, 64}, k: []int{2, 256, 64}, v: []int{2, 256, 64}},
	{name: "causal", q: []int{2, 256, 64}, k: []int{2, 256, 64}, v: []int{2, 256, 64}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "causal, parts of blocks", q: []int{1, 300, 32}, k: []int{1, 300, 32}, v: []int{1, 300, 48}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "more queries than keys", q: []int{310, 16}, k: []int{70, 16}, v: []int{70, 16}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "more keys than queries", q: []int{40, 16}, k: []int{333, 16}, v: []int{333, 32}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "window", q: []int{2, 300, 16}, k: []int{2, 300, 16}, v: []int{2, 300, 16}, AttentionAttrs: ops.AttentionAttrs{Causal: true, Window: 70}},
	{name: "window, more keys than queries", q: []int{140, 16}, k: []int{333, 16}, v: []int{333, 32}, AttentionAttrs: ops.AttentionAttrs{Window: 100}},
	{name: "length 128", q: []int{150, 128}, k: []int{200, 128}, v: []int{200, 128}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "lengths 80 and 112", q: []int{130, 80}, k: []int{65, 80}, v: []int{65, 112}},
	{name: "lengths 40 and 24", q: []int{130, 40}, k: []int{65, 40}, v: []int{65, 24}},
	{name: "lengths 20 and 36, a mask that is added", q: []int{2, 70, 20}, k: []int{2, 75, 20}, v: []int{2, 75, 36}, mask: []int{70, 75}},
	{name: "lengths 5 and 7, causal", q: []int{2, 70, 5}, k: []int{2, 70, 5}, v: []int{2, 70, 7}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "shared heads", q: []int{2, 6, 67, 16}, k: []int{2, 2, 135, 16}, v: []int{2, 2, 135, 16}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
	{name: "softcap", q: []int{70, 16}, k: []int{150, 16}, v: []int{150, 16}, AttentionAttrs: ops.AttentionAttrs{Softcap: 0.5, Causal: true}},
	{name: "a mask that is added", q: []int{2, 70, 16}, k: []int{2, 140, 16}, v: []int{2, 140, 16}, mask: []int{70, 140}},
	{name: "what is seen", q: []int{2, 70, 16}, k: []int{2, 140, 16}, v: []int{2, 140, 16}, seen: true, mask: []int{2, 70, 140}, AttentionAttrs: ops.AttentionAttrs{Causal: true}},
}

// TestAttentionByMultiplyAdds takes the types in turn, and both for the first case: they differ in how numbers are
// converted, not in the formula of an element.
func TestAttentionByMultiplyAdds(t *testing.T) {
	types := []ir.DType{ir.BF16, ir.F16}
	for i, c := range matrices {
		taken := types[i%2 : i%2+1]
		if i == 0 {
			taken = types
		}
		for op, s := range c.samples() {
			for _, d := range taken {
				t.Run(c.name+", "+string(op)+" "+d.String(), func(t *testing.T) {
					t.Parallel()
					names := checkSampleOn(t, byMma(), op, stored(s, d))
					if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "attend_") }) {
						t.Errorf("kernels %v: none of them is of attention", names)
					}
				})
			}
		}
	}
}

// stored returns a sample with its operands but those of f32 rows in another type.
func stored(s ir.Sample, d ir.DType) ir.Sample {
	s.In = slices.Clone(s.In)
	rank := len(s.In[0].Dims)
	for i, x := range s.In {
		if x.DType != ir.F32 || len(s.In) > 5 && len(x.Dims) < rank && i < 5 {
			continue
		}
		s.In[i] = &ir.Array{DType: d, Dims: x.Dims, F: slices.Clone(x.F)}
		s.In[i].Round()
	}
	return s
}
