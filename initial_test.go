package rlx_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// moments returns mean and variance of f32[200,300] drawn by an initializer.
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

func TestInitializersHaveDocumentedMoments(t *testing.T) {
	for name, c := range map[string]struct {
		init           rlx.Initializer
		mean, variance float64
	}{
		"HeNormal":      {rlx.HeNormal(), 0, 2. / 200},
		"GlorotNormal":  {rlx.GlorotNormal(), 0, 2. / 500},
		"GlorotUniform": {rlx.GlorotUniform(), 0, 2. / 500},
		"HeUniform":     {rlx.HeUniform(), 0, 2. / 200},
		"Normal":        {rlx.Normal(3, 2), 3, 4},
		"Uniform":       {rlx.Uniform(1, 3), 2, 1. / 3},
		"Constant":      {rlx.Constant(5), 5, 0},
	} {
		mean, variance := moments(t, c.init)
		// Five standard errors of 60,000 numbers, and what summing them rounds.
		slack, spread := 5*math.Sqrt(c.variance/60000)+1e-9, 5*c.variance*math.Sqrt(2./60000)+1e-9
		if !(math.Abs(mean-c.mean) <= slack) || !(math.Abs(variance-c.variance) <= spread) {
			t.Errorf("%s: mean %v and variance %v, want %v and %v", name, mean, variance, c.mean, c.variance)
		}
	}
}

// What a norm scales by begins as ones, as in PyTorch and JAX (flax): at 0 a layer would
// say nothing, and learn nothing below it.
func TestNormScalesStartAtOne(t *testing.T) {
	loss, err := ir.Build("norms", func(b *ir.Builder) {
		vector := func(name string) ir.Value { return b.Param(name, ir.F32, ir.N(4)) }
		x := ops.LayerNorm(b, b.Input("x", ir.F32, ir.Dims(2, 4)...), vector("layer"), vector("bias"), 1e-5)
		x = ops.RMSNorm(b, x, vector("rms"), 1e-5)
		x = ops.GroupNorm(b, x, vector("group"), ir.Value{}, 2, 1e-5)
		x = ops.Add(b, x, ops.LayerNorm(b, x, vector("given"), ir.Value{}, 1e-5))
		mean, variance := b.State("mean", ir.F32, ir.N(4)), b.State("variance", ir.F32, ir.N(4))
		x, mean, variance = ops.BatchNormTraining(b, x, ops.BatchNormVectors{Scale: vector("batch"), Bias: vector("shift"), Mean: mean, Variance: variance}, ops.BatchNormAttrs{Momentum: 0.1})
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

// begun is the initial value of a parameter of ir/irtest/cases/initial.json.
type begun struct {
	Seed        uint32
	Name, DType string
	Shape       []int
	Initial     any // nil for the default, "glorot", "he" or a number
	SHA256      string
}

func (p begun) initializer() rlx.Initializer {
	switch v := p.Initial.(type) {
	case float64:
		return rlx.Constant(v)
	case string:
		return map[string]rlx.Initializer{"glorot": rlx.GlorotUniform(), "he": rlx.HeUniform()}[v]
	}
	return nil
}

// bySeed returns the parameters of ir/irtest/cases/initial.json, which the tests of TypeScript
// read too.
func bySeed(t *testing.T) map[uint32][]begun {
	t.Helper()
	data, err := os.ReadFile("ir/irtest/cases/initial.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Params []begun }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	out := map[uint32][]begun{}
	for _, p := range file.Params {
		out[p.Seed] = append(out[p.Seed], p)
	}
	return out
}

// TestNormScalesOfNestedGraphsStartAtOne has norms in a checkpoint, a loop within it, and a branch.
func TestNormScalesOfNestedGraphsStartAtOne(t *testing.T) {
	norm := func(b *ir.Builder, in []ir.Value) ir.Value { return ops.LayerNorm(b, in[0], in[1], in[2], 1e-5) }
	loop := func(b *ir.Builder, in []ir.Value) []ir.Value {
		y, _ := ops.Scan(b, ops.Loop{
			Consts: in[1:], Carries: in[:1], Length: ir.N(2),
			Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{norm(b, append(carries, consts...))}, nil
			},
		})
		return y
	}
	g, err := ir.Build("nested", func(b *ir.Builder) {
		operands := func(name string, x ir.Value) []ir.Value {
			return []ir.Value{x, b.Param(name+"/scale", ir.F32, ir.N(4)), b.Param(name+"/bias", ir.F32, ir.N(4))}
		}
		x := autodiff.Checkpoint(b, operands("checkpoint", b.Input("x", ir.F32, ir.Dims(2, 4)...)), func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{norm(b, in)}
		})[0]
		x = autodiff.Checkpoint(b, operands("loop", x), loop)[0]
		isHot := ops.Gt(b, ops.ReduceSum(b, x), ops.Const(b, ir.F32, 0))
		x = ops.Cond(b, isHot, operands("branch", x), func(b *ir.Builder, in []ir.Value) []ir.Value { return in[:1] },
			func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{norm(b, in)} })[0]
		b.Output("loss", ops.ReduceSum(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	values, err := rlx.InitialParams(ctx, g, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range values {
		want := float32(0)
		if strings.HasSuffix(name, "/scale") {
			want = 1
		}
		if got, err := x.Float32s(); err != nil || len(values) != 6 || slices.ContainsFunc(got, func(v float32) bool { return v != want }) {
			t.Errorf("%s of %d parameters is %v, %v; want %v", name, len(values), got, err, want)
		}
	}
}

// The same model and seed have the same initial bits in Go and in TypeScript, in any order
// the parameters are declared in.
func TestParametersBeginWithTheSameBitsInBothLanguages(t *testing.T) {
	for seed, params := range bySeed(t) {
		for _, backwards := range []bool{false, true} {
			if backwards {
				slices.Reverse(params)
			}
			by := map[string]rlx.Initializer{}
			loss := must(ir.Build("loss", func(b *ir.Builder) {
				sum := ops.Const(b, ir.F32, 0)
				for _, p := range params {
					if init := p.initializer(); init != nil {
						by[p.Name] = init
					}
					d := map[string]ir.DType{"f32": ir.F32, "f16": ir.F16, "bf16": ir.BF16}[p.DType]
					sum = ops.Add(b, sum, ops.ReduceSum(b, ops.Convert(b, b.Param(p.Name, d, ir.Dims(p.Shape...)...), ir.F32)))
				}
				b.Output("loss", sum)
			}))(t)
			tr := must(session(t).Train(ctx, loss, rlx.Training{Seed: seed, Init: by}))(t)
			for _, p := range params {
				x := must(tr.Program().Get(ctx, p.Name))(t)
				if got := sha256.Sum256(x.Data); hex.EncodeToString(got[:]) != p.SHA256 {
					t.Errorf("seed %d: %s begins otherwise: % x…", seed, p.Name, x.Data[:8])
				}
			}
			if err := tr.Program().Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Init takes the patterns that Frozen takes, and a name before them.
func TestInitializersByPattern(t *testing.T) {
	loss := must(ir.Build("layers", func(b *ir.Builder) {
		sum := ops.Const(b, ir.F32, 0)
		for _, name := range []string{"a/w", "a/b", "b/w", "b/b", "c/d/w"} {
			sum = ops.Add(b, sum, ops.ReduceSum(b, b.Param(name, ir.F32, ir.N(2))))
		}
		b.Output("loss", sum)
	}))(t)
	n := func(x float64) rlx.Initializer { return rlx.Constant(x) }
	for _, c := range []struct {
		init map[string]rlx.Initializer
		want map[string]float32
		err  string // words of the error
	}{
		{map[string]rlx.Initializer{"*/w": n(2)}, map[string]float32{"a/w": 2, "b/w": 2, "a/b": 0, "c/d/w": 0}, ""},
		{map[string]rlx.Initializer{"c": n(3), "a": n(1)}, map[string]float32{"c/d/w": 3, "a/w": 1, "a/b": 1, "b/w": 0}, ""},
		{map[string]rlx.Initializer{"*/w": n(2), "a/w": n(5), "a": n(4), "b/w": n(6)}, map[string]float32{"a/w": 5, "a/b": 4, "b/w": 6}, ""},
		{map[string]rlx.Initializer{"*/w": n(2), "a": n(4)}, nil, `"*/w" and for "a" both match parameter "a/w"`},
		{map[string]rlx.Initializer{"z/*": n(2)}, nil, `"z/*", which matches no parameter`},
		{map[string]rlx.Initializer{"*": n(2)}, map[string]float32{"a/w": 2, "c/d/w": 2, "optim/m/a/w": 0}, ""},
	} {
		tr, err := session(t).Train(ctx, loss, rlx.Training{Init: c.init})
		if c.err != "" {
			if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v instead of %s", err, c.err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for name, want := range c.want {
			if got := must(must(tr.Program().Get(ctx, name))(t).Float32s())(t); got[0] != want {
				t.Errorf("%s begins as %v, not %v", name, got[0], want)
			}
		}
		if err := tr.Program().Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestInitialParamsAreThoseOfTraining draws the parameters of an inference: they are those with which a training of the same
// seed begins, states that begin as ones included, and a pattern replaces those that it matches.
func TestInitialParamsAreThoseOfTraining(t *testing.T) {
	model := func(train bool) *ir.Graph {
		return must(ir.Build("model", func(b *ir.Builder) {
			nn.Infer(b)
			if train {
				nn.Train(b)
			}
			y := nn.Linear(b, nn.BatchNorm(b, nn.Linear(b, b.Input("x", ir.F32, ir.Sym("batch"), ir.N(3)), 4)), 1)
			b.Output("y", y)
			b.Output("loss", ops.Mean(b, ops.Square(b, y)))
		}))(t)
	}
	trainer := must(session(t).Train(ctx, model(true), rlx.Training{Seed: 7}))(t)
	t.Cleanup(func() { _ = trainer.Program().Close(ctx) })
	want := must(trainer.Params(ctx))(t)
	got := must(rlx.InitialParams(ctx, model(false), nil, 7))(t)
	for name, x := range want {
		if y := got[name]; !slices.Equal(x.Data, y.Data) {
			t.Errorf("%s is %v, in training %v", name, y, x)
		}
	}
	given := must(rlx.InitialParams(ctx, model(false), map[string]rlx.Initializer{"*/bias": rlx.Constant(2)}, 7))(t)
	if bias := must(given["linear1/bias"].Float32s())(t); bias[0] != 2 {
		t.Errorf("the bias is %v", bias)
	}
	p := must(session(t).Compile(ctx, must(ir.NewModule("served", ir.Entry{Name: "run", Graph: model(false)}))(t)))(t)
	t.Cleanup(func() { _ = p.Close(ctx) })
	if err := p.Load(ctx, got); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(ctx, "run", rlx.Inputs{"x": rlx.Float32s(make([]float32, 6), 2, 3)}); err != nil {
		t.Error(err)
	}
	if _, err := rlx.InitialParams(ctx, model(false), map[string]rlx.Initializer{"encoder/*": rlx.Constant(0)}, 7); !errors.Is(err, ir.ErrName) {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
	if _, err := rlx.InitialParams(ctx, model(false), map[string]rlx.Initializer{"*": nil}, 7); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("no initializer: %v", err)
	}
	if _, err := rlx.InitialParams(ctx, nil, nil, 7); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no graph: %v", err)
	}
}
