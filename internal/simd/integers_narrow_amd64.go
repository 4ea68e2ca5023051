package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// shortOnes is the register of vectors of 256 bits that has 1 in each 16 bits.
const shortOnes = 15

// narrowLanes are the registers with the blocks whose scales the lanes of a vector of 256 bits are multiplied with, for
// each vector of four blocks.
var narrowLanes = [...]int{scaleLanes, scaleLanesOfLast, signs, blockProducts}

// narrowBlocks returns the number of blocks in a vector of 256 bits.
func (w *integerWriter) narrowBlocks() int {
	if w.packing == Q8 {
		return 1
	}
	return 2
}

// narrowConstants loads the constants; the table of lanes is at R8.
func (w *integerWriter) narrowConstants() {
	first := 0
	if w.packing == Q8 {
		first = cacheLine
	}
	for i := range 4 / w.narrowBlocks() {
		w.Vector(asm.MoveIn, narrowLanes[i], 0, asm.At(asm.R8, first+i*cacheLine/2))
	}
	w.Vector(asm.Broadcast, lowBits, 0, asm.Constant(0x0f0f0f0f))
	w.Vector(asm.Broadcast, shortOnes, 0, asm.Constant(1<<16|1))
}

// narrow adds the products of blocks from a block on, as many as a vector of 256 bits has, or a single one, which zeros
// follow in x. Sums of two products fit into 16 bits: at most 2·128·127.
func (w *integerWriter) narrow(from, count int) {
	if w.packing == Q8 {
		w.narrowBytes(from)
	} else {
		w.narrowNibbles(from, count)
	}
	w.Vector(asm.ShortPairs, blockDots, lowHalves, asm.Register(shortOnes))
	if w.packing == Q4 {
		w.Vector(asm.AddInt, blockDots, blockDots, after(field(unsafe.Offsetof(Integers{}.starts)), from/2*cacheLine/2))
	}
	w.add(narrowLanes[from/w.narrowBlocks()])
}

// narrowBytes sets lowHalves to sums of two products of a block of bytes: of magnitudes and of x with the signs of
// the bytes.
func (w *integerWriter) narrowBytes(b int) {
	w.Vector(asm.MoveIn, lowHalves, 0, asm.At(asm.SI, b*w.packing.Bytes()+w.packing.start()))
	w.Vector(asm.MoveIn, highHalves, 0, after(field(unsafe.Offsetof(Integers{}.numbers)), b*PackedElements))
	w.Vector(asm.ByteSigns, highHalves, highHalves, asm.Register(lowHalves))
	w.Vector(asm.ByteMagnitudes, lowHalves, 0, asm.Register(lowHalves))
	w.Vector(asm.BytePairs, lowHalves, lowHalves, asm.Register(highHalves))
}

// narrowNibbles sets lowHalves to sums of four products of blocks of 4 bits.
func (w *integerWriter) narrowNibbles(from, count int) {
	start, size := w.packing.start(), w.packing.Bytes()
	numbers := after(field(unsafe.Offsetof(Integers{}.numbers)), from*PackedElements/2)
	w.Vector(asm.SpreadQuarter, lowHalves, 0, asm.At(asm.SI, from*size+start))
	if count > 1 {
		w.Vector(asm.InsertQuarter.Imm(1), lowHalves, lowHalves, asm.At(asm.SI, (from+1)*size+start))
	}
	w.Shift(asm.ShiftByByte, asm.ShiftRight, 4, lowHalves, highHalves)
	w.Vector(asm.BitsAnd, lowHalves, lowHalves, asm.Register(lowBits))
	w.Vector(asm.BitsAnd, highHalves, highHalves, asm.Register(lowBits))
	w.Vector(asm.BytePairs, lowHalves, lowHalves, numbers)
	w.Vector(asm.BytePairs, highHalves, highHalves, after(numbers, cacheLine))
	w.Vector(asm.AddShort, lowHalves, lowHalves, asm.Register(highHalves))
}
