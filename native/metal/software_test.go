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

	"github.com/rlx-go/rlx/demo"
	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/metal/software"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/metal"
)

// install makes the software device Metal's, with an empty cache, and at the end of the
// test looks that all of its objects were given back.
func install(t testing.TB, kernels bool) *software.Device {
	t.Helper()
	d := software.Install(t, kernels)
	t.Setenv(metal.CacheVariable, t.TempDir())
	before := max(d.Living(), 0) // -1 before the first test
	t.Cleanup(func() {
		for end := time.Now().Add(5 * time.Second); d.Living() > before && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // a command buffer is released after its completion handler
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

func TestProductsByFragments(t *testing.T) {
	for _, bfloat := range []bool{false, true} {
		t.Run(fmt.Sprintf("bfloat %t", bfloat), func(t *testing.T) {
			install(t, true)
			if !bfloat {
				t.Setenv("RLX_SOFTWARE_BFLOAT", "0")
			}
			if b := metal.New(); metal.HasBFloat(b) == bfloat {
				checkFragments(t, b)
			} else {
				t.Errorf("the device has bfloat: %t", !bfloat)
			}
		})
	}
}

// optimizeKernels has clang optimise the kernels of a test, where few of them run for long.
func optimizeKernels(t *testing.T) {
	t.Helper()
	const flags = "RLX_SOFTWARE_FLAGS"
	t.Setenv(flags, strings.Replace(os.Getenv(flags), "-O0", "-O1", 1))
}

func TestAttentionByFragments(t *testing.T) {
	install(t, true)
	optimizeKernels(t)
	checkAttention(t, metal.New())
}

// The benchmarks for Macs compile, and their products and attention use fragments.
func TestJobsCompile(t *testing.T) {
	for _, job := range jobs {
		g, err := job.graph()
		must(t, err)
		m, err := ir.NewModule("job", ir.Entry{Name: "step", Graph: g})
		must(t, err)
		p, err := plan.Compile(m, metal.Target(), msl.Printer{})
		must(t, err)
		products := strings.HasPrefix(job.name, "matmul") || strings.HasPrefix(job.name, "attention") || strings.HasPrefix(job.name, "MLP")
		if slices.ContainsFunc(p.Kernels, metal.UsesFragments) != products {
			t.Errorf("%s: that it has fragments is %t", job.name, !products)
		}
	}
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
				out = append(out, launches(p, s.Iteration(i))...)
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
	bound, err := p.Bind(context.Background(), "step",
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
		step() // the first runs allocate their buffers
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

// Reading the results of a run waits for that run, not for later ones.
func TestReadWaitsOnlyForItsRun(t *testing.T) {
	gpu := install(t, false)
	p := compile(t, metal.New(), running(t))
	must(t, call(p))
	gpu.Forget(t)
	t.Setenv("RLX_SOFTWARE_DELAY", "700000") // time of a command buffer: long compared to the test's own work
	var runs [2]native.Run
	for i := range runs {
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"x": native.Zeros(ir.F32, 1000)})
		must(t, err)
		runs[i] = r
	}
	done := func() (n int) {
		for _, c := range gpu.Calls(t) {
			if strings.HasPrefix(c, "run ") {
				n++
			}
		}
		return n
	}
	for i, r := range runs {
		_, err := r.Wait(context.Background())
		must(t, err)
		if n := done(); n != i+1 {
			t.Errorf("run %d was read when %d were done", i+1, n)
		}
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

func TestTrainingReachesExpectedAccuracy(t *testing.T) {
	install(t, true)
	optimizeKernels(t)
	b := metal.New()
	for name, steps := range map[string]int{"mlp": 50, "cnn": 2} {
		if testing.Short() && name == "cnn" {
			continue
		}
		t.Run(name, func(t *testing.T) { demo.Digits(t, b, name, steps) })
	}
}
