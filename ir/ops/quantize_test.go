package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestQuantizedIntegersMatchONNX takes the examples of ONNX's documentation of
// QuantizeLinear, DequantizeLinear and QLinearMatMul.
func TestQuantizedIntegersMatchONNX(t *testing.T) {
	u8 := func(x []int64, dims ...int) *ir.Array { return ir.Ints(ir.U8, x, dims...) }
	for name, c := range map[string]struct {
		in    []*ir.Array
		build func(b *ir.Builder, in values) ir.Value
		want  []float64
	}{
		"QuantizeLinear": {
			[]*ir.Array{ir.Floats(ir.F32, []float64{0, 2, 3, 1000, -254, -1000}), ir.Float(ir.F32, 2), ir.Int(ir.U8, 128)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.QuantizeLinear(b, in[0], in[1], in[2], 0, ir.U8)
			},
			[]float64{128, 129, 130, 255, 1, 0},
		},
		"DequantizeLinear": {
			[]*ir.Array{u8([]int64{0, 3, 128, 255}, 4), ir.Float(ir.F32, 2), ir.Int(ir.U8, 128)},
			func(b *ir.Builder, in values) ir.Value { return ops.DequantizeLinear(b, in[0], in[1], in[2], 0) },
			[]float64{-256, -250, 0, 254},
		},
		"QLinearMatMul": {
			[]*ir.Array{u8([]int64{208, 236, 0, 238, 3, 214, 255, 29}, 2, 4), u8([]int64{152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247}, 4, 3)},
			func(b *ir.Builder, in values) ir.Value {
				return ops.QMatMul(b, in[0], in[1], ir.Value{}, ops.RequantAttrs{XZero: 113, WZero: 114, OutZero: 118, Mult: 0.0066 * 0.00705 / 0.0107, DType: ir.U8})
			},
			[]float64{168, 115, 255, 1, 66, 151},
		},
	} {
		g := must(ir.Build("g", func(b *ir.Builder) {
			var in values
			for i, a := range c.in {
				in = append(in, b.Port(ir.InputPort, string(rune('a'+i)), a.Type()))
			}
			b.Output("y", ops.Convert(b, c.build(b, in), ir.F64))
		}))(t)
		if got := runHeld(t, g, c.in)[0].F; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestQuantizedConvolutionEqualsDequantized quantizes the result of
// a convolution of floats, with scales that are powers of two: nothing is
// rounded but the result.
func TestQuantizedConvolutionEqualsDequantized(t *testing.T) {
	const xScale, wScale, yScale = 1. / 16, 1. / 64, 1. / 4
	x, w, bias := ir.NewArray(ir.I8, 1, 5, 4, 4), ir.NewArray(ir.I8, 3, 2, 2, 6), ir.NewArray(ir.I32, 6)
	for i := range x.I {
		x.I[i] = int64(i*37%255) - 128
	}
	for i := range w.I {
		w.I[i] = int64(i*53%255) - 127
	}
	for i := range bias.I {
		bias.I[i] = int64(i*1000) - 2500
	}
	a := ops.Conv2DAttrs{Strides: []int{1, 2}, PadLo: []int{1, 0}, PadHi: []int{1, 1}, Groups: 2}
	g := must(ir.Build("g", func(b *ir.Builder) {
		in := values{b.Port(ir.InputPort, "a", x.Type()), b.Port(ir.InputPort, "b", w.Type()), b.Port(ir.InputPort, "c", bias.Type())}
		number := func(v float64) ir.Value { return ops.Const(b, ir.F64, v) }
		whole := func(v int) ir.Value { return ops.Const(b, ir.I8, float64(v)) }
		xf := ops.DequantizeLinear(b, in[0], number(xScale), whole(-3), 0)
		wf := ops.DequantizeLinear(b, in[1], number(wScale), whole(5), 0)
		bf := ops.DequantizeLinear(b, in[2], number(xScale*wScale), ir.Value{}, 0)
		b.Output("want", ops.Convert(b, ops.QuantizeLinear(b, ops.Conv2D(b, xf, wf, bf, a), number(yScale), whole(7), 0, ir.I8), ir.F64))
		b.Output("got", ops.Convert(b, ops.QConv2D(b, in[0], in[1], in[2], ops.QConv2DAttrs{
			Conv2DAttrs: a, RequantAttrs: ops.RequantAttrs{XZero: -3, WZero: 5, OutZero: 7, Mult: xScale * wScale / yScale, DType: ir.I8},
		}), ir.F64))
	}))(t)
	out := runHeld(t, g, []*ir.Array{x, w, bias})
	if !slices.Equal(out[0].F, out[1].F) {
		t.Errorf("%v\nwant %v", out[1].F, out[0].F)
	}
	if low, high := slices.Min(out[0].F), slices.Max(out[0].F); low > -100 || high < 100 {
		t.Errorf("numbers from %v to %v try little", low, high)
	}
}

// By torch.fake_quantize_per_tensor_affine of PyTorch 2.15 with the scale
// max|x|/7 and the range -7 to 7, for a pattern.
func TestFakeQuantAgreesWithPyTorch(t *testing.T) {
	want := []float64{
		0.5892857313156128, -0.5892857313156128, 1.1785714626312256, 0.1964285671710968, -0.9821428060531616,
		0.7857142686843872, -0.3928571343421936, 1.375, 0.1964285671710968, -0.7857142686843872,
		0.7857142686843872, -0.1964285671710968, -1.375, 0.3928571343421936, -0.7857142686843872,
	}
	x := pattern(1, []int{3, 5})
	x.DType = ir.F32
	largest := ir.Float(ir.F32, 0.5)
	for scale, after := range map[string]float64{ops.ScaleBatch: 1.375, ops.ScaleEMA: 0.75*0.5 + 0.25*1.375, ops.ScaleFixed: 0.5} {
		g := must(ir.Build("g", func(b *ir.Builder) {
			y, now := ops.FakeQuant(b, b.Port(ir.InputPort, "x", x.Type()), b.Port(ir.InputPort, "largest", largest.Type()),
				ops.FakeQuantAttrs{Bits: 4, STE: ops.STEIdentity, Scale: scale, Decay: 0.75})
			b.Output("y", y)
			b.Output("largest now", now)
		}))(t)
		out := runHeld(t, g, []*ir.Array{x, largest})
		if now := out[1].F[0]; now != after {
			t.Errorf("%s: the largest size is %v, want %v", scale, now, after)
		}
		for i, y := range out[0].F {
			if scale == ops.ScaleBatch && !(math.Abs(y-want[i]) <= 1e-7) {
				t.Errorf("element %d is %v, want %v", i, y, want[i])
			}
			if whole := y / (after / 7); !(math.Abs(whole-math.Round(whole)) <= 1e-5) || math.Abs(whole) > 7.001 {
				t.Errorf("%s: element %d is %v scales", scale, i, whole)
			}
		}
	}
}
