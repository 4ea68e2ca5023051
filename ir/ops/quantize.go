package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpDequantize is weights in few bits as numbers.
const OpDequantize ir.Op = "dequantize"

// QuantBlock is how many neighbouring elements along the last axis share a scale.
const QuantBlock = 32

// DequantizeAttrs say how many bits an element has: 8 or 4.
type DequantizeAttrs struct{ Bits int }

// Visit shows the attributes.
func (a *DequantizeAttrs) Visit(v ir.AttrVisitor) { v.Int("bits", &a.Bits) }

func init() {
	noGrad := "quantised weights are not trained"
	define(&ir.Def{
		Op: OpDequantize, Operands: []string{"quants", "scales"},
		Doc: "Quantised numbers, f32: those of 8 bits are the scale of their block times the quant, those of 4 bits the scale " +
			"times the quant less 8. A block is 32 neighbours along the last axis. Its quants of 4 bits lie in 16 bytes, the first " +
			"16 elements in the lower halves: the blocks Q8_0 and Q4_0 of GGUF files, with quants and scales apart.",
		Constraints: numbered(
			"bits is 8 or 4",
			"quants is i8[..., k], or, of 4 bits, u8[..., k/2]; scales is f16[..., k/32], k being whole blocks",
		),
		NewAttrs: func() ir.Attrs { return &DequantizeAttrs{Bits: 8} },
		Infer:    inferDequantize,
		Eval:     evalDequantize,
		NoGrad:   noGrad, NoTranspose: noGrad,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			quants, scales := BatchAt(b, in[0], axes[0], 0, size), BatchAt(b, in[1], axes[1], 0, size)
			return b.Add(n.Op(), n.Attrs(), quants, scales), []int{0}
		},
		Lower:   &ir.MapLowering{Element: dequantized},
		Samples: dequantizeSamples,
	})
}

// Dequantize returns the numbers, f32[..., k], that quants stand for: i8[..., k]
// for 8 bits, u8[..., k/2] for 4, with a scale for each block, f16[..., k/32].
// A product takes them as they are loaded, so that weights stay in few bits.
func Dequantize(b *ir.Builder, quants, scales ir.Value, a DequantizeAttrs) ir.Value {
	return b.Add1(OpDequantize, &a, quants, scales)
}

func inferDequantize(n *ir.Node) ([]ir.Type, error) {
	quants, scales := n.Input(0).Type(), n.Input(1).Type()
	want, perByte := ir.I8, 1
	switch n.Attrs().(*DequantizeAttrs).Bits {
	case 8:
	case 4:
		want, perByte = ir.U8, 2
	default:
		return nil, ir.Attrf("%d bits, neither 8 nor 4", n.Attrs().(*DequantizeAttrs).Bits)
	}
	if quants.DType != want || scales.DType != ir.F16 {
		return nil, ir.DTypef("quants are %s and scales %s, not %s and f16", quants.DType, scales.DType, want)
	}
	last := len(quants.Shape) - 1
	if last < 0 || len(scales.Shape) != last+1 || !scales.Shape[:last].Equal(quants.Shape[:last]) {
		return nil, ir.Shapef("quants are %s and scales %s: they differ in the last axis only", quants.Shape, scales.Shape)
	}
	k := quants.Shape[last].Mul(ir.N(perByte))
	if k != scales.Shape[last].Mul(ir.N(QuantBlock)) {
		return nil, ir.Shapef("%s elements in %s blocks of %d", k, scales.Shape[last], QuantBlock)
	}
	out := quants.Shape.Clone()
	out[last] = k
	return []ir.Type{{DType: ir.F32, Shape: out}}, nil
}

func evalDequantize(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	four := n.Attrs().(*DequantizeAttrs).Bits == 4
	for i := range out.F {
		block, at := i/QuantBlock, i%QuantBlock
		quant := float64(0)
		if four {
			pair := in[0].I[block*QuantBlock/2+at%(QuantBlock/2)]
			if at >= QuantBlock/2 {
				pair >>= 4
			}
			quant = float64(pair&15) - 8
		} else {
			quant = float64(in[0].I[i])
		}
		out.F[i] = quant * in[1].F[block]
	}
	return []*ir.Array{c.Round(out)}, nil
}

// dequantized is the lowering.
func dequantized(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	last := len(at) - 1
	along := func(x scalar.Expr) ir.Index { return append(append(ir.Index{}, at[:last]...), x) }
	block := scalar.FloorDiv(at[last], int32Const(QuantBlock))
	scale := scalar.Convert(load(1, along(block)), ir.F32)
	if n.Attrs().(*DequantizeAttrs).Bits == 8 {
		return scalar.Mul(scale, scalar.Convert(load(0, at), ir.F32))
	}
	const half = QuantBlock / 2
	in := scalar.Mod(at[last], int32Const(QuantBlock))
	pair := load(0, along(scalar.Add(scalar.Mul(block, int32Const(half)), scalar.Mod(in, int32Const(half)))))
	shift := scalar.Mul(scalar.FloorDiv(in, int32Const(half)), int32Const(4))
	quant := scalar.And(scalar.Shr(scalar.Convert(pair, ir.I32), shift), int32Const(15))
	return scalar.Mul(scale, scalar.Convert(scalar.Sub(quant, int32Const(8)), ir.F32))
}

func dequantizeSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	sample := func(name string, bits int, dims ...int) ir.Sample {
		last := len(dims) - 1
		quants, scales := append([]int{}, dims...), append([]int{}, dims...)
		scales[last] /= QuantBlock
		all := draw(1, ir.I8, -128, 127, quants...)
		if bits == 4 {
			quants[last] /= 2
			all = draw(1, ir.U8, 0, 255, quants...)
		}
		return ir.Sample{Name: name, Attrs: &DequantizeAttrs{bits}, In: []*ir.Array{all, draw(2, ir.F16, -0.5, 0.5, scales...)}}
	}
	return []ir.Sample{
		sample("bytes", 8, 3, 64), sample("one block of bytes", 8, 32), sample("no bytes", 8, 0, 32),
		sample("halves", 4, 3, 96), sample("one block of halves", 4, 32), sample("more axes", 4, 2, 3, 32), sample("no blocks", 4, 2, 0),
	}
}
