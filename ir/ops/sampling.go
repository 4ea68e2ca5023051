package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Permutations and token sampling.
const (
	OpPermutation ir.Op = "random_permutation"
	OpSampleToken ir.Op = "sample_token"
)

// SampleAttrs describe how a language model's next token is drawn: logits are divided by
// Temperature (0: greedy); only the TopK tokens with the largest logits are kept (0: all),
// and of these the fewest whose probabilities sum to TopP, in (0, 1]. [SampleToken] takes
// a TopP of 0 for 1, which keeps all.
type SampleAttrs struct {
	Temperature float64
	TopK        int
	TopP        float64
}

// Visit shows the attributes.
func (a *SampleAttrs) Visit(v ir.AttrVisitor) {
	v.Float("temperature", &a.Temperature)
	v.Int("top_k", &a.TopK)
	v.Float("top_p", &a.TopP)
}

func init() {
	defineComposite(composite{
		op: OpPermutation, operands: []string{"key"}, types: unsigned, newAttrs: func() ir.Attrs { return &SizeAttrs{} }, noGrad: "integer result",
		doc: "A random permutation of 0, …, size − 1, i32: sorted by random words, repeatedly, so that equal words do not bias it. The order is that of " +
			"jax.random.permutation with jax_threefry_partitionable.",
		constraints: []string{"key is u32[2]; size is constant"},
		check: func(n *ir.Node) error {
			if _, ok := n.Attrs().(*SizeAttrs).Size.Const(); !ok {
				return ir.Attrf("size is %s, not a constant", n.Attrs().(*SizeAttrs).Size)
			}
			return checkKey(n.Input(0).Type())
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			size, _ := n.Attrs().(*SizeAttrs).Size.Const()
			rounds := int(math.Ceil(3 * math.Log(float64(max(size, 1))) / math.Log(math.MaxUint32)))
			key, x := in[0], Iota(b, ir.I32, 0, ir.N(size))
			for range rounds {
				keys := twoKeys(b, key)
				key = keys[0]
				x = Sort(b, SortAttrs{}, RandomBits(b, keys[1], ir.N(size)), x)[1]
			}
			return x
		},
	})
	defineComposite(composite{
		op: OpSampleToken, operands: []string{"logits", "key"}, types: floats, noGrad: "integer result",
		newAttrs: func() ir.Attrs { return &SampleAttrs{TopP: 1} },
		doc: "A token for each row of logits, [..., tokens], i32: drawn with probabilities softmax(logits/temperature) from the top_k tokens with the largest " +
			"logits (0: all), and of these from the fewest whose probabilities sum to top_p (nucleus sampling); ties are all kept. A temperature of 0 takes " +
			"the most likely one.",
		constraints: []string{"logits have rank 1 or more and a last axis that is not empty; key is u32[2]", "temperature and top_k are not negative, top_p is in (0, 1]"},
		check: func(n *ir.Node) error {
			a, x := n.Attrs().(*SampleAttrs), n.Input(0)
			switch {
			case !(a.Temperature >= 0) || math.IsInf(a.Temperature, 0):
				return ir.Attrf("temperature is %v, not finite and 0 or more", a.Temperature)
			case a.TopK < 0:
				return ir.Attrf("top_k is %d, negative", a.TopK)
			case !(a.TopP > 0 && a.TopP <= 1):
				return ir.Attrf("top_p is %v, not in (0, 1]", a.TopP)
			}
			if tokens, ok := x.Dim(-1).Const(); x.Rank() == 0 || !ok || tokens == 0 {
				return ir.Shapef("logits are %s", x.Type())
			}
			return checkKey(n.Input(1).Type())
		},
		body: sampleToken,
	})
}

func sampleToken(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*SampleAttrs), wide(b, in[0])
	if a.Temperature == 0 {
		return ArgMax(b, x, -1)
	}
	x = Mul(b, x, ConstLike(b, x, 1/a.Temperature))
	tokens, _ := x.Dim(-1).Const()
	none := ConstLike(b, x, math.Inf(-1))
	topK := a.TopK > 0 && a.TopK < tokens
	if topK || a.TopP < 1 {
		order := SortAttrs{Axis: x.Rank() - 1, Descending: true}
		if topK {
			order.First = a.TopK
		}
		sorted := Sort(b, order, x)[0]
		if topK {
			x = Select(b, Lt(b, x, SliceAxis(b, sorted, -1, ir.N(a.TopK-1), ir.N(1))), none, x)
		}
		if a.TopP < 1 {
			before := CumSum(b, Softmax(b, sorted, -1), CumSumAttrs{Axis: -1, Exclusive: true})
			dropped := Ge(b, before, ConstLike(b, before, a.TopP))
			threshold := KeepDims(b, ReduceMin, Select(b, dropped, ConstLike(b, sorted, math.Inf(1)), sorted), -1)
			x = Select(b, Lt(b, x, threshold), none, x)
		}
	}
	return Categorical(b, in[1], x, -1)
}

// Permutation returns a random permutation of 0, …, size − 1, i32[size]. key is u32[2].
func Permutation(b *ir.Builder, key ir.Value, size int) ir.Value {
	return b.Add1(OpPermutation, &SizeAttrs{ir.N(size)}, key)
}

// SampleToken returns a token for each row of logits, [..., tokens], i32[...]: see
// [SampleAttrs]. key is u32[2]; a TopP of 0 means 1.
func SampleToken(b *ir.Builder, key, logits ir.Value, a SampleAttrs) ir.Value {
	if a.TopP == 0 {
		a.TopP = 1
	}
	return b.Add1(OpSampleToken, &a, logits, key)
}
