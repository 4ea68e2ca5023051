//go:build cgo && linux

package metal_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
)

// Estimates are compared with the peak of an M1 by Apple's figures, 68 GB/s and
// 2.6 TFLOP/s: none is faster, and none is much slower.
func TestEstimatesAreWithinBoundsOfAnM1(t *testing.T) {
	install(t, false)
	for _, job := range jobs {
		rate := map[string]float64{"GFLOP/s": 2600, "GB/s": 68}[job.unit]
		if rate == 0 {
			continue
		}
		g, err := job.graph()
		must(t, err)
		p := compile(t, metal.New(), g)
		best, estimate := job.work/rate, metal.Estimate(p, 0).Seconds()
		if estimate < best || estimate > 40*best {
			t.Errorf("%s takes %.3g s by estimate, and %.3g s at best", job.name, estimate, best)
		}
		t.Logf("%s: %.3g s, %.1f times the best", job.name, estimate, estimate/best)
	}
}

// deep is a program of many long dispatches: its estimate is of minutes.
func deep(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("deep", func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.Dims(8192, 8192)...)
		h := x
		for range 3 {
			h = ops.Mul(b, ops.MatMul(b, h, x), ops.Const(b, ir.F32, 1e-4))
		}
		b.SetState("x", h)
	})
	must(t, err)
	return g
}

func TestLongStepsAreCutByEstimatedTime(t *testing.T) {
	const limit = 500 * time.Millisecond
	install(t, false)
	p := compile(t, metal.New(), deep(t))
	if metal.Pieces(p) == 0 {
		t.Error("no kernel runs by pieces")
	}
	parts, total := metal.Parts(t, p, 0), metal.Estimate(p, 0)
	if len(parts) < int(total/limit) {
		t.Errorf("%v takes %d command buffers", total, len(parts))
	}
	for i, time := range parts {
		if time > limit {
			t.Errorf("command buffer %d of %d takes %v", i, len(parts), time)
		}
	}
	t.Logf("%v takes %d command buffers, the longest %v", total, len(parts), slices.Max(parts))
}

// Where next to nothing fits a command buffer every kernel runs by pieces, of a workgroup
// where it can, loops and branches included.
func TestPiecesComputeTheSame(t *testing.T) {
	install(t, true)
	metal.SetBufferTime(t, 12*time.Microsecond)
	b := metal.New()
	t.Run("graphs", func(t *testing.T) { backendtest.Graphs(t, b) })
	t.Run("programs", func(t *testing.T) { backendtest.Programs(t, b) })
	t.Run("branches", func(t *testing.T) { backendtest.Branches(t, b) })
	t.Run("products", func(t *testing.T) { checkFragments(t, b) })
}

// training returns a step of many kernels that adds the sum of squares of a row sum to a
// state at its end, and another entry that reads it.
func training(t *testing.T) *ir.Module {
	t.Helper()
	step, err := ir.Build("step", func(b *ir.Builder) {
		h := b.Input("x", ir.F32, ir.Dims(64, 64)...)
		for range 4 {
			h = ops.MatMul(b, h, h)
		}
		b.SetState("total", ops.Add(b, b.State("total", ir.F32), ops.ReduceSum(b, h, 0, 1)))
	})
	must(t, err)
	other, err := ir.Build("other", func(b *ir.Builder) {
		y := b.Input("y", ir.F32, ir.N(4))
		b.Output("z", ops.Add(b, y, y))
	})
	must(t, err)
	m, err := ir.NewModule("training", ir.Entry{Name: "step", Graph: step}, ir.Entry{Name: "other", Graph: other})
	must(t, err)
	return m
}

// step runs the entry for matrices of 1/64, whose products are equal to themselves: the state grows
// by 64.
func step(p native.Program) error {
	ctx := context.Background()
	x := slices.Repeat([]float32{1. / 64}, 64*64)
	r, err := p.Run(ctx, "step", map[string]native.Tensor{"x": native.Float32s(x, 64, 64)})
	if err == nil {
		_, err = r.Wait(ctx)
	}
	return err
}

func checkTotal(t *testing.T, p native.Program, want float64) {
	t.Helper()
	total, err := p.Get(context.Background(), "total")
	must(t, err)
	if v, err := total.Float32s(); err != nil || !(math.Abs(float64(v[0])-want) <= 1e-3) {
		t.Errorf("the state is %v, not %v", v, want)
	}
}

// A command buffer that fails before any state is written fails its run only: the states
// are those before it, and later runs continue from them. macOS ends long ones with error 2,
// and those without memory with 8.
func TestFailureBeforeStateWritesFailsOneRun(t *testing.T) {
	for code, kind := range map[string]error{"2": native.ErrDevice, "1": native.ErrDevice, "8": native.ErrMemory} {
		t.Run("error "+code, func(t *testing.T) {
			gpu := install(t, true)
			metal.SetBufferTime(t, 100*time.Microsecond)
			p, err := metal.New().Compile(context.Background(), training(t), native.Options{})
			must(t, err)
			defer func() { must(t, p.Close(context.Background())) }()
			must(t, step(p))
			whole := commits(t, gpu)
			if whole < 3 {
				t.Fatalf("a step is %d command buffers", whole)
			}
			t.Setenv("RLX_SOFTWARE_FAIL", "commit "+code+" 1")
			var typed *native.Error
			if err := step(p); !errors.Is(err, kind) || !errors.As(err, &typed) || typed.Steps != 1 || !strings.Contains(err.Error(), "run 2 is lost and has no effect") {
				t.Errorf("the run that fails: %v", err)
			}
			if n := commits(t, gpu); n >= whole {
				t.Errorf("%d command buffers were begun of a run of which the first failed", n)
			}
			checkTotal(t, p, 64)
			must(t, step(p))
			checkTotal(t, p, 128)
			if n := commits(t, gpu); kind == native.ErrDevice && n <= whole {
				t.Errorf("%d command buffers after one that was too long, %d before", n, whole)
			}
		})
	}
}

// commits counts command buffers that were begun since its last call.
func commits(t *testing.T, gpu interface {
	Calls(testing.TB) []string
	Forget(testing.TB)
},
) (n int) {
	for _, c := range gpu.Calls(t) {
		if strings.HasPrefix(c, "commit ") {
			n++
		}
	}
	gpu.Forget(t)
	return n
}

// The last command buffer writes the state: entries that do not use it continue.
func TestFailureDuringStateWritesNamesStates(t *testing.T) {
	gpu := install(t, true)
	metal.SetBufferTime(t, 100*time.Microsecond)
	ctx := context.Background()
	p, err := metal.New().Compile(ctx, training(t), native.Options{})
	must(t, err)
	defer func() { must(t, p.Close(ctx)) }()
	must(t, step(p))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 2 "+string(rune('0'+commits(t, gpu))))
	if err := step(p); !errors.Is(err, native.ErrDevice) || !strings.Contains(err.Error(), "total may be partly written") {
		t.Errorf("the run that fails: %v", err)
	}
	if err := step(p); !errors.Is(err, native.ErrDevice) {
		t.Errorf("the next one: %v", err)
	}
	r, err := p.Run(ctx, "other", map[string]native.Tensor{"y": native.Float32s([]float32{1, 2, 3, 4})})
	must(t, err)
	_, err = r.Wait(ctx)
	must(t, err)
	must(t, p.Set(ctx, "total", native.Zeros(ir.F32)))
	must(t, step(p))
	checkTotal(t, p, 64)
}

// Of a branch that is not taken no piece does anything: this one would find an index out of
// range.
func TestPiecesOfABranchThatIsNotTaken(t *testing.T) {
	const n = 1 << 20 // branches of fewer elements are computed both
	install(t, true)
	metal.SetBufferTime(t, 12*time.Microsecond)
	g, err := ir.Build("branch", func(b *ir.Builder) {
		x, at := b.Input("x", ir.F32, ir.N(n)), b.Input("at", ir.I32, ir.N(n))
		y := ops.Cond(b, b.Input("take", ir.Bool), []ir.Value{x, at}, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Take(b, in[0], ops.CheckIndex(b, in[1], ir.N(n), "at"), 0, "clip")}
		}, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{in[0]}
		})
		b.Output("y", y[0])
	})
	must(t, err)
	p := compile(t, metal.New(), g)
	if metal.Pieces(p) == 0 {
		t.Fatal("no kernel runs by pieces")
	}
	at := slices.Repeat([]int32{n}, n)
	for _, take := range []bool{false, true} {
		_, err := run(p, map[string]native.Tensor{"x": native.Zeros(ir.F32, n), "at": native.Int32s(at), "take": native.Bool(take)})
		if errors.Is(err, ir.ErrIndex) != take {
			t.Errorf("taken %t: %v", take, err)
		}
	}
}

func run(p native.Program, in map[string]native.Tensor) (map[string]native.Tensor, error) {
	ctx := context.Background()
	r, err := p.Run(ctx, "step", in)
	if err != nil {
		return nil, err
	}
	return r.Wait(ctx)
}

// A run queued after one that fails is lost only if it uses what that one was writing.
func TestIndependentQueuedRunsSucceedAfterFailure(t *testing.T) {
	install(t, false)
	t.Setenv("RLX_SOFTWARE_DELAY", "100000") // so that both are under way
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 2 1")
	ctx := context.Background()
	p, err := metal.New().Compile(ctx, training(t), native.Options{})
	must(t, err)
	defer func() { must(t, p.Close(ctx)) }()
	first, err := p.Run(ctx, "step", map[string]native.Tensor{"x": native.Zeros(ir.F32, 64, 64)})
	must(t, err)
	second, err := p.Run(ctx, "other", map[string]native.Tensor{"y": native.Zeros(ir.F32, 4)})
	must(t, err)
	var typed *native.Error
	if _, err := first.Wait(ctx); !errors.As(err, &typed) || typed.Kind != native.ErrDevice || typed.Steps != 1 {
		t.Errorf("the run that fails: %v", err)
	}
	if _, err := second.Wait(ctx); err != nil {
		t.Errorf("a run behind it: %v", err)
	}
}
