package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// OpDropout sets random elements to zero.
const OpDropout ir.Op = "dropout"

// DropoutAttrs hold the probability that an element is dropped.
type DropoutAttrs struct{ Rate float64 }

// Visit shows the attributes.
func (a *DropoutAttrs) Visit(v ir.AttrVisitor) { v.Float("rate", &a.Rate) }

func init() {
	define(&ir.Def{
		Op: OpDropout,
		Doc: "x with each element set to 0 with probability rate, by the random bits of the key, and divided by " +
			"1 - rate otherwise, which keeps the mean (Srivastava et al., Dropout). An element is kept where its 16 bits (random_bits with halves) are " +
			"below 65536·(1 - rate), rounded; where that differs from the rate by more than a thousandth of it or of " +
			"1 - rate, where a uniform number is below 1 - rate.",
		Constraints: numbered("x is of a float type", "key is u32[2]", "rate is in [0, 1]"),
		Operands:    []string{"x", "key"},
		NewAttrs:    func() ir.Attrs { return &DropoutAttrs{} },
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if rate := n.Attrs().(*DropoutAttrs).Rate; !(rate >= 0 && rate <= 1) {
				return nil, ir.Attrf("rate is %v, not in [0, 1]", rate)
			}
			t, err := inferFloat(n)
			if err != nil {
				return nil, err
			}
			return t, checkKey(n.Input(1).Type())
		},
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			x, keep := in[0], 1-n.Attrs().(*DropoutAttrs).Rate
			switch keep {
			case 0:
				return []ir.Value{ZerosLike(b, x)}
			case 1:
				return []ir.Value{x}
			}
			kept := dropoutMask(b, in[1], keep, x.Shape())
			return []ir.Value{Select(b, kept, Mul(b, x, ConstLike(b, x, 1/keep)), ZerosLike(b, x))}
		},
	})
}

// halfSteps is the number of values of 16 bits.
const halfSteps = 1 << 16

// dropoutMask returns which elements are kept, each with probability keep. If 16 bits resolve
// the probability well enough, one block of random bits serves four elements.
func dropoutMask(b *ir.Builder, key ir.Value, keep float64, shape ir.Shape) ir.Value {
	steps := math.Round(keep * halfSteps)
	if math.Abs(steps/halfSteps-keep) > 1e-3*math.Min(keep, 1-keep) {
		return Bernoulli(b, key, Const(b, ir.F32, keep), shape...)
	}
	bits := b.Add1(OpRandomBits, &RandomBitsAttrs{RandomAttrs: RandomAttrs{shape, Threefry}, Halves: true}, key)
	return Lt(b, bits, Const(b, ir.U32, steps))
}

// Dropout returns x, of a float type, with each element set to 0 with probability rate, in
// [0, 1], and divided by 1 − rate otherwise, which keeps the mean. key is u32[2] and must
// differ from step to step: see [FoldIn].
func Dropout(b *ir.Builder, x, key ir.Value, rate float64) ir.Value {
	return b.Add1(OpDropout, &DropoutAttrs{rate}, x, key)
}
