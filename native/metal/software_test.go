//go:build cgo && linux

package metal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
	"github.com/rlx-go/rlx/native/metal/driver"
	"github.com/rlx-go/rlx/native/metal/msl"
	"github.com/rlx-go/rlx/native/metal/software"
)

// install makes the software device Metal's, with an empty cache, and at the end of the
// test looks that all of its objects were given back.
func install(t *testing.T, kernels bool) *software.Device {
	t.Helper()
	d := software.Install(t, kernels)
	t.Setenv(metal.CacheVariable, t.TempDir())
	before := max(d.Living(), 0) // -1 before the first test
	t.Cleanup(func() {
		for end := time.Now().Add(5 * time.Second); d.Living() > before && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // a command buffer goes when it has told that it is done
		}
		if n := d.Living() - before; n > 0 {
			t.Errorf("%d of Metal's objects were not given back", n)
		}
	})
	return d
}

func TestSoftwareDevicePassesTheSuite(t *testing.T) {
	install(t, true)
	t.Setenv("RLX_SOFTWARE_DELAY", "200") // work is not done at once
	backendtest.Run(t, metal.New())
}

// launches lists the kernels of steps in their order, loops written out.
func launches(p *plan.Plan, steps []plan.Step) []string {
	var out []string
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			out = append(out, fmt.Sprintf("run %s%s %d %d %d", msl.Prefix, p.Kernels[s.Kernel].Name, s.Groups[0], s.Groups[1], s.Groups[2]))
		case *plan.Repeat:
			for i := range s.Count {
				out = append(out, launches(p, s.Round(i))...)
			}
		}
	}
	return out
}

func TestARunIsOneCommandBufferOfAllItsKernels(t *testing.T) {
	gpu, g := install(t, false), looping(t)
	b := metal.New()
	p := compile(t, b, g)
	labels, scale, picked := make([]int32, 5), []float32{1}, make([]float32, 5)
	bound, err := p.Bind("step",
		map[string]native.Tensor{"labels": native.Int32s(labels), "scale": {DType: ir.F32, Dims: []int{}, Data: native.Float32s(scale).Data}},
		map[string]native.Tensor{"picked": native.Float32s(picked, 5, 1)})
	must(t, err)
	kernels := launches(metal.Plan(p), metal.Plan(p).Entries[0].Steps)
	if len(kernels) < 12 {
		t.Fatalf("the loops are gone: %v", kernels)
	}
	want := append(append([]string{"commit step"}, kernels...), "copy 20") // the output
	step := func() { must(t, errors.Join(bound.Start(context.Background()), bound.Wait(context.Background()))) }
	for range 3 {
		step() // the first runs allocate what they have of their own
	}
	for range 4 {
		gpu.Forget(t)
		step()
		if got := gpu.Calls(t); !slices.Equal(got, want) {
			t.Errorf("a run makes the calls\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	t.Setenv("RLX_SOFTWARE_LOG", "")
	if n := testing.AllocsPerRun(20, step); n > 4 {
		t.Errorf("a run makes %v allocations", n)
	}
}

// compilations counts the pipelines that were not in an archive.
func compilations(t *testing.T, gpu *software.Device) (made, found int) {
	for _, c := range gpu.Calls(t) {
		if strings.HasPrefix(c, "pipeline ") {
			made++
		}
		if strings.HasPrefix(c, "found ") {
			found++
		}
	}
	gpu.Forget(t)
	return made, found
}

func TestPipelinesAreCompiledOnceOnAMachine(t *testing.T) {
	gpu, g := install(t, false), looping(t)
	compile(t, metal.New(), g)
	first, _ := compilations(t, gpu)
	if first < 2 {
		t.Fatalf("%d kernels were compiled", first)
	}
	compile(t, metal.New(), g)
	if made, found := compilations(t, gpu); made != 0 || found != first {
		t.Errorf("of %d kernels %d were compiled again, %d found", first, made, found)
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv(metal.CacheVariable), "*"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	must(t, os.WriteFile(files[0], []byte("damaged"), 0o644))
	compile(t, metal.New(), g)
	if made, found := compilations(t, gpu); made != first || found != 0 {
		t.Errorf("of %d kernels in a damaged file %d were compiled, %d found", first, made, found)
	}
	compile(t, metal.New(), g)
	if made, found := compilations(t, gpu); made != 0 || found != first {
		t.Errorf("the damaged file was not written again: %d compiled, %d found", made, found)
	}
	t.Setenv(metal.CacheVariable, filepath.Join(files[0], "a folder in a file")) // cannot be
	compile(t, metal.New(), g)
	if made, _ := compilations(t, gpu); made != first {
		t.Errorf("without a cache %d kernels were compiled, not %d", made, first)
	}
}

func TestAKernelThatIsRefusedIsNamed(t *testing.T) {
	for name, setting := range map[string]string{"REFUSE": "void", "FAIL": "threads 1 1"} {
		t.Run(name, func(t *testing.T) {
			install(t, false)
			t.Setenv("RLX_SOFTWARE_"+name, setting)
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

func TestWhatDoesNotFitIsRefusedAndOthersGoOn(t *testing.T) {
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
	if _, err := build(b, g); !errors.Is(err, native.ErrMemory) || !strings.Contains(err.Error(), "takes 24064 bytes, and of the 49152 bytes of the device") {
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

func TestALostDeviceIsLostToAllPrograms(t *testing.T) {
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

// A command buffer that fails in the middle, of a timeout for one, has written what it
// has written.
func TestAProgramIsLostByARunThatFails(t *testing.T) {
	install(t, false)
	b := metal.New()
	p, bystander := compile(t, b, running(t)), compile(t, b, running(t))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 2 1")
	for _, what := range []string{"the run that fails", "the next one"} {
		if err := call(p); !errors.Is(err, native.ErrLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, call(bystander))
	must(t, b.Probe())
}

func TestKernelsAreWaitedForToFindTheOneThatFails(t *testing.T) {
	install(t, false)
	t.Setenv("RLX_METAL_DEBUG", "1")
	p := compile(t, metal.New(), running(t))
	t.Setenv("RLX_SOFTWARE_FAIL", "commit 3 1")
	var e *driver.Error
	if err := call(p); !errors.Is(err, native.ErrLost) || !errors.As(err, &e) || e.Kernel != "map_add" {
		t.Errorf("error %v", err)
	}
}

// A kernel that leaves its buffers is told; so the suite would tell of one.
func TestAKernelOutsideItsBuffersIsNamed(t *testing.T) {
	install(t, true)
	p := compile(t, metal.New(), running(t))
	metal.Cut(p)
	if err := call(p); !errors.Is(err, native.ErrLost) || !strings.Contains(err.Error(), "kernel k_map_add: element") {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	software.Install(t, false)
	for want, set := range map[string][2]string{
		"Software Metal is none of Apple's GPUs from the M1 on": {"RLX_SOFTWARE_FAMILY", "1005"},
		"Metal has no device":                            {"RLX_SOFTWARE_FAMILY", "0"},
		"there is no Metal on linux, on macOS alone":     {driver.LibraryVariable, ""},
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

// silentFailure lets a bound run without outputs fail on the device.
func TestARunNobodyWaitsForFails(t *testing.T) {
	install(t, true)
	ctx := context.Background()
	g, err := ir.Build("pick", func(b *ir.Builder) {
		at := ops.CheckIndex(b, ops.Add(b, b.Input("at", ir.I32, ir.N(2)), ops.Const(b, ir.I32, 1)), ir.N(3), "at")
		b.SetState("sum", ops.Add(b, b.State("sum", ir.I32), ops.ReduceSum(b, at, 0)))
	})
	must(t, err)
	p := compile(t, metal.New(), g)
	at := []int32{0, 1}
	bound, err := p.Bind("step", map[string]native.Tensor{"at": native.Int32s(at)}, nil)
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
