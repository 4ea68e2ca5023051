package onnx

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addMicrosoft("MatMulNBits", single(matMulNBits))
	addMicrosoft("GatherBlockQuantized", single(gatherBlocks))
}

// nBits are the weights of MatMulNBits: n rows of k integers of some bits each. Blocks of block
// integers of a row have a scale and a zero point.
type nBits struct {
	n, k, bits, block int
}

// blocks returns the number of blocks in a row; the last may have padding.
func (w nBits) blocks() int { return (w.k + w.block - 1) / w.block }

// zero returns the zero point that weights without one have.
func (w nBits) zero() float64 { return float64(int(1) << (w.bits - 1)) }

// nBitsOf reads the attributes of the node.
func nBitsOf(c *call) nBits {
	w := nBits{c.int("N", 0), c.int("K", 0), c.int("bits", 4), c.int("block_size", 0)}
	switch {
	case c.int("weight_prepacked", 0) != 0:
		c.failf("weights are in the layout of a CUDA kernel: weight_prepacked must be 0")
	case w.bits != 2 && w.bits != 4 && w.bits != 8:
		c.failf("bits is %d: it must be 2, 4 or 8", w.bits)
	case w.block < 16 || bits.OnesCount(uint(w.block)) != 1 || w.block > 1<<20 || w.n < 1 || w.k < 1 || w.n > min(maxElements, math.MaxInt/16)/w.k:
		c.fail(ir.Attrf("N is %d, K %d and block_size %d: they must be positive, and the last a power of two of 16 or more", w.n, w.k, w.block))
	}
	return w
}

// matMulNBits returns x·wᵀ plus a bias. Weights that the blocks of GGUF files hold exactly are
// stored so, and multiplied by quantized_matmul. Others keep ONNX's layout, and are unpacked as they
// are loaded.
func matMulNBits(c *call) ir.Value {
	x, w := c.x(0), nBitsOf(c)
	if !c.has(1) || !c.has(2) {
		c.fail(damaged("operands 1 and 2, B and scales, are missing"))
	}
	if c.err != nil {
		return ir.Value{}
	}
	if x.Rank() == 0 || x.Dim(-1) != ir.N(w.k) {
		c.fail(ir.Shapef("A is %s: its last axis must have the elements of a row of B, %d", x.Shape(), w.k))
		return ir.Value{}
	}
	y, ok := ggufProduct(c, x, w)
	if !ok {
		y = unpackedProduct(c, x, unpackedWeights(c, w))
	}
	return plus(c, y, 5)
}

// unpackedProduct returns x·wᵀ. A single row is multiplied by a reduction, into which the unpacking of
// w fuses.
func unpackedProduct(c *call, x, w ir.Value) ir.Value {
	if c.b.Err() != nil {
		return ir.Value{}
	}
	w = c.like(w, x)
	if rows, ok := x.Shape()[:x.Rank()-1].Size().Const(); ok && rows == 1 {
		y := ops.ReduceSum(c.b, ops.Mul(c.b, ops.Reshape(c.b, x, x.Dim(-1)), w), 1)
		return ops.Reshape(c.b, y, append(x.Shape()[:x.Rank()-1].Clone(), w.Dim(0))...)
	}
	return ops.DotGeneral(c.b, x, w, ops.DotAttrs{LhsContract: []int{-1}, RhsContract: []int{-1}})
}

// unpackedWeights returns (q − zero)·scale, f32 [n, k].
func unpackedWeights(c *call, w nBits) ir.Value {
	b, blocks := c.b, ir.N(w.blocks())
	packed := ops.Reshape(b, c.x(1), ir.N(w.n), ir.N(w.blocks()*w.block*w.bits/8))
	q := ops.Convert(b, fieldsOf(c, packed, w.bits, ir.N(w.k)), ir.F32)
	scale := perElement(c, ops.Convert(b, ops.Reshape(b, c.x(2), ir.N(w.n), blocks), ir.F32), w)
	zero := ops.Const(b, ir.F32, w.zero())
	if c.has(3) {
		zero = perElement(c, zeroPoints(c, w), w)
	}
	return ops.Mul(b, ops.Sub(b, q, zero), scale)
}

// zeroPoints returns the zero points, f32 [n, blocks]: integers packed as the weights, or floats.
func zeroPoints(c *call, w nBits) ir.Value {
	zeros, blocks := c.x(3), ir.N(w.blocks())
	if zeros.DType() == ir.U8 {
		zeros = ops.Reshape(c.b, zeros, ir.N(w.n), ir.N((w.blocks()*w.bits+7)/8))
		zeros = fieldsOf(c, zeros, w.bits, blocks)
	}
	return ops.Convert(c.b, ops.Reshape(c.b, zeros, ir.N(w.n), blocks), ir.F32)
}

// perElement returns values of blocks, [n, blocks], for each element, [n, k]: g_idx names the block of
// each column where they are not in order.
func perElement(c *call, x ir.Value, w nBits) ir.Value {
	if c.has(4) {
		columns := ops.SliceAxis(c.b, c.x(4), 0, ir.N(0), ir.N(w.k))
		return ops.Take(c.b, x, columns, 1, ops.OutsideClip)
	}
	return ops.SliceAxis(c.b, ops.Repeat(c.b, x, 1, w.block), 1, ir.N(0), ir.N(w.k))
}

// fieldsOf returns the first n integers of some bits each along the last axis, the lowest bits of a
// byte first: i32 of u8.
func fieldsOf(c *call, x ir.Value, bits int, n ir.Dim) ir.Value {
	b, each := c.b, 8/bits
	x = ops.Convert(b, x, ir.I32)
	if each > 1 && x.Valid() {
		by := ops.Mul(b, ops.Iota(b, ir.I32, 0, ir.N(each)), ops.Const(b, ir.I32, float64(bits)))
		y := ops.And(b, ops.ShiftRight(b, ops.ExpandDims(b, x, -1), by), ops.Const(b, ir.I32, float64(int(1)<<bits-1)))
		x = ops.Reshape(b, y, append(x.Shape()[:x.Rank()-1].Clone(), x.Dim(-1).Mul(ir.N(each)))...)
	}
	return ops.SliceAxis(b, x, -1, ir.N(0), n)
}

// gatherBlocks gathers from data in blocks, and returns (q − zero)·scale. An index out of bounds gives
// zeros.
func gatherBlocks(c *call) ir.Value {
	b, data, index, scales := c.b, c.x(0), c.x(1), c.x(2)
	rank, width, block := data.Rank(), c.int("bits", 4), c.int("block_size", 128)
	gather, along := c.axis("gather_axis", 0, rank), c.axis("quantize_axis", 1, rank)
	if c.err != nil {
		return ir.Value{}
	}
	packed := c.in[0].elem == Uint8
	switch {
	case data.DType().IsFloat():
		c.failf("data are of %v: they must be integers of 2, 4 or 8 bits", c.in[0].elem)
	case block < 16 || packed && width != 2 && width != 4 && width != 8:
		c.fail(ir.Attrf("block_size is %d and bits %d: they must be 16 or more, and 2, 4 or 8", block, width))
	case scales.Rank() != rank || packed && (gather == along || along != rank-1):
		c.failf("data are %s, scales %s, gather_axis %d and quantize_axis %d: both must have the same rank, and packed data the last as quantize_axis alone", data.Shape(), scales.Shape(), gather, along)
	}
	if c.err != nil {
		return ir.Value{}
	}
	index = wrappedIndex(c, index, data.Dim(gather))
	taken := func(x ir.Value) ir.Value {
		return ops.Take(b, x, index, gather, ops.OutsideFill)
	}
	at := along + index.Rank() - 1 // the axis of blocks in the result
	if along < gather {
		at = along
	}
	integers := func(x ir.Value, n ir.Dim) ir.Value {
		x = taken(x)
		if packed {
			x = fieldsOf(c, x, width, n)
		}
		return ops.Convert(b, x, ir.F32)
	}
	size := data.Dim(along)
	if packed {
		size = size.Mul(ir.N(8 / width))
	}
	spread := func(x ir.Value) ir.Value {
		return ops.SliceAxis(b, ops.Repeat(b, x, at, block), at, ir.N(0), size)
	}
	q := integers(data, size)
	if c.has(3) {
		q = ops.Sub(b, q, spread(integers(c.x(3), scales.Dim(along))))
	} else if packed {
		q = ops.Sub(b, q, ops.Const(b, ir.F32, float64(int(1)<<(width-1))))
	}
	return c.like(ops.Mul(b, q, spread(ops.Convert(b, taken(scales), ir.F32))), scales)
}

// wrappedIndex returns indices of an axis of a size from its start, where negative ones of at count from its end.
func wrappedIndex(c *call, at ir.Value, size ir.Dim) ir.Value {
	end := ops.DimSize(c.b, at.DType(), size)
	return ops.Select(c.b, ops.Lt(c.b, at, ops.ConstLike(c.b, at, 0)), ops.Add(c.b, at, end), at)
}
