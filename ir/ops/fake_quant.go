package ops

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// Quantisation-aware training.
const (
	OpFakeQuant    ir.Op = "fake_quant"
	OpFakeQuantLSQ ir.Op = "fake_quant_lsq"
)

// Straight-through estimators: substitutes for the derivative of rounding.
const (
	STEIdentity = "identity"  // 1
	STEClipped  = "clipped"   // 1 inside the range, 0 outside
	STETanh     = "tanh"      // 1 − tanh²(x)
	STEHardTanh = "hard_tanh" // 1 where |x| ≤ 1, 0 elsewhere
)

// Sources of the largest magnitude, from which the scale is computed.
const (
	ScaleBatch = "batch" // the operand
	ScaleEMA   = "ema"   // an exponential moving average
	ScaleFixed = "fixed" // given
)

// FakeQuantAttrs hold the number of bits, the axes with separate scales, the
// straight-through estimator, the source of the scale, and the decay of the moving
// average. [FakeQuant] takes zeros for the defaults: 8 bits, one scale, [STEIdentity],
// [ScaleBatch] and a Decay of 0.99.
type FakeQuantAttrs struct {
	Bits  int
	Axes  []int
	STE   string
	Scale string
	Decay float64
}

// Visit shows the attributes.
func (a *FakeQuantAttrs) Visit(v ir.AttrVisitor) {
	v.Int("bits", &a.Bits)
	v.Ints("axes", &a.Axes)
	v.Text("ste", &a.STE)
	v.Text("scale", &a.Scale)
	v.Float("decay", &a.Decay)
}

// LSQAttrs hold the number of bits, and the factor of the derivative by the scale:
// 1/√(elements·q) in the paper.
type LSQAttrs struct {
	Bits   int
	Axes   []int
	Factor float64
}

// Visit shows the attributes.
func (a *LSQAttrs) Visit(v ir.AttrVisitor) {
	v.Int("bits", &a.Bits)
	v.Ints("axes", &a.Axes)
	v.Float("factor", &a.Factor)
}

func init() {
	bitsDoc := "bits is from 2 to 16; the axes are distinct axes of x; no axes stand for one scale"
	defineComposite(composite{
		op: OpFakeQuant, operands: []string{"x", "largest"}, types: floats,
		doc: "x rounded to multiples of a scale, scale·round(x/scale) clamped to ±q for q = 2^(bits−1) − 1, ties to even; and the largest magnitude, scale·q. That is " +
			"max|x| over all axes except axes (\"batch\"), decay·largest + (1 − decay)·max|x| (\"ema\": a state), or largest (\"fixed\"). " +
			"All zeros stay zeros. The derivative by x is, for ste \"identity\", 1; \"clipped\", 1 up to the largest magnitude and 0 beyond; " +
			"\"tanh\", 1 − tanh²(x); \"hard_tanh\", 1 up to 1 and 0 beyond. No other one passes.",
		newAttrs:    func() ir.Attrs { a := defaultFakeQuant; return &a },
		constraints: []string{"largest has the element type of x and its sizes along the axes", bitsDoc, "decay is in [0, 1]"},
		check: func(n *ir.Node) error {
			a := n.Attrs().(*FakeQuantAttrs)
			stes, scales := []string{STEIdentity, STEClipped, STETanh, STEHardTanh}, []string{ScaleBatch, ScaleEMA, ScaleFixed}
			if !slices.Contains(stes, a.STE) || !slices.Contains(scales, a.Scale) || !(a.Decay >= 0 && a.Decay <= 1) {
				return ir.Attrf("ste is %q, of %q; scale is %q, of %q; decay is %v, of [0, 1]", a.STE, stes, a.Scale, scales, a.Decay)
			}
			return checkFakeQuant(n, a.Bits, a.Axes)
		},
		bodies: fakeQuant,
		jvp:    jvpFakeQuant,
	})
	defineComposite(composite{
		op: OpFakeQuantLSQ, operands: []string{"x", "scale"}, types: floats,
		doc: "x rounded to multiples of a learned scale, scale·round(x/scale) clamped to [−q − 1, q] for q = 2^(bits−1) − 1, ties to even (Esser et al., Learned Step Size " +
			"Quantization). The derivative by x is 1 inside that range and 0 outside, that by the scale round(x/scale) − x/scale inside and the " +
			"end of the range outside, times factor.",
		newAttrs:    func() ir.Attrs { a := defaultLSQ; return &a },
		constraints: []string{"scale has the element type of x and its sizes along the axes", bitsDoc},
		check: func(n *ir.Node) error {
			a := n.Attrs().(*LSQAttrs)
			return checkFakeQuant(n, a.Bits, a.Axes)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			_, q, scale := lsq(b, n, in)
			return Convert(b, Mul(b, q, scale), in[0].DType())
		},
		jvp: jvpLSQ,
	})
}

func checkFakeQuant(n *ir.Node, bits int, axes []int) error {
	x, scale := n.Input(0).Type(), n.Input(1).Type()
	if bits < 2 || bits > 16 {
		return ir.Attrf("bits is %d, not in [2, 16]", bits)
	}
	if err := checkAxes(axes, len(x.Shape)); err != nil {
		return err
	}
	if !slices.IsSorted(axes) {
		return ir.Attrf("axes %v are not increasing", axes)
	}
	if want := (ir.Type{DType: x.DType, Shape: pick(x.Shape, axes)}); !scale.Equal(want) {
		return ir.Shapef("operand 1 is %s, not %s, the sizes of x along axes", scale, want)
	}
	return nil
}

// ends returns the largest signed integer of the given bits.
func ends(bits int) float64 { return float64(int(1)<<(bits-1) - 1) }

func fakeQuant(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a, x, largest := n.Attrs().(*FakeQuantAttrs), wide(b, in[0]), wide(b, in[1])
	if a.Scale != ScaleFixed {
		now := b.Add1(OpReduceMax, &AxesAttrs{permute.Others(x.Rank(), a.Axes)}, Abs(b, x))
		now = Max(b, now, ZerosLike(b, now)) // the maximum of no elements is -Inf
		if a.Scale == ScaleEMA {
			largest = Add(b, Mul(b, largest, ConstLike(b, largest, a.Decay)), Mul(b, now, ConstLike(b, now, 1-a.Decay)))
		} else {
			largest = now
		}
	}
	q := ends(a.Bits)
	scale := Div(b, largest, ConstLike(b, largest, q))
	none := Eq(b, scale, ZerosLike(b, scale))
	scale = BroadcastInDim(b, Select(b, none, OnesLike(b, scale), scale), x.Shape(), a.Axes)
	whole := Round(b, Div(b, x, scale))
	whole = Clamp(b, whole, ConstLike(b, x, -q), ConstLike(b, x, q))
	d := in[0].DType()
	return []ir.Value{Convert(b, Mul(b, whole, scale), d), Convert(b, largest, d)}
}

// jvpFakeQuant substitutes the estimator for the derivative of rounding.
func jvpFakeQuant(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	if !t[0].Valid() {
		return make([]ir.Value, 2)
	}
	a, x := n.Attrs().(*FakeQuantAttrs), in[0]
	one, zero := OnesLike(b, x), ZerosLike(b, x)
	tangent := t[0]
	switch a.STE {
	case STEClipped:
		limit := BroadcastInDim(b, out[1], x.Shape(), a.Axes)
		tangent = Select(b, Le(b, Abs(b, x), limit), tangent, zero)
	case STETanh:
		y := Tanh(b, x)
		tangent = Mul(b, tangent, Sub(b, one, Mul(b, y, y)))
	case STEHardTanh:
		tangent = Select(b, Le(b, Abs(b, x), one), tangent, zero)
	}
	return []ir.Value{tangent, {}}
}

// lsq returns x/scale, its rounding, and the scale, all in the shape of x.
func lsq(b *ir.Builder, n *ir.Node, in []ir.Value) (v, q, scale ir.Value) {
	a, x := n.Attrs().(*LSQAttrs), wide(b, in[0])
	scale = BroadcastInDim(b, wide(b, in[1]), x.Shape(), a.Axes)
	v = Div(b, x, scale)
	high := ends(a.Bits)
	return v, Clamp(b, Round(b, v), ConstLike(b, v, -high-1), ConstLike(b, v, high)), scale
}

func jvpLSQ(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	a, d := n.Attrs().(*LSQAttrs), in[0].DType()
	v, q, _ := lsq(b, n, in)
	high := ends(a.Bits)
	inside := And(b, Ge(b, v, ConstLike(b, v, -high-1)), Le(b, v, ConstLike(b, v, high)))
	var byX, byScale ir.Value
	if t[0].Valid() {
		byX = Select(b, inside, t[0], ZerosLike(b, t[0]))
	}
	if t[1].Valid() {
		slope := Mul(b, Select(b, inside, Sub(b, q, v), q), ConstLike(b, v, a.Factor))
		moved := BroadcastInDim(b, t[1], in[0].Shape(), a.Axes)
		byScale = scale(b, moved, StopGradient(b, Convert(b, slope, d)))
	}
	return []ir.Value{addTangents(b, byX, byScale)}
}

var (
	defaultFakeQuant = FakeQuantAttrs{Bits: 8, STE: STEIdentity, Scale: ScaleBatch, Decay: 0.99}
	defaultLSQ       = LSQAttrs{Bits: 8, Factor: 1}
)

// FakeQuant returns x rounded to a.Bits bits, and the largest magnitude, which a.Scale
// selects: that of x, its moving average with largest, or largest. largest has the type of
// x and its sizes along a.Axes.
func FakeQuant(b *ir.Builder, x, largest ir.Value, a FakeQuantAttrs) (y, newLargest ir.Value) {
	d := defaultFakeQuant
	a.Bits, a.STE, a.Scale, a.Decay = cmp.Or(a.Bits, d.Bits), cmp.Or(a.STE, d.STE), cmp.Or(a.Scale, d.Scale), cmp.Or(a.Decay, d.Decay)
	return two(b.Add(OpFakeQuant, &a, x, largest))
}

// FakeQuantLSQ returns x rounded to multiples of a learned scale (Esser et al., Learned
// Step Size Quantization). Zero fields of a mean 8 bits and a factor of 1.
func FakeQuantLSQ(b *ir.Builder, x, scale ir.Value, a LSQAttrs) ir.Value {
	a.Bits, a.Factor = cmp.Or(a.Bits, defaultLSQ.Bits), cmp.Or(a.Factor, defaultLSQ.Factor)
	return b.Add1(OpFakeQuantLSQ, &a, x, scale)
}
