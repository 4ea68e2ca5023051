package rlx_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

const (
	partitionRows, partitionTime, partitionWords = 4, 8, 32
	partitionSteps                               = 6
)

// transformerLoss is the loss of a language model of two blocks, the second with experts, for a whole batch.
func transformerLoss(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("model", func(b *ir.Builder) {
		shape := ir.Dims(partitionRows, partitionTime)
		x := nn.Embedding(b, b.Input("ids", ir.I32, shape...), partitionWords, 16)
		x = nn.TransformerBlock(b, x, 4, nn.TransformerOptions{Causal: true, KVHeads: 4, Attention: nn.AttentionOptions{Separate: true}})
		y, balance := nn.MoE(b, nn.RMSNorm(b, x), 4, nn.MoEOptions{Hidden: 8, Capacity: 1.5})
		logits := nn.Linear(b, nn.LayerNorm(b, ops.Add(b, x, y)), partitionWords)
		loss := ops.Mean(b, ops.CrossEntropy(b, logits, b.Input("next", ir.I32, shape...)))
		b.Output("loss", ops.Add(b, loss, ops.Mul(b, balance, ops.Const(b, ir.F32, 0.01))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// transformerBatch is the whole batch of a step.
func transformerBatch(step int) rlx.Inputs {
	random := rand.New(rand.NewPCG(uint64(step), 5))
	ids, next := make([]int32, partitionRows*partitionTime), make([]int32, partitionRows*partitionTime)
	for i := range ids {
		ids[i] = random.Int32N(partitionWords)
		next[i] = (ids[i]*3 + 1) % partitionWords
	}
	return rlx.Inputs{"ids": native.Int32s(ids, partitionRows, partitionTime), "next": native.Int32s(next, partitionRows, partitionTime)}
}

// trainPartition trains one rank, and returns the losses and the whole values.
func trainPartition(t *testing.T, loss *ir.Graph, o rlx.Training) ([]float32, map[string]rlx.Tensor, error) {
	s, err := rlx.Open("cpu")
	if err != nil {
		return nil, nil, err
	}
	o.Rate = 0.01
	tr, err := s.Train(t.Context(), loss, o)
	if err != nil {
		return nil, nil, err
	}
	for step := range partitionSteps {
		batch := transformerBatch(step)
		for name, x := range batch {
			if batch[name], err = tr.Part(name, x); err != nil {
				return nil, nil, err
			}
		}
		if err := tr.Step(t.Context(), batch); err != nil {
			return nil, nil, err
		}
	}
	losses, err := tr.Losses(t.Context())
	if err != nil {
		return nil, nil, err
	}
	whole, err := tr.Whole(t.Context())
	return losses, whole, errors.Join(err, tr.Program().Close(t.Context()))
}

func rows(axes ...string) []parallel.Sharding {
	return []parallel.Sharding{{Pattern: "ids", Axes: axes}, {Pattern: "next", Axes: axes}}
}

// TestPartitionsTrainAsOneRankDoes: losses and parameters are those of one rank, for all shardings.
func TestPartitionsTrainAsOneRankDoes(t *testing.T) {
	loss := transformerLoss(t)
	o := rlx.Training{Optimizer: optim.Adam{Eps: 1e-3}, Options: optim.Options{ClipNorm: 1}}
	want, values, err := trainPartition(t, loss, o)
	if err != nil {
		t.Fatal(err)
	}
	all := append(parallel.Megatron("model"), parallel.Experts("model")...)
	for _, c := range []struct {
		name        string
		data, model int
		p           rlx.Partition
		report      []string
	}{
		{"data", 2, 1, rlx.Partition{Shardings: append(rows("data"), all...)}, []string{`all_reduce along "data"`}},
		{"data, states", 4, 1, rlx.Partition{Shardings: rows("data"), States: "data"}, []string{`reduce_scatter along "data"`}},
		{"data, states, params", 2, 1, rlx.Partition{Shardings: rows("data"), States: "data", Params: true, Bucket: 4 << 10}, []string{`reduce_scatter along "data"`}},
		{"model", 1, 2, rlx.Partition{Shardings: all}, []string{`all_reduce along "model"`}},
		{"model, 4 ranks", 1, 4, rlx.Partition{Shardings: all}, nil},
		{"data x model", 2, 2, rlx.Partition{Shardings: append(rows("data"), all...)}, nil},
		{"data x model, states, params", 2, 2, rlx.Partition{Shardings: append(rows("data"), all...), States: "data", Params: true}, nil},
		{"sequence", 1, 2, rlx.Partition{Shardings: append(rows("", "model"), all...)}, []string{`reduce_scatter along "model"`, `all_gather along "model"`}},
		{"experts over the batch's axis", 2, 1, rlx.Partition{Shardings: append(rows("data"), parallel.Experts("data")...)}, nil},
		{"words", 1, 2, rlx.Partition{Shardings: []parallel.Sharding{{Pattern: "embedding0/weight", Axes: []string{"model"}}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranksOf(t, c.data*c.model, func(g *collective.Group) error {
				mesh, err := collective.NewMesh(t.Context(), g, collective.Axis{Name: "data", Size: c.data}, collective.Axis{Name: "model", Size: c.model})
				if err != nil {
					return err
				}
				o, p := o, c.p
				var log strings.Builder
				p.Mesh, p.Log = mesh, &log
				o.Partition = &p
				got, whole, err := trainPartition(t, loss, o)
				if err != nil {
					return err
				}
				if g.Rank() == 0 && testing.Verbose() {
					t.Log(log.String())
				}
				for _, line := range c.report {
					if !strings.Contains(log.String(), line) {
						return fmt.Errorf("the report lacks %q:\n%s", line, log.String())
					}
				}
				return errors.Join(alikeLosses(got, want), alikeValues(whole, values))
			})
		})
	}
}

func alikeLosses(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d losses, not %d", len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-6*float64(max(1, want[i]))) {
			return fmt.Errorf("loss %d is %v, with one rank %v", i, got[i], want[i])
		}
	}
	return nil
}

// alikeValues compares parameters and states.
func alikeValues(got, want map[string]rlx.Tensor) error {
	for name, x := range want {
		if x.DType != ir.F32 || strings.HasPrefix(name, "history/") {
			continue
		}
		a, errA := x.Float32s()
		b, errB := got[name].Float32s()
		if err := errors.Join(errA, errB); err != nil || len(a) != len(b) {
			return fmt.Errorf("%q: %d elements, not %d: %w", name, len(b), len(a), err)
		}
		for i := range a {
			if !(math.Abs(float64(a[i]-b[i])) <= 1e-5) {
				return fmt.Errorf("%q[%d] is %v, with one rank %v", name, i, b[i], a[i])
			}
		}
	}
	return nil
}
