//go:build cgo && linux && (amd64 || arm64)

package mpi_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/collective"
)

// trains trains a model on the CPU, each rank with its rows of the batch, and compares the losses with
// those of one rank.
func trains(ctx context.Context, g *collective.Group) error {
	got, err := losses(ctx, g)
	if err != nil {
		return err
	}
	want, err := losses(ctx, collective.Local(1, collective.Options{})[0])
	if err != nil {
		return err
	}
	for i, w := range want {
		if len(got) != len(want) || math.Abs(float64(got[i]-w)) > 1e-6 {
			return fmt.Errorf("the losses are %v, those of one rank %v", got, want)
		}
	}
	return nil
}

func losses(ctx context.Context, g *collective.Group) ([]float32, error) {
	const batch, steps = 8, 6
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
	tr, err := s.Train(ctx, loss, rlx.Training{Rate: 0.05, Seed: 3, Parallel: &rlx.DataParallel{Group: g}})
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range steps {
		x, y := make([]float32, batch*3), make([]float32, batch*2)
		for _, all := range [][]float32{x, y} {
			for i := range all {
				all[i] = float32(random.NormFloat64())
			}
		}
		from, to := g.Rank()*rows, (g.Rank()+1)*rows
		in := rlx.Inputs{"x": rlx.Float32s(x[from*3:to*3], rows, 3), "y": rlx.Float32s(y[from*2:to*2], rows, 2)}
		if err := tr.Step(ctx, in); err != nil {
			return nil, err
		}
	}
	return tr.Losses(ctx)
}
