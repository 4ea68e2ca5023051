//go:build cgo && (darwin || linux)

package metal_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/native"
)

// digits trains a model of the demo on handwritten digits for some steps, and holds its
// losses against those that all devices are held against: of the graphs' reference
// meaning, computed in float64.
func digits(t *testing.T, b native.Backend, name string, steps int) {
	t.Helper()
	text, err := os.ReadFile("../../demo/testdata/curves.json")
	must(t, err)
	var want struct {
		Seed   uint32
		Rate   float64
		Losses map[string][]float64
	}
	must(t, json.Unmarshal(text, &want))
	train, _, err := data.Digits()
	must(t, err)
	module, err := models.All()[name].Module(1)
	must(t, err)
	ctx := context.Background()
	p, err := b.Compile(ctx, module, native.Options{})
	must(t, err)
	defer func() { must(t, p.Close()) }()
	run := func(entry string, in map[string]native.Tensor) map[string]native.Tensor {
		r, err := p.Run(ctx, entry, in)
		must(t, err)
		out, err := r.Wait(ctx)
		must(t, err)
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
		must(t, err)
		if d := math.Abs(float64(got[0]) - loss); !(d <= 1e-4) {
			t.Fatalf("step %d: loss %v, want %v", k, got[0], loss)
		}
	}
}
