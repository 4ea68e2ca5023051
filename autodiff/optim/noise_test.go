package optim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// noisy is the mean of w, some of whose elements a key drops, and a state that counts.
func noisy(t *testing.T, key func(b *ir.Builder, count ir.Value) ir.Value, use func(b *ir.Builder, w, key ir.Value) ir.Value) *ir.Graph {
	t.Helper()
	return build(t, func(b *ir.Builder) {
		w, count := b.Param("w", ir.F32, ir.N(8)), b.State("count", ir.U32)
		b.SetState("count", ops.Add(b, count, ops.Const(b, ir.U32, 1)))
		b.Output("loss", ops.Mean(b, use(b, w, key(b, count))))
	})
}

func dropped(b *ir.Builder, w, key ir.Value) ir.Value { return ops.Dropout(b, w, key, 0.5) }

// scanned drops elements in two steps of a loop, by keys made of one and the number of the step.
func scanned(b *ir.Builder, w, key ir.Value) ir.Value {
	x := b.Input("x", ir.F32, ir.N(8))
	next, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{x, key}, Carries: []ir.Value{w, key}, Xs: []ir.Value{ops.Iota(b, ir.U32, 0, ir.N(2))},
		Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
			next = []ir.Value{ops.Mul(b, consts[0], ops.Dropout(b, carries[0], ops.FoldIn(b, consts[1], xs[0]), 0.5)), ops.FoldIn(b, carries[1], xs[0])}
			return next, nil
		},
	})
	return next[0]
}

// carried drops elements by a key that the steps of a loop hand on.
func carried(b *ir.Builder, w, key ir.Value) ir.Value {
	next, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{b.Input("x", ir.F32, ir.N(8))}, Carries: []ir.Value{w, key}, Length: ir.N(3),
		Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
			dropped := ops.Dropout(b, carries[0], carries[1], 0.5)
			return []ir.Value{ops.Mul(b, consts[0], dropped), ops.FoldIn(b, carries[1], ops.Const(b, ir.U32, 1))}, nil
		},
	})
	return next[0]
}

// A mask that is the same in every step trains another network than the one that is meant.
func TestKeysThatNeverChangeAreRefused(t *testing.T) {
	fixed := func(b *ir.Builder, _ ir.Value) ir.Value { return ops.FoldIn(b, ops.Key(b, 3), ops.Const(b, ir.U32, 1)) }
	for name, key := range map[string]func(b *ir.Builder, count ir.Value) ir.Value{
		"a literal":   func(b *ir.Builder, _ ir.Value) ir.Value { return ops.Key(b, 3) },
		"of one":      fixed,
		"a parameter": func(b *ir.Builder, _ ir.Value) ir.Value { return b.Param("key", ir.U32, ir.N(2)) },
		"a state that stays": func(b *ir.Builder, _ ir.Value) ir.Value {
			s := b.State("key", ir.U32, ir.N(2))
			b.SetState("key", s)
			return s
		},
	} {
		for how, use := range map[string]func(b *ir.Builder, w, key ir.Value) ir.Value{"dropout": dropped, "scan": scanned, "carried": carried} {
			loss := noisy(t, key, use)
			_, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{})
			var at *ir.OpError
			if !errors.Is(err, ir.ErrGraph) || !errors.As(err, &at) || at.Op != ops.OpDropout || !strings.Contains(err.Error(), "ConstantKeys") {
				t.Errorf("%s, %s: %v", how, name, err)
			}
			if _, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{ConstantKeys: true}); err != nil {
				t.Errorf("%s, %s, asked for: %v", how, name, err)
			}
		}
	}
	for name, key := range map[string]func(b *ir.Builder, count ir.Value) ir.Value{
		"an input":    func(b *ir.Builder, _ ir.Value) ir.Value { return b.Input("key", ir.U32, ir.N(2)) },
		"of a count":  func(b *ir.Builder, count ir.Value) ir.Value { return ops.FoldIn(b, fixed(b, count), count) },
		"of an input": func(b *ir.Builder, _ ir.Value) ir.Value { return ops.FoldIn(b, ops.Key(b, 1), b.Input("seed", ir.U32)) },
	} {
		for how, use := range map[string]func(b *ir.Builder, w, key ir.Value) ir.Value{"dropout": dropped, "scan": scanned, "carried": carried} {
			if _, err := optim.Step(noisy(t, key, use), "loss", optim.SGD{}, optim.Options{}); err != nil {
				t.Errorf("%s, %s: %v", how, name, err)
			}
		}
	}
	// What the loss does not depend on may draw as it likes, and so may dropout that drops nothing.
	for name, use := range map[string]func(b *ir.Builder, w, key ir.Value) ir.Value{
		"beside the loss": func(b *ir.Builder, w, key ir.Value) ir.Value {
			b.Output("noise", ops.Uniform(b, key, ir.F32, ir.N(2)))
			return w
		},
		"a rate of 0": func(b *ir.Builder, w, key ir.Value) ir.Value { return ops.Dropout(b, w, key, 0) },
	} {
		if _, err := optim.Step(noisy(t, fixed, use), "loss", optim.SGD{}, optim.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
