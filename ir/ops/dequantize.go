package ops

import (
	"maps"
	"slices"
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

// PackedProductAttrs are those of a product with packed weights. ActivationBits is the number of bits to which the
// other factor is rounded, in blocks of 32 along its last axis with a scale each: 8, or 0 for none.
type PackedProductAttrs struct {
	PackedAttrs
	ActivationBits int
}

// Visit shows the attributes.
func (a *PackedProductAttrs) Visit(v ir.AttrVisitor) {
	a.PackedAttrs.Visit(v)
	v.Int("activation_bits", &a.ActivationBits)
}

// The rounding of activations: the elements of a block, and their bits.
const (
	activationBlock = 32
	activationBits  = 8
)

// The constraints of a packed operand and of its attributes.
const (
	packedRowsDoc     = "holds whole blocks along its last axis: bytes as u8, or as little-endian u32 words, with up to three bytes of padding"
	activationBitsDoc = "activation_bits is 0 or 8, and then the last axis of x is a multiple of 32"
)

var packedFormatDoc = "format is one of " + strings.Join(formatNames(), ", ") + "; dtype is a float type"

func init() {
	defineComposite(composite{
		op: OpDequantize, operands: []string{"x"}, types: unsigned, newAttrs: func() ir.Attrs { return &PackedAttrs{DType: ir.F32} }, noGrad: "x is a pattern of bits",
		doc: "The numbers packed in blocks of bytes, in one of the formats of GGUF files or as 8-bit floats. They equal those of the format's reference implementation, " +
			"bit for bit, in f32, except for subnormal numbers on a device that flushes them.",
		constraints: []string{"x " + packedRowsDoc, packedFormatDoc},
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
		op: OpQuantizedMatMul, operands: []string{"x", "w"}, types: floats, routine: true,
		newAttrs: func() ir.Attrs { return &PackedProductAttrs{PackedAttrs: PackedAttrs{DType: ir.F32}} },
		doc: "x·wᵀ for x [..., k] and a matrix w [n, k] whose rows are packed into blocks, [n, bytes]: the weights of a linear layer as in GGUF " +
			"files. They stay packed in memory and are dequantised as they are loaded. With activation_bits 8, x is rounded as by fake_quant: each 32 of a row to " +
			"multiples of their largest magnitude divided by 127. It is differentiable by x, as if x were not rounded, not by w.",
		constraints: []string{
			"w " + packedRowsDoc + "; a row has as many elements as the last axis of x", packedFormatDoc + ", that in which products are summed up if it is wider than f16",
			activationBitsDoc,
		},
		check: func(n *ir.Node) error {
			x, w := n.Input(0).Type(), n.Input(1).Type()
			size, err := n.Attrs().(*PackedProductAttrs).rowSize(w)
			if err != nil {
				return err
			}
			if len(w.Shape) != 2 || len(x.Shape) == 0 || x.Shape[len(x.Shape)-1] != size {
				return ir.Shapef("x is %s and rows of w have %s elements", x.Shape, size)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, x := n.Attrs().(*PackedProductAttrs), in[0]
			if a.ActivationBits != 0 {
				return a.ofRounded(b, n.Op(), in)
			}
			w := Convert(b, unpack(b, a.Format, in[1]), a.DType)
			if rows, ok := x.Shape()[:x.Rank()-1].Size().Const(); ok && rows == 1 {
				return oneRow(b, x, w)
			}
			y := DotGeneral(b, Convert(b, x, a.DType), w, DotAttrs{LhsContract: []int{-1}, RhsContract: []int{-1}})
			return Convert(b, y, x.DType())
		},
	})
}

// rowSize returns the number of elements in a row of w.
func (a *PackedProductAttrs) rowSize(w ir.Type) (ir.Dim, error) {
	size, err := unpackedSize(&a.PackedAttrs, w)
	if err != nil || a.ActivationBits == 0 {
		return size, err
	}
	if a.ActivationBits != activationBits {
		return size, ir.Attrf("activation_bits is %d: it must be 0 or %d", a.ActivationBits, activationBits)
	}
	if _, err := size.Div(ir.N(activationBlock)); err != nil {
		return size, ir.Shapef("rows of w have %s elements: activations of %d bits need blocks of %d", size, activationBits, activationBlock)
	}
	return size, nil
}

// ofRounded returns the product with the first operand rounded.
func (a *PackedProductAttrs) ofRounded(b *ir.Builder, op ir.Op, in []ir.Value) ir.Value {
	x := roundedActivations(b, Convert(b, in[0], a.DType))
	return Convert(b, b.Add1(op, &PackedProductAttrs{PackedAttrs: a.PackedAttrs}, append([]ir.Value{x}, in[1:]...)...), in[0].DType())
}

// roundedActivations returns x with each block along the last axis rounded to multiples of its largest magnitude
// divided by 127.
func roundedActivations(b *ir.Builder, x ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	blocks, err := x.Dim(-1).Div(ir.N(activationBlock))
	if err != nil {
		b.Failf(OpQuantizedMatMul, []ir.Value{x}, err)
		return ir.Value{}
	}
	split := splitAxis(b, x, x.Rank()-1, blocks)
	var axes []int
	for a := range x.Rank() {
		axes = append(axes, a)
	}
	largest := Zeros(b, x.DType(), split.Shape()[:x.Rank()]...)
	y, _ := FakeQuant(b, split, largest, FakeQuantAttrs{Bits: activationBits, Axes: axes})
	return Reshape(b, y, x.Shape()...)
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
	if err := floats.checkAttr(a.DType); err != nil {
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
	return b.Add1(OpQuantizedMatMul, &PackedProductAttrs{PackedAttrs: PackedAttrs{format, ir.F32}}, x, w)
}

// QuantizedMatMul8 is [QuantizedMatMul] with x rounded to 8 bits, in blocks of 32 along its last axis with a
// scale each, as llama.cpp does. The native CPU multiplies integers by AVX-512 VNNI, AVX2 or NEON, and CUDA those of one row
// whose numbers are bytes or parts of them; other devices multiply numbers.
func QuantizedMatMul8(b *ir.Builder, x, w ir.Value, format string) ir.Value {
	return b.Add1(OpQuantizedMatMul, &PackedProductAttrs{PackedAttrs{format, ir.F32}, activationBits}, x, w)
}

// format is a packing of elements numbers into blocks of bytes bytes. decode takes the
// bytes of blocks, i32 along the last axis, and returns the elements, f32 with more
// trailing axes.
type format struct {
	elements, bytes int
	decode          func(b *ir.Builder, x ir.Value) ir.Value
}

// formats are those of GGUF files, as ggml lays them out, and the 8-bit floats of
// OCP.
var formats = map[string]format{
	"q4_0": {32, 18, func(b *ir.Builder, x ir.Value) ir.Value {
		return scaledBlock(b, half(b, x, 0), minus(b, fields(b, bytesAt(b, x, 2, 16), 2, 4), 8))
	}},
	"q4_1": {32, 20, func(b *ir.Builder, x ir.Value) ir.Value {
		return Add(b, scaledBlock(b, half(b, x, 0), fields(b, bytesAt(b, x, 4, 16), 2, 4)), half(b, x, 2))
	}},
	"q5_0": {32, 22, func(b *ir.Builder, x ir.Value) ir.Value {
		return scaledBlock(b, half(b, x, 0), minus(b, fifthBits(b, x, 2), 16))
	}},
	"q5_1": {32, 24, func(b *ir.Builder, x ir.Value) ir.Value {
		return Add(b, scaledBlock(b, half(b, x, 0), fifthBits(b, x, 4)), half(b, x, 2))
	}},
	"q8_0": {32, 34, func(b *ir.Builder, x ir.Value) ir.Value {
		return scaledBlock(b, half(b, x, 0), signedBytes(b, bytesAt(b, x, 2, 32)))
	}},
	"q2_k": {256, 84, func(b *ir.Builder, x ir.Value) ir.Value {
		scales := bytesAt(b, x, 0, 16)
		q := reblock(b, fields(b, rowsOf(b, bytesAt(b, x, 16, 64), 2), 4, 2), 16, 16)
		scale := scaledBlock(b, half(b, x, 80), masked(b, scales, 15))
		minimum := scaledBlock(b, half(b, x, 82), right(b, scales, 4))
		return Sub(b, scaledBlock(b, ExpandDims(b, scale, -1), q), ExpandDims(b, minimum, -1))
	}},
	"q3_k": {256, 110, func(b *ir.Builder, x ir.Value) ir.Value {
		low := fields(b, rowsOf(b, bytesAt(b, x, 32, 64), 2), 4, 2)
		high := reblock(b, fields(b, bytesAt(b, x, 0, 32), 8, 1), 2, 4*32)
		q := minus(b, Add(b, reblock(b, low, 2, 4*32), left(b, high, 2)), 4)
		scales := Add(b, fields(b, bytesAt(b, x, 96, 8), 2, 4), left(b, fields(b, bytesAt(b, x, 104, 4), 4, 2), 4))
		scale := scaledBlock(b, half(b, x, 108), minus(b, scales, 32))
		return scaledBlock(b, ExpandDims(b, scale, -1), reblock(b, q, 16, 16))
	}},
	"q4_k": {256, 144, func(b *ir.Builder, x ir.Value) ir.Value {
		return twoLevels(b, x, reblock(b, fields(b, rowsOf(b, bytesAt(b, x, 16, 128), 4), 2, 4), 8, 32))
	}},
	"q5_k": {256, 176, func(b *ir.Builder, x ir.Value) ir.Value {
		low := reblock(b, fields(b, rowsOf(b, bytesAt(b, x, 48, 128), 4), 2, 4), 8, 32)
		high := reblock(b, fields(b, bytesAt(b, x, 16, 32), 8, 1), 8, 32)
		return twoLevels(b, x, Add(b, low, left(b, high, 4)))
	}},
	"q6_k": {256, 210, func(b *ir.Builder, x ir.Value) ir.Value {
		low := fields(b, rowsOf(b, bytesAt(b, x, 0, 128), 2), 2, 4)
		high := fields(b, rowsOf(b, bytesAt(b, x, 128, 64), 2), 4, 2)
		q := minus(b, Add(b, low, left(b, high, 4)), 32)
		scale := scaledBlock(b, half(b, x, 208), signedBytes(b, bytesAt(b, x, 192, 16)))
		return scaledBlock(b, ExpandDims(b, scale, -1), reblock(b, q, 16, 16))
	}},
	"q8_k": {256, 292, func(b *ir.Builder, x ir.Value) ir.Value {
		word := littleEndian(b, x, 0, 4)
		return scaledBlock(b, Bitcast(b, word, ir.F32), signedBytes(b, bytesAt(b, x, 4, 256)))
	}},
	"iq4_nl": {32, 18, func(b *ir.Builder, x ir.Value) ir.Value {
		return scaledBlock(b, half(b, x, 0), nonlinear(b, fields(b, bytesAt(b, x, 2, 16), 2, 4)))
	}},
	"iq4_xs": {256, 136, func(b *ir.Builder, x ir.Value) ir.Value {
		low := masked(b, shifts(b, ExpandDims(b, bytesAt(b, x, 4, 4), -1), 2, 4), 15)
		high := fields(b, littleEndian(b, x, 2, 2), 8, 2)
		scales := minus(b, Add(b, reblock(b, low, 8), left(b, high, 4)), 32)
		scale := scaledBlock(b, half(b, x, 0), scales)
		q := nonlinear(b, fields(b, rowsOf(b, bytesAt(b, x, 8, 128), 8), 2, 4))
		return scaledBlock(b, ExpandDims(b, scale, -1), q)
	}},
	"mxfp4": {32, 17, func(b *ir.Builder, x ir.Value) ir.Value {
		e := bytesAt(b, x, 0, 1)
		small := ShiftLeft(b, ConstLike(b, e, 1<<21), Min(b, e, ConstLike(b, e, 1)))
		bits := Select(b, Lt(b, e, ConstLike(b, e, 2)), small, left(b, minus(b, e, 1), 23))
		return scaledBlock(b, Bitcast(b, bits, ir.F32), fourBits(b, fields(b, bytesAt(b, x, 1, 16), 2, 4)))
	}},
	"nvfp4": {64, 36, func(b *ir.Builder, x ir.Value) ir.Value {
		e := masked(b, bytesAt(b, x, 0, 4), 127)
		none := Eq(b, e, ConstLike(b, e, 127))
		scale := ofHalf(b, left(b, Select(b, none, ConstLike(b, e, 0), e), 7))
		scale = Mul(b, scale, ConstLike(b, scale, 256./2)) // the bias of e4m3; the numbers below are doubled
		return scaledBlock(b, ExpandDims(b, scale, -1), fourBits(b, fields(b, rowsOf(b, bytesAt(b, x, 4, 32), 4), 2, 4)))
	}},
	"f8_e4m3": {1, 1, func(b *ir.Builder, x ir.Value) ir.Value { return e4m3(b, x) }},
	"f8_e5m2": {1, 1, func(b *ir.Builder, x ir.Value) ir.Value { return ofHalf(b, left(b, x, 8)) }},
}

// PackedBlock returns how many elements a block of a format has, and how many bytes hold them; false
// for a format that [Dequantize] does not know.
func PackedBlock(name string) (elements, bytes int, ok bool) {
	f, ok := formats[name]
	return f.elements, f.bytes, ok
}

func formatNames() []string { return slices.Sorted(maps.Keys(formats)) }

// half returns the f16 at byte offset at, as f32 of size 1.
func half(b *ir.Builder, x ir.Value, at int) ir.Value {
	return ofHalf(b, littleEndian(b, x, at, 2))
}

// ofHalf converts the bits of an f16, i32, to f32. It uses the types' own conversion,
// which is cheap enough for a product to recompute for each element instead of storing the
// scales.
func ofHalf(b *ir.Builder, bits ir.Value) ir.Value {
	return Convert(b, Bitcast(b, Convert(b, bits, ir.U16), ir.F16), ir.F32)
}

// e4m3 converts bytes of F8E4M3 to f32, as bits of an f16 with an exponent that is 8 too
// small; the largest magnitude is NaN.
func e4m3(b *ir.Builder, x ir.Value) ir.Value {
	magnitude := masked(b, x, 127)
	none := Eq(b, magnitude, ConstLike(b, x, 127))
	bits := Select(b, none, ConstLike(b, x, 0x7e00), left(b, magnitude, 7))
	v := ofHalf(b, Or(b, bits, left(b, masked(b, x, 128), 8)))
	return Mul(b, v, ConstLike(b, v, 256))
}

func bytesAt(b *ir.Builder, x ir.Value, at, n int) ir.Value {
	return SliceAxis(b, x, -1, ir.N(at), ir.N(n))
}

// littleEndian returns the n-byte little-endian number at an offset, of size 1.
func littleEndian(b *ir.Builder, x ir.Value, at, n int) ir.Value {
	v := bytesAt(b, x, at, 1)
	for i := 1; i < n; i++ {
		v = Or(b, v, left(b, bytesAt(b, x, at+i, 1), 8*i))
	}
	return v
}

// fields splits each number along the last axis into n bit fields: the lowest field of all
// numbers first.
func fields(b *ir.Builder, x ir.Value, n, bits int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	count, _ := x.Dim(-1).Const()
	by := Mul(b, Iota(b, ir.I32, 0, ir.N(n), ir.N(1)), Const(b, ir.I32, float64(bits)))
	shifted := ShiftRight(b, ExpandDims(b, x, -2), by)
	return masked(b, Reshape(b, shifted, append(x.Shape()[:x.Rank()-1].Clone(), ir.N(n*count))...), 1<<bits-1)
}

// rowsOf splits the last axis into n rows.
func rowsOf(b *ir.Builder, x ir.Value, n int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	return splitAxis(b, x, x.Rank()-1, ir.N(n))
}

// reblock reshapes the axes after the block axis.
func reblock(b *ir.Builder, x ir.Value, dims ...int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	size, at := 1, x.Rank()
	for _, d := range dims {
		size *= d
	}
	for held := 1; held < size; {
		at--
		d, _ := x.Dim(at).Const()
		held *= max(d, 1)
	}
	return Reshape(b, x, append(x.Shape()[:at].Clone(), ir.Dims(dims...)...)...)
}

func masked(b *ir.Builder, x ir.Value, mask int) ir.Value {
	return And(b, x, ConstLike(b, x, float64(mask)))
}

func left(b *ir.Builder, x ir.Value, by int) ir.Value {
	return ShiftLeft(b, x, ConstLike(b, x, float64(by)))
}

func right(b *ir.Builder, x ir.Value, by int) ir.Value {
	return ShiftRight(b, x, ConstLike(b, x, float64(by)))
}

func minus(b *ir.Builder, x ir.Value, by int) ir.Value {
	return Sub(b, x, ConstLike(b, x, float64(by)))
}

// signedBytes converts bytes to [−128, 127].
func signedBytes(b *ir.Builder, x ir.Value) ir.Value {
	return minus(b, Xor(b, x, ConstLike(b, x, 128)), 128)
}

// scaledBlock returns scale·q.
func scaledBlock(b *ir.Builder, scale, q ir.Value) ir.Value {
	return Mul(b, scale, Convert(b, q, ir.F32))
}

// fifthBits returns 32 numbers of 5 bits: a word of their high bits, followed by their low
// bits.
func fifthBits(b *ir.Builder, x ir.Value, at int) ir.Value {
	high := fields(b, littleEndian(b, x, at, 4), 32, 1)
	return Or(b, fields(b, bytesAt(b, x, at+4, 16), 2, 4), left(b, high, 4))
}

// twoLevels returns the elements of q4_k and q5_k: eight rows with a 6-bit scale and
// minimum each, which have an f16 scale in turn.
func twoLevels(b *ir.Builder, x, q ir.Value) ir.Value {
	first, second, third := bytesAt(b, x, 4, 4), bytesAt(b, x, 8, 4), bytesAt(b, x, 12, 4)
	six := func(low, high ir.Value) ir.Value {
		return Concatenate(b, -1, masked(b, high, 63), Or(b, low, left(b, right(b, high, 6), 4)))
	}
	scale := scaledBlock(b, half(b, x, 0), six(masked(b, third, 15), first))
	minimum := scaledBlock(b, half(b, x, 2), six(right(b, third, 4), second))
	return Sub(b, scaledBlock(b, ExpandDims(b, scale, -1), q), ExpandDims(b, minimum, -1))
}

// nonlinear looks up the 16 values of iq4_nl, which are packed in order in four words.
func nonlinear(b *ir.Builder, q ir.Value) ir.Value {
	words := []float64{-1079142271, -152379953, 639175937, 1901675829} // -127, -104, -83, -65; -49, -35, -22, -10; 1, 13, 25, 38; 53, 69, 89, 113
	word := ConstLike(b, q, words[3])
	for i := 2; i >= 0; i-- {
		word = Select(b, Lt(b, q, ConstLike(b, q, float64(4*i+4))), ConstLike(b, q, words[i]), word)
	}
	return signedBytes(b, masked(b, ShiftRight(b, word, left(b, masked(b, q, 3), 3)), 255))
}

// fourBits returns twice the value of a 4-bit float: sign, two exponent bits, one mantissa
// bit.
func fourBits(b *ir.Builder, q ir.Value) ir.Value {
	m, e := masked(b, q, 1), masked(b, right(b, q, 1), 3)
	zero, one := ConstLike(b, q, 0), ConstLike(b, q, 1)
	normal := ShiftLeft(b, Add(b, m, ConstLike(b, q, 2)), Sub(b, Max(b, e, one), one))
	v := Select(b, Eq(b, e, zero), m, normal)
	return Select(b, Gt(b, right(b, q, 3), zero), Neg(b, v), v)
}
