package rlx_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/collective"
)

// fitSteps is the number of steps of fitRank, and fitBatches that of the batches of an epoch.
const fitSteps, fitBatches = 8, 3

// fitRank trains a rank by Fit on its rows of the batches, and evaluates it on others. It returns the last report
// and the whole values.
func fitRank(t *testing.T, g *collective.Group, p rlx.DataParallel, steps int, folder string) (rlx.Report, map[string]rlx.Tensor, error) {
	rank, size := 0, 1
	o := rlx.Training{Rate: 0.03}
	if g != nil {
		rank, size = g.Rank(), g.Size()
		p.Group, p.Weight = g, "count"
		o.Parallel = &p
	}
	rows := parallelRows / size
	eval, err := ir.Build("eval", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, 3)...)
		h := ops.Tanh(b, ops.Linear(b, x, b.Param("w1", ir.F32, ir.Dims(3, 5)...), b.Param("b1", ir.F32, ir.N(5))))
		b.Output("loss", ops.Mean(b, h))
	})
	if err != nil {
		return rlx.Report{}, nil, err
	}
	o.Eval = []ir.Entry{{Name: "eval", Graph: eval}}
	s, err := rlx.Open("cpu")
	if err != nil {
		return rlx.Report{}, nil, err
	}
	tr, err := s.Train(t.Context(), maskedLoss(t, ir.F32, rows), o)
	if err != nil {
		return rlx.Report{}, nil, err
	}
	of := func(from, to int, keep func(rlx.Inputs)) iter.Seq2[rlx.Inputs, error] {
		return func(yield func(rlx.Inputs, error) bool) {
			for i := from; i < to; i++ {
				in := parallelBatch(ir.F32, i, rank*rows, (rank+1)*rows)
				keep(in)
				if !yield(in, nil) {
					return
				}
			}
		}
	}
	last, err := rlx.Fit(t.Context(), tr, rlx.Loop{
		Data: func(epoch int) iter.Seq2[rlx.Inputs, error] {
			return of(epoch*fitBatches, (epoch+1)*fitBatches, func(rlx.Inputs) {})
		},
		Steps: steps, Every: 2,
		Eval: rlx.Evaluation{Entry: "eval", Data: func() iter.Seq2[rlx.Inputs, error] {
			return of(50, 52, func(in rlx.Inputs) { delete(in, "y"); delete(in, "mask") })
		}},
		Stop: rlx.EarlyStop{Patience: 100},
		Save: rlx.Checkpoints{Folder: folder, Every: 2, Last: 2, Resume: true},
	})
	if err != nil {
		return last, nil, err
	}
	values, err := tr.Whole(t.Context())
	return last, values, errors.Join(err, tr.Program().Close(t.Context()))
}

// TestFitOfRanksResumesWithAnotherNumber: a training that is cut goes on with another number of ranks, and
// ends as that of one rank: its checkpoints are whole, also of divided states, and it evaluates the rows of all ranks.
func TestFitOfRanksResumesWithAnotherNumber(t *testing.T) {
	report, want, err := fitRank(t, nil, rlx.DataParallel{}, fitSteps, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]rlx.DataParallel{"whole": {}, "zero-2": {Shard: true}, "zero-3": {ShardParams: true}} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for i, n := range []int{2, 4, 1, 2} {
				steps := []int{3, 5, 7, fitSteps}[i]
				ranksOf(t, n, func(g *collective.Group) error {
					got, values, err := fitRank(t, g, p, steps, folder)
					if err != nil || steps < fitSteps {
						return err
					}
					if d := got.Eval["loss"] - report.Eval["loss"]; !(math.Abs(d) < 1e-6) || got.Best != report.Best {
						err = fmt.Errorf("the evaluation is %v, that of one rank %v", got.Eval, report.Eval)
					}
					if rows := got.Throughput / got.Rate; !(math.Abs(rows-parallelRows) <= 1e-9) {
						err = errors.Join(err, fmt.Errorf("a step has %v examples, want the %d of all ranks", rows, parallelRows))
					}
					return errors.Join(err, alikeValues(values, want))
				})
			}
		})
	}
}

// TestRanksWithoutTheCheckpointDoNotResume: a folder that is not shared has no checkpoint on other machines.
func TestRanksWithoutTheCheckpointDoNotResume(t *testing.T) {
	folder := t.TempDir()
	ranksOf(t, 2, func(g *collective.Group) error {
		_, _, err := fitRank(t, g, rlx.DataParallel{}, 4, folder)
		return err
	})
	groups := collective.Local(2, collective.Options{})
	errs := make(chan error, 2)
	for rank, g := range groups {
		own := folder
		if rank > 0 {
			own = t.TempDir()
		}
		go func() {
			_, _, err := fitRank(t, g, rlx.DataParallel{}, 6, own)
			if err != nil {
				g.Abort(err)
			}
			errs <- err
		}()
	}
	text := fmt.Sprint(<-errs, <-errs)
	if !strings.Contains(text, "step-00000004") || strings.Contains(text, "<nil>") {
		t.Errorf("the errors are %s", text)
	}
}
