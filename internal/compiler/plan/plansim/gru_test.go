package plansim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// gru returns the sum of the states of a gated recurrent unit over some steps.
func gru(steps, batch, width int) (*ir.Graph, error) {
	return ir.Build("gru", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(steps, batch, width)...)
		w, u := b.Param("w", ir.F32, ir.Dims(width, 3*width)...), b.Param("u", ir.F32, ir.Dims(width, 3*width)...)
		bias := b.Param("bias", ir.F32, ir.N(3*width))
		gates := ops.Add(b, ops.MatMul(b, x, w), ops.BroadcastTo(b, bias, ir.Dims(steps, batch, 3*width)))
		_, ys := ops.Scan(b, ops.Loop{
			Consts: []ir.Value{u}, Carries: []ir.Value{ops.Zeros(b, ir.F32, ir.Dims(batch, width)...)}, Xs: []ir.Value{gates},
			Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
				h := carries[0]
				of := func(v ir.Value, i int) ir.Value { return ops.SliceAxis(b, v, 1, ir.N(i*width), ir.N(width)) }
				g := ops.MatMul(b, h, consts[0])
				reset := ops.Sigmoid(b, ops.Add(b, of(xs[0], 0), of(g, 0)))
				update := ops.Sigmoid(b, ops.Add(b, of(xs[0], 1), of(g, 1)))
				fresh := ops.Tanh(b, ops.Add(b, of(xs[0], 2), ops.Mul(b, reset, of(g, 2))))
				h = ops.Add(b, ops.Mul(b, update, h), ops.Mul(b, ops.Sub(b, ops.OnesLike(b, update), update), fresh))
				return []ir.Value{h}, []ir.Value{h}
			},
		})
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, ys[0], ys[0])))
	})
}

// TestDispatchesOfARecurrentNetwork counts the dispatches per step of a loop, if one remains: in
// the forward pass, and in both passes of a training step, on WebGPU, which binds too few arrays
// for the residuals of a step, and on targets with more.
func TestDispatchesOfARecurrentNetwork(t *testing.T) {
	g, err := gru(500, 8, 128)
	if err != nil {
		t.Fatal(err)
	}
	back, err := autodiff.ValueAndGrad(g, "loss", "u", "w", "bias")
	if err != nil {
		t.Fatal(err)
	}
	many := plan.WebGPU()
	many.StorageBuffers = 64
	for _, c := range []struct {
		what   string
		g      *ir.Graph
		target plan.Target
		want   []int
		most   int // dispatches in all, for 500 steps
	}{
		{"forward", g, plan.WebGPU(), nil, 20},
		{"forward and backward", back, plan.WebGPU(), []int{3, 4}, 5000},
		{"forward and backward, many arrays", back, many, nil, 20},
	} {
		p := compiledFor(t, c.target, c.g)
		if n := p.Entries[0].Dispatches(); n > c.most {
			t.Errorf("%s: %d dispatches, more than %d", c.what, n, c.most)
		}
		if copies(p.Entries[0].Steps) > 0 {
			t.Errorf("%s: values are copied from one step of a loop to the next", c.what)
		}
		var got []int
		for _, s := range p.Entries[0].Steps {
			if r, ok := s.(*plan.Repeat); ok {
				got = append(got, (&plan.Entry{Steps: r.Steps}).Dispatches())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the loops take %v dispatches a step, want %v", c.what, got, c.want)
		}
		if seen := loopKernels(p, p.Entries[0].Steps, false, nil); c.g == back && len(seen) > 10 {
			t.Errorf("%d kernels in loops: the rounds in turns have kernels of their own: %v", len(seen), seen)
		}
	}
}

// TestRoundedRecurrencesAreOneKernel runs the loop of a gated recurrent unit whose products are of bf16 in one kernel on CUDA,
// where threads store 16 bits by themselves. A batch whose rows take the device longer than launches is left to tensor cores.
func TestRoundedRecurrencesAreOneKernel(t *testing.T) {
	for batch, one := range map[int]bool{8: true, 1 << 14: false} {
		g, err := gru(5, batch, 32)
		if err == nil {
			g, err = passes.Mixed(g, ir.BF16)
		}
		if err != nil {
			t.Fatal(err)
		}
		kernels := schedtest.Kernels(t, g, schedtest.Hopper())
		if got := slices.ContainsFunc(kernels, func(k *loop.Kernel) bool { return strings.HasPrefix(k.Name, "loop_") }); got != one {
			t.Errorf("batch %d: the loop is one kernel: %t, want %t", batch, got, one)
		}
		if one {
			checkTwoRuns(t, g, someValues(g), schedtest.Hopper())
		}
	}
}

// copies counts the copies among steps, those of loops once.
func copies(steps []plan.Step) int {
	n := 0
	for s := range plan.Each(steps) {
		if _, is := s.(*plan.Copy); is {
			n++
		}
	}
	return n
}

// loopKernels returns the names of the kernels that run in loops, each once.
func loopKernels(p *plan.Plan, steps []plan.Step, inside bool, seen map[int]string) map[int]string {
	if seen == nil {
		seen = map[int]string{}
	}
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			if inside {
				seen[s.Kernel] = p.Kernels[s.Kernel].Name
			}
		case *plan.Repeat:
			loopKernels(p, s.Steps, true, seen)
			loopKernels(p, s.Odd, true, seen)
		}
	}
	return seen
}

// TestGradientsOfARecurrentNetwork compares gradients through rewritten loops with the reference
// implementation of the graph.
func TestGradientsOfARecurrentNetwork(t *testing.T) {
	g, err := gru(5, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = autodiff.ValueAndGrad(g, "loss", "x", "u", "w", "bias"); err != nil {
		t.Fatal(err)
	}
	many := plan.WebGPU()
	many.StorageBuffers = 64
	for _, target := range []plan.Target{plan.WebGPU(), many} {
		checkTwoRuns(t, g, someValues(g), target)
	}
}
