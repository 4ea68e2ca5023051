//go:build cgo && !js

package exec_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu/internal/exec"
)

var ctx = context.Background()

// open opens the device, or skips the test where none is there and none was
// asked for.
func open(t testing.TB) *exec.Device {
	t.Helper()
	dev, err := exec.Open(exec.Options{})
	backendtest.Require(t, "webgpu", err)
	t.Cleanup(dev.Close)
	return dev
}

func load(t testing.TB, dev *exec.Device, p *plan.Plan) *exec.Session {
	t.Helper()
	s, err := dev.Load(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func linear(t testing.TB) *exec.Session { return load(t, open(t), plantest.Linear()) }

func entry(t testing.TB, s *exec.Session, name string) *exec.Entry {
	t.Helper()
	e, err := s.Entry(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func floats(x []float32, dims ...int) exec.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return exec.Tensor{DType: dtype.F32, Dims: dims, Data: data}
}

func ints(dt dtype.DType, x []int32, dims ...int) exec.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return exec.Tensor{DType: dt, Dims: dims, Data: data}
}

func asFloats(t exec.Tensor) []float64 {
	out := make([]float64, len(t.Data)/4)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:])))
	}
	return out
}

func asUints(t exec.Tensor) []uint32 {
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

func run(t testing.TB, e *exec.Entry, steps int, read ...string) map[string]exec.Tensor {
	t.Helper()
	r, err := e.Run(ctx, steps, read...)
	must(t, err)
	if r == nil {
		return nil
	}
	values, err := r.Wait(ctx)
	must(t, err)
	return values
}

func setBatch(t testing.TB, e *exec.Entry, i int) (x, y []float32) {
	t.Helper()
	x, y = batch(i)
	must(t, e.Set(ctx, "x", floats(x, 4, 3)))
	must(t, e.Set(ctx, "t", floats(y, 4)))
	return x, y
}

func TestTrainingEqualsTheReference(t *testing.T) {
	golden, err := os.ReadFile("../../../internal/compiler/plan/testdata/linear_v1_0.rlxp")
	must(t, err)
	p, err := plan.Decode(golden)
	must(t, err)
	s := load(t, open(t), p)
	run(t, entry(t, s, "init"), 1)
	step, w := entry(t, s, "step"), []float64{0.5, 1, 1.5}
	must(t, step.Set(ctx, "rate", floats([]float32{0.25})))
	for i := range 50 {
		x, y := setBatch(t, step, i)
		loss := asFloats(run(t, step, 1, "loss")["loss"])
		if want := reference(w, x, y, 0.25); !near(loss, []float64{want}, 1e-5) {
			t.Fatalf("step %d: loss %v, want %v", i, loss, want)
		}
	}
	got, err := s.Read(ctx, "w")
	must(t, err)
	if !near(asFloats(got), w, 1e-5) {
		t.Errorf("w = %v, want %v", asFloats(got), w)
	}
	if s.Steps() != 51 {
		t.Errorf("%d steps", s.Steps())
	}
}

func TestReadbacksCarryTheirStep(t *testing.T) {
	s := linear(t)
	step := entry(t, s, "step")
	must(t, step.Set(ctx, "rate", floats([]float32{0.1})))
	setBatch(t, step, 0)
	var pending []*exec.Reading
	for range 10 { // more than there are staging buffers
		r, err := step.Run(ctx, 1, "count")
		must(t, err)
		pending = append(pending, r)
	}
	for i, r := range pending {
		values, err := r.Wait(ctx)
		must(t, err)
		if n := asUints(values["count"])[0]; int(n) != i+1 || r.Step != i+1 {
			t.Errorf("reading %d has count %d of step %d", i, n, r.Step)
		}
	}
}

func TestRepeatsCountAndACopyEndsInAState(t *testing.T) {
	s := linear(t)
	fold := entry(t, s, "fold")
	must(t, fold.Set(ctx, "seed", ints(dtype.U32, []int32{5})))
	values := run(t, fold, 1, "folded", "kept")
	a, b := uint32(5), uint32(0)
	for i := range uint32(3) {
		for j := range uint32(2) {
			a, b = 2*a+i, b+10*i+j
		}
	}
	for name, v := range values {
		if got := asUints(v); !slices.Equal(got, []uint32{a, b}) {
			t.Errorf("%s = %v, want %d %d", name, got, a, b)
		}
	}
}

func TestStepsOfOneRunHaveScalarsOfTheirOwn(t *testing.T) {
	s := linear(t)
	run(t, entry(t, s, "init"), 1)
	step, w := entry(t, s, "step"), []float64{0.5, 1, 1.5}
	x, y := setBatch(t, step, 0)
	rates := []float32{0.5, 0.25, 0.125}
	must(t, step.Set(ctx, "rate", floats(rates, 3)))
	var want []float64
	for _, rate := range rates {
		want = append(want, reference(w, x, y, float64(rate)))
	}
	history := asFloats(run(t, step, 3, "history")["history"])
	if !near(history[:3], want, 1e-5) {
		t.Errorf("losses %v, want %v", history[:3], want)
	}
	if _, err := step.Run(ctx, 4); !errors.Is(err, ir.ErrName) {
		t.Errorf("a fourth step without a rate: %v", err)
	}
}

func TestAFailedCheckIsNamedAndChangesNoState(t *testing.T) {
	s := linear(t)
	pick := entry(t, s, "pick")
	must(t, pick.Set(ctx, "label", ints(dtype.I32, []int32{0, 1, 2, 3}, 4)))
	must(t, pick.Set(ctx, "free", ints(dtype.I32, []int32{3, 2, 1, 0}, 4)))
	if got := asFloats(run(t, pick, 1, "picked")["picked"]); !near(got, []float64{5, 5, 5, 5}, 0) {
		t.Errorf("picked %v", got)
	}
	must(t, pick.Set(ctx, "free", ints(dtype.I32, []int32{0, 9, 0, 0}, 4)))
	first, err := pick.Run(ctx, 1, "picked")
	must(t, err)
	second, err := pick.Run(ctx, 1, "count") // made before the first is known to have failed
	must(t, err)
	for _, r := range []*exec.Reading{first, second} {
		_, err = r.Wait(ctx)
		var e *exec.Error
		if !errors.As(err, &e) || !errors.Is(err, ir.ErrIndex) || e.Node != "pick(free)" || !strings.Contains(err.Error(), "[1 9 0]") {
			t.Fatalf("got %v", err)
		}
	}
	count, err := s.Read(ctx, "count")
	must(t, err) // reported once
	if got := asUints(count)[0]; got != 1 {
		t.Errorf("count = %d after a failed run, want 1", got)
	}
	must(t, pick.Set(ctx, "free", ints(dtype.I32, []int32{0, 0, 0, 0}, 4)))
	if got := asUints(run(t, pick, 1, "count")["count"])[0]; got != 2 {
		t.Errorf("count = %d, want 2", got)
	}
}

func TestRefusedLoadWritesNothing(t *testing.T) {
	s := load(t, open(t), plantest.Linear())
	err := s.Load(ctx, map[string]exec.Tensor{"w": floats([]float32{1, 2, 3}, 3), "zoo": floats([]float32{1})})
	if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), "zoo") {
		t.Errorf("error %v", err)
	}
	w, err := s.Read(ctx, "w")
	must(t, err)
	if !near(asFloats(w), []float64{0, 0, 0}, 0) {
		t.Errorf("w = %v", asFloats(w))
	}
}

func TestSavedStateLoadsIntoAnotherSession(t *testing.T) {
	dev := open(t)
	one, other := load(t, dev, plantest.Linear()), load(t, dev, plantest.Linear())
	run(t, entry(t, one, "init"), 1)
	for _, s := range []*exec.Session{one, other} {
		step := entry(t, s, "step")
		must(t, step.Set(ctx, "rate", floats([]float32{0.1})))
		setBatch(t, step, 1)
	}
	run(t, entry(t, one, "step"), 5)
	saved, err := one.Save(ctx)
	must(t, err)
	must(t, other.Load(ctx, saved))
	a, b := run(t, entry(t, one, "step"), 1, "w", "history"), run(t, entry(t, other, "step"), 1, "w", "history")
	for name := range a {
		if !slices.Equal(a[name].Data, b[name].Data) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestWrongInputsAreRefused(t *testing.T) {
	s := linear(t)
	step, pick := entry(t, s, "step"), entry(t, s, "pick")
	x := make([]float32, 12)
	for _, c := range []struct {
		what string
		call func() error
		kind error
		text string
	}{
		{"other sizes", func() error { return step.Set(ctx, "x", floats(x, 3, 4)) }, ir.ErrShape, "x is f32[3,4]; it must be f32[4,3]"},
		{"another rank", func() error { return step.Set(ctx, "x", floats(x, 12)) }, ir.ErrShape, "x is f32[12]; it must be"},
		{"an empty batch", func() error { return step.Set(ctx, "x", floats(nil, 0, 3)) }, ir.ErrShape, "empty batch"},
		{"too few bytes", func() error { return step.Set(ctx, "x", floats(x[:11], 4, 3)) }, ir.ErrShape, "x has 44 bytes; f32[4,3] needs 48"},
		{"another dtype", func() error { return step.Set(ctx, "x", ints(dtype.I32, make([]int32, 12), 4, 3)) }, ir.ErrDType, "x is i32; it must be f32"},
		{"an unknown name", func() error { return step.Set(ctx, "y", floats(x, 12)) }, ir.ErrName, "have rate, t, x"},
		{"a label above its range", func() error { return pick.Set(ctx, "label", ints(dtype.I32, []int32{0, 1, 4, 2}, 4)) }, ir.ErrIndex, "element 2 of label is 4; it must be in [0, 4)"},
		{"a label below its range", func() error { return pick.Set(ctx, "label", ints(dtype.I32, []int32{-1, 0, 0, 0}, 4)) }, ir.ErrIndex, "element 0 of label is -1"},
		{"a scalar of another dtype", func() error { return step.Set(ctx, "rate", ints(dtype.I32, []int32{1})) }, ir.ErrDType, "rate is i32; it must be f32"},
		{"a scalar for too many steps", func() error { return step.Set(ctx, "rate", floats(make([]float32, 65), 65)) }, ir.ErrShape, "1 to 64"},
		{"missing inputs", func() error { _, err := step.Run(ctx, 1); return err }, ir.ErrName, `input "x" is missing`},
		{"no steps", func() error { _, err := step.Run(ctx, 0); return err }, exec.ErrLimit, "steps is 0"},
		{"too many steps", func() error { _, err := step.Run(ctx, 65); return err }, exec.ErrLimit, "steps is 65"},
		{"an unknown entry", func() error { _, err := s.Entry("train"); return err }, ir.ErrName, "fold, init, pick"},
		{"an unknown value", func() error { _, err := s.Read(ctx, "nothing"); return err }, ir.ErrName, `"nothing"`},
		{"an output of no run", func() error { _, err := s.Read(ctx, "loss"); return err }, ir.ErrName, `"loss"`},
		{"writing an output", func() error { return s.Write(ctx, "loss", floats([]float32{1})) }, ir.ErrName, "have count, history, kept, w"},
		{"writing another shape", func() error { return s.Write(ctx, "w", floats(x[:4], 4)) }, ir.ErrShape, "w is f32[4]; it must be f32[3]"},
		{"loading another shape", func() error { return s.Load(ctx, map[string]exec.Tensor{"w": floats(x[:3], 1, 3)}) }, ir.ErrShape, "[1,3]"},
	} {
		t.Run(c.what, func(t *testing.T) {
			err := c.call()
			var e *exec.Error
			if !errors.As(err, &e) || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want one of kind %q with %q", err, c.kind, c.text)
			}
		})
	}
	if s.Steps() != 0 {
		t.Errorf("%d steps were counted", s.Steps())
	}
}

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	dev := open(t)
	for _, c := range []struct {
		what  string
		spoil func(p *plan.Plan)
		kind  error
		text  string
	}{
		{"a kernel with an error", func(p *plan.Plan) { p.Kernels[1].Source = strings.Replace(p.Kernels[1].Source, "0.0;", "zero;", 1) }, exec.ErrShader, "kernel step"},
		{"a kernel without its layout", func(p *plan.Plan) {
			p.Kernels[1].Source = strings.Replace(p.Kernels[1].Source, "@binding(3)", "@binding(7)", 1)
		}, exec.ErrShader, "kernel step"},
		{"a feature that is not there", func(p *plan.Plan) { p.Requires.Features = []string{"shader-f16"} }, exec.ErrLimit, "shader-f16"},
		{"a limit that is not met", func(p *plan.Plan) { p.Requires.Limits.StorageBuffers = 10 }, exec.ErrLimit, "StorageBuffers:10"},
		{"another target", func(p *plan.Plan) { p.Target = "cuda" }, exec.ErrLimit, "cuda"},
		{"an invalid plan", func(p *plan.Plan) { p.Buffers[0].Bytes = 1 }, plan.ErrInvalid, "multiple"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := plantest.Linear()
			c.spoil(p)
			_, err := dev.Load(ctx, p)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want one of kind %q with %q", err, c.kind, c.text)
			}
		})
	}
	t.Run("but a variant may fit", func(t *testing.T) {
		p := plantest.Linear()
		p.Requires.Features = []string{"subgroups"}
		p.Variants = []*plan.Plan{plantest.Linear()}
		if s := load(t, dev, p); s.Plan() != p.Variants[0] {
			t.Error("the wrong variant runs")
		}
	})
}

func TestClosedAndCancelled(t *testing.T) {
	dev := open(t)
	s := load(t, dev, plantest.Linear())
	init := entry(t, s, "init")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := init.Run(cancelled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("run with a cancelled context: %v", err)
	}
	if s.Steps() != 0 {
		t.Error("a cancelled run was counted")
	}
	r, err := init.Run(ctx, 1, "w")
	must(t, err)
	s.Close(ctx)
	s.Close(ctx)
	for _, call := range []func() error{
		func() error { _, err := init.Run(ctx, 1); return err },
		func() error { _, err := s.Read(ctx, "w"); return err },
		func() error { _, err := r.Wait(ctx); return err },
		func() error { return s.Write(ctx, "w", floats([]float32{1, 2, 3}, 3)) },
	} {
		if err := call(); !errors.Is(err, exec.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	dev.Close()
	if _, err := dev.Load(ctx, plantest.Linear()); !errors.Is(err, exec.ErrClosed) {
		t.Errorf("load on a closed device: %v", err)
	}
}

func TestDeviceRequestsDefaultLimits(t *testing.T) {
	dev := open(t)
	if target := dev.Target(); target.Limits != loop.DefaultLimits() || target.Name != "webgpu" || target.F16 || target.Subgroups {
		t.Errorf("target %+v", target)
	}
	if dev.Info().Name == "" || dev.Info().Backend == "" {
		t.Errorf("info %+v", dev.Info())
	}
	if _, err := exec.Open(exec.Options{Limits: loop.Limits{StorageBuffers: 1 << 20}}); !errors.Is(err, exec.ErrLimit) {
		t.Errorf("impossible limits: %v", err)
	}
}

// TestLongRunDoesNotReleaseObjectsEarly makes steps with new batches and occasional reads,
// and counts the allocations that remain in the binding.
func TestLongRunDoesNotReleaseObjectsEarly(t *testing.T) {
	s := linear(t)
	step := entry(t, s, "step")
	must(t, step.Set(ctx, "rate", floats([]float32{0.01})))
	x, y := batch(0)
	tx, ty := floats(x, 4, 3), floats(y, 4)
	one := func() {
		must(t, step.Set(ctx, "x", tx))
		must(t, step.Set(ctx, "t", ty))
		_, err := step.Run(ctx, 1)
		must(t, err)
	}
	for range 2000 {
		one()
	}
	// All are the binding's: a handle and a callback for each call that it checks,
	// and its wrappers. 28 were counted.
	if n := testing.AllocsPerRun(200, one); n > 30 {
		t.Errorf("%v allocations a step", n)
	}
	got, err := s.Read(ctx, "count")
	must(t, err)
	if n := asUints(got)[0]; n != 2201 {
		t.Errorf("count = %d, want 2201", n)
	}
}

func BenchmarkStep(b *testing.B) {
	s := linear(b)
	step := entry(b, s, "step")
	must(b, step.Set(ctx, "rate", floats([]float32{0.01})))
	setBatch(b, step, 0)
	b.ReportAllocs()
	for b.Loop() {
		_, err := step.Run(ctx, 1)
		must(b, err)
	}
}
