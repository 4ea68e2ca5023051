// Package demo checks that devices train the demos' models as the reference does.
package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"math"
	"testing"

	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/native"
)

// curves are the losses of the reference implementation in float64, written by the tests of package
// models.
//
//go:embed testdata/curves.json
var curves []byte

// tolerance is the allowed difference between a loss in f32 and that of the reference.
const tolerance = 1e-4

// Digits trains a model of [models.All] on handwritten digits for the first steps of its curve, at
// most 50, and fails the test if a loss differs from the curve.
func Digits(t *testing.T, b native.Backend, name string, steps int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var want struct {
		Seed   uint32
		Rate   float64
		Losses map[string][]float64
	}
	must(json.Unmarshal(curves, &want))
	train, _, err := data.Digits()
	must(err)
	module, err := models.All()[name].Module(models.Batch, 1)
	must(err)
	ctx := context.Background()
	p, err := b.Compile(ctx, module, native.Options{})
	must(err)
	defer func() { must(p.Close(ctx)) }()
	run := func(entry string, in map[string]native.Tensor) map[string]native.Tensor {
		t.Helper()
		r, err := p.Run(ctx, entry, in)
		must(err)
		out, err := r.Wait(ctx)
		must(err)
		return out
	}
	run("init", map[string]native.Tensor{models.Seed: native.Uint32(want.Seed)})
	images, labels := make([]float32, models.Batch*models.Pixels), make([]int32, models.Batch)
	for k, loss := range want.Losses[name][:steps] {
		train.Batch(k, images, labels)
		out := run("step", map[string]native.Tensor{
			models.Images: native.Float32s(images, models.Batch, models.Pixels),
			models.Labels: native.Int32s(labels, models.Batch),
			"lr":          native.Float32(float32(want.Rate)),
		})
		got, err := out[models.Loss].Float32s()
		must(err)
		if d := math.Abs(float64(got[0]) - loss); !(d <= tolerance) {
			t.Fatalf("step %d: loss %v, want %v", k, got[0], loss)
		}
	}
}
