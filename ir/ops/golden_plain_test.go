package ops_test

import (
	"maps"
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() { maps.Copy(golden, goldenPlain) }

// asFloats is for ops whose results are booleans or integers.
func asFloats(f func(b *ir.Builder, in values) ir.Value) func(b *ir.Builder, in values) ir.Value {
	return func(b *ir.Builder, in values) ir.Value { return ops.Convert(b, f(b, in), ir.F64) }
}

func counting(b *ir.Builder, n int) ir.Value { return ops.Iota(b, ir.I32, 0, ir.N(n)) }

func windowed(a ops.AttentionAttrs) func(b *ir.Builder, in values) ir.Value {
	a.Window = 3
	return attention(a)
}

// goldenPlain are more cases of golden, by NumPy 2.4.6; attention with a window by
// scaled_dot_product_attention of PyTorch 2.15 with the mask that equals the window.
var goldenPlain = map[string]goldenCase{
	"all": {shapes{{3, 5}}, asFloats(func(b *ir.Builder, in values) ir.Value {
		return ops.All(b, ops.Gt(b, in[0], ops.ConstLike(b, in[0], -1.2)), 1)
	}), []int{3}, -2.75},
	"any": {shapes{{3, 5}}, asFloats(func(b *ir.Builder, in values) ir.Value {
		return ops.Any(b, ops.Gt(b, in[0], ops.ConstLike(b, in[0], 1.2)), 0)
	}), []int{5}, 1},
	"bincount": {nil, asFloats(func(b *ir.Builder, _ values) ir.Value { // 0, 7, 3, 10, … modulo 11, 8 at most
		x := ops.Rem(b, ops.Mul(b, counting(b, 30), ops.Const(b, ir.I32, 7)), ops.Const(b, ir.I32, 11))
		return ops.Bincount(b, ops.Min(b, x, ops.Const(b, ir.I32, 8)), 9)
	}), []int{9}, 11.25},
	"histogram":   {shapes{{4, 7}}, asFloats(func(b *ir.Builder, in values) ir.Value { return ops.Histogram(b, in[0], 5, -1, 1) }), []int{5}, -16},
	"matrix_rank": {shapes{{2, 3, 3}}, asFloats(func(b *ir.Builder, in values) ir.Value { return ops.MatrixRank(b, in[0], -1) }), []int{2}, -8.25},
	"one_hot": {nil, func(b *ir.Builder, _ values) ir.Value {
		return ops.OneHot(b, indices(b, []int64{1, 3, 0, 2, 2}, 5), ir.N(4), ir.F64)
	}, []int{5, 4}, -4.25},
	"fma": {shapes{{3, 5}, {3, 5}, {3, 5}}, func(b *ir.Builder, in values) ir.Value { return ops.Fma(b, in[0], in[1], in[2]) }, []int{3, 5}, -4.34375},
	"hinge": {shapes{{3, 5}, {3, 5}}, func(b *ir.Builder, in values) ir.Value {
		sign := ops.Sign(b, ops.Add(b, in[1], ops.ConstLike(b, in[1], 0.01)))
		return ops.Hinge(b, in[0], sign, ops.LossNone)
	}, []int{3, 5}, -4.75},
	"tensordot": {shapes{{2, 3, 4}, {3, 4, 5}}, func(b *ir.Builder, in values) ir.Value {
		return b.Add1(ops.OpTensorDot, &ops.TensorDotAttrs{Count: 2}, in...)
	}, []int{2, 5}, -12.46875},
	"flatten": {shapes{{2, 3, 4}}, func(b *ir.Builder, in values) ir.Value {
		return b.Add1(ops.OpFlatten, &ops.FlattenAttrs{AxisFrom: 1}, in...)
	}, []int{2, 12}, 1.15625},
	"attention with a window": {
		shapes{{2, 5, 4}, {2, 7, 4}, {2, 7, 3}}, windowed(ops.AttentionAttrs{}), []int{2, 5, 3}, -4.275071861424881,
	},
	"causal attention with a window": {
		shapes{{2, 5, 4}, {2, 7, 4}, {2, 7, 3}}, windowed(ops.AttentionAttrs{Causal: true}), []int{2, 5, 3}, -3.9240966564167947,
	},
}

// TestPlainMeaningsByHand checks values that are computed by hand.
func TestPlainMeaningsByHand(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	largest := ir.F32.MaxFloat()
	runEvalCases(t, []evalCase{
		{"is_inf", of1(ops.IsInf), []*ir.Array{f32s(1, inf, -inf, nan)}, bools(0, 1, 1, 0)},
		{"is_nan", of1(ops.IsNaN), []*ir.Array{f32s(1, inf, -inf, nan)}, bools(0, 0, 0, 1)},
		{"nan_to_num", of1(ops.NanToNum), []*ir.Array{f32s(1, inf, -inf, nan)}, f32s(1, largest, -largest, 0)},
		{"round_ste", of1(ops.RoundSTE), []*ir.Array{f32s(-1.5, 0.5, 2.5, 2.6)}, f32s(-2, 0, 2, 3)},
		{
			"nextafter", of2(ops.NextAfter),
			[]*ir.Array{f32s(1, 0, -2.5), f32s(2, -1, 0)},
			f32s(1+0x1p-23, -0x1p-149, -2.5+0x1p-22),
		},
		{ // the angles are positions times 1 and 1/10
			"rope_table", func(b *ir.Builder, in values) ir.Value {
				cos, sin := ops.RopeTable(b, in[0], 4, 100)
				return ops.Concatenate(b, 1, cos, sin)
			},
			[]*ir.Array{i32s(0, 1, 7)},
			matrix(3, 4, 1, 1, 0, 0, math.Cos(1), math.Cos(0.1), math.Sin(1), math.Sin(0.1), math.Cos(7), math.Cos(0.7), math.Sin(7), math.Sin(0.7)),
		},
		{"cond", func(b *ir.Builder, in values) ir.Value {
			double := func(b *ir.Builder, in values) values { return values{ops.Add(b, in[0], in[0])} }
			return ops.Cond(b, in[0], in[1:], double, func(_ *ir.Builder, in values) values { return in })[0]
		}, []*ir.Array{ir.Int(ir.Bool, 1), f32s(3, -4)}, f32s(6, -8)},
		{"checkpoint", func(b *ir.Builder, in values) ir.Value {
			return ops.Checkpoint(b, graphOf(b, func(b *ir.Builder, in values) values { return values{ops.Square(b, in[0])} }, in[0]), 0, in[0])[0]
		}, []*ir.Array{f32s(3, -4)}, f32s(9, 16)},
		{"custom_jvp", func(b *ir.Builder, in values) ir.Value {
			square := graphOf(b, func(b *ir.Builder, in values) values { return values{ops.Square(b, in[0])} }, in[0])
			tangent := graphOf(b, func(b *ir.Builder, in values) values { return values{ops.Mul(b, in[0], in[1])} }, in[0], in[0])
			return ops.CustomJVP(b, square, tangent, in[0])[0]
		}, []*ir.Array{f32s(3, -4)}, f32s(9, 16)},
		{
			"swish", func(b *ir.Builder, in values) ir.Value { return ops.Swish(b, in[0], in[1]) },
			[]*ir.Array{f32s(1, -2), ir.Float(ir.F32, 2)},
			f32s(1/(1+math.Exp(-2)), -2/(1+math.Exp(4))),
		},
		{
			"take, unordered", func(b *ir.Builder, in values) ir.Value { return ops.TakeUnordered(b, in[0], in[1], 0, ops.OutsideFill) },
			[]*ir.Array{f32s(10, 20, 30), i32s(2, 0, 3)},
			f32s(30, 10, 0),
		},
		{"embedding, unordered", of2(ops.EmbeddingUnordered), []*ir.Array{matrix(3, 2, 1, 2, 3, 4, 5, 6), i32s(2, 0)}, matrix(2, 2, 5, 6, 1, 2)},
		{"pad, by sizes", func(b *ir.Builder, in values) ir.Value {
			return ops.PadDims(b, in[0], in[1], ir.Dims(1), ir.Dims(2), []int{1})
		}, []*ir.Array{f32s(1, 2), ir.Float(ir.F32, 9)}, f32s(9, 1, 9, 2, 9, 9)},
		{
			"broadcast", func(b *ir.Builder, in values) ir.Value { return ops.Broadcast(b, ops.OpAdd, in...)[0] },
			[]*ir.Array{f32s(1, 2), matrix(2, 1, 5, 6)},
			matrix(2, 2, 1, 2, 1, 2),
		},
		{
			"a batch axis", func(b *ir.Builder, in values) ir.Value { return ops.BatchAt(b, in[0], -1, 1, ir.N(2)) },
			[]*ir.Array{f32s(1, 2)},
			matrix(2, 2, 1, 1, 2, 2),
		},
		{"while_loop", func(b *ir.Builder, in values) ir.Value { // Collatz: 7 takes 16 steps to 1
			number := func(b *ir.Builder, x float64) ir.Value { return ops.Const(b, ir.I32, x) }
			return ops.WhileLoop(b, ops.While{
				Carries: values{in[0], number(b, 0)},
				Cond:    func(b *ir.Builder, _, c values) ir.Value { return ops.Ne(b, c[0], number(b, 1)) },
				Body: func(b *ir.Builder, _, c values) values {
					odd := ops.Eq(b, ops.Rem(b, c[0], number(b, 2)), number(b, 1))
					up := ops.Add(b, ops.Mul(b, c[0], number(b, 3)), number(b, 1))
					return values{ops.Select(b, odd, up, ops.Div(b, c[0], number(b, 2))), ops.Add(b, c[1], number(b, 1))}
				},
			})[1]
		}, []*ir.Array{ir.Int(ir.I32, 7)}, ir.Int(ir.I32, 16)},
	})
}

// TestProductWithPackedWeights is against NumPy 2.4.6: five rows of a block of q8_0,
// with the scales 0.5, 0.25, 1, 2 and 0.125 and the numbers (53·i + 29·j) mod 255 − 127. The second digest is of x
// rounded to multiples of max|x|/127 in f32.
func TestProductWithPackedWeights(t *testing.T) {
	packed := ir.NewArray(ir.U8, 5, 34)
	for i, half := range []int64{0x3800, 0x3400, 0x3c00, 0x4000, 0x3000} {
		row := packed.I[i*34:]
		row[0], row[1] = half&255, half>>8
		for j := range 32 {
			row[2+j] = int64((i*53+j*29)%255-127) & 255
		}
	}
	x := pattern(1, []int{3, 32})
	for _, c := range []struct {
		name    string
		product func(b *ir.Builder, x, w ir.Value) ir.Value
		want    float64
	}{
		{"exact", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.QuantizedMatMul(b, x, w, "q8_0") }, 252.4765625},
		{"rounded", func(b *ir.Builder, x, w ir.Value) ir.Value { return ops.QuantizedMatMul8(b, x, w, "q8_0") }, 251.10024977586},
	} {
		g := must(ir.Build("g", func(b *ir.Builder) {
			weights := b.Port(ir.InputPort, "w", packed.Type())
			y := c.product(b, ops.Convert(b, b.Port(ir.InputPort, "x", x.Type()), ir.F32), weights)
			b.Output("y", ops.Convert(b, y, ir.F64))
		}))(t)
		if got := digest(runHeld(t, g, []*ir.Array{packed, x})[0]); !(math.Abs(got-c.want) <= 1e-3) {
			t.Errorf("%s: the digest is %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDropoutKeepsTheExpectedFraction drops a quarter of ones: what stays is 4/3.
func TestDropoutKeepsTheExpectedFraction(t *testing.T) {
	const n = 20000
	y := evalBuilt(t, func(b *ir.Builder) ir.Value {
		return ops.Dropout(b, ops.Ones(b, ir.F64, ir.N(n)), ops.Key(b, 3), 0.25)
	})
	kept := 0.0
	for _, x := range y.F {
		if kept += x * 0.75; x != 0 && !(math.Abs(x-4./3) <= 1e-12) {
			t.Fatalf("an element is %v", x)
		}
	}
	if share := kept / n; !(math.Abs(share-0.75) <= 5*math.Sqrt(0.75*0.25/n)) {
		t.Errorf("a share of %v is kept", share)
	}
}

// graphOf returns a graph of ports like the given values.
func graphOf(b *ir.Builder, f func(b *ir.Builder, in values) values, like ...ir.Value) *ir.Graph {
	g, err := ir.Build("graph", func(s *ir.Builder) {
		in := make(values, len(like))
		for i, v := range like {
			in[i] = s.Port(ir.InputPort, strconv.Itoa(i), v.Type())
		}
		for i, v := range f(s, in) {
			s.Output(strconv.Itoa(i), v)
		}
	})
	b.Fail(err)
	return g
}
