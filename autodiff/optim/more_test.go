package optim_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// readMore reads testdata/more_steps.json.
func readMore(t *testing.T) (g struct {
	Runs      map[string]run
	Schedules map[string][]float64
},
) {
	t.Helper()
	data, err := os.ReadFile("testdata/more_steps.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func named(want string) func(name string) bool {
	return func(name string) bool { return name == want }
}

func TestFurtherOptimizersAgreeWithPyTorchAndOptax(t *testing.T) {
	want := readMore(t)
	decay := optim.Adam{WeightDecay: 0.01}
	for name, c := range map[string]struct {
		opt     optim.Optimizer
		options optim.Options
		tol     float64 // PyTorch takes some scalars in f32
	}{
		"adagrad":           {optim.Adagrad{RateDecay: 0.01, WeightDecay: 0.01}, optim.Options{}, 1e-13},
		"rmsprop":           {optim.RMSProp{}, optim.Options{}, 1e-13},
		"rmsprop centered":  {optim.RMSProp{Momentum: 0.5, Centered: true, WeightDecay: 0.01}, optim.Options{}, 1e-12},
		"adadelta":          {optim.Adadelta{WeightDecay: 0.01}, optim.Options{}, 1e-13},
		"nadam":             {optim.NAdam{Adam: decay}, optim.Options{}, 2e-9},
		"radam":             {optim.RAdam{Adam: decay}, optim.Options{}, 1e-12},
		"adafactor":         {optim.Adafactor{WeightDecay: 0.01}, optim.Options{}, 1e-12},
		"muon":              {optim.Muon{}, optim.Options{}, 1e-12},
		"schedule free":     {optim.ScheduleFree{Adam: decay}, optim.Options{}, 1e-12},
		"lamb":              {optim.LAMB{Adam: decay}, optim.Options{}, 1e-12},
		"lion":              {optim.Lion{WeightDecay: 0.01}, optim.Options{}, 1e-13},
		"amsgrad":           {optim.AMSGrad{Adam: decay}, optim.Options{}, 1e-12},
		"amsgrad decoupled": {optim.AMSGrad{Decoupled: true}, optim.Options{}, 1e-12},
		"adamax":            {optim.Adamax{Adam: decay}, optim.Options{}, 1e-12},
		"nadam decoupled":   {optim.NAdam{Adam: optim.Adam{WeightDecay: 0.1}, Decoupled: true}, optim.Options{}, 2e-9},
		"radam decoupled":   {optim.RAdam{Adam: optim.Adam{WeightDecay: 0.1}, Decoupled: true}, optim.Options{}, 1e-12},
		"dampening":         {optim.SGD{Momentum: 0.9, Dampening: 0.3}, optim.Options{}, 1e-13},
		"maximize":          {optim.SGD{Momentum: 0.9, WeightDecay: 0.1}, optim.Options{Maximize: true}, 1e-12},
		"lbfgs":             {optim.LBFGS{Pairs: 4}, optim.Options{}, 1e-12},
		"adabelief":         {optim.AdaBelief{Adam: decay}, optim.Options{}, 1e-12},
		"lars":              {optim.LARS{Trust: 0.1, WeightDecay: 0.01}, optim.Options{}, 1e-12},
		"prodigy":           {optim.Prodigy{Adam: decay, First: 0.1}, optim.Options{}, 1e-12},
		"qhadamw":           {optim.QHAdamW{Nu2: 0.9}, optim.Options{}, 2e-8},
		"adan":              {optim.Adan{WeightDecay: 0.01}, optim.Options{}, 1e-12},
		"ademamix":          {optim.AdEMAMix{Adam: decay, Warm: 12}, optim.Options{}, 1e-12},
		"groups":            {optim.SGD{}, optim.Options{Groups: []optim.Group{{Match: named("v"), Optimizer: optim.SGD{Momentum: 0.9}, Rate: 0.5}}}, 1e-13},
		"clip value":        {optim.SGD{}, optim.Options{ClipValue: 0.3}, 1e-13},
	} {
		t.Run(name, func(t *testing.T) {
			// The rate comes in as an f32, which limits what f64 can agree to.
			checkRun(t, ir.F32, c.opt, c.options, want.Runs[name], 3e-5)
			c.options.Schedule = optim.Constant(0.05)
			checkRun(t, ir.F64, c.opt, c.options, want.Runs[name], c.tol)
		})
	}
}

func TestFurtherSchedulesAgreeWithPyTorchAndOptax(t *testing.T) {
	want := readMore(t).Schedules
	for name, s := range map[string]optim.Schedule{
		"steps":           optim.Steps(0.1, 0.5, 3),
		"exponential":     optim.Exponential(0.1, 0.9),
		"polynomial":      optim.Polynomial(0.1, 0.01, 2, 8),
		"cosine restarts": optim.CosineRestarts(0.1, 0.01, 3, 2),
		"cosine cycles":   optim.CosineRestarts(0.1, 0.01, 4, 1),
		"one cycle":       optim.OneCycle(0.1, 12, 0.3),
	} {
		t.Run(name, func(t *testing.T) {
			for d, tol := range map[ir.DType]float64{ir.F32: 1e-6, ir.F64: 1e-8} {
				g := build(t, func(b *ir.Builder) { b.Output("rate", s(b, b.Input("done", d))) })
				for i, rate := range want[name] {
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

func TestAverageOfTheParameters(t *testing.T) {
	want := readMore(t).Runs["average"]
	s := trainingOf(t, optim.SGD{}, optim.Options{Average: 0.9, Schedule: optim.Constant(0.05)})
	for i := range want.Losses {
		batch(ir.F64, i, s.values)
		s.step(t)
	}
	closeTo(t, "w", s.values["optim/average/w"].F, want.W, 1e-13)
	closeTo(t, "v", s.values["optim/average/v"].F, want.V, 1e-13)
}

// trainingOf returns the training in f64 of the loss graph from its start.
func trainingOf(t *testing.T, opt optim.Optimizer, o optim.Options) *stepper {
	t.Helper()
	g, err := optim.Step(lossGraph(t, ir.F64), "loss", opt, o)
	if err != nil {
		t.Fatal(err)
	}
	return newStepper(t, g, map[string]*ir.Array{
		"w": ir.Floats(ir.F64, []float64{0.3, -1.2, 2.5}), "v": ir.Floats(ir.F64, []float64{0.7, -0.4, 1.9, 0}, 2, 2),
	})
}

// TestMicroBatchesEqualOneStep trains a loss that is a mean over examples on
// whole batches and on their quarters.
func TestMicroBatchesEqualOneStep(t *testing.T) {
	const quarters, examples, updates = 4, 8, 5
	mean := func(n int) *ir.Graph {
		return build(t, func(b *ir.Builder) {
			x, w := b.Input("x", ir.F64, ir.N(n)), b.Param("w", ir.F64)
			e := ops.Sub(b, w, x)
			b.Output("loss", ops.Mean(b, ops.Mul(b, ops.Sin(b, e), e)))
		})
	}
	x := func(step, from, n int) *ir.Array {
		a := ir.NewArray(ir.F64, n)
		for i := range a.F {
			a.F[i] = math.Cos(float64(7*step + from + i))
		}
		return a
	}
	for name, opt := range map[string]optim.Optimizer{"adam": optim.Adam{}, "momentum": optim.SGD{Momentum: 0.9}} {
		var ends [2]float64
		for k, parts := range []int{1, quarters} {
			o := optim.Options{Schedule: optim.Constant(0.05), Accumulate: parts, ClipNorm: 0.2}
			g, err := optim.Step(mean(examples/parts), "loss", opt, o)
			if err != nil {
				t.Fatal(err)
			}
			s := newStepper(t, g, map[string]*ir.Array{"w": ir.Float(ir.F64, 0.4)})
			for i := range updates {
				for part := range parts {
					before := s.values["w"].F[0]
					s.values["x"] = x(i, part*examples/parts, examples/parts)
					s.step(t)
					if moved := s.values["w"].F[0] != before; moved != (part == parts-1) {
						t.Errorf("%s: part %d of step %d moves the parameter: %t", name, part, i, moved)
					}
				}
			}
			ends[k] = s.values["w"].F[0]
		}
		if !(math.Abs(ends[0]-ends[1]) <= 1e-12) {
			t.Errorf("%s: %v by whole batches, %v by quarters", name, ends[0], ends[1])
		}
	}
}

func TestFurtherHyperParametersOutOfTheirDomain(t *testing.T) {
	for name, c := range map[string]struct {
		opt     optim.Optimizer
		options optim.Options
	}{
		"adagrad":         {optim.Adagrad{Eps: -1}, optim.Options{}},
		"rmsprop":         {optim.RMSProp{Alpha: 1}, optim.Options{}},
		"adadelta":        {optim.Adadelta{Rho: 2}, optim.Options{}},
		"nadam":           {optim.NAdam{Decay: -1}, optim.Options{}},
		"radam":           {optim.RAdam{Adam: optim.Adam{Beta2: 1}}, optim.Options{}},
		"adafactor":       {optim.Adafactor{Decay: 1}, optim.Options{}},
		"muon":            {optim.Muon{Momentum: -1}, optim.Options{}},
		"lion":            {optim.Lion{WeightDecay: -1}, optim.Options{}},
		"mars":            {optim.MARS{Beta2: 1}, optim.Options{}},
		"amsgrad":         {optim.AMSGrad{Adam: optim.Adam{Beta1: 1}}, optim.Options{}},
		"adamax":          {optim.Adamax{Adam: optim.Adam{Eps: -1}}, optim.Options{}},
		"dampening":       {optim.SGD{Momentum: 0.9, Dampening: 1}, optim.Options{}},
		"damped nesterov": {optim.SGD{Momentum: 0.9, Dampening: 0.5, Nesterov: true}, optim.Options{}},
		"lbfgs":           {optim.LBFGS{Pairs: -1}, optim.Options{}},
		"adabelief":       {optim.AdaBelief{Adam: optim.Adam{Beta2: 1}}, optim.Options{}},
		"lars":            {optim.LARS{Trust: -1}, optim.Options{}},
		"prodigy":         {optim.Prodigy{First: -1}, optim.Options{}},
		"qhadamw":         {optim.QHAdamW{Nu1: 2}, optim.Options{}},
		"adan":            {optim.Adan{Beta3: 1}, optim.Options{}},
		"ademamix":        {optim.AdEMAMix{Warm: -1}, optim.Options{}},
		"stiefel":         {optim.Stiefel{Momentum: 1}, optim.Options{}},
		"soap":            {optim.SOAP{Every: -1}, optim.Options{}},
		"sophia":          {optim.Sophia{Gamma: -1}, optim.Options{}},
		"clip value":      {optim.SGD{}, optim.Options{ClipValue: -1}},
		"average":         {optim.SGD{}, optim.Options{Average: 1}},
		"accumulate":      {optim.SGD{}, optim.Options{Accumulate: -2}},
		"steps":           {optim.SGD{}, optim.Options{Schedule: optim.Steps(1, 0.5, 0)}},
		"one cycle":       {optim.SGD{}, optim.Options{Schedule: optim.OneCycle(1, 10, 1)}},
		"no growth":       {optim.SGD{}, optim.Options{Schedule: optim.CosineRestarts(1, 0, 3, 0)}},
		"rate of a group": {optim.SGD{}, optim.Options{Groups: []optim.Group{{Match: optim.Matching("w"), Rate: -1}}}},
		"negative rate":   {optim.SGD{}, optim.Options{Schedule: optim.Exponential(1, -1)}},
	} {
		if _, err := optim.Step(lossGraph(t, ir.F32), "loss", c.opt, c.options); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
