package rlx_test

import (
	"maps"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// TestTheZeroTrainingIsTheDefault trains with the zero Training and with each default that its
// comments state: the weights are equal to the last bit, and differ with another value.
func TestTheZeroTrainingIsTheDefault(t *testing.T) {
	zero := trained(t, rlx.Training{})
	for name, o := range map[string]struct{ same, other rlx.Training }{
		"Loss":      {same: rlx.Training{Loss: "loss"}},
		"Optimizer": {rlx.Training{Optimizer: optim.Adam{}}, rlx.Training{Optimizer: optim.SGD{}}},
		"Rate":      {rlx.Training{Rate: rlx.DefaultRate}, rlx.Training{Rate: 2 * rlx.DefaultRate}},
		"Precision": {rlx.Training{Precision: rlx.AsWritten}, rlx.Training{Precision: rlx.MixedBF16}},
		"Init": {
			rlx.Training{Init: map[string]rlx.Initializer{"w1": rlx.GlorotUniform(), "b*": rlx.Constant(0)}},
			rlx.Training{Init: map[string]rlx.Initializer{"w1": rlx.HeNormal()}},
		},
		"Seed": {other: rlx.Training{Seed: 1}},
	} {
		if !reflect.DeepEqual(o.same, rlx.Training{}) && !reflect.DeepEqual(trained(t, o.same), zero) {
			t.Errorf("%s: zero and the documented default train differently", name)
		}
		if !reflect.DeepEqual(o.other, rlx.Training{}) && reflect.DeepEqual(trained(t, o.other), zero) {
			t.Errorf("%s has no effect", name)
		}
	}
}

// trained returns the parameters after three steps.
func trained(t *testing.T, o rlx.Training) map[string]rlx.Tensor {
	t.Helper()
	tr := trainer(t, o)
	steps(t, tr, 3)
	params, err := tr.Params(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// TestTheZeroOptionsOfAProgramAreThoseOfThePlainCalls: the plain Compile and Load are those with
// zero options.
func TestTheZeroOptionsOfAProgramAreThoseOfThePlainCalls(t *testing.T) {
	m, err := ir.NewModule("m", ir.Entry{Name: "loss", Graph: classifier(t)})
	if err != nil {
		t.Fatal(err)
	}
	full := trained(t, rlx.Training{})
	var results []map[string]native.Tensor
	for _, o := range []rlx.CompileOptions{{}, {Precision: rlx.AsWritten}, {Memory: 1 << 40}} {
		p, err := session(t).CompileWith(ctx, m, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.LoadWith(ctx, map[string]rlx.Tensor{"w1": full["w1"]}, rlx.LoadOptions{}); err == nil {
			t.Error("the zero LoadOptions allow missing parameters")
		}
		extra := map[string]rlx.Tensor{"x1": full["w1"]}
		maps.Copy(extra, full)
		if err := p.LoadWith(ctx, extra, rlx.LoadOptions{}); err == nil {
			t.Error("the zero LoadOptions allow extra values")
		}
		if err := p.Load(ctx, full); err != nil {
			t.Fatal(err)
		}
		out, err := p.Call(ctx, "loss", examples())
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, out)
	}
	if !reflect.DeepEqual(results[0], results[1]) || !reflect.DeepEqual(results[0], results[2]) {
		t.Error("the zero CompileOptions and the documented defaults compute differently")
	}
}
