package backendtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// counter compiles a program with a state: step adds x to total and returns the sum, peek
// returns twice the total as a parameter.
func counter(t *testing.T, b native.Backend) native.Program {
	t.Helper()
	step := build(t, "step", func(b *ir.Builder) {
		sum := ops.Add(b, b.State("total", ir.F32, ir.N(3)), b.Input("x", ir.F32, ir.N(3)))
		b.SetState("total", sum)
		b.Output("sum", ops.Mul(b, sum, b.Input("scale", ir.F32)))
	})
	peek := build(t, "peek", func(b *ir.Builder) {
		b.Output("twice", ops.Mul(b, b.Param("total", ir.F32, ir.N(3)), ops.Const(b, ir.F32, 2)))
	})
	return compile(t, b, step, peek)
}

// Programs checks programs beyond computing: state, entries, serial and concurrent runs,
// bound memory, closing.
func Programs(t *testing.T, b native.Backend) {
	ctx := context.Background()
	x := native.Float32s([]float32{1, 2, 3})
	in := map[string]native.Tensor{"x": x, "scale": native.Float32(10)}
	t.Run("state begins as zeros and is shared by entries", func(t *testing.T) {
		p := counter(t, b)
		defer closeProgram(t, p)
		for k := range 3 {
			r, err := p.Run(ctx, "step", in)
			n := float32(k + 1)
			if err := sameFloats(floats(t, wait(t, r, err)["sum"]), []float32{10 * n, 20 * n, 30 * n}); err != nil {
				t.Errorf("step %d: %v", k, err)
			}
		}
		r, err := p.Run(ctx, "peek", nil)
		if err := sameFloats(floats(t, wait(t, r, err)["twice"]), []float32{6, 12, 18}); err != nil {
			t.Error(err)
		}
	})
	t.Run("state is set and got", func(t *testing.T) {
		p := counter(t, b)
		defer closeProgram(t, p)
		if err := p.Set(ctx, "total", native.Float32s([]float32{4, 5, 6})); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(ctx, "step", in); err != nil {
			t.Fatal(err)
		}
		got, err := p.Get(ctx, "total")
		if err != nil {
			t.Fatal(err)
		}
		if err := sameFloats(floats(t, got), []float32{5, 7, 9}); err != nil {
			t.Error(err)
		}
	})
	t.Run("all state is got and set at one time", func(t *testing.T) { atomicState(t, b) })
	t.Run("programs share memory", func(t *testing.T) { sharedMemory(t, b) })
	t.Run("bound memory is read and written by every run", func(t *testing.T) { boundMemory(t, b) })
	t.Run("memory that overlaps is refused", func(t *testing.T) { overlappingMemory(t, b) })
	t.Run("runs from many goroutines take turns", func(t *testing.T) { manyRuns(t, b) })
	t.Run("sync waits for runs", func(t *testing.T) { syncs(t, b) })
	t.Run("a check takes what is compiled", func(t *testing.T) { checks(t, b) })
	t.Run("memory has a budget", func(t *testing.T) { memoryBudget(t, b) })
	t.Run("absurd sizes are refused", func(t *testing.T) { absurdSizes(t, b) })
	t.Run("calls without end keep nobody out", func(t *testing.T) { fairOrder(t, b) })
	t.Run("a context that is done gives up", func(t *testing.T) { cancelledRun(t, b, in) })
	t.Run("a context that is done gives up compiling and waiting", func(t *testing.T) { givenUp(t, b) })
	t.Run("a closed program says so", func(t *testing.T) { closedProgram(t, b, in) })
	t.Run("a run that is bound says that the program was closed", func(t *testing.T) { closedBeforeStart(t, b, in) })
}

// cancelledRun runs a program with a context that is done.
func cancelledRun(t *testing.T, b native.Backend, in map[string]native.Tensor) {
	ctx := context.Background()
	p := counter(t, b)
	defer closeProgram(t, p)
	done, cancel := context.WithCancel(ctx)
	cancel()
	r, err := p.Run(done, "step", in)
	if err == nil {
		_, err = r.Wait(ctx)
	}
	if !errors.Is(err, context.Canceled) || errors.Is(err, native.ErrDevice) {
		t.Errorf("error %v", err)
	}
}

// closedProgram uses a program after Close.
func closedProgram(t *testing.T, b native.Backend, in map[string]native.Tensor) {
	ctx, x := context.Background(), in["x"]
	p := counter(t, b)
	closeProgram(t, p)
	if _, err := p.Run(ctx, "step", in); !errors.Is(err, native.ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	if err := p.Set(ctx, "total", x); !errors.Is(err, native.ErrClosed) {
		t.Errorf("Set: %v", err)
	}
	if _, err := p.Get(ctx, "total"); !errors.Is(err, native.ErrClosed) {
		t.Errorf("Get: %v", err)
	}
	if err := p.SetAll(ctx, map[string]native.Tensor{"total": x}); !errors.Is(err, native.ErrClosed) {
		t.Errorf("SetAll: %v", err)
	}
	if _, err := p.GetAll(ctx); !errors.Is(err, native.ErrClosed) {
		t.Errorf("GetAll: %v", err)
	}
	if _, err := p.Bind(ctx, "step", in, nil); !errors.Is(err, native.ErrClosed) {
		t.Errorf("Bind: %v", err)
	}
	if len(p.Entries()) != 2 || len(p.Slots("step")) != 3 || len(p.Persistent()) != 1 {
		t.Error("a closed program does not know what it was")
	}
	if err := p.Close(ctx); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

// closedBeforeStart closes a program between Bind and Start.
func closedBeforeStart(t *testing.T, b native.Backend, in map[string]native.Tensor) {
	ctx := context.Background()
	p := counter(t, b)
	bound, err := p.Bind(ctx, "step", in, nil)
	if err != nil {
		t.Fatal(err)
	}
	closeProgram(t, p)
	if err := bound.Start(ctx); !errors.Is(err, native.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
}

// givenUp makes blocking calls with contexts that are cancelled or past their deadline.
func givenUp(t *testing.T, b native.Backend) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	p := counter(t, b)
	defer closeProgram(t, p)
	m, err := ir.NewModule("module", ir.Entry{Name: "one", Graph: build(t, "one", func(b *ir.Builder) {
		b.Output("y", b.Input("x", ir.F32))
	})})
	if err != nil {
		t.Fatal(err)
	}
	x := native.Float32s([]float32{1, 2, 3})
	bound, err := p.Bind(context.Background(), "step", map[string]native.Tensor{"x": x, "scale": native.Float32(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late} {
		_, compiling := b.Compile(ctx, m, native.Options{})
		for call, err := range map[string]error{"Compile": compiling, "Start": bound.Start(ctx)} {
			var typed *native.Error
			if !errors.As(err, &typed) || typed.Kind != kind || errors.Is(err, native.ErrDevice) {
				t.Errorf("%s: %v, want kind %v", call, err, kind)
			}
		}
	}
}

func boundMemory(t *testing.T, b native.Backend) {
	p := counter(t, b)
	defer closeProgram(t, p)
	x, scale, sum := []float32{1, 1, 1}, []float32{1}, make([]float32, 3)
	bound, err := p.Bind(context.Background(), "step",
		map[string]native.Tensor{"x": native.Float32s(x), "scale": {DType: ir.F32, Dims: []int{}, Data: native.Float32s(scale).Data}},
		map[string]native.Tensor{"sum": native.Float32s(sum)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ x, scale, want float32 }{{1, 1, 1}, {10, 2, 22}, {-4, 3, 21}} {
		x[1], scale[0] = c.x, c.scale
		if err := errors.Join(bound.Start(context.Background()), bound.Wait(context.Background())); err != nil {
			t.Fatal(err)
		}
		if !near(sum[1], c.want) {
			t.Errorf("with %v and %v: %v, want %v", c.x, c.scale, sum[1], c.want)
		}
	}
}

func manyRuns(t *testing.T, b native.Backend) {
	const goroutines, each = 4, 5
	p := counter(t, b)
	defer closeProgram(t, p)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				r, err := p.Run(context.Background(), "step", map[string]native.Tensor{
					"x": native.Float32s([]float32{1, 2, 3}), "scale": native.Float32(1),
				})
				if err == nil {
					_, err = r.Wait(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := p.Get(context.Background(), "total")
	if err != nil {
		t.Fatal(err)
	}
	if err := sameFloats(floats(t, got), []float32{20, 40, 60}); err != nil {
		t.Error(err)
	}
}
