//go:build cgo && linux

package metal_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/internal/metal/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal"
)

func TestRefusedKernelIsNamed(t *testing.T) {
	for _, c := range [][2]string{{"REFUSE", "void"}, {"FAIL", "threads 1 1"}, {"FAIL", "width 16 1"}} {
		t.Run(c[1], func(t *testing.T) {
			install(t, false)
			t.Setenv("RLX_SOFTWARE_"+c[0], c[1])
			_, err := build(metal.New(), running(t))
			var typed *native.Error
			if !errors.As(err, &typed) || !errors.Is(err, native.ErrDevice) || typed.Call != "compile" || !strings.Contains(err.Error(), "kernel map_add: refused by the compiler") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("by clang", func(t *testing.T) {
		install(t, true)
		t.Setenv("RLX_SOFTWARE_FLAGS", os.Getenv("RLX_SOFTWARE_FLAGS")+" -Dk_map_add=0")
		if _, err := build(metal.New(), running(t)); !errors.Is(err, native.ErrDevice) || !strings.Contains(err.Error(), "k_map_add:") {
			t.Errorf("error %v", err)
		}
	})
}

func TestOutOfMemoryRefusesOnlyTheNewProgram(t *testing.T) {
	install(t, false)
	t.Setenv("RLX_SOFTWARE_MEMORY", "40960")
	p := compile(t, metal.New(), running(t))
	g, err := ir.Build("large", func(b *ir.Builder) {
		b.SetState("x", ops.Add(b, b.State("x", ir.F32, ir.N(6000)), b.Input("y", ir.F32)))
	})
	must(t, err)
	if _, err := build(metal.New(), g); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("more than the longest buffer: %v", err)
	}
	t.Setenv("RLX_SOFTWARE_MEMORY", "49152")
	b := metal.New()
	compile(t, b, g)
	if _, err := build(b, g); !errors.Is(err, native.ErrMemory) || !strings.Contains(err.Error(), "takes 24064 bytes; the device has 20992 of 49152 bytes free") {
		t.Errorf("a third program: %v", err)
	}
	t.Setenv("RLX_SOFTWARE_MEMORY", "")
	t.Setenv("RLX_SOFTWARE_FAIL", "newHeap 1 1")
	if err := call(p); !errors.Is(err, native.ErrMemory) {
		t.Errorf("no memory for inputs and outputs: %v", err)
	}
	must(t, call(p))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 8 1")
	if err := call(p); !errors.Is(err, native.ErrMemory) {
		t.Errorf("no memory while it runs: %v", err)
	}
	must(t, call(p))
}

func TestLostDeviceFailsAllPrograms(t *testing.T) {
	install(t, false)
	b := metal.New()
	p, bystander := compile(t, b, running(t)), compile(t, b, running(t))
	must(t, call(p))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 11 1")
	var typed *native.Error
	if err := call(p); !errors.Is(err, native.ErrLost) || !errors.As(err, &typed) || typed.Steps != 2 || typed.Call != "step" || !strings.Contains(err.Error(), "(11)") {
		t.Errorf("the run that fails: %v", err)
	}
	for name, err := range map[string]error{"another program": call(bystander), "the device": b.Probe()} {
		if !errors.Is(err, native.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.Get(context.Background(), "total"); !errors.Is(err, native.ErrLost) {
		t.Errorf("reading a state: %v", err)
	}
}

// A command buffer that fails in the middle, for example by a timeout, keeps what it has written:
// the program is not lost, but the states that it was writing must be set again.
func TestMidRunFailureMarksStatesInvalid(t *testing.T) {
	install(t, false)
	ctx, b := context.Background(), metal.New()
	p, bystander := compile(t, b, running(t)), compile(t, b, running(t))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 2 1")
	var typed *native.Error
	if err := call(p); !errors.Is(err, native.ErrDevice) || !errors.As(err, &typed) || typed.Steps != 1 || typed.Call != "step" || !strings.Contains(err.Error(), "total may be partly written") {
		t.Errorf("the run that fails: %v", err)
	}
	_, got := p.Get(ctx, "total")
	_, all := p.GetAll(ctx)
	for what, err := range map[string]error{"the next run": call(p), "reading the state": got, "reading all": all} {
		if !errors.Is(err, native.ErrDevice) || !errors.As(err, &typed) || typed.Name != "total" {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, call(bystander))
	must(t, b.Probe())
	must(t, p.Set(ctx, "total", native.Zeros(ir.F32, 1000)))
	must(t, call(p))
	_, err := p.Get(ctx, "total")
	must(t, err)
}

// Runs queued after one that fails have read its results.
func TestQueuedRunsFailAfterFailure(t *testing.T) {
	install(t, false)
	t.Setenv("RLX_SOFTWARE_DELAY", "100000") // so that all are under way
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 2 2")
	p := compile(t, metal.New(), running(t))
	var runs [3]native.Run
	for i := range runs {
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Zeros(ir.F32, 1000)})
		must(t, err)
		runs[i] = r
	}
	_, err := runs[0].Wait(context.Background())
	must(t, err)
	for i, want := range []string{"run 2 is lost with 1 queued after it", "run 3 is lost because run 2 before it failed"} {
		var typed *native.Error
		if _, err := runs[1+i].Wait(context.Background()); !errors.Is(err, native.ErrDevice) || !errors.As(err, &typed) || typed.Steps != 2-i || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
	}
}

func TestDebugModeNamesFailingKernel(t *testing.T) {
	install(t, false)
	t.Setenv("RLX_METAL_DEBUG", "1")
	p := compile(t, metal.New(), running(t))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 3 1")
	var e *driver.Error
	if err := call(p); !errors.Is(err, native.ErrDevice) || !errors.As(err, &e) || e.Kernel != "map_add" {
		t.Errorf("error %v", err)
	}
}

// An access outside a buffer is an error, in the suite too.
func TestAKernelOutsideItsBuffersIsNamed(t *testing.T) {
	install(t, true)
	p := compile(t, metal.New(), running(t))
	metal.Cut(p)
	if err := call(p); !errors.Is(err, native.ErrDevice) || !strings.Contains(err.Error(), "kernel k_map_add: element") {
		t.Errorf("error %v", err)
	}
}

func TestMissingDriverErrorNamesTheReason(t *testing.T) {
	software.Install(t, false)
	for want, set := range map[string][2]string{
		"the device is Software Metal; an Apple GPU, M1 or later, is required": {"RLX_SOFTWARE_FAMILY", "1005"},
		"Metal has no device":                             {"RLX_SOFTWARE_FAMILY", "0"},
		"the system is linux; Metal needs macOS":          {driver.LibraryVariable, ""},
		"/nowhere (from $" + driver.LibraryVariable + ")": {driver.LibraryVariable, "/nowhere"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Setenv(set[0], set[1])
			b := metal.New()
			_, failed := build(b, running(t))
			for _, err := range []error{b.Probe(), failed} {
				var typed *native.Error
				if !errors.Is(err, native.ErrUnavailable) || !errors.As(err, &typed) || typed.Backend != "metal" || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}

// A bound run without outputs fails on the device.
func TestFailureOfUnawaitedRunIsReported(t *testing.T) {
	install(t, true)
	ctx := context.Background()
	g, err := ir.Build("pick", func(b *ir.Builder) {
		at := ops.CheckIndex(b, ops.Add(b, b.Input("at", ir.I32, ir.N(2)), ops.Const(b, ir.I32, 1)), ir.N(3), "at")
		b.SetState("sum", ops.Add(b, b.State("sum", ir.I32), ops.ReduceSum(b, at, 0)))
	})
	must(t, err)
	p := compile(t, metal.New(), g)
	at := []int32{0, 1}
	bound, err := p.Bind(ctx, "step", map[string]native.Tensor{"at": native.Int32s(at)}, nil)
	must(t, err)
	for i, x := range []int32{1, 7, 1, 1, 1} {
		at[0] = x
		if err := bound.Start(ctx); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
	if _, err := p.Get(ctx, "sum"); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("Get after a run that failed: %v", err)
	}
	sum, err := p.Get(ctx, "sum")
	must(t, err)
	if n, err := sum.Int32s(); err != nil || n[0] != 16 {
		t.Errorf("the sum is %v, not 16: the runs before and after count, the one that failed does not", n)
	}
}
