package exec_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
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

// stored returns an array as a device stores it: booleans as 32-bit words.
func stored(a *ir.Array) []byte {
	data := a.Bytes()
	if a.DType != ir.Bool {
		return data
	}
	wide := make([]byte, 4*len(data))
	for i, x := range data {
		wide[4*i] = x
	}
	return wide
}

func loaded(t ir.Type, data []byte) (*ir.Array, error) {
	if t.DType == ir.Bool {
		narrow := make([]byte, len(data)/4)
		for i := range narrow {
			narrow[i] = data[4*i]
		}
		data = narrow
	}
	n, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	return ir.ArrayOf(t, data[:n])
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
			if t.DType.On(dtype.CUDA) != dtype.Arithmetic || t.DType.Size() < 4 && t.DType != ir.Bool {
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
	data := map[string][]byte{}
	for name, a := range inputs {
		data[name] = stored(a)
	}
	got, err := s.Run("run", data)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs() {
		a, err := loaded(o.Value.Type(), got[o.Name])
		if err != nil {
			t.Fatal(err)
		}
		if diff := compare(a, want[i], 2e-5); diff != "" {
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
	loss, err := ir.Build("mlp", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(batch), ir.N(layers[0]))
		labels := b.Input("labels", ir.I32, ir.N(batch))
		for i := range layers[1:] {
			w := b.Param("w"+strconv.Itoa(i), ir.F32, ir.N(layers[i]), ir.N(layers[i+1]))
			bias := b.Param("b"+strconv.Itoa(i), ir.F32, ir.N(layers[i+1]))
			if x = ops.Linear(b, x, w, bias); i < len(layers)-2 {
				x = ops.Relu(b, x)
			}
		}
		b.Output("loss", ops.CrossEntropyMean(b, x, labels))
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1e-3)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// start gives a session random weights and a batch, and returns them.
func start(t testing.TB, s *exec.Session, g *ir.Graph, classes int) (map[string]*ir.Array, map[string][]byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	values, data := map[string]*ir.Array{}, map[string][]byte{}
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
			data[p.Name] = stored(a)
			continue
		}
		if err := s.Set(p.Name, stored(a)); err != nil {
			t.Fatal(err)
		}
	}
	return values, data
}

func TestTrainingOnTheDeviceIsThatOfTheReference(t *testing.T) {
	g := mlpStep(t, 64, 40, 96, 70, 10)
	s := open(t, device(t), ir.Entry{Name: "step", Graph: g})
	values, data := start(t, s, g, 10)
	for step := range 10 {
		want, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run("step", data)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			bytes := got[o.Name]
			if o.State {
				values[o.Name] = want[i]
				if bytes, err = s.Get(o.Name); err != nil {
					t.Fatal(err)
				}
			}
			a, err := loaded(o.Value.Type(), bytes)
			if err != nil {
				t.Fatal(err)
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
	_, data := start(t, s, g, 5)
	before, err := s.Get("w0")
	if err != nil {
		t.Fatal(err)
	}
	data["labels"][0] = 200
	if _, err := s.Run("step", data); !errors.Is(err, ir.ErrIndex) {
		t.Fatalf("error %v, want one of kind index out of range", err)
	}
	after, err := s.Get("w0")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, after) {
		t.Error("a weight changed")
	}
}

// BenchmarkKernels times whole entries by launches without a wait between
// them, ended by a read.
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
			each := timeEntry(b, d, matmul(n), "z")
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)/each.Seconds()/1e12, "TFLOP/s")
		})
	}
	b.Run("mlp 784-512-512-10 batch 128 Adam", func(b *testing.B) {
		each := timeEntry(b, d, mlpStep(b, 128, 784, 512, 512, 10), "w0")
		b.ReportMetric(1/each.Seconds(), "steps/s")
	})
}

func timeEntry(b *testing.B, d *driver.Device, g *ir.Graph, read string) time.Duration {
	s := open(b, d, ir.Entry{Name: "step", Graph: g})
	start(b, s, g, 10)
	run := func(n int) {
		for range n {
			if err := s.Start("step"); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Get(read); err != nil {
			b.Fatal(err)
		}
	}
	run(3)
	b.ResetTimer()
	begin := time.Now()
	run(b.N)
	return time.Since(begin) / time.Duration(b.N)
}
