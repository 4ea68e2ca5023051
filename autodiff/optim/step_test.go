package optim_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// lossGraph is the loss of testdata/torch_steps.py.
func lossGraph(t *testing.T, d ir.DType) *ir.Graph {
	t.Helper()
	return build(t, func(b *ir.Builder) {
		x, y := b.Input("x", d, ir.N(3)), b.Input("y", d, ir.N(2), ir.N(2))
		w, v := b.Param("w", d, ir.N(3)), b.Param("v", d, ir.N(2), ir.N(2))
		a := ops.Literal(b, ir.Floats(d, []float64{0.5, 1.5, 2.0}))
		e := ops.Sub(b, w, x)
		square := ops.ReduceSum(b, ops.Mul(b, a, ops.Mul(b, e, e)))
		half := ops.Mul(b, square, ops.ConstLike(b, square, 0.5))
		b.Output("loss", ops.Add(b, half, ops.ReduceSum(b, ops.Cos(b, ops.Mul(b, v, y)))))
	})
}

func build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("f", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func batch(d ir.DType, t int, values map[string]*ir.Array) {
	x, y := make([]float64, 3), make([]float64, 4)
	for i := range x {
		x[i] = math.Sin(float64(t + i))
	}
	for i := range y {
		y[i] = math.Cos(float64(t + 2*(i/2) + i%2))
	}
	values["x"], values["y"] = ir.Floats(d, x), ir.Floats(d, y, 2, 2)
}

// golden is testdata/torch_steps.json.
type golden struct {
	F64, F32     map[string]run
	Warm, Cosine []float64
}

type run struct{ Losses, W, V []float64 }

func readGolden(t *testing.T) golden {
	t.Helper()
	data, err := os.ReadFile("testdata/torch_steps.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// stepper runs a step graph, carrying its states along.
type stepper struct {
	g      *ir.Graph
	values map[string]*ir.Array
}

func newStepper(t *testing.T, g *ir.Graph, params map[string]*ir.Array) *stepper {
	t.Helper()
	s := &stepper{g, map[string]*ir.Array{}}
	maps.Copy(s.values, params)
	init, err := optim.Init(g)
	if err != nil {
		t.Fatal(err)
	}
	// The initial values must not depend on the old ones.
	old := map[string]*ir.Array{}
	for _, p := range init.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = 7
		}
		for i := range a.I {
			a.I[i] = 7
		}
		old[p.Name] = a
	}
	out, err := ir.Eval(init, old, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range init.Outputs() {
		s.values[o.Name] = out[i]
	}
	return s
}

func (s *stepper) step(t *testing.T) map[string]*ir.Array {
	t.Helper()
	out, err := ir.Eval(s.g, s.values, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]*ir.Array{}
	for i, o := range s.g.Outputs() {
		if o.State {
			s.values[o.Name] = out[i]
		} else {
			plain[o.Name] = out[i]
		}
	}
	return plain
}

var cases = []struct {
	name    string
	opt     optim.Optimizer
	options optim.Options
}{
	{"sgd", optim.SGD{}, optim.Options{}},
	{"sgd decay", optim.SGD{WeightDecay: 0.1}, optim.Options{}},
	{"sgd momentum", optim.SGD{Momentum: 0.9}, optim.Options{}},
	{"sgd nesterov", optim.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.01}, optim.Options{}},
	{"adam", optim.Adam{}, optim.Options{}},
	{"adam decay", optim.Adam{Beta1: 0.8, Beta2: 0.95, Eps: 1e-6, WeightDecay: 0.1}, optim.Options{}},
	{"adamw", optim.AdamW{}, optim.Options{}},
	{"sgd clip", optim.SGD{}, optim.Options{ClipNorm: 1}},
	{"adam clip", optim.Adam{}, optim.Options{ClipNorm: 0.5}},
	{"sgd cosine", optim.SGD{}, optim.Options{Schedule: optim.Cosine(0.1, 0.01, 20)}},
}

func TestTwentyStepsAgreeWithPyTorch(t *testing.T) {
	want := readGolden(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			// The rate comes in as an f32, which limits what f64 can agree to.
			checkRun(t, ir.F64, c.opt, c.options, want.F64[c.name], 1e-7)
			checkRun(t, ir.F32, c.opt, c.options, want.F32[c.name], 5e-6)
		})
	}
}

// TestF64StepsAgreeExactly takes the rate from a schedule, which an f64 graph
// computes in f64.
func TestF64StepsAgreeExactly(t *testing.T) {
	want := readGolden(t)
	for _, c := range cases {
		if c.options.Schedule == nil {
			c.options.Schedule = optim.Constant(0.05)
		}
		t.Run(c.name, func(t *testing.T) { checkRun(t, ir.F64, c.opt, c.options, want.F64[c.name], 1e-13) })
	}
}

func checkRun(t *testing.T, d ir.DType, opt optim.Optimizer, o optim.Options, want run, tol float64) {
	t.Helper()
	g, err := optim.Step(lossGraph(t, d), "loss", opt, o)
	if err != nil {
		t.Fatal(err)
	}
	s := newStepper(t, g, map[string]*ir.Array{
		"w": ir.Floats(d, []float64{0.3, -1.2, 2.5}),
		"v": ir.Floats(d, []float64{0.7, -0.4, 1.9, 0}, 2, 2),
	})
	if o.Schedule == nil {
		s.values[optim.RateInput] = ir.Float(ir.F32, 0.05)
	}
	var losses []float64
	for i := range want.Losses {
		batch(d, i, s.values)
		losses = append(losses, s.step(t)["loss"].F[0])
	}
	closeTo(t, d.String()+" losses", losses, want.Losses, tol)
	closeTo(t, d.String()+" w", s.values["w"].F, want.W, tol)
	closeTo(t, d.String()+" v", s.values["v"].F, want.V, tol)
	if n := s.values[optim.StepState].I[0]; n != int64(len(want.Losses)) {
		t.Errorf("%d steps counted, want %d", n, len(want.Losses))
	}
}

func closeTo(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestSchedulesAgreeWithPyTorchAndOptax(t *testing.T) {
	want := readGolden(t)
	for _, c := range []struct {
		name     string
		schedule optim.Schedule
		want     []float64
	}{
		{"cosine", optim.Cosine(0.1, 0.01, 20), want.Cosine},
		{"warm-up and cosine", optim.WarmUp(5, optim.Cosine(0.1, 0.01, 15)), want.Warm},
		{"constant", optim.Constant(0.25), []float64{0.25, 0.25, 0.25}},
		{"linear", optim.Linear(1, 3, 4), []float64{1, 1.5, 2, 2.5, 3, 3, 3}},
		{"joined", optim.Join(2, optim.Constant(1), optim.Linear(5, 6, 2)), []float64{1, 1, 5, 5.5, 6, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range []ir.DType{ir.F32, ir.F64} {
				g := build(t, func(b *ir.Builder) { b.Output("rate", c.schedule(b, b.Input("done", d))) })
				tol := 1e-15
				if d == ir.F32 {
					tol = 2e-7
				}
				for i, rate := range c.want {
					out, err := ir.Eval(g, map[string]*ir.Array{"done": ir.Float(d, float64(i))}, ir.EvalOptions{})
					if err != nil {
						t.Fatal(err)
					}
					closeTo(t, d.String(), out[0].F, []float64{rate}, tol)
				}
			}
		})
	}
}

func TestBiasCorrectionIsAccurateInF32(t *testing.T) {
	// One step of Adam with rate 1 and eps far below moves a parameter by sign(g) at every count if
	// gradients are constant: the bias corrections cancel exactly.
	g, err := optim.Step(build(t, func(b *ir.Builder) {
		b.Output("loss", ops.ReduceSum(b, b.Param("w", ir.F32, ir.N(1))))
	}), "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{0, 1, 2, 10, 100, 1000, 10000, 1000000} {
		m, v := -math.Expm1(float64(n)*math.Log(0.9)), -math.Expm1(float64(n)*math.Log(0.999))
		out, err := ir.Eval(g, map[string]*ir.Array{
			"w":                       ir.Floats(ir.F32, []float64{0}, 1),
			optim.SlotState("m", "w"): ir.Floats(ir.F32, []float64{m}, 1),
			optim.SlotState("v", "w"): ir.Floats(ir.F32, []float64{v}, 1),
			optim.StepState:           ir.Int(ir.I32, n),
		}, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if o.Name == "w" && o.State {
				closeTo(t, "w", out[i].F, []float64{-1}, 1e-6)
			}
		}
	}
}

func TestFrozenParametersStayParameters(t *testing.T) {
	g, err := optim.Step(lossGraph(t, ir.F32), "loss", optim.Adam{}, optim.Options{Frozen: []string{"v"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range g.Ports() {
		got = append(got, p.Kind.String()+" "+p.Name)
	}
	want := []string{"input x", "input y", "param w", "state optim/m/w", "state optim/v/w", "param v", "state optim/step", "input lr"}
	if !slices.Equal(got, want) {
		t.Errorf("ports %q, want %q", got, want)
	}
}

func TestHalfParametersAreUpdatedInF32(t *testing.T) {
	g, err := optim.Step(build(t, func(b *ir.Builder) {
		w := b.Param("w", ir.BF16, ir.N(2))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, w, w)))
	}), "loss", optim.SGD{Momentum: 0.5}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]ir.DType{"w": ir.BF16, optim.SlotState("m", "w"): ir.F32} {
		if p, _ := g.Port(name); p.Value.DType() != want {
			t.Errorf("%s is %s, want %s", name, p.Value.DType(), want)
		}
	}
}

func TestStatesOfTheLossGraphAreKept(t *testing.T) {
	g, err := optim.Step(build(t, func(b *ir.Builder) {
		w, n := b.Param("w", ir.F32), b.State("seen", ir.I32)
		b.SetState("seen", ops.Add(b, n, ops.Const(b, ir.I32, 1)))
		b.Output("loss", ops.Mul(b, w, w))
		b.Output("twice", ops.Add(b, w, w))
	}), "loss", optim.SGD{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range g.Outputs() {
		got = append(got, o.Name)
	}
	if want := []string{"seen", "loss", "twice", "w", optim.StepState}; !slices.Equal(got, want) {
		t.Errorf("outputs %q, want %q", got, want)
	}
	if p, _ := g.Port("seen"); optim.IsState(p) {
		t.Error("a state of the loss graph counts as one of the optimiser")
	}
}

// forgetful is a wrong optimizer: it declares a slot and gives it no new value.
type forgetful struct{ optim.Adam }

func (forgetful) Begin(*ir.Builder, ir.Value, ir.Value) optim.Rule {
	return func(_ *ir.Builder, p, _ ir.Value, _ []ir.Value) (ir.Value, []ir.Value) { return p, nil }
}

func TestStepRefusesBadInput(t *testing.T) {
	good := lossGraph(t, ir.F32)
	unused := build(t, func(b *ir.Builder) {
		w := b.Param("w", ir.F32)
		b.Param("idle", ir.F32)
		b.Output("loss", ops.Mul(b, w, w))
	})
	none := build(t, func(b *ir.Builder) { b.Output("loss", b.Input("x", ir.F32)) })
	for _, c := range []struct {
		name string
		g    *ir.Graph
		loss string
		opt  optim.Optimizer
		o    optim.Options
		want error
	}{
		{"no such loss", good, "cost", optim.SGD{}, optim.Options{}, ir.ErrName},
		{"no such frozen parameter", good, "loss", optim.SGD{}, optim.Options{Frozen: []string{"x"}}, ir.ErrName},
		{"all frozen", good, "loss", optim.SGD{}, optim.Options{Frozen: []string{"v", "w"}}, ir.ErrName},
		{"no parameters", none, "loss", optim.SGD{}, optim.Options{}, ir.ErrName},
		{"parameter the loss does not depend on", unused, "loss", optim.SGD{}, optim.Options{}, autodiff.ErrNoPath},
		{"no optimizer", good, "loss", nil, optim.Options{}, ir.ErrAttr},
		{"an optimizer that forgets its slots", good, "loss", forgetful{}, optim.Options{}, ir.ErrGraph},
		{"momentum 1", good, "loss", optim.SGD{Momentum: 1}, optim.Options{}, ir.ErrAttr},
		{"momentum NaN", good, "loss", optim.SGD{Momentum: math.NaN()}, optim.Options{}, ir.ErrAttr},
		{"nesterov without momentum", good, "loss", optim.SGD{Nesterov: true}, optim.Options{}, ir.ErrAttr},
		{"negative decay", good, "loss", optim.SGD{WeightDecay: -1}, optim.Options{}, ir.ErrAttr},
		{"beta 1", good, "loss", optim.Adam{Beta2: 1}, optim.Options{}, ir.ErrAttr},
		{"negative eps", good, "loss", optim.AdamW{Eps: -1}, optim.Options{}, ir.ErrAttr},
		{"negative clip norm", good, "loss", optim.SGD{}, optim.Options{ClipNorm: -1}, ir.ErrAttr},
		{"schedule of a negative rate", good, "loss", optim.SGD{}, optim.Options{Schedule: optim.Constant(-1)}, ir.ErrAttr},
		{"schedule to NaN", good, "loss", optim.SGD{}, optim.Options{Schedule: optim.Linear(1, math.NaN(), 4)}, ir.ErrAttr},
		{"polynomial of power 0", good, "loss", optim.SGD{}, optim.Options{Schedule: optim.Polynomial(1, 0, 0, 4)}, ir.ErrAttr},
		{"schedule of no steps", good, "loss", optim.SGD{}, optim.Options{Schedule: optim.Cosine(1, 0, 0)}, ir.ErrAttr},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := optim.Step(c.g, c.loss, c.opt, c.o); !errors.Is(err, c.want) {
				t.Errorf("error %v, want one of kind %q", err, c.want)
			}
		})
	}
	if _, err := optim.Step(unused, "loss", optim.SGD{}, optim.Options{Missing: autodiff.MissingIsZero}); err != nil {
		t.Errorf("with zeros for missing gradients: %v", err)
	}
}
