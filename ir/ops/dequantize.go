package ops

import (
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Block-quantised values.
const (
	OpDequantize      ir.Op = "dequantize"
	OpQuantizedMatMul ir.Op = "quantized_matmul"
)

// PackedAttrs hold the format of packed values and the type to unpack to.
type PackedAttrs struct {
	Format string
	DType  ir.DType
}

// Visit shows the attributes.
func (a *PackedAttrs) Visit(v ir.AttrVisitor) {
	v.Text("format", &a.Format)
	v.DType("dtype", &a.DType)
}

func init() {
	names := strings.Join(formatNames(), ", ")
	newAttrs := func() ir.Attrs { return &PackedAttrs{DType: ir.F32} }
	packed := "holds whole blocks along its last axis: bytes as u8, or as little-endian u32 words, with up to three bytes of padding"
	format := "format is one of " + names + "; dtype is a float type"
	defineComposite(composite{
		op: OpDequantize, operands: []string{"x"}, types: unsigned, newAttrs: newAttrs, noGrad: "x is a pattern of bits",
		doc: "The numbers packed in blocks of bytes, in one of the formats of GGUF files or as 8-bit floats. They equal those of the format's reference implementation, " +
			"bit for bit, in f32, except for subnormal numbers on a device that flushes them. RLX in Rust has them as schemes of DequantMatMul.",
		constraints: []string{"x " + packed, format},
		check: func(n *ir.Node) error {
			_, err := unpackedSize(n.Attrs().(*PackedAttrs), n.Input(0).Type())
			return err
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*PackedAttrs)
			return Convert(b, unpack(b, a.Format, in[0]), a.DType)
		},
	})
	defineComposite(composite{
		op: OpQuantizedMatMul, operands: []string{"x", "w"}, types: floats, newAttrs: newAttrs, routine: true,
		doc: "x·wᵀ for x [..., k] and a matrix w [n, k] whose rows are packed into blocks, [n, bytes]: the weights of a linear layer as in GGUF " +
			"files. They stay packed in memory and are dequantised as they are loaded. It is differentiable by x, not by w.",
		constraints: []string{"w " + packed + "; a row has as many elements as the last axis of x", format + ", that in which products are summed up if it is wider than f16"},
		check: func(n *ir.Node) error {
			x, w := n.Input(0).Type(), n.Input(1).Type()
			size, err := unpackedSize(n.Attrs().(*PackedAttrs), w)
			if err != nil {
				return err
			}
			if len(w.Shape) != 2 || len(x.Shape) == 0 || x.Shape[len(x.Shape)-1] != size {
				return ir.Shapef("x is %s and rows of w have %s elements", x.Shape, size)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, x := n.Attrs().(*PackedAttrs), in[0]
			w := Convert(b, unpack(b, a.Format, in[1]), a.DType)
			if rows, ok := x.Shape()[:x.Rank()-1].Size().Const(); ok && rows == 1 {
				return oneRow(b, x, w)
			}
			y := DotGeneral(b, Convert(b, x, a.DType), w, DotAttrs{LhsContract: []int{-1}, RhsContract: []int{-1}})
			return Convert(b, y, x.DType())
		},
	})
}

// oneRow returns x·wᵀ for an x of one row as a reduction, which reads each element of w
// once, so that unpacking fuses into it.
func oneRow(b *ir.Builder, x, w ir.Value) ir.Value {
	products := Mul(b, Reshape(b, Convert(b, x, w.DType()), x.Dim(-1)), w)
	y := Convert(b, ReduceSum(b, products, 1), x.DType())
	return Reshape(b, y, append(x.Shape()[:x.Rank()-1].Clone(), w.Dim(0))...)
}

// unpackedSize returns the number of elements in a row of a packed value.
func unpackedSize(a *PackedAttrs, x ir.Type) (ir.Dim, error) {
	f, ok := formats[a.Format]
	if !ok {
		return ir.Dim{}, ir.Attrf("format is %q, not one of %s", a.Format, strings.Join(formatNames(), ", "))
	}
	if err := floats.check(a.DType); err != nil {
		return ir.Dim{}, err
	}
	if x.DType != ir.U8 && x.DType != ir.U32 || len(x.Shape) == 0 {
		return ir.Dim{}, ir.DTypef("packed values are %s, not rows of u8 or u32", x)
	}
	count, bytes := x.Shape[len(x.Shape)-1], ir.N(f.bytes)
	if x.DType == ir.U32 {
		words, ok := count.Const()
		if over := 4 * words % f.bytes; !ok || over > 3 {
			return ir.Dim{}, ir.Shapef("rows of %s words hold no whole blocks of %d bytes", count, f.bytes)
		}
		return ir.N(4 * words / f.bytes * f.elements), nil
	}
	blocks, err := count.Div(bytes)
	if err != nil {
		return ir.Dim{}, ir.Shapef("rows of %s bytes hold no whole blocks of %d", count, f.bytes)
	}
	return blocks.Mul(ir.N(f.elements)), nil
}

// unpack returns the numbers of packed rows, in f32.
func unpack(b *ir.Builder, format string, x ir.Value) ir.Value {
	f := formats[format]
	size, err := unpackedSize(&PackedAttrs{format, ir.F32}, x.Type())
	if b.Err() != nil || err != nil {
		return ir.Value{}
	}
	rows := x.Shape()[:x.Rank()-1]
	blocks, _ := size.Div(ir.N(f.elements))
	if x.DType() == ir.U32 {
		x = shifts(b, ExpandDims(b, Bitcast(b, x, ir.I32), -1), 4, 8)
		x = Reshape(b, x, append(rows.Clone(), x.Dim(-2).Mul(ir.N(4)))...)
		x = SliceAxis(b, x, -1, ir.N(0), blocks.Mul(ir.N(f.bytes)))
		x = And(b, x, ConstLike(b, x, 255))
	}
	x = Reshape(b, Convert(b, x, ir.I32), append(rows.Clone(), blocks, ir.N(f.bytes))...)
	return Reshape(b, f.decode(b, x), append(rows.Clone(), size)...)
}

// shifts returns x, whose last axis has size 1, shifted right by 0, step, 2·step
// and so on, n times, along that axis.
func shifts(b *ir.Builder, x ir.Value, n, step int) ir.Value {
	by := Mul(b, Iota(b, x.DType(), 0, ir.N(n)), Const(b, x.DType(), float64(step)))
	return ShiftRight(b, x, by)
}

// Dequantize unpacks x, blocks of bytes along the last axis as u8 or u32, into float type
// d. format names a GGUF format or an 8-bit float: "q4_0", "q4_k", "mxfp4" and so on.
func Dequantize(b *ir.Builder, x ir.Value, format string, d ir.DType) ir.Value {
	return b.Add1(OpDequantize, &PackedAttrs{format, d}, x)
}

// QuantizedMatMul returns x·wᵀ for x [..., k] and a matrix w [n, k] whose rows are packed
// in a format, [n, bytes] as u8 or [n, words] as u32. Products accumulate in f32.
func QuantizedMatMul(b *ir.Builder, x, w ir.Value, format string) ir.Value {
	return b.Add1(OpQuantizedMatMul, &PackedAttrs{format, ir.F32}, x, w)
}
