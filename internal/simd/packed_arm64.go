package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// The vector registers of the kernel for quantised rows.
const (
	totalSum = iota
	blockProducts
	blockScale
	lowBits            // 15
	bias               // 8
	factors       = 8  // 4 of them
	blockBytes    = 16 // 2
	blockShorts   = 18 // 2
	blockIntegers = 20 // 4
	minimum       = 24
)

// minimaInCode is false: Go multiplies the minima.
const minimaInCode = false

// The general registers of addresses.
const (
	packedAt = 2
	xAt      = 3
	sumsAt   = 4
)

// packedCode returns the code that multiplies a row of quantised blocks with a vector: it widens
// the elements of a block to integers and floats, and scales the sum of their products with x.
func packedCode(_ Level, packing Packing) []byte {
	w := &writer{}
	var x packedArguments
	w.argument(packedAt, unsafe.Offsetof(x.w))
	w.argument(xAt, unsafe.Offsetof(x.x))
	w.argument(sumsAt, unsafe.Offsetof(x.sums))
	w.clear(totalSum, 1)
	w.packedConstants(packing)
	var loop asm.Label
	w.Bind(&loop)
	w.half(blockScale)
	w.AddConst(packedAt, packedAt, packing.start())
	w.packedBytes(packing)
	for half := range 2 {
		w.packedProducts(half)
	}
	w.Three(asm.FusedAdd, totalSum, blockProducts, blockScale)
	w.countDown(1, &loop)
	w.StoreVectors(totalSum, 1, sumsAt)
	w.Return()
	return w.Finish()
}

// unpackCode returns the code that unpacks blocks.
func unpackCode(_ Level, packing Packing) []byte {
	w := &writer{}
	var x packedArguments
	w.argument(packedAt, unsafe.Offsetof(x.w))
	w.argument(xAt, unsafe.Offsetof(x.x))
	w.packedConstants(packing)
	var loop asm.Label
	w.Bind(&loop)
	w.half(blockScale)
	start := packing.start()
	if packing == Q4Min {
		w.AddConst(packedAt, packedAt, 2)
		w.half(minimum)
		start -= 2
	}
	w.AddConst(packedAt, packedAt, start)
	w.packedBytes(packing)
	for half := range 2 {
		w.integers(half)
		for i := range 4 {
			to := blockIntegers + i
			w.Three(asm.MultiplyFloat, to, to, blockScale)
			if packing == Q4Min {
				w.Three(asm.AddFloat, to, to, minimum)
			}
		}
		w.StoreVectors(blockIntegers, 4, xAt)
	}
	w.countDown(1, &loop)
	w.Return()
	return w.Finish()
}

// packedConstants loads the constants.
func (w *writer) packedConstants(packing Packing) {
	if packing != Q8 {
		w.Constant(lowBits, 0x0f0f0f0f)
		w.Constant(bias, 0x08080808)
	}
}

// half loads the f16 at the current place to all lanes of a register, as f32.
func (w *writer) half(to int) {
	w.Two(asm.LoadHalf, to, packedAt)
	w.Two(asm.HalfToSingle, to, to)
	w.Two(asm.SplatFirst, to, to)
}

// packedBytes loads the elements of a block as signed bytes.
func (w *writer) packedBytes(packing Packing) {
	low, high := blockBytes, blockBytes+1
	if packing == Q8 {
		w.LoadVectors(low, 2, packedAt)
		return
	}
	w.LoadVectors(low, 1, packedAt)
	w.Two(asm.UpperNibbles, high, low)
	w.Three(asm.BitsAnd, low, low, lowBits)
	if packing == Q4Min {
		return
	}
	for _, reg := range []int{low, high} {
		w.Three(asm.SubtractBytes, reg, reg, bias)
	}
}

// packedProducts multiplies half a block with x and accumulates.
func (w *writer) packedProducts(half int) {
	w.LoadVectors(factors, 4, xAt)
	w.integers(half)
	for i := range 4 {
		to := blockIntegers + i
		if half == 0 && i == 0 {
			w.Three(asm.MultiplyFloat, blockProducts, to, factors)
		} else {
			w.Three(asm.FusedAdd, blockProducts, to, factors+i)
		}
	}
}

// integers widens the elements of half a block to floats.
func (w *writer) integers(half int) {
	upper := [...]asm.Opcode{0, asm.UpperHalf}
	for i := range 2 {
		w.Two(asm.WidenBytes|upper[i], blockShorts+i, blockBytes+half)
	}
	for i := range 4 {
		to := blockIntegers + i
		w.Two(asm.WidenHalves|upper[i%2], to, blockShorts+i/2)
		w.Two(asm.IntToFloat, to, to)
	}
}
