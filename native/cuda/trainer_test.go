//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

func TestATrainerResumesOnAFakeGPU(t *testing.T) {
	fake.Install(t, true)
	t.Setenv("RLX_FAKE_DEVICES", "8")
	trainsAndResumes(t, "cuda:7")
}

func TestGPUTrainerResumes(t *testing.T) {
	gpu(t)
	trainsAndResumes(t, "cuda")
}

// trainsAndResumes trains on a device, saves halfway, and continues in a second
// trainer with the very losses of the first.
func trainsAndResumes(t *testing.T, device string) {
	ctx := context.Background()
	session, err := rlx.Open(device)
	must(t, err)
	if d := session.Device(); d.Name != device {
		t.Errorf("%s is called %s", device, d.Name)
	}
	trainer := func(seed uint32) *rlx.Trainer {
		loss, err := irtest.MLP(8, 6, 10, 3)
		must(t, err)
		tr, err := session.Train(ctx, loss, rlx.Training{Seed: seed})
		must(t, err)
		t.Cleanup(func() { must(t, tr.Program().Close(ctx)) })
		return tr
	}
	x, labels := make([]float32, 48), []int32{0, 1, 2, 0, 1, 2, 0, 1}
	steps := func(tr *rlx.Trainer, from, to int) {
		for k := from; k < to; k++ {
			for i := range x {
				x[i] = float32((i*7+k)%11)/11 - 0.5
			}
			must(t, tr.Step(ctx, rlx.Inputs{"x": rlx.Float32s(x, 8, 6), "labels": rlx.Int32s(labels)}))
		}
	}
	one := trainer(1)
	steps(one, 0, 10)
	wrong := rlx.Inputs{"x": rlx.Float32s(x, 8, 6), "labels": rlx.Int32s([]int32{0, 1, 2, 3, 0, 1, 2, 0})}
	if err := one.Step(ctx, wrong); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("a label out of range: %v", err)
	}
	var file bytes.Buffer
	must(t, one.Save(ctx, &file))
	steps(one, 10, 20)
	other := trainer(2)
	must(t, other.Load(ctx, &file))
	steps(other, 10, 20)
	a, err := one.Losses(ctx)
	must(t, err)
	b, err := other.Losses(ctx)
	must(t, err)
	if len(a) != 20 || len(b) != 10 || !slices.Equal(a[10:], b) {
		t.Errorf("losses\n%v\nthen, resumed,\n%v", a, b)
	}
}
