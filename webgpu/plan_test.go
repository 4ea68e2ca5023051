//go:build cgo && !js

package webgpu

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
)

var ctx = context.Background()

type tensors = map[string]native.Tensor

// open opens the device, or skips the test where none is there and none was asked for.
func open(t testing.TB) *device {
	t.Helper()
	dev, err := the.device()
	backendtest.Require(t, Name, err)
	return dev
}

// encoded returns a source of a plan file.
func encoded(t testing.TB, p *plan.Plan) source {
	t.Helper()
	file, err := plan.Encode(p)
	must(t, err)
	return fromFile(file)
}

func load(t testing.TB, from source) *program {
	t.Helper()
	open(t)
	p, err := the.open(ctx, "open", native.Options{}, nil, from)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close(ctx)) })
	return p.(*program)
}

func linear(t testing.TB) *program { return load(t, encoded(t, plantest.Linear())) }

func floats(x []float32, dims ...int) native.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return native.Tensor{DType: dtype.F32, Dims: dims, Data: data}
}

func ints(dt dtype.DType, x []int32, dims ...int) native.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return native.Tensor{DType: dt, Dims: dims, Data: data}
}

func asFloats(t native.Tensor) []float64 {
	out := make([]float64, len(t.Data)/4)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:])))
	}
	return out
}

func asUints(t native.Tensor) []uint32 {
	out := make([]uint32, len(t.Data)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(t.Data[4*i:])
	}
	return out
}

func near(got, want []float64, tolerance float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) })
}

// batch returns x f32[4,3] and t = x·(1, -2, 3).
func batch(i int) (x, t []float32) {
	for k := range 12 {
		x = append(x, float32(math.Sin(float64(7*i+3*k+1))))
	}
	for r := range 4 {
		t = append(t, x[3*r]-2*x[3*r+1]+3*x[3*r+2])
	}
	return x, t
}

// reference makes the plan's step in float64 and returns the loss.
func reference(w []float64, x, t []float32, rate float64) float64 {
	loss, g := 0.0, [3]float64{}
	for r := range 4 {
		d := -float64(t[r])
		for k := range 3 {
			d += float64(x[3*r+k]) * w[k]
		}
		loss += d * d / 4
		for k := range 3 {
			g[k] += d * float64(x[3*r+k]) / 2
		}
	}
	for k := range 3 {
		w[k] -= rate * g[k]
	}
	return loss
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, p *program, entry string, in tensors) tensors {
	t.Helper()
	r, err := p.Run(ctx, entry, in)
	must(t, err)
	out, err := r.Wait(ctx)
	must(t, err)
	return out
}

func get(t testing.TB, p *program, name string) native.Tensor {
	t.Helper()
	v, err := p.Get(ctx, name)
	must(t, err)
	return v
}

// inputs returns the inputs of a step with batch i.
func inputs(i int, rate float32) tensors {
	x, y := batch(i)
	return tensors{"x": floats(x, 4, 3), "t": floats(y, 4), "rate": floats([]float32{rate})}
}

func TestTrainingEqualsTheReference(t *testing.T) {
	golden, err := os.ReadFile("../internal/compiler/plan/testdata/linear_v1_0.rlxp")
	must(t, err)
	p := load(t, fromFile(golden))
	run(t, p, "init", nil)
	w := []float64{0.5, 1, 1.5}
	for i := range 50 {
		loss := asFloats(run(t, p, "step", inputs(i, 0.25))["loss"])
		x, y := batch(i)
		if want := reference(w, x, y, 0.25); !near(loss, []float64{want}, 1e-5) {
			t.Fatalf("step %d: loss %v, want %v", i, loss, want)
		}
	}
	if got := asFloats(get(t, p, "w")); !near(got, w, 1e-5) {
		t.Errorf("w = %v, want %v", got, w)
	}
}

// Runs in flight, of which there are more than may be, have inputs and results of their own.
func TestRunsInFlightHaveResultsOfTheirOwn(t *testing.T) {
	p := linear(t)
	run(t, p, "init", nil)
	var runs []native.Run
	for i := range 10 {
		r, err := p.Run(ctx, "step", inputs(i, 0.25))
		must(t, err)
		runs = append(runs, r)
	}
	w := []float64{0.5, 1, 1.5}
	for i, r := range runs {
		out, err := r.Wait(ctx)
		must(t, err)
		x, y := batch(i)
		if loss, want := asFloats(out["loss"]), reference(w, x, y, 0.25); !near(loss, []float64{want}, 1e-5) {
			t.Errorf("run %d: loss %v, want %v", i, loss, want)
		}
	}
}

func TestRepeatsCountAndACopyEndsInAState(t *testing.T) {
	p := linear(t)
	folded := run(t, p, "fold", tensors{"seed": ints(dtype.U32, []int32{5})})["folded"]
	a, b := uint32(5), uint32(0)
	for i := range uint32(3) {
		for j := range uint32(2) {
			a, b = 2*a+i, b+10*i+j
		}
	}
	for _, v := range []native.Tensor{folded, get(t, p, "kept")} {
		if got := asUints(v); !slices.Equal(got, []uint32{a, b}) {
			t.Errorf("got %v, want %d %d", got, a, b)
		}
	}
}

func TestAFailedCheckIsNamedAndChangesNoState(t *testing.T) {
	p := linear(t)
	with := func(free ...int32) tensors {
		return tensors{"label": ints(dtype.I32, []int32{0, 1, 2, 3}, 4), "free": ints(dtype.I32, free, 4)}
	}
	if got := asFloats(run(t, p, "pick", with(3, 2, 1, 0))["picked"]); !near(got, []float64{5, 5, 5, 5}, 0) {
		t.Errorf("picked %v", got)
	}
	failed, err := p.Run(ctx, "pick", with(0, 9, 0, 0))
	must(t, err)
	next, err := p.Run(ctx, "pick", with(0, 0, 0, 0)) // begins before the first is known to have failed
	must(t, err)
	_, err = failed.Wait(ctx)
	var e *native.Error
	if !errors.As(err, &e) || !errors.Is(err, ir.ErrIndex) || e.Node != "pick(free)" {
		t.Fatalf("got %v", err)
	}
	_, err = next.Wait(ctx)
	must(t, err)
	if got := asUints(get(t, p, "count"))[0]; got != 2 {
		t.Errorf("count = %d, want 2", got)
	}
}

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	open(t)
	for _, c := range []struct {
		what  string
		spoil func(p *plan.Plan)
		kind  error
		text  string
	}{
		{"a kernel with an error", func(p *plan.Plan) { p.Kernels[1].Source = strings.Replace(p.Kernels[1].Source, "0.0;", "zero;", 1) }, native.ErrDevice, "kernel step"},
		{"a kernel without its layout", func(p *plan.Plan) {
			p.Kernels[1].Source = strings.Replace(p.Kernels[1].Source, "@binding(3)", "@binding(7)", 1)
		}, native.ErrDevice, "kernel step"},
		{"a feature that is not there", func(p *plan.Plan) { p.Requires.Features = []string{"shader-f16"} }, native.ErrMemory, "shader-f16"},
		{"a limit that is not met", func(p *plan.Plan) { p.Requires.Limits.StorageBuffers = 10 }, native.ErrMemory, "StorageBuffers:10"},
		{"another target", func(p *plan.Plan) { p.Target = "cuda" }, native.ErrMemory, "cuda"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := plantest.Linear()
			c.spoil(p)
			_, err := the.open(ctx, "open", native.Options{}, nil, encoded(t, p))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want one of kind %q with %q", err, c.kind, c.text)
			}
		})
	}
	t.Run("but a variant may fit", func(t *testing.T) {
		p := plantest.Linear()
		p.Requires.Features = []string{"subgroups"}
		p.Variants = []*plan.Plan{plantest.Linear()}
		if made := load(t, encoded(t, p)); len(made.plan.Requires.Features) != 0 {
			t.Error("the wrong variant runs")
		}
	})
}

func TestDeviceRequestsDefaultLimits(t *testing.T) {
	dev := open(t)
	if target := dev.target(); target.Limits != loop.DefaultLimits() || target.Name != "webgpu" || target.F16 || target.Subgroups {
		t.Errorf("target %+v", target)
	}
	if !strings.HasSuffix(dev.description, ")") {
		t.Errorf("description %q", dev.description)
	}
}

// An adapter's texts name its profile, by which kernels are planned, wherever wgpu has the name of the GPU.
func TestDevicePlansByItsProfile(t *testing.T) {
	for _, c := range []struct {
		info wgpu.AdapterInfo
		want string
	}{
		{wgpu.AdapterInfo{VendorName: "0x1ae0", Name: "0xc0de", DriverDescription: "SwiftShader Device (Subzero)"}, "SwiftShader"},
		{wgpu.AdapterInfo{VendorName: "0x10de", DriverDescription: "NVIDIA GeForce RTX 4090"}, "RTX 4090"},
		{wgpu.AdapterInfo{Name: "Apple M1 Pro"}, "Apple M1"},
		{wgpu.AdapterInfo{}, "unknown"},
	} {
		if got := profileOf(c.info).Name; got != c.want {
			t.Errorf("%+v has the profile of %q, not of %q", c.info, got, c.want)
		}
	}
	dev := open(t)
	if strings.Contains(dev.description, "SwiftShader") && dev.target().Profile().Name != "SwiftShader" {
		t.Errorf("%s plans by the profile of %q", dev.description, dev.target().Profile().Name)
	}
}

// The target has neither f16 nor subgroups as long as the binding's compiler refuses both.
func TestBindingHasNoExtensions(t *testing.T) {
	dev := open(t)
	for _, extension := range []string{"f16", "subgroups"} {
		code := "enable " + extension + ";\n@compute @workgroup_size(1) fn main() {}"
		if _, err := dev.dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: code}}); err == nil {
			t.Errorf("the binding reads %q now: let targets have it", code)
		}
	}
}

// TestLongRunDoesNotReleaseObjectsEarly makes steps with new batches, and counts the allocations that
// remain in the binding.
func TestLongRunDoesNotReleaseObjectsEarly(t *testing.T) {
	p := linear(t)
	step, err := p.Bind(ctx, "step", inputs(0, 0.01), nil)
	must(t, err)
	one := func() { must(t, step.Start(ctx)) }
	for range 2000 {
		one()
	}
	// Most are the binding's: a handle and a callback for each call that it checks,
	// and its wrappers. 60 were counted.
	if n := testing.AllocsPerRun(200, one); n > 65 {
		t.Errorf("%v allocations a step", n)
	}
	if n := asUints(get(t, p, "count"))[0]; n != 2201 {
		t.Errorf("count = %d, want 2201", n)
	}
}

func BenchmarkStep(b *testing.B) {
	p := linear(b)
	step, err := p.Bind(ctx, "step", inputs(0, 0.01), nil)
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		must(b, step.Start(ctx))
	}
}
