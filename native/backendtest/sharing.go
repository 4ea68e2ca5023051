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

// fairOrder checks fairness: while goroutines call a program endlessly, each call of
// another one ends within a few rounds.
func fairOrder(t *testing.T, b native.Backend) {
	const callers = 16
	p := counter(t, b)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	ended := make(chan error, callers)
	for i := range callers {
		all.Go(func() { ended <- callWithoutEnd(ctx, p, i%2 == 0) })
	}
	time.Sleep(10 * time.Millisecond) // until all are running
	for range 5 {
		if err := everyCall(ctx, p); err != nil {
			t.Error(err)
		}
	}
	// Each caller has at most one run without a waiter and one with, and a new call comes
	// after these.
	begun := time.Now()
	if err := p.Close(ctx); err != nil {
		t.Errorf("closing: %v", err)
	}
	if waited := time.Since(begun); waited > 5*time.Second {
		t.Errorf("closing took %v", waited)
	}
	all.Wait()
	close(ended)
	for err := range ended {
		if !errors.Is(err, native.ErrClosed) {
			t.Errorf("a caller ended with %v, want %v", err, native.ErrClosed)
		}
	}
}

// callWithoutEnd calls an entry in a loop and returns the first error.
func callWithoutEnd(ctx context.Context, p native.Program, boundMemory bool) error {
	in := map[string]native.Tensor{"x": native.Float32s([]float32{1, 2, 3}), "scale": native.Float32(1)}
	bound, err := p.Bind(ctx, "step", in, map[string]native.Tensor{"sum": native.Zeros(ir.F32, 3)})
	for err == nil {
		if boundMemory {
			if err = bound.Start(ctx); err == nil {
				err = bound.Wait(ctx)
			}
			continue
		}
		var r native.Run
		if r, err = p.Run(ctx, "step", in); err == nil {
			_, err = r.Wait(ctx)
		}
	}
	return err
}

// everyCall makes every kind of call to a program.
func everyCall(ctx context.Context, p native.Program) error {
	err := p.Set(ctx, "total", native.Float32s([]float32{4, 5, 6}))
	if err == nil {
		_, err = p.Get(ctx, "total")
	}
	if err == nil {
		_, err = p.GetAll(ctx)
	}
	if err != nil {
		return err
	}
	in := map[string]native.Tensor{"x": native.Float32s([]float32{1, 2, 3}), "scale": native.Float32(1)}
	bound, err := p.Bind(ctx, "step", in, map[string]native.Tensor{"sum": native.Zeros(ir.F32, 3)})
	if err != nil {
		return err
	}
	return errors.Join(bound.Start(ctx), bound.Wait(ctx), attempt(p, "peek", nil))
}

// atomicState checks that runs and writes of other goroutines are atomic: two states that
// are always written together read equal.
func atomicState(t *testing.T, b native.Backend) {
	p := compile(t, b, build(t, "both", func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		for _, name := range []string{"a", "b"} {
			b.SetState(name, ops.Add(b, b.State(name, ir.F32), x))
		}
	}))
	defer closeProgram(t, p)
	ctx := context.Background()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 20 {
				if err := attempt(p, "both", map[string]native.Tensor{"x": native.Float32(1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for k := range 20 {
			x := native.Float32(float32(1000 * k))
			if err := p.SetAll(ctx, map[string]native.Tensor{"a": x, "b": x}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		values, err := p.GetAll(ctx)
		if err != nil || len(values) != 2 {
			t.Fatalf("%v, %v", values, err)
		}
		if a, b := floats(t, values["a"]), floats(t, values["b"]); a[0] != b[0] {
			t.Errorf("read at one time: %v and %v", a, b)
		}
	}
	all.Wait()
	before, err := p.GetAll(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]native.Tensor{"b": native.Int32(1), "c": native.Float32(1)} {
		if err := p.SetAll(ctx, map[string]native.Tensor{"a": native.Float32(-1), name: bad}); err == nil {
			t.Errorf("%s is set to %s", name, bad)
		}
	}
	after, err := p.Get(ctx, "a")
	if err != nil || floats(t, after)[0] != floats(t, before["a"])[0] {
		t.Errorf("a write that was refused has changed %v to %v, %v", before["a"], after, err)
	}
}

// overlappingMemory binds outputs to memory of other tensors.
func overlappingMemory(t *testing.T, b native.Backend) {
	const n = 64
	p := compile(t, b, build(t, "twice", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(n))
		b.Output("y", ops.Add(b, x, ops.Reverse(b, x, 0)))
		b.Output("z", ops.Mul(b, x, b.Input("w", ir.F32, ir.N(n))))
	}))
	defer closeProgram(t, p)
	memory := make([]float32, 4*n)
	at := func(from int) native.Tensor { return native.Float32s(memory[from : from+n]) }
	for name, c := range map[string]struct {
		x, w, y, z   int
		output, with string
	}{
		"an output an element into its input": {0, 2 * n, 1, 3 * n, "y", "x"},
		"an output an element before it":      {n, 3 * n, n - 1, 2*n + 1, "y", "x"},
		"an output into another's input":      {0, 2 * n, n, 2*n + 3, "z", "w"},
		"two outputs":                         {0, n, 2 * n, 2*n + 5, "z", "y"},
		"two outputs in the same memory":      {0, n, 2 * n, 2 * n, "z", "y"},
	} {
		_, err := p.Bind(context.Background(), "twice",
			map[string]native.Tensor{"x": at(c.x), "w": at(c.w)}, map[string]native.Tensor{"y": at(c.y), "z": at(c.z)})
		var typed *native.Error
		var overlap *native.OverlapError
		if !errors.Is(err, native.ErrOverlap) || !errors.As(err, &typed) || typed.Backend != b.Name() || !errors.As(err, &overlap) ||
			(overlap.Output != c.output || overlap.With != c.with) && (overlap.Output != c.with || overlap.With != c.output) {
			t.Errorf("%s: %v, want %v of %q and %q", name, err, native.ErrOverlap, c.output, c.with)
		}
	}
	outputsInInputs(t, p, memory)
}

// outputsInInputs binds an output to exactly the memory of an input, and inputs to shared
// memory.
func outputsInInputs(t *testing.T, p native.Program, memory []float32) {
	ctx, n := context.Background(), len(memory)/4
	for i := range memory {
		memory[i] = float32(i)
	}
	x := native.Float32s(memory[:n])
	bound, err := p.Bind(ctx, "twice", map[string]native.Tensor{"x": x, "w": x}, map[string]native.Tensor{"y": x})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bound.Start(ctx), bound.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	for i, y := range memory[:n] {
		if y != float32(n-1) { // i + (n - 1 - i)
			t.Fatalf("element %d of an output in the memory of its input is %v, want %d", i, y, n-1)
		}
	}
}
