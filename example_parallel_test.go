package rlx_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"sync"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/collective"
)

// Started by a launcher as several processes, the program trains one model on all of them: each
// rank takes its rows of every batch. Started alone it is rank 0 of 1.
func ExampleDataParallel() {
	ctx := context.Background()
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	group, err := session.Group(ctx, collective.Options{}) // waits for all processes
	if err != nil {
		log.Fatal(err)
	}
	const batch = 24
	rows := batch / group.Size()
	loss, err := ir.Build("line", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.N(rows)), b.Input("y", ir.F32, ir.N(rows))
		e := ops.Sub(b, ops.Mul(b, x, b.Param("slope", ir.F32)), y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, e, e)))
	})
	if err != nil {
		log.Fatal(err)
	}
	trainer, err := session.Train(ctx, loss, rlx.Training{Rate: 0.1, Parallel: &rlx.DataParallel{Group: group}})
	if err != nil {
		log.Fatal(err)
	}
	for step := range 200 {
		x, y := make([]float32, rows), make([]float32, rows)
		for i := range rows {
			row := step*batch + group.Rank()*rows + i // depends on the step, the rank and the size alone
			x[i] = float32(math.Sin(float64(row)))
			y[i] = 3 * x[i]
		}
		if err := trainer.Step(ctx, rlx.Inputs{"x": rlx.Float32s(x), "y": rlx.Float32s(y)}); err != nil {
			log.Fatal(err)
		}
	}
	slope, err := trainer.Program().Get(ctx, "slope")
	if err != nil {
		log.Fatal(err)
	}
	values, err := slope.Float32s()
	if err != nil {
		log.Fatal(err)
	}
	if group.Rank() == 0 {
		fmt.Printf("slope %.2f\n", values[0])
	}
	// Output: slope 3.00
}

// The layers of a network are divided among two processes: each has half of the features in between. Here the
// ranks are of one process.
func ExamplePartition() {
	ctx := context.Background()
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	loss, err := ir.Build("network", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(4, 2)...), b.Input("y", ir.F32, ir.Dims(4, 1)...)
		e := ops.Sub(b, nn.Linear(b, ops.Tanh(b, nn.Linear(b, x, 8)), 1), y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, e, e)))
	})
	if err != nil {
		log.Fatal(err)
	}
	rank := func(group *collective.Group) error {
		mesh, err := collective.NewMesh(ctx, group, collective.Axis{Name: "model", Size: 2})
		if err != nil {
			return err
		}
		trainer, err := session.Train(ctx, loss, rlx.Training{Rate: 0.02, Partition: &rlx.Partition{Mesh: mesh, Shardings: []parallel.Sharding{
			{Pattern: "linear0/weight", Axes: []string{"", "model"}}, // columns
			{Pattern: "linear0/bias", Axes: []string{"model"}},
			{Pattern: "linear1/weight", Axes: []string{"model"}}, // rows, whose products are summed
		}}})
		if err != nil {
			return err
		}
		batch := rlx.Inputs{"x": rlx.Float32s([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2), "y": rlx.Float32s([]float32{0, 1, 1, 0}, 4, 1)}
		for range 300 {
			if err := trainer.Step(ctx, batch); err != nil {
				return err
			}
		}
		part, err := trainer.Program().Get(ctx, "linear0/weight")
		if err != nil {
			return err
		}
		losses, err := trainer.Losses(ctx)
		if err == nil && group.Rank() == 0 {
			fmt.Printf("weight %v, loss below 0.01: %t\n", part.Dims, losses[len(losses)-1] < 0.01)
		}
		return err
	}
	var all sync.WaitGroup
	for _, group := range collective.Local(2, collective.Options{}) {
		all.Go(func() {
			if err := rank(group); err != nil {
				log.Fatal(err)
			}
		})
	}
	all.Wait()
	// Output: weight [2 4], loss below 0.01: true
}
