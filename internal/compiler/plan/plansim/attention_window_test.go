package plansim_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestCostOfAttentionFallsWithItsWindow counts accesses to memory: with a window they
// grow with the tokens and not with their square, forward and backward.
func TestCostOfAttentionFallsWithItsWindow(t *testing.T) {
	whole, short, long := attentionRequests(t, 512, 0), attentionRequests(t, 256, 32), attentionRequests(t, 512, 32)
	for kernel, n := range long {
		if n > 2*short[kernel]*11/10 {
			t.Errorf("%s: %d accesses for 512 tokens, %d for 256", kernel, n, short[kernel])
		}
		if n > whole[kernel]*6/10 {
			t.Errorf("%s: %d accesses with a window of 32 of 512 tokens, %d without", kernel, n, whole[kernel])
		}
	}
}

// attentionRequests returns how many accesses of warps to memory the kernels of causal
// attention make, by their names.
func attentionRequests(t *testing.T, tokens, window int) map[string]int {
	t.Helper()
	inputs := map[string]*ir.Array{}
	g := schedtest.Build(t, func(b *ir.Builder) {
		in := func(name string, dims ...int) ir.Value {
			inputs[name] = ir.NewArray(ir.F32, dims...)
			return b.Input(name, ir.F32, ir.Dims(dims...)...)
		}
		q, k, v, dout := in("q", tokens, 4), in("k", tokens, 4), in("v", tokens, 4), in("dout", tokens, 4)
		a := ops.AttentionAttrs{Causal: true, Window: window}
		out, lse := ops.AttentionForward(b, q, k, v, ir.Value{}, a)
		b.Output("out", out)
		for i, x := range ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k, V: v}, ops.AttentionResiduals{LSE: lse, Delta: ops.ZerosLike(b, lse), DOut: dout}, a) {
			b.Output(string(rune('a'+i)), x)
		}
	})
	s := opened(t, inBlocks(), g)
	requests := map[string]int{}
	s.Counted = func(k *loop.Kernel, c sim.Counts) {
		if !strings.HasSuffix(k.Name, "_rows") { // that one goes by queries alone
			requests[k.Name] += c.Requests
		}
	}
	if _, err := s.Run("run", inputs); err != nil {
		t.Fatal(err)
	}
	return requests
}
