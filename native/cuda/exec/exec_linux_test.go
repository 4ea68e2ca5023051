//go:build cgo && (amd64 || arm64)

package exec_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/cuda/driver"
	"github.com/rlx-go/rlx/native/cuda/exec"
)

// device returns the GPU. Without one the test fails where RLX_REQUIRE names
// cuda, and is skipped elsewhere.
func device(t testing.TB) *driver.Device {
	t.Helper()
	d, err := driver.Open(0)
	if err == nil {
		return d
	}
	if slices.Contains(strings.Split(os.Getenv("RLX_REQUIRE"), ","), "cuda") || !errors.Is(err, driver.ErrUnavailable) {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}

func compare(got, want *ir.Array, tol float64) string {
	for i := range want.Len() {
		a, b := got.Float(i), want.Float(i)
		if want.DType == ir.F32 {
			b = dtype.F32.Round(b)
		}
		if a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tol*math.Max(1, math.Abs(b)) {
			continue
		}
		return fmt.Sprintf("element %d is %v, not %v", i, a, b)
	}
	return ""
}

// batchGraph holds many samples of an op side by side, so that one module and
// one run test them all.
func batchGraph(op ir.Op, samples []ir.Sample) (*ir.Graph, map[string]*ir.Array, error) {
	inputs := map[string]*ir.Array{}
	g, err := ir.Build(string(op), func(b *ir.Builder) {
		for k, s := range samples {
			var in []ir.Value
			for i, a := range s.In {
				name := fmt.Sprintf("x%d_%d", k, i)
				inputs[name] = a
				in = append(in, b.Port(ir.InputPort, name, a.Type()))
			}
			for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
				b.Output(fmt.Sprintf("y%d_%d", k, i), v)
			}
		}
	})
	return g, inputs, err
}

func computable(s ir.Sample, op ir.Op) bool {
	g, _, err := batchGraph(op, []ir.Sample{s})
	if err != nil {
		return false
	}
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if t.DType.On(dtype.CUDA) != dtype.Arithmetic {
				return false
			}
		}
	}
	return true
}

func TestSamplesOfAllOpsOnTheDevice(t *testing.T) {
	d := device(t)
	for _, op := range ir.Ops() {
		def, _ := ir.Lookup(op)
		if def.Samples == nil {
			continue
		}
		t.Run(string(op), func(t *testing.T) {
			samples := slices.DeleteFunc(def.Samples(), func(s ir.Sample) bool { return !computable(s, op) })
			if len(samples) > 0 {
				checkSamples(t, d, op, samples)
			}
		})
	}
}

func checkSamples(t *testing.T, d *driver.Device, op ir.Op, samples []ir.Sample) {
	g, inputs, err := batchGraph(op, samples)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, d, ir.Entry{Name: "run", Graph: g})
	got, err := s.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		if diff := compare(got[o.Name], want[i], 2e-5); diff != "" {
			t.Errorf("%s: %s", o.Name, diff)
		}
	}
}

func open(t testing.TB, d *driver.Device, entries ...ir.Entry) *exec.Session {
	t.Helper()
	m, err := ir.NewModule("m", entries...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := exec.Open(d, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// mlpStep is an Adam step of a multi-layer perceptron.
func mlpStep(t testing.TB, batch int, layers ...int) *ir.Graph {
	t.Helper()
	loss, err := irtest.MLP(batch, layers...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1e-3)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// start gives a session random weights. It returns what the ports begin with, a
// batch among it.
func start(t testing.TB, s *exec.Session, g *ir.Graph, classes int) map[string]*ir.Array {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	values := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			if !optim.IsState(p) {
				a.F[i] = rng.NormFloat64() * 0.1
			}
		}
		for i := range a.I {
			if p.Kind == ir.InputPort {
				a.I[i] = rng.Int64N(int64(classes))
			}
		}
		a.Round()
		values[p.Name] = a
		if p.Kind == ir.InputPort {
			continue
		}
		if err := s.Set(p.Name, a); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

func TestTrainingOnTheDeviceIsThatOfTheReference(t *testing.T) {
	g := mlpStep(t, 64, 40, 96, 70, 10)
	s := open(t, device(t), ir.Entry{Name: "step", Graph: g})
	values := start(t, s, g, 10)
	for step := range 10 {
		want, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run("step", values)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			a := got[o.Name]
			if o.State {
				values[o.Name] = want[i]
				if a, err = s.Get(o.Name); err != nil {
					t.Fatal(err)
				}
			}
			if diff := compare(a, want[i], 1e-4); diff != "" {
				t.Fatalf("step %d: %s: %s", step, o.Name, diff)
			}
		}
	}
}

func TestBadLabelLeavesTheStatesAlone(t *testing.T) {
	g := mlpStep(t, 8, 6, 5)
	s := open(t, device(t), ir.Entry{Name: "step", Graph: g})
	values := start(t, s, g, 5)
	values["labels"].I[0] = 200
	if _, err := s.Run("step", values); !errors.Is(err, ir.ErrIndex) {
		t.Fatalf("error %v, want one of kind index out of range", err)
	}
	after, err := s.Get("w0")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(values["w0"].F, after.F) {
		t.Error("a weight changed")
	}
}

// BenchmarkKernels times whole entries by launches without a wait between
// them, and a wait for the last.
func BenchmarkKernels(b *testing.B) {
	d := device(b)
	b.Logf("%s, compute capability %d.%d", d.Name, d.Major, d.Minor)
	matmul := func(n int) *ir.Graph {
		g, err := ir.Build("matmul", func(g *ir.Builder) {
			x, y := g.Param("x", ir.F32, ir.N(n), ir.N(n)), g.Param("y", ir.F32, ir.N(n), ir.N(n))
			g.State("z", ir.F32, ir.N(n), ir.N(n))
			g.SetState("z", ops.MatMul(g, x, y))
		})
		if err != nil {
			b.Fatal(err)
		}
		return g
	}
	for _, n := range []int{1024, 4096} {
		b.Run(fmt.Sprintf("matmul %d", n), func(b *testing.B) {
			each := timeEntry(b, d, matmul(n))
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)/each.Seconds()/1e12, "TFLOP/s")
		})
	}
	b.Run("mlp 784-512-512-10 batch 128 Adam", func(b *testing.B) {
		each := timeEntry(b, d, mlpStep(b, 128, 784, 512, 512, 10))
		b.ReportMetric(1/each.Seconds(), "steps/s")
	})
}

// BenchmarkMemory times scatters, sorts and running combinations of numbers drawn
// on the device.
func BenchmarkMemory(b *testing.B) {
	d := device(b)
	jobs, err := irtest.MemoryJobs(1 << 30)
	if err != nil {
		b.Fatal(err)
	}
	for _, j := range jobs {
		b.Run(j.Name, func(b *testing.B) {
			s := open(b, d, ir.Entry{Name: "fill", Graph: j.Fill}, ir.Entry{Name: "step", Graph: j.Step})
			if err := s.Start("fill"); err != nil {
				b.Fatal(err)
			}
			each := timeStep(b, d, s).Seconds()
			b.ReportMetric(each*1e3, "ms")
			if j.Bytes > 0 {
				b.ReportMetric(j.Bytes/each/1e9, "GB/s")
			}
			if j.Keys > 0 {
				b.ReportMetric(j.Keys/each/1e9, "Gkeys/s")
			}
		})
	}
}

func timeEntry(b *testing.B, d *driver.Device, g *ir.Graph) time.Duration {
	s := open(b, d, ir.Entry{Name: "step", Graph: g})
	start(b, s, g, 10)
	return timeStep(b, d, s)
}

// timeStep returns how long an entry "step" takes.
func timeStep(b *testing.B, d *driver.Device, s *exec.Session) time.Duration {
	run := func(n int) {
		for range n {
			if err := s.Start("step"); err != nil {
				b.Fatal(err)
			}
		}
		if err := d.Synchronize(); err != nil {
			b.Fatal(err)
		}
	}
	run(3)
	b.ResetTimer()
	begin := time.Now()
	run(b.N)
	return time.Since(begin) / time.Duration(b.N)
}
