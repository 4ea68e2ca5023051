//go:build cgo && (darwin || linux)

package coreml_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/coreml"
)

// TestDigitsAreLearned trains a network on handwritten digits as users train on any
// device, and holds its losses against those of the CPU, whose curves other tests hold
// against the reference implementation.
func TestDigitsAreLearned(t *testing.T) {
	const steps, batch, pixels = 60, 64, 64
	train, _, err := data.Digits()
	if err != nil {
		t.Fatal(err)
	}
	losses := map[string][]float32{}
	for _, device := range []string{coreml.Name, "cpu"} {
		g, err := ir.Build("digits", func(b *ir.Builder) {
			x, labels := b.Input("images", ir.F32, ir.Dims(batch, pixels)...), b.Input("labels", ir.I32, ir.N(batch))
			h := ops.Relu(b, ops.Linear(b, x, b.Param("w1", ir.F32, ir.Dims(pixels, 32)...), b.Param("b1", ir.F32, ir.N(32))))
			b.Output("loss", ops.CrossEntropyMean(b, ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(32, 10)...), b.Param("b2", ir.F32, ir.N(10))), labels))
		})
		if err != nil {
			t.Fatal(err)
		}
		session, err := rlx.Open(device)
		if err != nil {
			t.Fatal(err)
		}
		trainer, err := session.Train(context.Background(), g, rlx.Training{Rate: 5e-3, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		images, labels := make([]float32, batch*pixels), make([]int32, batch)
		for k := range steps {
			train.Batch(k, images, labels)
			in := rlx.Inputs{"images": rlx.Float32s(images, batch, pixels), "labels": rlx.Int32s(labels, batch)}
			if err := trainer.Step(context.Background(), in); err != nil {
				t.Fatal(err)
			}
		}
		if losses[device], err = trainer.Losses(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := trainer.Program().Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	got, want := losses[coreml.Name], losses["cpu"]
	for k := range want {
		if !(math.Abs(float64(got[k]-want[k])) <= 1e-4*math.Max(1, float64(want[k]))) {
			t.Fatalf("step %d: the loss is %v, on the CPU %v", k, got[k], want[k])
		}
	}
	if last := got[steps-1]; last > 0.5*got[0] {
		t.Errorf("the loss went from %v to %v", got[0], last)
	}
}
