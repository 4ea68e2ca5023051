// Command example trains a small model by all processes of a run, saves every few steps, and goes on from the
// last complete save when it is started again. The pages of native/collective/docs start it by each launcher:
//
//	go build -o train ./native/collective/example
//	rlx launch -n 4 -- ./train -dir saves
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/collective"
	_ "github.com/rlx-go/rlx/native/collective/mpi" // for mpirun
	_ "github.com/rlx-go/rlx/native/cuda"           // for -device cuda
)

// options are the flags of the program.
type options struct {
	device, dir     string
	steps, saveEach int
	deadline, pause time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.device, "device", "cpu", "the device: cpu or cuda")
	flag.StringVar(&o.dir, "dir", "", "folder of the saves; it must be the same for all processes")
	flag.IntVar(&o.steps, "steps", 100, "number of steps")
	flag.IntVar(&o.saveEach, "save", 10, "steps between saves")
	flag.DurationVar(&o.deadline, "deadline", time.Minute, "how long a process waits for the others, at the start and in each collective")
	flag.DurationVar(&o.pause, "pause", 0, "time between steps")
	flag.Parse()
	if err := train(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // the launcher ends the others, and may start all again
	}
}

// train trains to the last step.
func train(ctx context.Context, o options) error {
	session, err := rlx.Open(o.device)
	if err != nil {
		return err
	}
	joining, cancel := context.WithTimeout(ctx, o.deadline)
	defer cancel()
	group, err := session.Group(joining, collective.Options{Deadline: o.deadline}) // waits for all processes
	if err != nil {
		return err
	}
	defer group.Close()
	part := batch / group.Size()
	loss, err := lossOf(part)
	if err != nil {
		return err
	}
	trainer, err := session.Train(ctx, loss, rlx.Training{Rate: 0.1, Parallel: &rlx.DataParallel{Group: group, Shard: true}})
	if err != nil {
		return err
	}
	if last, err := rlx.LatestShards(o.dir); err != nil {
		return err
	} else if last != "" {
		if err := trainer.LoadShards(ctx, last); err != nil {
			return err
		}
	}
	if group.Rank() == 0 {
		fmt.Printf("%d processes by %s, from step %d\n", group.Size(), group.Engine(), trainer.Steps())
	}
	for step := trainer.Steps(); step < o.steps; step++ {
		if err := trainer.Step(ctx, rowsOf(step, group.Rank()*part, part)); err != nil {
			return err
		}
		if o.dir != "" && trainer.Steps()%o.saveEach == 0 {
			if err := save(ctx, trainer, o.dir); err != nil {
				return err
			}
		}
		time.Sleep(o.pause)
	}
	losses, err := trainer.Losses(ctx)
	if err == nil && group.Rank() == 0 && len(losses) > 0 {
		fmt.Printf("step %d, loss %.6f\n", trainer.Steps(), losses[len(losses)-1])
	}
	return err
}

// save writes this process's part of a save, in a folder that is named by the step.
func save(ctx context.Context, trainer *rlx.Trainer, dir string) error {
	wait, err := trainer.SaveShards(ctx, filepath.Join(dir, fmt.Sprintf("%06d", trainer.Steps())))
	if err != nil {
		return err
	}
	return wait()
}

// batch is the number of rows of all processes together.
const batch = 32

// lossOf returns the loss of two layers on some rows.
func lossOf(rows int) (*ir.Graph, error) {
	return ir.Build("loss", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Dims(rows, 2)...), b.Input("y", ir.F32, ir.Dims(rows, 1)...)
		h := ops.Tanh(b, ops.MatMul(b, x, b.Param("w1", ir.F32, ir.Dims(2, 16)...)))
		b.Output("loss", ops.MSE(b, ops.MatMul(b, h, b.Param("w2", ir.F32, ir.Dims(16, 1)...)), y, ops.LossMean))
	})
}

// rowsOf returns rows of a step's batch. They depend on step and row alone, so that every row is read once, however
// many processes there are.
func rowsOf(step, from, rows int) rlx.Inputs {
	x, y := make([]float32, 0, 2*rows), make([]float32, 0, rows)
	for row := from; row < from+rows; row++ {
		a, b := math.Sin(float64(step*batch+row)), math.Cos(float64(3*step*batch+row))
		x, y = append(x, float32(a), float32(b)), append(y, float32(a*b))
	}
	return rlx.Inputs{"x": rlx.Float32s(x, rows, 2), "y": rlx.Float32s(y, rows, 1)}
}
