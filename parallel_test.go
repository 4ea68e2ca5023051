package rlx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

const (
	parallelRows  = 8
	parallelSteps = 20
)

// maskedLoss is the mean of the squared errors of the rows that a mask has, with the number of these
// rows as an output: NaN for a batch without any.
func maskedLoss(t *testing.T, d ir.DType, rows int) *ir.Graph {
	t.Helper()
	g, err := ir.Build("masked", func(b *ir.Builder) {
		x, y := b.Input("x", d, ir.Dims(rows, 3)...), b.Input("y", d, ir.N(rows))
		mask := b.Input("mask", d, ir.N(rows))
		h := ops.Tanh(b, ops.Linear(b, x, b.Param("w1", d, ir.Dims(3, 5)...), b.Param("b1", d, ir.N(5))))
		out := ops.Reshape(b, ops.Linear(b, h, b.Param("w2", d, ir.Dims(5, 1)...), b.Param("b2", d, ir.N(1))), ir.N(rows))
		e := ops.Sub(b, out, y)
		count := ops.ReduceSum(b, mask)
		loss := ops.Div(b, ops.ReduceSum(b, ops.Mul(b, mask, ops.Mul(b, e, e))), count)
		b.Output("loss", ops.Convert(b, loss, ir.F32))
		b.Output("count", count)
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// parallelBatch returns rows [from, to) of the batch of a step. The mask omits the last rows, so
// that some rank has none.
func parallelBatch(d ir.DType, step, from, to int) rlx.Inputs {
	random := rand.New(rand.NewPCG(uint64(step), 3))
	x, y, mask := make([]float64, parallelRows*3), make([]float64, parallelRows), make([]float64, parallelRows)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	for i := range y {
		y[i] = random.NormFloat64()
		if i < parallelRows-1-step%4 {
			mask[i] = 1
		}
	}
	return rlx.Inputs{
		"x":    native.FromArray(ir.Floats(d, x[3*from:3*to], to-from, 3)),
		"y":    native.FromArray(ir.Floats(d, y[from:to], to-from)),
		"mask": native.FromArray(ir.Floats(d, mask[from:to], to-from)),
	}
}

// trainRank trains on rows [from, to) of each batch, and returns the losses and the parameter w1, with its average
// after it if there is one.
func trainRank(t *testing.T, d ir.DType, o rlx.Training, from, to int) ([]float32, []float64, error) {
	ctx := t.Context()
	s, err := rlx.Open("cpu")
	if err != nil {
		return nil, nil, err
	}
	o.Seed, o.Rate = 5, 0.03
	tr, err := s.Train(ctx, maskedLoss(t, d, to-from), o)
	if err != nil {
		return nil, nil, err
	}
	for step := range parallelSteps {
		if err := tr.Step(ctx, parallelBatch(d, step, from, to)); err != nil {
			return nil, nil, err
		}
	}
	losses, err := tr.Losses(ctx)
	if err != nil {
		return nil, nil, err
	}
	whole, err := tr.Whole(ctx)
	if err != nil {
		return nil, nil, err
	}
	a, err := whole["w1"].Array()
	if err != nil {
		return nil, nil, err
	}
	if o.Options.Average > 0 {
		averages, err := tr.Averages(ctx)
		if err != nil {
			return nil, nil, err
		}
		average, err := averages["w1"].Array()
		if err != nil || !average.Type().Equal(a.Type()) {
			return nil, nil, fmt.Errorf("the average of w1 is %v, not %s: %w", average.Type(), a.Type(), err)
		}
		a.F = append(a.F, average.F...)
	}
	return losses, a.F, tr.Program().Close(ctx)
}

// ranksOf calls f for n ranks of this process at the same time.
func ranksOf(t *testing.T, n int, f func(g *collective.Group) error) {
	t.Helper()
	groups := collective.Local(n, collective.Options{Deadline: time.Minute})
	var all sync.WaitGroup
	for rank, g := range groups {
		all.Go(func() {
			if err := f(g); err != nil {
				t.Errorf("rank %d: %v", rank, err)
				g.Abort(err)
			}
		})
	}
	all.Wait()
}

// TestRanksTrainAsOneDoes: the losses and parameters of N ranks are those of one rank with the whole
// batch, with means under masks, clipping and accumulation.
func TestRanksTrainAsOneDoes(t *testing.T) {
	for name, o := range map[string]rlx.Training{
		"Adam":            {},
		"SGD, clipped":    {Optimizer: optim.SGD{Momentum: 0.9}, Options: optim.Options{ClipNorm: 0.1}},
		"accumulated":     {Options: optim.Options{Accumulate: 2, Average: 0.9}},
		"scaled":          {Options: optim.Options{Scale: &optim.LossScale{Initial: 1024}}},
		"some are frozen": {Options: optim.Options{Frozen: []string{"b1"}}},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64} {
			t.Run(fmt.Sprint(name, d), func(t *testing.T) {
				want, w1, err := trainRank(t, d, o, 0, parallelRows)
				if err != nil {
					t.Fatal(err)
				}
				for stage, n := range []int{2, 4, 2, 8} { // the last two of ZeRO 3
					shard, params := stage >= 1, stage >= 2
					ranksOf(t, n, func(g *collective.Group) error {
						o := o
						var log strings.Builder
						o.Parallel = &rlx.DataParallel{Group: g, Weight: "count", Bucket: 64, Log: &log, Shard: shard, ShardParams: params}
						part := parallelRows / n
						got, own, err := trainRank(t, d, o, g.Rank()*part, (g.Rank()+1)*part)
						if err != nil {
							return err
						}
						return differ(got, want, own, w1, d, log.String())
					})
				}
			})
		}
	}
}

// differ returns an error unless the results of a rank are those of one rank.
func differ(got, want []float32, own, w1 []float64, d ir.DType, log string) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d losses, not %d", len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-6*float64(max(1, want[i]))) {
			return fmt.Errorf("loss %d is %v, with one rank %v", i, got[i], want[i])
		}
	}
	limit := map[ir.DType]float64{ir.F32: 2e-6, ir.F64: 1e-13}[d]
	for i := range w1 {
		if !(math.Abs(own[i]-w1[i]) <= limit) {
			return fmt.Errorf("w1[%d] is %v, with one rank %v", i, own[i], w1[i])
		}
	}
	if !strings.Contains(log, `along "data"`) || !strings.Contains(log, "bytes sent by each device per step") {
		return errors.New("the report is " + log)
	}
	return nil
}

// TestOneRankIsTrainedWithoutCollectives: the entries are those without the option.
func TestOneRankIsTrainedWithoutCollectives(t *testing.T) {
	loss, group := maskedLoss(t, ir.F32, 4), collective.Local(1, collective.Options{})[0]
	plain, err := rlx.Training{}.Entries(loss)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := rlx.Training{Parallel: &rlx.DataParallel{Group: group, Weight: "count"}}.Entries(loss)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		if plain[i].Graph.Hash() != alone[i].Graph.Hash() {
			t.Errorf("entry %q differs", plain[i].Name)
		}
	}
}

// TestRanksWithOtherDataShapesAreRefused before the first step, on all ranks.
func TestRanksWithOtherDataShapesAreRefused(t *testing.T) {
	ranksOf(t, 2, func(g *collective.Group) error {
		s, err := rlx.Open("cpu")
		if err != nil {
			return err
		}
		o := rlx.Training{Parallel: &rlx.DataParallel{Group: g}}
		if _, err := s.Train(context.Background(), maskedLoss(t, ir.F32, 4+g.Rank()), o); !errors.Is(err, collective.ErrMismatch) {
			return fmt.Errorf("the error is %w", err)
		}
		return nil
	})
}

// TestOpenSizesOfRanksAreRefused: ranks could have batches of other sizes, for which none has compared the plans.
func TestOpenSizesOfRanksAreRefused(t *testing.T) {
	loss, err := ir.Build("open", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("rows"), ir.N(3))
		b.Output("loss", ops.Mean(b, ops.Tanh(b, ops.MatMul(b, x, b.Param("w", ir.F32, ir.Dims(3, 5)...)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	ranksOf(t, 2, func(g *collective.Group) error {
		s, err := rlx.Open("cpu")
		if err != nil {
			return err
		}
		o := rlx.Training{Parallel: &rlx.DataParallel{Group: g}, Sizes: map[string]rlx.Size{"rows": {Exact: true}}}
		if _, err := s.Train(t.Context(), loss, o); !errors.Is(err, ir.ErrUnsupported) || !strings.Contains(err.Error(), "open sizes") {
			return fmt.Errorf("the error is %w", err)
		}
		return nil
	})
}

// TestWithoutALauncherTheGroupHasOneRank, that of this process.
func TestWithoutALauncherTheGroupHasOneRank(t *testing.T) {
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Group(t.Context(), collective.Options{})
	if err != nil || g.Size() != 1 || g.Rank() != 0 {
		t.Errorf("the group is %v, %v", g, err)
	}
}
