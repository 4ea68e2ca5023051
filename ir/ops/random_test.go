package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// evalBuilt evaluates what f returns, in the arithmetic of the element types.
func evalBuilt(t *testing.T, f func(b *ir.Builder) ir.Value) *ir.Array {
	t.Helper()
	g, err := ir.Build("g", func(b *ir.Builder) { b.Output("y", f(b)) })
	if err != nil {
		t.Fatal(err)
	}
	out, err := evalHeld(g, nil, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestRandomWordsAreThoseOfJAX uses values from jax 0.10.2 with
// jax_threefry_partitionable and key 42: random.bits(key, (2, 3)),
// random.split(key, 3), random.fold_in(key, 7), and the bits of the key with
// the words 0x12345678 and 0x9abcdef0.
func TestRandomWordsAreThoseOfJAX(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *ir.Builder) ir.Value
		want  []int64
	}{
		"bits": {
			func(b *ir.Builder) ir.Value { return ops.RandomBits(b, ops.Key(b, 42), ir.N(2), ir.N(3)) },
			[]int64{0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315, 0x95fb4ed8},
		},
		"split": {
			func(b *ir.Builder) ir.Value { return ops.SplitKey(b, ops.Key(b, 42), ir.N(3)) },
			[]int64{0x6d3e048f, 0x1022172d, 0x3d7b32d, 0xadd083f4, 0x92fb20ea, 0xf38d913},
		},
		"fold_in": {
			func(b *ir.Builder) ir.Value { return ops.FoldIn(b, ops.Key(b, 42), ops.Const(b, ir.U32, 7)) },
			[]int64{0x97d0552f, 0x51bf719f},
		},
		"seed of two words": {
			func(b *ir.Builder) ir.Value { return ops.RandomBits(b, ops.Key(b, 0x123456789abcdef0), ir.N(3)) },
			[]int64{0x4d9370ba, 0x2510c99e, 0xc940ecb8},
		},
	} {
		if got := evalBuilt(t, c.build); !slices.Equal(got.I, c.want) {
			t.Errorf("%s: got %x, want %x", name, got.I, c.want)
		}
	}
}

// TestUniformIsThatOfJAX uses jax.random.uniform(key(42), (4,)).
func TestUniformIsThatOfJAX(t *testing.T) {
	got := evalBuilt(t, func(b *ir.Builder) ir.Value { return ops.Uniform(b, ops.Key(b, 42), ir.F32, ir.N(4)) })
	want := []float64{0.48870956897735596, 0.6797971725463867, 0.6162714958190918, 0.5610160827636719}
	if !slices.Equal(got.F, want) {
		t.Errorf("got %v, want %v", got.F, want)
	}
}

// TestRandomNumbersHaveTheirDistribution compares moments of 20000 numbers with
// the true ones, within five standard errors.
func TestRandomNumbersHaveTheirDistribution(t *testing.T) {
	const n = 20000
	for _, by := range []ops.Generator{ops.Threefry, ops.ThreefryBoth, ops.ThreefryBoth13} {
		for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
			u := evalBuilt(t, func(b *ir.Builder) ir.Value { return by.Uniform(b, ops.Key(b, 1), d, ir.N(n)) })
			if lo, hi := slices.Min(u.F), slices.Max(u.F); lo < 0 || hi >= 1 {
				t.Errorf("%s %s: uniform numbers from %v to %v", by, d, lo, hi)
			}
			name := string(by) + " " + d.String()
			checkMoments(t, name+" uniform", u.F, 0.5, 1./12, 0, d.Epsilon())
			z := evalBuilt(t, func(b *ir.Builder) ir.Value { return by.Normal(b, ops.Key(b, 2), d, ir.N(n)) })
			checkMoments(t, name+" normal", z.F, 0, 1, 3, d.Epsilon())
		}
		p := evalBuilt(t, func(b *ir.Builder) ir.Value {
			return ops.Convert(b, by.Bernoulli(b, ops.Key(b, 3), ops.Const(b, ir.F32, 0.3), ir.N(n)), ir.F32)
		})
		checkMoments(t, string(by)+" bernoulli", p.F, 0.3, 0.21, 0, 0)
	}
}

// checkMoments compares mean, variance and, where not zero, the fourth central
// moment. slack allows for rounding to the element type.
func checkMoments(t *testing.T, name string, x []float64, mean, variance, fourth, slack float64) {
	t.Helper()
	m, v, f := 0.0, 0.0, 0.0
	for _, e := range x {
		m += (e - mean) / float64(len(x))
	}
	for _, e := range x {
		v += (e - mean) * (e - mean) / float64(len(x))
		f += math.Pow(e-mean, 4) / float64(len(x))
	}
	within := func(what string, got, want, spread float64) {
		if !(math.Abs(got-want) <= 5*spread/math.Sqrt(float64(len(x)))+slack) {
			t.Errorf("%s: %s is %v, want %v", name, what, got, want)
		}
	}
	within("mean", m+mean, mean, math.Sqrt(variance))
	within("variance", v, variance, 1.5*variance+math.Abs(fourth))
	if fourth != 0 {
		within("fourth moment", f, fourth, 10)
	}
}

// TestHalvesEqualPairs compares the halves of blocks with the words that JAX's keys are
// made of, see TestRandomWordsAreThoseOfJAX.
func TestHalvesEqualPairs(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		key := ops.Key(b, 0x0123456789abcdef)
		b.Output("halves", b.Add1(ops.OpRandomBits, &ops.RandomBitsAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(3, 6)}, Halves: true}, key))
		b.Output("pairs", b.Add1(ops.OpRandomBits, &ops.RandomBitsAttrs{RandomAttrs: ops.RandomAttrs{Shape: ir.Dims(5)}, Pairs: true}, key))
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := evalHeld(g, nil, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, half := range out[0].I {
		word := out[1].I[i/2]
		if want := word >> (16 * (i % 2)) & 0xffff; half != want {
			t.Errorf("half %d is %#x, not %#x", i, half, want)
		}
	}
}
