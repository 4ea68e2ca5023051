package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestNumbersOfDistributionsAreThoseOfJAX uses jax.random of JAX 0.10.2 with key 42 and
// the shape (4,): the words are the same, so only functions are rounded otherwise.
func TestNumbersOfDistributionsAreThoseOfJAX(t *testing.T) {
	key := func(b *ir.Builder) ir.Value { return ops.Key(b, 42) }
	for name, c := range map[string]struct {
		draw func(b *ir.Builder, d ir.DType) ir.Value
		f32  []float64
		f64  []float64
	}{
		"normal": {
			func(b *ir.Builder, d ir.DType) ir.Value { return ops.Normal(b, key(b), d, ir.N(4)) },
			[]float64{-0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485},
			[]float64{-0.18471174528191162, -2.169824560397754, 0.18693555179382582, 0.6122653570510959},
		},
		"truncated_normal": {
			func(b *ir.Builder, d ir.DType) ir.Value { return ops.TruncatedNormal(b, key(b), -1.5, 2, d, ir.N(4)) },
			[]float64{0.029455246403813362, 0.4837646782398224, 0.32626238465309143, 0.1957068294286728},
			[]float64{-0.11223589347302645, -1.4018969614829635, 0.2263432691457597, 0.6166447485606427},
		},
		"gumbel": {
			func(b *ir.Builder, d ir.DType) ir.Value { return ops.Gumbel(b, key(b), d, ir.N(4)) },
			[]float64{0.3340933918952942, 0.952019453048706, 0.7255305647850037, 0.5481715202331543},
			[]float64{0.16062720630382138, -1.4348544993307841, 0.5890136500161952, 1.1553132453508888},
		},
		"exponential": {
			func(b *ir.Builder, d ir.DType) ir.Value { return ops.Exponential(b, key(b), d, ir.N(4)) },
			[]float64{0.670817494392395, 1.1388006210327148, 0.9578199982643127, 0.8232924938201904},
			[]float64{0.5563942243855916, 0.015123860720489336, 0.8536549993431988, 1.30866279263241},
		},
	} {
		for d, want := range map[ir.DType][]float64{ir.F32: c.f32, ir.F64: c.f64} {
			got := evalBuilt(t, func(b *ir.Builder) ir.Value { return c.draw(b, d) })
			for i, x := range got.F {
				if !(math.Abs(x-want[i]) <= 8*d.Epsilon()*max(math.Abs(want[i]), 1)) {
					t.Errorf("%s of %s: element %d is %v, want %v", name, d, i, x, want[i])
				}
			}
		}
	}
}

// TestDrawsOfJAX are bernoulli(key(42), 0.6, (8,)) and categorical(key(42), logits,
// shape=(8,)) with the logarithms of 0.1, 0.2, 0.3 and 0.4 as logits, of JAX 0.10.2.
func TestDrawsOfJAX(t *testing.T) {
	coins := evalBuilt(t, func(b *ir.Builder) ir.Value {
		return ops.Bernoulli(b, ops.Key(b, 42), ops.Const(b, ir.F32, 0.6), ir.N(8))
	})
	if want := []int64{1, 0, 0, 1, 1, 1, 1, 0}; !slices.Equal(coins.I, want) {
		t.Errorf("bernoulli: %v, want %v", coins.I, want)
	}
	classes := evalBuilt(t, func(b *ir.Builder) ir.Value {
		logits := ops.Log(b, ops.Literal(b, ir.Floats(ir.F32, []float64{0.1, 0.2, 0.3, 0.4}, 4)))
		return ops.Categorical(b, ops.Key(b, 42), ops.BroadcastTo(b, logits, ir.Dims(8, 4)), 1)
	})
	if want := []int64{3, 3, 3, 3, 3, 3, 1, 1}; !slices.Equal(classes.I, want) {
		t.Errorf("categorical: %v, want %v", classes.I, want)
	}
}
