package models_test

import (
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	_ "github.com/rlx-go/rlx/native/cpu"
)

var update = flag.Bool("update", false, "write the curves again")

// curvesFile holds the losses that every device is held against, here and in
// the tests of the page: the reference implementation of the graphs, in float64.
const curvesFile = "../testdata/curves.json"

type curves struct {
	Seed   uint32               `json:"seed"`
	Rate   float64              `json:"rate"`
	Losses map[string][]float64 `json:"losses"`
}

const curveSteps = 50

func TestCurvesOnTheCPUEqualReference(t *testing.T) {
	if *update {
		writeCurves(t)
	}
	file, err := os.ReadFile(curvesFile)
	if err != nil {
		t.Fatal(err)
	}
	var want curves
	if err := json.Unmarshal(file, &want); err != nil {
		t.Fatal(err)
	}
	for name, m := range models.All() {
		t.Run(name, func(t *testing.T) {
			losses := want.Losses[name]
			if first, last := losses[0], losses[curveSteps-1]; last > first/2 {
				t.Errorf("the loss goes from %v to %v only", first, last)
			}
			got := trainOnCPU(t, m, want)
			for i, loss := range got {
				if d := math.Abs(loss - losses[i]); !(d <= 1e-4) {
					t.Fatalf("step %d: loss %v, want %v", i, loss, losses[i])
				}
			}
		})
	}
}

// trainOnCPU returns the losses of the first steps.
func trainOnCPU(t *testing.T, m models.Model, c curves) []float64 {
	t.Helper()
	module, err := m.Module(models.Batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := native.Lookup("cpu")
	if err != nil {
		t.Fatal(err)
	}
	p, err := backend.Compile(context.Background(), module, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	run := func(entry string, in map[string]native.Tensor) map[string]native.Tensor {
		r, err := p.Run(context.Background(), entry, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := r.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("init", map[string]native.Tensor{models.Seed: native.Uint32(c.Seed)})
	losses := make([]float64, curveSteps)
	for k := range losses {
		images, labels := batch(t, k)
		loss, err := run("step", map[string]native.Tensor{
			models.Images: native.Float32s(images, models.Batch, models.Pixels),
			models.Labels: native.Int32s(labels, models.Batch),
			"lr":          native.Float32(float32(c.Rate)),
		})[models.Loss].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		losses[k] = float64(loss[0])
	}
	return losses
}

func batch(t *testing.T, k int) ([]float32, []int32) {
	t.Helper()
	train, _, err := data.Digits()
	if err != nil {
		t.Fatal(err)
	}
	images, labels := make([]float32, models.Batch*models.Pixels), make([]int32, models.Batch)
	train.Batch(k, images, labels)
	return images, labels
}

func writeCurves(t *testing.T) {
	t.Helper()
	c := curves{Seed: 1, Rate: 1e-3, Losses: map[string][]float64{}}
	for name, m := range models.All() {
		c.Losses[name] = reference(t, m, c)
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(curvesFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reference trains with the reference implementation of the ops.
func reference(t *testing.T, m models.Model, c curves) []float64 {
	t.Helper()
	step, err := m.StepGraph(models.Batch)
	if err != nil {
		t.Fatal(err)
	}
	init, err := m.InitGraph(step)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]*ir.Array{}
	for _, p := range init.Ports() {
		state[p.Name] = ir.NewArray(p.Value.Type().DType, constant(p.Value.Type().Shape)...)
	}
	state[models.Seed] = ir.Int(ir.U32, int64(c.Seed))
	evaluate(t, init, state)
	delete(state, models.Seed)
	losses := make([]float64, curveSteps)
	for k := range losses {
		images, labels := batch(t, k)
		in := ir.NewArray(ir.F32, models.Batch, models.Pixels)
		for i, v := range images {
			in.F[i] = float64(v)
		}
		want := ir.NewArray(ir.I32, models.Batch)
		for i, v := range labels {
			want.I[i] = int64(v)
		}
		state[models.Images], state[models.Labels] = in, want
		state["lr"] = ir.Float(ir.F32, float64(float32(c.Rate)))
		losses[k] = evaluate(t, step, state)[models.Loss].F[0]
	}
	return losses
}

// evaluate computes the outputs of a graph, and puts the new states in place.
func evaluate(t *testing.T, g *ir.Graph, in map[string]*ir.Array) map[string]*ir.Array {
	t.Helper()
	values, err := ir.Eval(g, in, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ir.Array{}
	for i, o := range g.Outputs() {
		if o.State {
			in[o.Name] = values[i]
		} else {
			out[o.Name] = values[i]
		}
	}
	return out
}

func constant(s ir.Shape) []int {
	dims := make([]int, len(s))
	for i, d := range s {
		dims[i], _ = d.Const()
	}
	return dims
}
