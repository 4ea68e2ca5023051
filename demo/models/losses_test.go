package models_test

import (
	"context"
	"encoding/csv"
	"flag"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	_ "github.com/rlx-go/rlx/native/cpu"
	_ "github.com/rlx-go/rlx/webgpu"
)

var update = flag.Bool("update", false, "compute the reference losses again, which takes minutes")

// losses.csv has the losses of the first steps of each model from seed 1 with
// Adam at 0.001, evaluated by the reference meaning of the ops in float64.
const (
	lossFile = "testdata/losses.csv"
	seed     = 1
	steps    = 50
	// tolerance is how far a device may be from the reference at any step.
	tolerance = 1e-4
)

var names = []string{"mlp", "cnn"}

func TestLossesOfFirstStepsAreThoseOfTheReference(t *testing.T) {
	if *update {
		writeReference(t)
	}
	want := readReference(t)
	for _, b := range native.Backends() {
		for _, name := range names {
			t.Run(b.Name()+" "+name, func(t *testing.T) {
				backendtest.Require(t, b.Name(), b.Probe())
				compare(t, deviceLosses(t, b, models.All()[name]), want[name])
			})
		}
	}
}

func compare(t *testing.T, got []float32, want []float64) {
	t.Helper()
	for k := range want {
		if d := math.Abs(float64(got[k]) - want[k]); !(d <= tolerance) {
			t.Errorf("step %d: loss %v, reference %v", k, got[k], want[k])
		}
	}
	if last := want[len(want)-1]; last > want[0]/2 {
		t.Errorf("the loss falls from %v to %v only", want[0], last)
	}
}

// batch returns the inputs of a step.
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

func deviceLosses(t *testing.T, b native.Backend, m models.Model) []float32 {
	t.Helper()
	ctx := context.Background()
	module, err := m.Module(data.TestCount)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(ctx, module, native.Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := func(entry string, in map[string]native.Tensor) {
		r, err := p.Run(ctx, entry, in)
		if err == nil {
			_, err = r.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	call("init", map[string]native.Tensor{models.Seed: native.Uint32(seed)})
	for k := range steps {
		images, labels := batch(t, k)
		call("step", map[string]native.Tensor{
			models.Images: native.Float32s(images, models.Batch, models.Pixels),
			models.Labels: native.Int32s(labels), optim.RateInput: native.Float32(1e-3),
		})
	}
	history, err := p.Get(ctx, optim.HistoryState(models.Loss))
	if err != nil {
		t.Fatal(err)
	}
	losses, err := history.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return losses[:steps]
}

func readReference(t *testing.T) map[string][]float64 {
	t.Helper()
	f, err := os.Open(lossFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for _, row := range rows[1:] {
		for i, name := range names {
			x, err := strconv.ParseFloat(row[1+i], 64)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = append(out[name], x)
		}
	}
	if len(out[names[0]]) != steps {
		t.Fatalf("%s has %d steps, not %d", lossFile, len(out[names[0]]), steps)
	}
	return out
}

func writeReference(t *testing.T) {
	t.Helper()
	rows := [][]string{append([]string{"step"}, names...)}
	for k := range steps {
		rows = append(rows, []string{strconv.Itoa(k)})
	}
	for _, name := range names {
		for k, loss := range referenceLosses(t, models.All()[name]) {
			rows[k+1] = append(rows[k+1], strconv.FormatFloat(loss, 'f', 8, 64))
		}
	}
	f, err := os.Create(lossFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func referenceLosses(t *testing.T, m models.Model) []float64 {
	t.Helper()
	step, err := m.StepGraph(models.Batch)
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.InitGraph(step)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]*ir.Array{models.Seed: ir.Ints(ir.U32, []int64{seed})}
	for _, p := range first.Ports() {
		if p.Kind == ir.StatePort {
			dims, _ := p.Value.Shape().Ints()
			values[p.Name] = ir.NewArray(p.Value.DType(), dims...)
		}
	}
	// The first weights are drawn as a device does, so that all start alike.
	evaluate(t, first, values, ir.EvalOptions{})
	delete(values, models.Seed)
	values[optim.RateInput] = ir.Floats(ir.F32, []float64{1e-3})
	var losses []float64
	for k := range steps {
		images, labels := batch(t, k)
		x, y := ir.NewArray(ir.F32, models.Batch, models.Pixels), ir.NewArray(ir.I32, models.Batch)
		for i, v := range images {
			x.F[i] = float64(v)
		}
		for i, v := range labels {
			y.I[i] = int64(v)
		}
		values[models.Images], values[models.Labels] = x, y
		losses = append(losses, evaluate(t, step, values, ir.EvalOptions{Reference: true})[models.Loss].F[0])
	}
	return losses
}

// evaluate runs a graph, puts its new states into values and returns its
// outputs.
func evaluate(t *testing.T, g *ir.Graph, values map[string]*ir.Array, o ir.EvalOptions) map[string]*ir.Array {
	t.Helper()
	results, err := ir.Eval(g, values, o)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ir.Array{}
	for i, r := range g.Outputs() {
		if r.State {
			values[r.Name] = results[i]
		} else {
			out[r.Name] = results[i]
		}
	}
	return out
}
