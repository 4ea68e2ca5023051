//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// capabilities are the compute capabilities of NVIDIA's GPUs since Volta.
var capabilities = []int{70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121}

// nvrtc is an NVRTC of NVIDIA's.
type nvrtc struct{ dir, version string }

// nvrtcs returns the NVRTCs installed in folders of $RLX_NVRTC, one each, by version. Without any,
// the test fails if RLX_REQUIRE names nvrtc, and is skipped otherwise.
func nvrtcs(t *testing.T) (out []nvrtc) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("RLX_NVRTC"), "*", "nvidia", "*", "lib"))
	if err == nil && (len(found) == 0 || os.Getenv("RLX_NVRTC") == "") {
		err = errors.New("$RLX_NVRTC names no folder of NVRTCs: make test-nvrtc does")
	}
	backendtest.Require(t, "nvrtc", err)
	for _, dir := range found {
		version := strings.Split(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(dir)))), ".")
		out = append(out, nvrtc{dir, strings.Join(version[:2], ".")})
	}
	return out
}

// TestNVRTCCompilesKernels compiles kernels with NVIDIA's compilers on a fake GPU. The last compiler
// compiles the kernels that depend on the compute capability for each, [large] ones for each generation
// of GPUs; the first compiles each source once, and those between take turns, one for each capability. The
// kernels of all ops are divided
// between the first compiler (for the oldest GPU) and the last (for the newest); see [dividedOps].
// With RLX_NVRTC_WHOLE all compile those of all ops for all. Unsupported capabilities are refused
// when the device is opened.
func TestNVRTCCompilesKernels(t *testing.T) {
	all := nvrtcs(t)
	fake.Install(t, false)
	alone := t.TempDir()
	fake.Libraries(t, alone)
	every := os.Getenv("RLX_NVRTC_WHOLE") != ""
	var jobs []job
	plans := map[string]map[string]string{} // sources by the target that they are for
	compiled := map[string]bool{}           // sources by compiler, and by options where these matter
	for i, n := range all {
		last := i == len(all)-1
		for k, capability := range capabilities {
			name := fmt.Sprintf("NVRTC %s for compute capability %d.%d", n.version, capability/10, capability%10)
			d, target := openWith(t, alone, n, capability, name)
			if d == nil {
				continue
			}
			jobs = append(jobs, conditionJob(name, n, d.Compiler))
			if between := i > 0 && !last; between && !every && k%(len(all)-2) != i-1 {
				continue
			}
			key := fmt.Sprintf("%+v", target)
			if plans[key] == nil {
				plans[key] = kernelsFor(t, target)
			}
			sources := maps.Clone(plans[key])
			switch {
			case every:
				maps.Copy(sources, dividedOps(plansOfOps(t, target), 0, 1))
			case i == 0 && capability == capabilities[0]:
				maps.Copy(sources, dividedOps(plansOfOps(t, target), 0, 2))
			case last && capability == capabilities[len(capabilities)-1]:
				maps.Copy(sources, dividedOps(plansOfOps(t, target), 1, 2))
			}
			for kernels, source := range sources {
				options := cudacpp.Options(d.Compiler.Code.Architecture(d.HasWgmma()))
				once := fmt.Sprint(n.version, source)
				switch {
				case every, last && !large[kernels]:
					once = fmt.Sprint(once, d.Compiler.Code, options) // GPUs that a compiler does not know share code
				case last:
					once = fmt.Sprint(once, capability/10, d.Compiler.Code.PTX, d.HasWgmma())
				}
				if compiled[once] {
					continue
				}
				compiled[once] = true
				jobs = append(jobs, job{name + ": " + kernels, func() error {
					_, err := d.Compiler.Compile(source, d.Compiler.Code, options...)
					return err
				}})
			}
		}
	}
	t.Logf("%d compilations by %d compilers", len(jobs), len(all))
	runJobs(t, jobs)
}

// large names the sources of [kernelsFor] that take longest. Later GPUs of a generation have all instructions of the
// first, and as many registers.
var large = map[string]bool{"packed": true, "multiply_f32": true, "multiply_bf16": true}

// known matches what one compiler may know and another not: functions that are called, and assembly.
var known = regexp.MustCompile(`[A-Za-z_]\w*\(|"[^"]+"`)

// atOnce is the length of the sources of ops, in bytes: a compiler takes up to 0.1 s for any.
const atOnce = 1 << 16

// opPlans are the plans of an op's samples.
type opPlans struct {
	name  string
	plans []*plan.Plan
}

// dividedOps returns sources with the kernels of every step-th op, beginning with one, and those kernels that
// call the remaining functions or contain the remaining assembly of all ops. A compiler that lacks a
// function or an instruction fails as it would for all ops; each op is compiled by one compiler.
func dividedOps(all []opPlans, from, step int) map[string]string {
	out, seen := map[string]string{}, map[string]bool{}
	var text clang.Batch
	names := ""
	take := func() {
		if text.Len() > 0 {
			out[names] = text.Take()
		}
		names = ""
	}
	add := func(name string, i int, p *plan.Plan) {
		text.Add(fmt.Sprintf("%s_%d", name, i), cudacpp.Prefix, p)
		for _, k := range p.Kernels {
			for _, w := range knownTo(k) {
				seen[w] = true
			}
		}
	}
	for i := from; i < len(all); i += step {
		for j, p := range all[i].plans {
			add(all[i].name, j, p)
		}
		if names += " " + all[i].name; text.Len() > atOnce {
			take()
		}
	}
	take()
	var others []plan.Kernel
	for _, op := range all {
		for _, p := range op.plans {
			others = append(others, p.Kernels...)
		}
	}
	slices.SortStableFunc(others, func(a, b plan.Kernel) int { return len(a.Source) - len(b.Source) })
	for i, k := range others {
		if slices.ContainsFunc(knownTo(k), func(w string) bool { return !seen[w] }) {
			add("other", i, &plan.Plan{Kernels: []plan.Kernel{k}})
		}
	}
	names = " others"
	take()
	return out
}

// knownTo returns what a kernel needs its compiler to know: see [known].
func knownTo(k plan.Kernel) []string {
	return known.FindAllString(strings.Replace(k.Source, cudacpp.Prefix+k.Name+"(", "", 1), -1)
}

// openWith opens a fake GPU, with one compiler; nil where that is refused, which
// it is for capabilities that the compiler no longer supports.
func openWith(t *testing.T, alone string, n nvrtc, capability int, name string) (*driver.Device, plan.Target) {
	t.Helper()
	t.Setenv(driver.PathVariable, alone+":"+n.dir)
	t.Setenv("RLX_FAKE_CAPABILITY", fmt.Sprint(capability))
	var major, minor int
	_, err := fmt.Sscanf(n.version, "%d.%d", &major, &minor)
	must(t, err)
	t.Setenv("RLX_FAKE_VERSION", fmt.Sprint(1000*major+10*minor))
	d, target, err := cuda.Opened(cuda.New(0))
	gone := capability < 75 && major >= 13
	switch {
	case gone && err == nil && strings.HasPrefix(d.Compiler.Path, n.dir):
		t.Errorf("%s is not refused", name)
	case gone && err == nil:
		return nil, target // this machine has another compiler, which knows the GPU
	case gone && (!errors.Is(err, native.ErrUnavailable) || !strings.Contains(err.Error(), "install NVRTC 12.0 to 12.9")):
		t.Errorf("%s is refused by %v", name, err)
	case !gone && err != nil:
		t.Errorf("%s is refused: %v", name, err)
	}
	if err != nil {
		return nil, target
	}
	target.TF32 = true
	return d, target
}

// longest is the maximum processor time of a compilation. None takes more than 7 s on an idle core;
// compiler bugs took minutes.
const longest = 45 * time.Second

// job is a compilation.
type job struct {
	name string
	do   func() error
}

// runJobs does jobs on all cores. Those of one compiler take turns in it, so that
// neighbours are of different ones.
func runJobs(t *testing.T, jobs []job) {
	slices.SortStableFunc(jobs, func(a, b job) int { return strings.Compare(a.name[len("NVRTC 12.0"):], b.name[len("NVRTC 12.0"):]) })
	next := make(chan job)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			runtime.LockOSThread() // NVRTC compiles in the thread that calls it
			defer runtime.UnlockOSThread()
			for j := range next {
				begun := threadTime(t)
				err := j.do()
				if took := threadTime(t) - begun; took > longest {
					t.Errorf("%s: compiling took %v", j.name, took)
				}
				if err != nil {
					t.Errorf("%s: %v", j.name, err)
				}
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	workers.Wait()
}

// threadTime returns the processor time that the thread has used.
func threadTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &used); err != nil {
		t.Error(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// conditionJob compiles the kernel that sets conditions as programs do: by compilers before
// 12.3, which lack the function that it calls, to PTX.
func conditionJob(name string, n nvrtc, c *driver.Compiler) job {
	code := c.Code
	code.PTX = code.PTX || slices.Contains([]string{"12.0", "12.1", "12.2"}, n.version)
	return job{name + ": " + driver.ConditionName, func() error {
		_, err := c.Compile(driver.ConditionSource, code, cudacpp.Options(code.Architecture(false))...)
		return err
	}}
}

// kernelsFor returns sources that depend on the target: the golden kernels, products, attention and a network.
func kernelsFor(t *testing.T, target plan.Target) map[string]string {
	t.Helper()
	printer := cudacpp.Printer{WarpMMA: target.MmaByWarps}
	cases := slices.Concat(kerneltest.Cases(), kerneltest.Wide(), kerneltest.AtomicFloats())
	if target.TensorMaps {
		cases = append(cases, kerneltest.Relays()...)
	}
	var golden []*plan.Plan
	for _, c := range cases {
		source, err := printer.Print(c.Kernel)
		must(t, err)
		golden = append(golden, &plan.Plan{Kernels: []plan.Kernel{{Name: c.Kernel.Name, Source: source}}})
	}
	out := map[string]string{driver.FillName: driver.FillSource, "golden": joined("golden", golden)}
	for _, d := range []ir.DType{ir.F32, ir.BF16} {
		p, err := planned("multiply", multiplying(t, d), target)
		must(t, err)
		name := "multiply_" + d.String()
		out[name] = joined(name, []*plan.Plan{p})
	}
	out["packed"] = joined("packed", packed(t, target))
	if copies := strings.Contains(out["packed"], "cp.async"); copies != target.Mma {
		t.Errorf("rows of packed weights are copied asynchronously: %v, where multiply-adds are %v", copies, target.Mma)
	}
	loss, err := irtest.MLP(8, 20, 16, 10)
	p, err := planned("step", step(t, loss, err), target)
	must(t, err)
	out["step"] = joined("step", []*plan.Plan{p})
	return out
}

// plansOfOps returns the plans of all samples of each op that has some, in the order of the ops' names.
func plansOfOps(t *testing.T, target plan.Target) (out []opPlans) {
	t.Helper()
	for _, op := range slices.Sorted(slices.Values(ir.Ops())) {
		def, _ := ir.Lookup(op)
		var plans []*plan.Plan
		for _, s := range samplesOf(def) {
			g, _, err := irtest.SampleGraph(op, s)
			must(t, err)
			if p, err := planned("sample", g, target); !unsupported(g) {
				must(t, err)
				plans = append(plans, p)
			}
		}
		if len(plans) > 0 {
			out = append(out, opPlans{strings.ReplaceAll(string(op), ".", "_"), plans})
		}
	}
	return out
}

// planned compiles a graph for a target.
func planned(name string, g *ir.Graph, target plan.Target) (*plan.Plan, error) {
	m, err := ir.NewModule(name, ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return nil, err
	}
	return plan.Compile(m, target, cudacpp.Printer{WarpMMA: target.MmaByWarps})
}

// joined returns the kernels of plans in one source, with distinct names.
func joined(name string, plans []*plan.Plan) string {
	var all clang.Batch
	for i, p := range plans {
		all.Add(fmt.Sprintf("%s_%d", name, i), cudacpp.Prefix, p)
	}
	return all.String()
}

// samplesOf returns the samples of an op that has some.
func samplesOf(d *ir.Def) []ir.Sample {
	if d.Samples == nil {
		return nil
	}
	return d.Samples()
}

// unsupported reports whether a graph has types that CUDA's printer lacks.
func unsupported(g *ir.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Types(), func(t ir.Type) bool { return t.DType.On(dtype.CUDA) == dtype.Unsupported })
	})
}

// packed returns products of one row and of several with weights of three formats, which are copied asynchronously where
// the target can.
func packed(t *testing.T, target plan.Target) (plans []*plan.Plan) {
	t.Helper()
	for _, format := range []string{"q8_0", "q4_k", "q6_k"} {
		plans = append(plans, packedProduct(t, target, format, 1, 32000), packedProduct(t, target, format, 12, 1024))
	}
	return plans
}

// packedProduct returns a product of rows of activations of 8 bits with packed weights.
func packedProduct(t *testing.T, target plan.Target, format string, rows, columns int) *plan.Plan {
	t.Helper()
	const elements = 4096
	g, err := ir.Build("packed", func(b *ir.Builder) {
		each, bytes, _ := ops.PackedBlock(format)
		x, w := b.Input("x", ir.F32, ir.Dims(rows, elements)...), b.Param("w", ir.U8, ir.Dims(columns, elements/each*bytes)...)
		b.Output("y", ops.QuantizedMatMul8(b, x, w, format))
	})
	must(t, err)
	p, err := planned("packed", g, target)
	must(t, err)
	return p
}

// multiplying is a graph of a product and of attention, which are computed by multiply-adds
// of a type where the target has them.
func multiplying(t *testing.T, d ir.DType) *ir.Graph {
	t.Helper()
	g, err := ir.Build("multiply", func(b *ir.Builder) {
		b.Output("z", ops.MatMul(b, b.Input("x", d, ir.Dims(1024, 1024)...), b.Input("y", d, ir.Dims(1024, 1024)...)))
		head := func(name string) ir.Value { return b.Input(name, d, ir.Dims(64, 512, 64)...) }
		out, _ := ops.AttentionForward(b, head("q"), head("k"), head("v"), ir.Value{}, ops.AttentionAttrs{Scale: 0.1, Causal: true})
		b.Output("out", out)
	})
	must(t, err)
	return g
}
