//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/cubin"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// Tests of everything in programs but the computation, with kernels that really run: inputs,
// outputs and states are where kernels expect them, and the status word is read.
func TestProgramsOnAFakeGPU(t *testing.T) {
	fake.Install(t, true)
	t.Setenv("RLX_FAKE_DELAY", "3") // work is not done at once
	b := cuda.New(0)
	t.Run("programs", func(t *testing.T) { backendtest.Programs(t, b) })
	t.Run("wrong input", func(t *testing.T) { backendtest.WrongInput(t, b) })
	t.Run("training", func(t *testing.T) { backendtest.Graphs(t, b) })
	t.Run("large maps", func(t *testing.T) { backendtest.LargeMaps(t, b) })
	t.Run("failures nobody waits for", func(t *testing.T) { silentFailure(t, b) })
	t.Run("large inputs", func(t *testing.T) { largeInputs(t, b) })
}

// largeInputs starts runs one after the other, each with inputs that are copied
// by a stream of their own, of several types and sizes.
func largeInputs(t *testing.T, b native.Backend) {
	ctx := context.Background()
	const rows, columns = 7, 5001
	g, err := ir.Build("large", func(b *ir.Builder) {
		x, mask, more := b.Input("x", ir.F32, ir.Dims(rows, columns)...), b.Input("mask", ir.Bool, ir.N(rows)), b.Input("more", ir.F32, ir.N(3))
		kept := ops.Select(b, ops.BroadcastInDim(b, mask, ir.Dims(rows, columns), []int{0}), x, ops.ZerosLike(b, x))
		sum := ops.Add(b, ops.ReduceSum(b, kept), ops.ReduceSum(b, more))
		b.SetState("total", ops.Add(b, b.State("total", ir.F32), sum))
		b.Output("sum", sum)
		b.Output("mask", ops.Not(b, mask))
	})
	must(t, err)
	p := compile(t, b, g)
	x, more := make([]float32, rows*columns), make([]float32, 3)
	mask := []bool{true, false, true, false, false, false, true}
	in := map[string]native.Tensor{"x": native.Float32s(x, rows, columns), "mask": native.Bools(mask), "more": native.Float32s(more)}
	var runs []native.Run
	want := float32(0)
	for k := range 8 {
		for i := range x {
			x[i] = float32(k)
		}
		more[2] = float32(k)
		r, err := p.Run(ctx, "step", in)
		must(t, err)
		runs = append(runs, r)
		want += float32(k * (3*columns + 1))
	}
	for k, r := range runs {
		out, err := r.Wait(ctx)
		must(t, err)
		sum, err := out["sum"].Float32s()
		must(t, err)
		if want := float32(k * (3*columns + 1)); sum[0] != want {
			t.Errorf("run %d: the sum is %v, not %v", k, sum[0], want)
		}
		if not, err := out["mask"].Bools(); err != nil || not[0] || !not[1] || not[6] {
			t.Errorf("run %d: the mask is %v, %v", k, not, err)
		}
	}
	total, err := p.Get(ctx, "total")
	must(t, err)
	if x, err := total.Float32s(); err != nil || x[0] != want {
		t.Errorf("the total is %v, not %v", x, want)
	}
}

// silentFailure lets a bound run without outputs fail on the device.
func silentFailure(t *testing.T, b native.Backend) {
	ctx := context.Background()
	g, err := ir.Build("pick", func(b *ir.Builder) {
		at := ops.CheckIndex(b, ops.Add(b, b.Input("at", ir.I32, ir.N(2)), ops.Const(b, ir.I32, 1)), ir.N(3), "at")
		b.SetState("sum", ops.Add(b, b.State("sum", ir.I32), ops.ReduceSum(b, at, 0)))
	})
	must(t, err)
	p := compile(t, b, g)
	at := []int32{0, 1}
	bound, err := p.Bind(ctx, "step", map[string]native.Tensor{"at": native.Int32s(at)}, nil)
	must(t, err)
	for i, x := range []int32{1, 7, 1} {
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
	if n, err := sum.Int32s(); err != nil || n[0] != 8 {
		t.Errorf("the sum is %v, not 8: the runs before and after count, the one that failed does not", n)
	}
	at[0] = 7
	must(t, bound.Start(ctx))
	for range 10 { // the fake is done after a few looks
		if err = bound.Wait(ctx); err != nil {
			break
		}
	}
	if !errors.Is(err, ir.ErrIndex) {
		t.Errorf("Wait after a run that failed: %v", err)
	}
	must(t, bound.Wait(ctx))
}

// looping is a graph with a loop in a loop, a checked index and a scalar.
func looping(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("looping", func(b *ir.Builder) {
		x, scale := b.State("x", ir.F32, ir.Dims(5, 300)...), b.Input("scale", ir.F32)
		labels := ops.CheckIndex(b, ops.Add(b, b.Input("labels", ir.I32, ir.N(5)), ops.Const(b, ir.I32, 0)), ir.N(300), "label")
		half := func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Sub(b, x, ops.Reshape(b, ops.ReduceSum(b, ops.MatMul(b, x, ops.Transpose(b, x, 1, 0)), 1), ir.Dims(5, 1)...))
		}
		outer, _ := ops.Scan(b, ops.Loop{
			Length: ir.N(3), Carries: []ir.Value{x},
			Body: func(b *ir.Builder, _, carries, _ []ir.Value) (next, ys []ir.Value) {
				inner, _ := ops.Scan(b, ops.Loop{
					Length: ir.N(2), Carries: carries,
					Body: func(b *ir.Builder, _, carries, _ []ir.Value) (next, ys []ir.Value) {
						return []ir.Value{half(b, carries[0])}, nil
					},
				})
				return inner, nil
			},
		})
		b.SetState("x", ops.Mul(b, outer[0], scale))
		b.Output("picked", ops.TakeAlongAxis(b, outer[0], ops.ExpandDims(b, labels, 1), 1, "fill"))
	})
	must(t, err)
	return g
}

// launches lists the kernels of steps in their order, loops written out.
func launches(p *plan.Plan, steps []plan.Step) []string {
	var out []string
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			out = append(out, fmt.Sprintf("run %s%s %d %d %d", cudacpp.Prefix, p.Kernels[s.Kernel].Name, s.Groups[0], s.Groups[1], s.Groups[2]))
		case *plan.Repeat:
			for i := range s.Count {
				out = append(out, launches(p, s.Iteration(i))...)
			}
		}
	}
	return out
}

func TestARunIsOneLaunchOfAllItsKernels(t *testing.T) {
	gpu, g := fake.Install(t, false), looping(t)
	backend := cuda.New(0)
	p := compile(t, backend, g)
	labels, scale, picked := make([]int32, 5), []float32{1}, make([]float32, 5)
	bound, err := p.Bind(context.Background(), "step",
		map[string]native.Tensor{"labels": native.Int32s(labels), "scale": {DType: ir.F32, Dims: []int{}, Data: native.Float32s(scale).Data}},
		map[string]native.Tensor{"picked": native.Float32s(picked, 5, 1)})
	must(t, err)
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
	must(t, err)
	_, target, err := cuda.Opened(backend)
	must(t, err)
	made, err := plan.Compile(m, target, cudacpp.Printer{})
	must(t, err)
	kernels := launches(made, made.Entries[0].Steps)
	if len(kernels) < 12 {
		t.Fatalf("the loops are gone: %v", kernels)
	}
	run := func() []string {
		gpu.Calls(t)
		must(t, bound.Start(context.Background()))
		must(t, bound.Wait(context.Background()))
		return slices.DeleteFunc(gpu.Calls(t), func(c string) bool { return c == "cuMemHostAlloc" || c == "cuEventCreate" })
	}
	after := append(slices.Concat([]string{"cuGraphLaunch", "clear 16"}, kernels), "cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery")
	for i, c := range []struct {
		scale float32
		calls []string
	}{
		{1, []string{"cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync"}},
		{1, []string{"cuMemcpyHtoDAsync"}}, // the device has the scalars
		{2, []string{"cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync"}},
	} {
		scale[0] = c.scale
		if got, want := run(), append(c.calls, after...); !slices.Equal(got, want) {
			t.Errorf("run %d makes the calls\n%s\nnot\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if n := testing.AllocsPerRun(20, func() {
		must(t, errors.Join(bound.Start(context.Background()), bound.Wait(context.Background())))
	}); n > 1 {
		t.Errorf("a run makes %v allocations", n)
	}
}

// A loop of very many launches, of more values than one kernel handles, is no CUDA graph.
func TestALongLoopIsLaunchedKernelByKernel(t *testing.T) {
	gpu := fake.Install(t, false)
	g, err := ir.Build("long", func(b *ir.Builder) {
		h, _ := ops.Scan(b, ops.Loop{
			Length: ir.N(20_000), Carries: []ir.Value{b.State("x", ir.F32, ir.N(1<<18))},
			Body: func(b *ir.Builder, _, carries, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.Add(b, carries[0], ops.ReduceSum(b, carries[0], 0))}, nil
			},
		})
		b.SetState("x", h[0])
	})
	must(t, err)
	p := compile(t, cuda.New(0), g)
	gpu.Calls(t)
	_, err = p.Run(context.Background(), "step", nil)
	must(t, err)
	launches := 0
	for _, c := range gpu.Calls(t) {
		switch c {
		case "cuLaunchKernel":
			launches++
		case "cuGraphLaunch":
			t.Error("a graph is launched")
		}
	}
	if want := cuda.Launches(p); launches != want || want < 40_000 {
		t.Errorf("%d launches, not %d", launches, want)
	}
}

// compilations counts the kernels that NVRTC compiled.
func compilations(t *testing.T, gpu *fake.GPU) int {
	n := 0
	for _, c := range gpu.Calls(t) {
		if strings.HasPrefix(c, "nvrtcCompileProgram") {
			n++
		}
	}
	return n
}

func TestKernelsAreCompiledOnceOnAMachine(t *testing.T) {
	gpu, g := fake.Install(t, false), looping(t)
	compile(t, cuda.New(0), g)
	first := compilations(t, gpu)
	if first < 2 {
		t.Fatalf("%d kernels were compiled", first)
	}
	compile(t, cuda.New(0), g)
	if n := compilations(t, gpu); n != 0 {
		t.Errorf("%d kernels were compiled again", n)
	}
	t.Setenv("RLX_FAKE_NVRTC", "14")
	compile(t, cuda.New(0), g)
	if n := compilations(t, gpu); n != first {
		t.Errorf("of %d kernels, a newer NVRTC compiled %d", first, n)
	}
	damaged := 0
	must(t, filepath.WalkDir(os.Getenv(cubin.Variable), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := os.ReadFile(path)
		damaged++
		return errors.Join(err, os.WriteFile(path, bytes.ReplaceAll(file, []byte("k_"), []byte("K_")), 0o644))
	}))
	if compile(t, cuda.New(0), g); damaged != 2*first {
		t.Errorf("%d files for %d kernels", damaged, 2*first)
	}
	if n := compilations(t, gpu); n != first {
		t.Errorf("of %d damaged kernels, %d were compiled again", first, n)
	}
}

func TestRefusedKernelIsNamed(t *testing.T) {
	fake.Install(t, false)
	t.Setenv("RLX_FAKE_REFUSE", "void")
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: running(t)})
	must(t, err)
	_, err = cuda.New(0).Compile(context.Background(), m, native.Options{})
	var typed *native.Error
	if !errors.As(err, &typed) || !errors.Is(err, native.ErrDevice) || !strings.Contains(err.Error(), "kernel map_add") || !strings.Contains(err.Error(), "kernel.cu(1): error") {
		t.Errorf("error %v", err)
	}
}

func TestOutOfMemoryRefusesOnlyTheNewProgram(t *testing.T) {
	gpu := fake.Install(t, false)
	t.Setenv("RLX_FAKE_MEMORY", "16000")
	b := cuda.New(0)
	p := compile(t, b, running(t))
	gpu.Calls(t) // those of the first program
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: running(t)})
	must(t, err)
	_, err = b.Compile(context.Background(), m, native.Options{})
	if !errors.Is(err, native.ErrMemory) || !strings.Contains(err.Error(), "takes 8.00 KiB") || !strings.Contains(err.Error(), "free on the device") {
		t.Errorf("a second program: %v", err)
	}
	calls := gpu.Calls(t)
	for made, freed := range map[string]string{"cuStreamCreate": "cuStreamDestroy", "cuEventCreate": "cuEventDestroy", "cuModuleLoadDataEx": "cuModuleUnload"} {
		count := func(name string) (n int) {
			for _, c := range calls {
				if c == name {
					n++
				}
			}
			return n
		}
		if a, b := count(made), count(freed); a != b {
			t.Errorf("%d calls of %s and %d of %s: what the second program made is not given back", a, made, b, freed)
		}
	}
	must(t, call(p))
	t.Setenv("RLX_FAKE_MEMORY", "")
	t.Setenv("RLX_FAKE_FAIL", "cuMemHostAlloc 2 1")
	other := compile(t, cuda.New(0), looping(t))
	if _, err := other.Run(context.Background(), "step", map[string]native.Tensor{"labels": native.Zeros(ir.I32, 5), "scale": native.Float32(1)}); !errors.Is(err, native.ErrMemory) {
		t.Errorf("no host memory: %v", err)
	}
	must(t, call(p))
}

func TestLostDeviceFailsAllPrograms(t *testing.T) {
	fake.Install(t, false)
	b := cuda.New(0)
	p, bystander := compile(t, b, running(t)), compile(t, b, running(t))
	must(t, call(p))
	t.Setenv("RLX_FAKE_FAIL", "cuEventQuery 700 1")
	var typed *native.Error
	if err := call(p); !errors.Is(err, native.ErrLost) || !errors.As(err, &typed) || typed.Steps != 2 || typed.Call != "step" || !strings.Contains(err.Error(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)") {
		t.Errorf("the run that fails: %v", err)
	}
	if err := call(bystander); !errors.Is(err, native.ErrLost) {
		t.Errorf("a run of another program: %v", err)
	}
	if _, err := p.Get(context.Background(), "total"); !errors.Is(err, native.ErrLost) {
		t.Errorf("reading a state: %v", err)
	}
	if err := b.Probe(); !errors.Is(err, native.ErrLost) {
		t.Errorf("the device: %v", err)
	}
}

func TestDebugModeNamesFailingKernel(t *testing.T) {
	fake.Install(t, false)
	t.Setenv("RLX_CUDA_DEBUG", "1")
	p := compile(t, cuda.New(0), running(t))
	t.Setenv("RLX_FAKE_FAIL", "cuStreamSynchronize 700 1")
	var e *driver.Error
	if err := call(p); !errors.Is(err, native.ErrLost) || !errors.As(err, &e) || e.Kernel != "map_add" {
		t.Errorf("error %v", err)
	}
}

func TestDevicesHaveNumbers(t *testing.T) {
	fake.Install(t, false)
	t.Setenv("RLX_FAKE_DEVICES", "2")
	second := cuda.New(1)
	must(t, second.Probe())
	if i := second.Info(); second.Name() != "cuda:1" || !strings.HasPrefix(i.Description, "Fake GPU 1, compute capability 9.0, driver for CUDA 13.0") || i.Memory != 1<<30 {
		t.Errorf("%s is %+v", second.Name(), i)
	}
	if err := cuda.New(2).Probe(); !errors.Is(err, native.ErrUnavailable) || !strings.Contains(err.Error(), "unknown device 2: the driver has 2") {
		t.Errorf("a third device: %v", err)
	}
	b, err := native.Lookup("cuda:1")
	must(t, err)
	if b.Name() != "cuda:1" {
		t.Errorf("cuda:1 is %s", b.Name())
	}
}

// Multiply-adds are for devices and compilers that have them, those of warp groups and
// those of warps, for products that are worth it, and for f32 on request; their shared
// memory comes with the launch.
func TestProductsUseMultiplyAddsWhereTheyPay(t *testing.T) {
	const groups, warps = "wgmma.mma_async", "mma.sync.aligned.m16n8k"
	for _, c := range []struct {
		name       string
		n          int
		dtype      ir.DType
		capability string
		nvrtc      string
		tf32       bool
		want       string
	}{
		{"bf16", 1024, ir.BF16, "90", "13", false, groups},
		{"f16", 1024, ir.F16, "90", "12.6", false, groups},
		{"bf16 by a compiler that takes minutes", 1024, ir.BF16, "90", "12.5", false, warps},
		{"a small product", 32, ir.BF16, "90", "13", false, ""},
		{"f32", 1024, ir.F32, "90", "13", false, ""},
		{"tf32", 1024, ir.F32, "90", "13", true, groups},
		{"bf16 on an A100", 1024, ir.BF16, "80", "12", false, warps},
		{"tf32 with little shared memory", 1024, ir.F32, "89", "12", true, warps},
		{"bf16 on a B200", 1024, ir.BF16, "100", "13", false, warps},
		{"bf16 before there were any", 1024, ir.BF16, "75", "12", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			gpu := fake.Install(t, false)
			t.Setenv("RLX_FAKE_NVRTC", c.nvrtc)
			t.Setenv("RLX_FAKE_CAPABILITY", c.capability)
			g, err := ir.Build("product", func(b *ir.Builder) {
				x, y := b.Input("x", c.dtype, ir.Dims(c.n, c.n)...), b.Input("y", c.dtype, ir.Dims(c.n, c.n)...)
				b.Output("z", ops.MatMul(b, x, y))
			})
			must(t, err)
			p := compileWith(t, cuda.New(0), g, native.Options{TF32: c.tf32})
			text := strings.Join(cuda.Sources(p), "")
			for _, way := range []string{groups, warps} {
				if got := strings.Contains(text, way); got != (way == c.want) {
					t.Errorf("%s: %t", way, got)
				}
			}
			if got := slices.Contains(gpu.Calls(t), "cuFuncSetAttribute"); got != (c.want != "") {
				t.Errorf("shared memory with the launch: %t", got)
			}
		})
	}
}

// TestResultsOfARowAreComputedBeforeTheFirstStore merges the results of two attentions by their log-sum-exps, as
// ring attention does, and differentiates the second: one kernel stores its softmax in the buffer of the scores,
// and the weights by the merged log-sum-exp, which are of the scores, too.
func TestResultsOfARowAreComputedBeforeTheFirstStore(t *testing.T) {
	fake.Install(t, true)
	g, err := ir.Build("merged", func(b *ir.Builder) {
		input := func(name string) ir.Value { return b.Input(name, ir.F32, ir.Dims(2, 64, 8)...) }
		q, k, v, k2, v2, do := input("q"), input("k"), input("v"), input("k2"), input("v2"), input("do")
		a := ops.AttentionAttrs{Scale: 0.35}
		y, lse := ops.AttentionForward(b, q, k, v, ir.Value{}, a)
		y2, lse2 := ops.AttentionForward(b, q, k2, v2, ir.Value{}, a)
		both := ops.LogAddExp(b, lse, lse2)
		weighted := func(y, lse ir.Value) ir.Value {
			share := ops.Exp(b, ops.Sub(b, lse, both))
			return ops.Mul(b, y, ops.BroadcastTo(b, ops.ExpandDims(b, share, -1), y.Shape()))
		}
		delta := ops.ReduceSum(b, ops.Mul(b, do, ops.Add(b, weighted(y, lse), weighted(y2, lse2))), -1)
		for i, d := range ops.AttentionBackward(b, ops.AttentionOperands{Q: q, K: k2, V: v2}, ops.AttentionResiduals{LSE: both, Delta: delta, DOut: do}, a) {
			b.Output(fmt.Sprint("d", i), d)
		}
	})
	must(t, err)
	compareOutputs(t, compile(t, cuda.New(0), g), g)
}
