package nn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFrozenLayersKeepTheirParameters trains a model with a frozen part and LoRA: only trained
// parameters change, and initially the added matrices change no result.
func TestFrozenLayersKeepTheirParameters(t *testing.T) {
	model := func(b *ir.Builder, x ir.Value, lora bool) ir.Value {
		nn.Frozen(b, func() { x = nn.BatchNorm(b, nn.Linear(b, x, 6)) })
		attend := func() { x = nn.Attention(b, x, 2) }
		if lora {
			nn.LoRA(b, nn.LoRAOptions{Rank: 3, Dropout: 0.1}, attend)
		} else {
			attend()
		}
		return x
	}
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		y := model(b, b.Input("x", ir.F32, ir.Dims(2, 5, 8)...), true)
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, y)))
	}))
	form := func(lora bool) *ir.Graph {
		return must(ir.Build("infer", func(b *ir.Builder) {
			nn.Infer(b)
			b.Output("y", model(b, b.Input("x", ir.F32, ir.Dims(2, 5, 8)...), lora))
		}))
	}
	tr, err := must(rlx.Open("cpu")).Train(ctx, loss, rlx.Training{Optimizer: optim.SGD{}, Rate: 0.01, Eval: []ir.Entry{{Name: "with", Graph: form(true)}, {Name: "without", Graph: form(false)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Program().Close(ctx)
	in := rlx.Inputs{"x": rlx.Float32s(pattern(80), 2, 5, 8)}
	base := floats(t, tr.Program(), "without", "y", in)
	close32(t, "the result before training", floats(t, tr.Program(), "with", "y", in), base, 1e-6)
	before := must(tr.Program().Save(ctx))
	for range 3 {
		check(tr.Step(ctx, in))
	}
	after := must(tr.Program().Save(ctx))
	changed := 0
	for name, x := range before {
		if strings.HasPrefix(name, optim.StatePrefix) || strings.HasPrefix(name, "history") || name == nn.RandomState {
			continue
		}
		if same := slices.Equal(x.Data, after[name].Data); same == strings.Contains(name, "lora_") {
			t.Errorf("%s is the same: %t", name, same)
		}
		if strings.Contains(name, "lora_") {
			changed++
		}
	}
	if changed != 4 {
		t.Errorf("%d added matrices, not four", changed)
	}
	close32(t, "the result without what was added", floats(t, tr.Program(), "without", "y", in), base, 0)
}

// TestEvaluationUsesTheRunningStatistics trains a batch norm and evaluates one example by the
// statistics, computed here after the formula.
func TestEvaluationUsesTheRunningStatistics(t *testing.T) {
	model := func(b *ir.Builder, rows int) ir.Value {
		return nn.BatchNorm(b, b.Input("x", ir.F32, ir.Dims(rows, 2)...))
	}
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		nn.Train(b)
		b.Output("loss", ops.ReduceSum(b, model(b, 4)))
	}))
	eval := must(ir.Build("eval", func(b *ir.Builder) {
		nn.Infer(b)
		b.Output("y", model(b, 1))
	}))
	tr, err := must(rlx.Open("cpu")).Train(ctx, loss, rlx.Training{Optimizer: optim.SGD{}, Rate: 1e-30, Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Program().Close(ctx)
	x := []float32{1, 10, 2, 20, 3, 30, 6, 60}
	mean, variance := []float64{0, 0}, []float64{1, 1}
	for range 3 {
		check(tr.Step(ctx, rlx.Inputs{"x": rlx.Float32s(x, 4, 2)}))
		for c, batch := range [][2]float64{{3, 14. / 3}, {30, 1400. / 3}} { // mean and unbiased variance
			mean[c], variance[c] = 0.9*mean[c]+0.1*batch[0], 0.9*variance[c]+0.1*batch[1]
		}
	}
	want := make([]float32, 2)
	for c := range want {
		want[c] = float32((5 - mean[c]) / math.Sqrt(variance[c]+1e-5))
	}
	one := rlx.Inputs{"x": rlx.Float32s([]float32{5, 5}, 1, 2)}
	close32(t, "the evaluation", floats(t, tr.Program(), "eval", "y", one), want, 1e-5)
	served := compiled(t, ir.Entry{Name: "eval", Graph: eval})
	if _, err := served.Call(ctx, "eval", one); !errors.Is(err, ir.ErrName) {
		t.Errorf("without the statistics: %v", err)
	}
	check(served.Load(ctx, must(tr.Params(ctx))))
	close32(t, "the evaluation in another program", floats(t, served, "eval", "y", one), want, 1e-5)
}

// TestRulesHaveTheirMoments draws 60,000 numbers by each rule and compares mean, variance and range
// with those of the distribution.
func TestRulesHaveTheirMoments(t *testing.T) {
	shape := []int{200, 300}
	for _, c := range []struct {
		rule           ir.Initial
		mean, variance float64
		low, high      float64
	}{
		{nn.Constant(2), 2, 0, 2, 2},
		{nn.Normal(1, 0.5), 1, 0.25, -9, 9},
		{nn.Uniform(-1, 3), 1, 16. / 12, -1, 3},
		{nn.Uniform(-0.5, 0.5), 0, 1. / 12, -0.5, 0.5},
		{nn.TruncatedNormal(1, 0.5, 0, 2), 1, 0.25 * 0.7737413, 0, 2}, // scipy.stats.truncnorm(-2, 2).var() is 0.7737413
		{nn.GlorotUniform(), 0, 2. / 500, -math.Sqrt(6. / 500), math.Sqrt(6. / 500)},
		{nn.GlorotNormal(), 0, 2. / 500, -1, 1},
		{nn.HeUniform(), 0, 2. / 200, -math.Sqrt(6. / 200), math.Sqrt(6. / 200)},
		{nn.HeNormal(), 0, 2. / 200, -1, 1},
		{nn.LeCunUniform(), 0, 1. / 200, -math.Sqrt(3. / 200), math.Sqrt(3. / 200)},
		{nn.LeCunNormal(), 0, 1. / 200, -1, 1},
	} {
		x := draw(t, c.rule, shape...)
		mean, variance := 0., 0.
		for _, v := range x {
			mean += float64(v) / float64(len(x))
			if float64(v) < c.low-1e-6 || float64(v) > c.high+1e-6 {
				t.Fatalf("%s draws %v, outside [%v, %v]", c.rule, v, c.low, c.high)
			}
		}
		for _, v := range x {
			variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
		}
		// Five standard errors of 60,000 numbers, and what summing them rounds.
		if !(math.Abs(mean-c.mean) <= 5*math.Sqrt(c.variance/60000)+1e-6) || !(math.Abs(variance-c.variance) <= 5*c.variance*math.Sqrt(2./60000)+1e-6) {
			t.Errorf("%s has mean %v and variance %v, not %v and %v", c.rule, mean, variance, c.mean, c.variance)
		}
	}
}

// draw returns the numbers that a rule gives for an f32 of some shape.
func draw(t *testing.T, rule ir.Initial, shape ...int) []float32 {
	t.Helper()
	g := must(ir.Build("draw", func(b *ir.Builder) {
		b.Output("x", nn.Draw(b, rule, ops.Key(b, 7), ir.TypeOf(ir.F32, ir.Dims(shape...)...)))
	}))
	return floats(t, compiled(t, ir.Entry{Name: "f", Graph: g}), "f", "x", nil)
}

// TestOrthogonalWeightsAreOrthogonal multiplies weights with their transposes.
func TestOrthogonalWeightsAreOrthogonal(t *testing.T) {
	for _, shape := range [][]int{{6, 4}, {4, 6}, {3, 3}, {2, 3, 4}} {
		rows, cols := 1, shape[len(shape)-1]
		for _, d := range shape[:len(shape)-1] {
			rows *= d
		}
		x := draw(t, nn.Orthogonal(2), shape...)
		n, at := cols, func(i, k int) float64 { return float64(x[k*cols+i]) } // columns are orthonormal
		length := rows
		if rows < cols {
			n, length, at = rows, cols, func(i, k int) float64 { return float64(x[i*cols+k]) }
		}
		for i := range n {
			for j := range n {
				dot, want := 0., 0.
				for k := range length {
					dot += at(i, k) * at(j, k)
				}
				if i == j {
					want = 4
				}
				if !(math.Abs(dot-want) <= 1e-5) {
					t.Errorf("%v: vectors %d and %d have the product %v", shape, i, j, dot)
				}
			}
		}
	}
}

// TestRulesOfMamba draws log(1 + i), and values whose softplus is within the bounds.
func TestRulesOfMamba(t *testing.T) {
	for i, v := range draw(t, ir.Initial{Rule: "log_range"}, 2, 3) {
		if want := math.Log(float64(1 + i%3)); !(math.Abs(float64(v)-want) <= 1e-6) {
			t.Errorf("element %d is %v, not %v", i, v, want)
		}
	}
	small := 0
	for _, v := range draw(t, ir.Initial{Rule: "softplus_inverse", Args: []float64{1e-3, 0.1}}, 1000) {
		dt := math.Log1p(math.Exp(float64(v)))
		if dt < 0.999e-3 || dt > 0.1001 {
			t.Errorf("a step size of %v", dt)
		}
		if dt < 1e-2 {
			small++
		}
	}
	if small < 420 || small > 580 { // half of them, on a logarithmic scale
		t.Errorf("%d of 1,000 step sizes are below 0.01", small)
	}
}

// TestTrainingStartsByTheDeclaredRules trains with rules at the declarations: those count, and
// Training.Init before them. Equal names and rules give the numbers of the rule by name.
func TestTrainingStartsByTheDeclaredRules(t *testing.T) {
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		y := nn.Linear(b, b.Input("x", ir.F32, ir.Dims(2, 4)...), 3, nn.LinearOptions{Name: "a", Init: nn.Constant(3), BiasInit: nn.GlorotUniform()})
		y = nn.Linear(b, y, 2, nn.LinearOptions{Name: "b", Init: nn.Constant(4), NoBias: true})
		y = ops.LayerNorm(b, y, b.ParamWith("scale", ir.PortOptions{Initial: nn.Constant(5)}, ir.F32, ir.N(2)), ir.Value{}, 1e-5)
		b.Output("loss", ops.ReduceSum(b, y))
	}))
	for _, accumulate := range []int{0, 2} {
		tr, err := must(rlx.Open("cpu")).Train(ctx, loss, rlx.Training{Init: map[string]rlx.Initializer{"b": rlx.Constant(6)}, Options: optim.Options{Accumulate: accumulate, Scale: &optim.LossScale{}}})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]float32{"a/weight": 3, "b/weight": 6, "scale": 5} {
			if x := must(must(tr.Program().Get(ctx, name)).Float32s()); slices.ContainsFunc(x, func(v float32) bool { return v != want }) {
				t.Errorf("%s starts as %v, not as %v", name, x, want)
			}
		}
		if x := must(must(tr.Program().Get(ctx, "a/bias")).Float32s()); slices.ContainsFunc(x, func(v float32) bool { return v == 0 }) {
			t.Errorf("the bias starts as %v", x)
		}
		check(tr.Program().Close(ctx))
	}
}

// TestLayersAcceptSymbolicSizes builds layers for a batch whose size is a symbol, and binds it.
func TestLayersAcceptSymbolicSizes(t *testing.T) {
	g := must(ir.Build("symbolic", func(b *ir.Builder) {
		nn.Infer(b)
		rows := ir.Sym("rows")
		x := b.Input("x", ir.F32, rows, ir.N(8), ir.N(8), ir.N(4))
		x = nn.Conv2d(b, nn.BatchNorm(b, nn.Conv2d(b, x, 4, 3, nn.ConvOptions{Same: true, ChannelsFirst: false})), 8, 2, nn.ConvOptions{Stride: []int{2}})
		x = nn.GroupNorm(b, nn.MaxPool(b, nn.ConvTranspose2d(b, x, 4, 2), 2), 2)
		x = ops.Reshape(b, x, rows, ir.N(4), ir.N(4))
		x = nn.TransformerBlock(b, nn.PositionalEmbedding(b, x, 9), 2, nn.TransformerOptions{Causal: true, Rope: &nn.RopeOptions{}})
		y, _, _ := nn.LSTM(b, nn.Mamba(b, x), 5)
		b.Output("y", nn.Linear(b, y, 3))
	}))
	if got := g.Outputs()[0].Value.Type().String(); got != "f32[rows,4,3]" {
		t.Errorf("the result is %s", got)
	}
	bound, err := g.Bind(map[string]int{"rows": 3})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range bound.Ports() {
		if got, want := p.Options(), g.Ports()[i].Options(); !got.Initial.Equal(want.Initial) || got.Frozen != want.Frozen {
			t.Errorf("bound, %s has %v, not %v", p.Name, got, want)
		}
	}
	p := compiled(t, ir.Entry{Name: "f", Graph: bound})
	check(p.Load(ctx, values(t, bound)))
	floats(t, p, "f", "y", rlx.Inputs{"x": rlx.Float32s(pattern(3*8*8*4), 3, 8, 8, 4)})
}
