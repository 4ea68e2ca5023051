package rlx_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// moments returns mean and variance of what an initializer draws for f32[200,300].
func moments(t *testing.T, init rlx.Initializer) (mean, variance float64) {
	t.Helper()
	g, err := ir.Build("init", func(b *ir.Builder) {
		b.Output("x", init(b, ops.Key(b, 1), ir.TypeOf(ir.F32, ir.N(200), ir.N(300))))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("init", ir.Entry{Name: "init", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := session(t).Compile(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Call(ctx, "init", nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := out["x"].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	return mean, variance
}

func TestInitializersHaveTheMomentsTheyPromise(t *testing.T) {
	for name, c := range map[string]struct {
		init           rlx.Initializer
		mean, variance float64
	}{
		"HeNormal":      {rlx.HeNormal(), 0, 2. / 200},
		"GlorotNormal":  {rlx.GlorotNormal(), 0, 2. / 500},
		"GlorotUniform": {rlx.GlorotUniform(), 0, 2. / 500},
		"Normal":        {rlx.Normal(3, 2), 3, 4},
		"Uniform":       {rlx.Uniform(1, 3), 2, 1. / 3},
		"Constant":      {rlx.Constant(5), 5, 0},
	} {
		mean, variance := moments(t, c.init)
		// Five standard errors of 60,000 numbers, and what summing them rounds.
		slack, spread := 5*math.Sqrt(c.variance/60000)+1e-9, 5*c.variance*math.Sqrt(2./60000)+1e-9
		if math.Abs(mean-c.mean) > slack || math.Abs(variance-c.variance) > spread {
			t.Errorf("%s: mean %v and variance %v, want %v and %v", name, mean, variance, c.mean, c.variance)
		}
	}
}

// What a norm scales by begins as ones, as in PyTorch and JAX (flax): at 0 a layer would
// say nothing, and learn nothing below it.
func TestScalesOfNormsBeginAsOnes(t *testing.T) {
	loss, err := ir.Build("norms", func(b *ir.Builder) {
		vector := func(name string) ir.Value { return b.Param(name, ir.F32, ir.N(4)) }
		x := ops.LayerNorm(b, b.Input("x", ir.F32, ir.Dims(2, 4)...), vector("layer"), vector("bias"), 1e-5)
		x = ops.RMSNorm(b, x, vector("rms"), 1e-5)
		x = ops.GroupNorm(b, x, vector("group"), ir.Value{}, 2, 1e-5)
		x = ops.Add(b, x, ops.LayerNorm(b, x, vector("given"), ir.Value{}, 1e-5))
		mean, variance := b.State("mean", ir.F32, ir.N(4)), b.State("variance", ir.F32, ir.N(4))
		x, mean, variance = ops.BatchNormTraining(b, x, vector("batch"), vector("shift"), mean, variance, ops.BatchNormAttrs{Momentum: 0.1})
		b.SetState("mean", mean)
		b.SetState("variance", variance)
		b.Output("loss", ops.ReduceSum(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := session(t).Train(ctx, loss, rlx.Training{Init: map[string]rlx.Initializer{"given": rlx.Constant(3)}})
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Program().Close(ctx)
	for name, want := range map[string]float32{
		"layer": 1, "rms": 1, "group": 1, "batch": 1, "variance": 1, "bias": 0, "shift": 0, "mean": 0, "given": 3,
	} {
		x, err := trainer.Program().Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Float32s(); err != nil || slices.ContainsFunc(got, func(v float32) bool { return v != want }) {
			t.Errorf("%s begins as %v, %v; want %v", name, got, err, want)
		}
	}
}
