package onnx

import (
	"encoding/binary"
	"io/fs"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// ggufBlock is the number of elements of a block of q4_0 and q8_0.
const ggufBlock = 32

// repacked are weights of MatMulNBits that are stored as rows of q4_0 or q8_0: the integers minus 8
// or 128, in blocks of 32 with a scale in f16.
type repacked struct {
	nBits
	q, scales *tensor
}

// format returns the name of the format, and the bytes of a block.
func (r repacked) format() (string, int) {
	name := "q4_0"
	if r.bits == 8 {
		name = "q8_0"
	}
	_, bytes, _ := ops.PackedBlock(name)
	return name, bytes
}

// ggufProduct returns x·wᵀ of weights that blocks of GGUF files hold; false for others. It has
// quantized_matmul subtract the usual zero point, and adds what others differ by, which is a product
// with the sums of the blocks of x.
func ggufProduct(c *call, x ir.Value, w nBits) (ir.Value, bool) {
	if c.has(4) || c.b != c.im.root || w.k%ggufBlock != 0 || w.block%ggufBlock != 0 || w.bits == 2 || c.has(3) && w.k%w.block != 0 {
		return ir.Value{}, false
	}
	r := repacked{nBits: w, q: c.in[1].tensor, scales: c.in[2].tensor}
	if r.q == nil || r.scales == nil || !r.fits(c) {
		return ir.Value{}, false
	}
	format, _ := r.format()
	packed := c.packedWeight(c.in[1], r)
	product := ops.QuantizedMatMul
	if c.im.o.ActivationBits != 0 {
		product = ops.QuantizedMatMul8
	}
	y := product(c.b, x, packed, format)
	if !c.has(3) {
		return y, true
	}
	blocks := ir.N(w.blocks())
	split := append(x.Shape()[:x.Rank()-1].Clone(), blocks, ir.N(w.block))
	sums := ops.ReduceSum(c.b, ops.Convert(c.b, ops.Reshape(c.b, x, split...), ir.F32), x.Rank())
	scales := ops.Convert(c.b, ops.Reshape(c.b, c.x(2), ir.N(w.n), blocks), ir.F32)
	rest := ops.Mul(c.b, scales, ops.Sub(c.b, ops.Const(c.b, ir.F32, w.zero()), zeroPoints(c, w)))
	more := unpackedProduct(c, sums, rest)
	return c.like(ops.Add(c.b, ops.Convert(c.b, y, ir.F32), more), x), true
}

// fits reports whether the sizes are those of the attributes and f16 holds the scales, or rounds them
// if the caller allows that. An error is reported where the weights are read.
func (r repacked) fits(c *call) bool {
	if r.q.elem != Uint8 || r.q.len() != r.n*r.blocks()*r.block*r.bits/8 || r.scales.len() != r.n*r.blocks() {
		return false
	}
	switch {
	case r.scales.elem == Float16:
		return true
	case r.scales.elem != Float:
		return false
	case c.im.o.RoundScales:
		return true
	}
	raw, err := r.scales.bytes(c.im.o.Files)
	if err != nil {
		return false
	}
	for i := range r.scales.len() {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		if ir.F16.FloatFromBits(ir.F16.FloatBits(x)) != x {
			return false
		}
	}
	return true
}

// packedWeight declares the parameter of repacked weights. Nodes with the same weights and scales
// share it.
func (c *call) packedWeight(v *value, r repacked) ir.Value {
	if x, ok := c.im.repacked[r]; ok {
		return x
	}
	_, bytes := r.format()
	typ := ir.Type{DType: ir.U8, Shape: ir.Dims(r.n, r.k/ggufBlock*bytes)}
	x := c.parameter(Weight{Name: v.name, Type: typ, read: r.bytes, files: c.im.o.Files}, false)
	c.im.repacked[r] = x
	return x
}

// bytes returns the rows of blocks.
func (r repacked) bytes(files fs.FS) ([]byte, error) {
	q, err := r.q.bytes(files)
	if err != nil {
		return nil, err
	}
	scales, err := r.scales.bytes(files)
	if err != nil {
		return nil, err
	}
	_, size := r.format()
	out := make([]byte, 0, r.n*r.k/ggufBlock*size)
	rowBytes, step := r.blocks()*r.block*r.bits/8, ggufBlock*r.bits/8
	for row := range r.n {
		for i := range r.k / ggufBlock {
			scale := row*r.blocks() + i*ggufBlock/r.block
			if r.scales.elem == Float16 {
				out = append(out, scales[2*scale:2*scale+2]...)
			} else {
				x := math.Float32frombits(binary.LittleEndian.Uint32(scales[4*scale:]))
				out = binary.LittleEndian.AppendUint16(out, uint16(ir.F16.FloatBits(float64(x))))
			}
			out = r.appendIntegers(out, q[row*rowBytes+i*step:][:step])
		}
	}
	return out, nil
}

// appendIntegers appends the integers of a block: of 8 bits minus 128; of 4 bits the first half in the low
// bits of bytes and the second in the high ones, where ONNX has neighbours in a byte.
func (r repacked) appendIntegers(out, q []byte) []byte {
	if r.bits == 8 {
		for _, x := range q {
			out = append(out, x^128)
		}
		return out
	}
	for i := range len(q) {
		at := i % 2 * 4
		out = append(out, q[i/2]>>at&15|q[(len(q)+i)/2]>>at<<4)
	}
	return out
}
