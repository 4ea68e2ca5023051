package ops_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBothWordsMatch64BitWordsOfJAX uses jax.random.bits(key(42), (4,), uint64) of JAX 0.10.2
// with jax_threefry_partitionable: two elements are the upper and the lower half of one, in
// every shape and epilogue.
func TestBothWordsMatch64BitWordsOfJAX(t *testing.T) {
	long := []uint64{0x6d3e048f1022172d, 0x3d7b32dadd083f4, 0x92fb20ea0f38d913, 0xbad56946354ba891}
	var want []int64
	for _, x := range long {
		want = append(want, int64(x>>32), int64(x&math.MaxUint32))
	}
	for _, shape := range [][]int{{8}, {2, 4}, {7}, {1, 3}, {1}, {}} {
		got := evalBuilt(t, func(b *ir.Builder) ir.Value {
			return ops.ThreefryBoth.Bits(b, ops.Key(b, 42), ir.Dims(shape...)...)
		})
		if !slices.Equal(got.I, want[:got.Len()]) {
			t.Errorf("%v: got %x, want %x", shape, got.I, want)
		}
	}
}

// TestFloatsFromBothWordsMatchJAX has the numbers that jax.random.uniform and
// jax.random.normal make of a word for those of TestBothWordsMatch64BitWordsOfJAX: the upper 23
// bits by 2⁻²³, and √2·erfinv of that between the number after −1 and 1, by
// jax.scipy.special.erfinv in f64.
func TestFloatsFromBothWordsMatchJAX(t *testing.T) {
	for name, c := range map[string]struct {
		draw  func(b *ir.Builder) ir.Value
		want  []float64
		apart float64
	}{
		"uniform": {
			func(b *ir.Builder) ir.Value { return ops.ThreefryBoth.Uniform(b, ops.Key(b, 42), ir.F32, ir.N(6)) },
			[]float64{0.4267275333404541, 0.06302011013031006, 0.01500999927520752, 0.6789628267288208, 0.5741443634033203, 0.059461116790771484},
			0,
		},
		"normal": {
			func(b *ir.Builder) ir.Value { return ops.ThreefryBoth.Normal(b, ops.Key(b, 42), ir.F32, ir.N(6)) },
			[]float64{-0.1847117542242448, -1.5299048614554676, -2.1698256275763472, 0.46480055968758827, 0.18693548880439642, -1.5593130978196115},
			1e-6,
		},
	} {
		got := evalBuilt(t, c.draw)
		for i, x := range got.F {
			if !(math.Abs(x-c.want[i]) <= c.apart) {
				t.Errorf("%s: element %d is %v, want %v", name, i, x, c.want[i])
			}
		}
	}
}

// TestFewerRoundsAreThoseOfRandom123 uses its vector for threefry2x32 with 13 rounds, key 0 and
// counter 0: the words of the first two elements.
func TestFewerRoundsAreThoseOfRandom123(t *testing.T) {
	got := evalBuilt(t, func(b *ir.Builder) ir.Value { return ops.ThreefryBoth13.Bits(b, ops.Key(b, 0), ir.N(2)) })
	if want := []int64{0x9d1c5ec6, 0x8bd50731}; !slices.Equal(got.I, want) {
		t.Errorf("got %x, want %x", got.I, want)
	}
}

// TestAnEmptyGeneratorIsThreefry is for attributes that name none.
func TestAnEmptyGeneratorIsThreefry(t *testing.T) {
	words := func(g ops.Generator) []int64 {
		return evalBuilt(t, func(b *ir.Builder) ir.Value { return g.Bits(b, ops.Key(b, 42), ir.N(5)) }).I
	}
	if got, want := words(""), words(ops.Threefry); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestWordsOfABlockAreIndependent counts in how many bits neighbours differ: as many as n coins,
// within five standard deviations, for the words of one block and for those of two, and for
// each bit by itself.
func TestWordsOfABlockAreIndependent(t *testing.T) {
	const n = 1 << 15
	for _, by := range []ops.Generator{ops.Threefry, ops.ThreefryBoth, ops.ThreefryBoth13} {
		words := evalBuilt(t, func(b *ir.Builder) ir.Value { return by.Bits(b, ops.Key(b, 5), ir.N(2*n)) }).I
		for first, pairs := range map[string][]int64{"one block": words, "two blocks": slices.Concat(words[1:], words[:1])} {
			var differ [32]int
			all := 0
			for pair := range slices.Chunk(pairs, 2) {
				x := uint32(pair[0] ^ pair[1])
				all += bits.OnesCount32(x)
				for i := range differ {
					differ[i] += int(x >> i & 1)
				}
			}
			isFair(t, string(by)+", "+first, all, 32*n)
			for _, heads := range differ {
				isFair(t, string(by)+", a bit of "+first, heads, n)
			}
		}
	}
}

// isFair reports the number of heads of n coins if it is five standard deviations from its mean.
func isFair(t *testing.T, name string, heads, n int) {
	t.Helper()
	if off := math.Abs(float64(heads) - float64(n)/2); !(off <= 2.5*math.Sqrt(float64(n))) {
		t.Errorf("%s: %d heads of %d coins", name, heads, n)
	}
}
