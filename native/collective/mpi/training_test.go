//go:build cgo && linux && (amd64 || arm64)

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/collective"
)

// A rank is killed before a step, and all save every few steps.
const (
	steps      = 9
	killedStep = 5
	saveEach   = 2
)

// trains trains a model on the CPU, each rank with its rows of the batch, and compares the losses with
// those of one rank.
func trains(ctx context.Context, g *collective.Group) error {
	got, err := losses(ctx, g, os.Getenv(dirVariable))
	if err != nil {
		return err
	}
	want, err := losses(ctx, collective.Local(1, collective.Options{})[0], "")
	if err != nil {
		return err
	}
	for i, x := range got {
		if w := want[len(want)-len(got)+i]; math.Abs(float64(x-w)) > 1e-6 {
			return fmt.Errorf("the losses are %v, those of one rank %v", got, want)
		}
	}
	return nil
}

const batch = 8

// losses trains from the checkpoint of a folder, if it has one, to the last step.
func losses(ctx context.Context, g *collective.Group, dir string) ([]float32, error) {
	rows := batch / g.Size()
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(rows, 3)...), b.Input("y", ir.F32, ir.Dims(rows, 2)...)
		h := ops.Tanh(b, ops.Linear(b, x, b.Param("w1", ir.F32, ir.Dims(3, 5)...), b.Param("b1", ir.F32, ir.N(5))))
		out := ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(5, 2)...), b.Param("b2", ir.F32, ir.N(2)))
		b.Output("loss", ops.MSE(b, out, y, ops.LossMean))
	})
	if err != nil {
		return nil, err
	}
	s, err := rlx.Open("cpu")
	if err != nil {
		return nil, err
	}
	o := rlx.Training{Rate: 0.05, Seed: 3, Parallel: &rlx.DataParallel{Group: g, Shard: dir != ""}}
	if os.Getenv(jobVariable) == "plan" && g.Rank() == guilty {
		o.Options.ClipNorm = 1
	}
	tr, err := s.Train(ctx, loss, o)
	if err != nil {
		return nil, err
	}
	if saved, err := rlx.LatestShards(dir); dir != "" && (err != nil || saved != "") {
		if err := errors.Join(err, tr.LoadShards(ctx, saved)); err != nil {
			return nil, err
		}
		fmt.Printf("from step %d\n", tr.Steps())
	}
	for step := tr.Steps(); step < steps; step++ {
		if step == killedStep && os.Getenv(jobVariable) == "killed" && g.Rank() == guilty {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err := tr.Step(ctx, rowsOf(step, g.Rank()*rows, (g.Rank()+1)*rows)); err != nil {
			return nil, err
		}
		if dir != "" && step%saveEach == saveEach-1 {
			wait, err := tr.SaveShards(ctx, filepath.Join(dir, fmt.Sprint(tr.Steps())))
			if err == nil {
				err = wait()
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return tr.Losses(ctx)
}

// rowsOf returns some rows of the batch of a step.
func rowsOf(step, from, to int) rlx.Inputs {
	random := rand.New(rand.NewPCG(5, uint64(step)))
	x, y := make([]float32, batch*3), make([]float32, batch*2)
	for _, all := range [][]float32{x, y} {
		for i := range all {
			all[i] = float32(random.NormFloat64())
		}
	}
	return rlx.Inputs{"x": rlx.Float32s(x[from*3:to*3], to-from, 3), "y": rlx.Float32s(y[from*2:to*2], to-from, 2)}
}
