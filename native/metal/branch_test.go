//go:build cgo && linux

package metal_test

import (
	"context"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
)

func TestBranchesAndUnboundedLoops(t *testing.T) {
	for _, debug := range []string{"", "1"} {
		t.Run("debug "+debug, func(t *testing.T) {
			install(t, true)
			t.Setenv("RLX_SOFTWARE_DELAY", "200")
			t.Setenv("RLX_METAL_DEBUG", debug)
			backendtest.Branches(t, metal.New())
		})
	}
}

// counting adds 1 to a state until it is the input, one at a time, and to the number of
// runs.
func counting(t *testing.T) *ir.Graph {
	g, err := ir.Build("counting", func(b *ir.Builder) {
		out := ops.WhileLoop(b, ops.While{
			Consts: []ir.Value{b.Input("end", ir.I32)}, Carries: []ir.Value{b.State("at", ir.I32)},
			Cond: func(b *ir.Builder, consts, c []ir.Value) ir.Value { return ops.Lt(b, c[0], consts[0]) },
			Body: func(b *ir.Builder, _, c []ir.Value) []ir.Value {
				return []ir.Value{ops.Add(b, c[0], ops.Const(b, ir.I32, 1))}
			},
		})
		b.SetState("at", out[0])
		b.SetState("runs", ops.Add(b, b.State("runs", ir.I32), ops.Const(b, ir.I32, 1)))
	})
	must(t, err)
	return g
}

// More and more rounds of a loop are submitted before the host reads whether it continues; runs are sequential
// though no caller waits for them.
func TestALoopIsBegunInMoreAndMoreRounds(t *testing.T) {
	gpu := install(t, true)
	p := compile(t, metal.New(), counting(t))
	ctx := context.Background()
	end := []int32{0}
	bound, err := p.Bind(ctx, "step", map[string]native.Tensor{"end": {DType: ir.I32, Dims: []int{}, Data: native.Int32s(end).Data}}, nil)
	must(t, err)
	for i, c := range []struct {
		end     int32
		buffers int // one before the loop, one after it, and between them 1, 2, 4, 8, 8, … of 8 rounds
	}{{0, 1 + 1 + 1}, {8, 1 + (1 + 2) + 1}, {1000, 1 + (1 + 2 + 4 + 15*8) + 1}} {
		gpu.Forget(t)
		end[0] = c.end
		must(t, bound.Start(ctx))
		at, err := p.Get(ctx, "at")
		must(t, err)
		runs, err := p.Get(ctx, "runs")
		must(t, err)
		n, _ := at.Int32s()
		m, _ := runs.Int32s()
		buffers := 0
		for _, call := range gpu.Calls(t) {
			if call == "commit step" {
				buffers++
			}
		}
		if buffers != c.buffers {
			t.Errorf("a loop of %d rounds takes %d command buffers, not %d", c.end, buffers, c.buffers)
		}
		if n[0] != c.end || m[0] != int32(i+1) {
			t.Errorf("after run %d to %d the state is %d, of %d runs", i+1, c.end, n[0], m[0])
		}
	}
	for i := range int32(4) {
		end[0] = 1000 + 10*i
		must(t, bound.Start(ctx))
	}
	at, err := p.Get(ctx, "at")
	must(t, err)
	if n, _ := at.Int32s(); n[0] != 1030 {
		t.Errorf("after runs that nobody waited for the state is %d", n[0])
	}
}
