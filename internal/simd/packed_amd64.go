package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

const (
	cacheLine  = 64
	ahead      = 8192 // prefetch distance in bytes
	packedSums = 4

	// minimaInCode means that the code multiplies the minima.
	minimaInCode = true
)

// The vector registers: those of sums from 0 on, then as many of elements.
const (
	elements      = packedSums
	blockProducts = packedSums + packedSums
	blockScale    = blockProducts + iota - 1
	lowBits       // 15
	bias          // 8
	numberTable   // the values of elements of 4 bits
	minimum       // of four blocks
	minimumSums
)

// packedWriter writes the kernel that multiplies a row of quantised blocks with a vector. It has
// four accumulators.
type packedWriter struct {
	writer
	packing Packing
}

// packedCode returns the code of the kernel.
func packedCode(level Level, packing Packing) []byte {
	p := &packedWriter{newWriter(level, false), packing}
	var x packedArguments
	p.count()
	p.argument(asm.DI, unsafe.Offsetof(x.x))
	p.argument(asm.DX, unsafe.Offsetof(x.sums))
	p.constants()
	if packing == Q4Min {
		p.argument(asm.CX, unsafe.Offsetof(x.blocks))
		p.clear(minimumSums, 1)
	}
	p.argument(asm.SI, unsafe.Offsetof(x.w))
	p.clear(0, packedSums)
	var loop, rest, one, done asm.Label
	p.SubConst(asm.Register(asm.AX), packedSums)
	p.JumpIf(asm.Less, &rest)
	p.Bind(&loop)
	p.scales()
	if packing == Q4Min {
		p.minima()
	}
	for b := range packedSums {
		p.block(b, func() { p.Vector(asm.Broadcast, blockScale, 0, asm.Stack(4*b)) })
	}
	p.next(packedSums)
	p.JumpIf(asm.GreaterOrEqual, &loop)
	p.Bind(&rest)
	p.AddConst(asm.Register(asm.AX), packedSums)
	p.JumpIf(asm.Equal, &done)
	p.Bind(&one)
	p.block(0, p.oneScale)
	if packing == Q4Min {
		p.oneMinimum()
	}
	p.next(1)
	p.JumpIf(asm.Greater, &one)
	p.Bind(&done)
	for _, pair := range [][2]int{{0, 1}, {2, 3}, {0, 2}} {
		p.Vector(asm.AddFloat, pair[0], pair[0], asm.Register(pair[1]))
	}
	if packing == Q4Min {
		p.Vector(asm.AddFloat, 0, 0, asm.Register(minimumSums))
	}
	p.Vector(asm.MoveOut, 0, 0, asm.At(asm.DX, 0))
	p.Return()
	return p.Finish()
}

// unpackCode returns the code that unpacks blocks.
func unpackCode(level Level, packing Packing) []byte {
	p := &packedWriter{newWriter(level, false), packing}
	var x packedArguments
	p.count()
	p.argument(asm.DI, unsafe.Offsetof(x.x))
	p.constants()
	p.argument(asm.SI, unsafe.Offsetof(x.w))
	var loop asm.Label
	p.Bind(&loop)
	p.oneScale()
	if packing == Q4Min {
		p.VEX(asm.BroadcastHalf, minimum, 0, asm.At(asm.SI, 2), !p.Wide)
		p.Vector(asm.HalfToFloat, minimum, 0, asm.Register(minimum))
	}
	for v := range PackedElements / p.lanes() {
		t := elements + v%packedSums
		p.numbers(packing.start(), v, t)
		p.Vector(asm.MultiplyFloat, t, t, asm.Register(blockScale))
		if packing == Q4Min {
			p.Vector(asm.AddFloat, t, t, asm.Register(minimum))
		}
		p.Vector(asm.MoveOut, t, 0, asm.At(asm.DI, 4*v*p.lanes()))
	}
	p.next(1)
	p.JumpIf(asm.Greater, &loop)
	p.Return()
	return p.Finish()
}

// lanes returns the elements of a vector.
func (p *packedWriter) lanes() int { return p.vector() / p.size() }

// usesTable reports whether elements of 4 bits are converted by a table in a register of 16
// lanes, which takes one instruction instead of three.
func (p *packedWriter) usesTable() bool { return p.packing != Q8 && p.Wide }

// constants loads the constants.
func (p *packedWriter) constants() {
	switch {
	case p.usesTable():
		p.argument(asm.R8, unsafe.Offsetof(packedArguments{}.numbers))
		p.Vector(asm.MoveIn, numberTable, 0, asm.At(asm.R8, 0))
	case p.packing != Q8:
		p.Vector(asm.Broadcast, lowBits, 0, asm.Constant(15))
		p.Vector(asm.Broadcast, bias, 0, asm.Constant(8))
	}
}

// block adds the products of a block: it sums those of the elements, and multiplies the sum by
// the scale, which scale loads.
func (p *packedWriter) block(b int, scale func()) {
	at := b * p.packing.Bytes()
	for v := range PackedElements / p.lanes() {
		t := elements + v%packedSums
		p.numbers(at+p.packing.start(), v, t)
		x := asm.At(asm.DI, 4*(b*PackedElements+v*p.lanes()))
		if v == 0 {
			p.Vector(asm.MultiplyFloat, blockProducts, t, x)
		} else {
			p.Vector(asm.Fused231, blockProducts, t, x)
		}
	}
	scale()
	p.Vector(asm.Fused231, b%packedSums, blockScale, asm.Register(blockProducts))
}

// scales converts the scales of one block for each accumulator, and stores them: integer
// instructions pack them while the vector units are busy, and a load then broadcasts each at
// no cost.
func (p *packedWriter) scales() {
	p.halves(p.packing, blockScale, 0)
	p.VEX(asm.MoveOut, blockScale, 0, asm.Stack(0), true)
}

// minima adds the products of the minima of four blocks and the sums of these blocks of x.
func (p *packedWriter) minima() {
	p.halves(p.packing, minimum, 2)
	p.VEX(asm.Fused231, minimumSums, minimum, asm.At(asm.CX, 0), true)
	p.AddConst(asm.Register(asm.CX), 4*minimaAtOnce)
}

// oneMinimum adds the product of the minimum of the current block and the sum of this block of x, which
// zeros follow.
func (p *packedWriter) oneMinimum() {
	p.VEX(asm.BroadcastHalf, minimum, 0, asm.At(asm.SI, 2), true)
	p.VEX(asm.HalfToFloat, minimum, 0, asm.Register(minimum), true)
	p.VEX(asm.Fused231, minimumSums, minimum, asm.At(asm.CX, 0), true)
	p.AddConst(asm.Register(asm.CX), 4*minimaAtOnce)
}

// halves converts the f16 at an offset of each of four blocks to floats in a register.
func (w *writer) halves(packing Packing, to, offset int) {
	for b := range packedSums {
		reg := asm.R8 + b
		w.General(asm.LoadUint16, reg, asm.At(asm.SI, b*packing.Bytes()+offset))
		if b > 0 {
			w.ShiftLeft(reg, 16*b)
			w.General(asm.Or, asm.R8, asm.Register(reg))
		}
	}
	w.VEX(asm.MoveQuad, to, 0, asm.Register(asm.R8), true)
	w.VEX(asm.HalfToFloat, to, 0, asm.Register(to), true)
}

// oneScale converts the scale of the current block.
func (p *packedWriter) oneScale() {
	p.VEX(asm.BroadcastHalf, blockScale, 0, asm.At(asm.SI, 0), !p.Wide)
	p.Vector(asm.HalfToFloat, blockScale, 0, asm.Register(blockScale))
}

// numbers loads vector v of a block as floats.
func (p *packedWriter) numbers(at, v, t int) {
	switch {
	case p.usesTable():
		p.lookUp(at, v, t)
		return
	case p.packing == Q8:
		p.Vector(asm.WidenInt8, t, 0, asm.At(asm.SI, at+v*p.lanes()))
	default:
		p.nibbles(at, v*p.lanes(), t)
	}
	p.Vector(asm.IntToFloat, t, 0, asm.Register(t))
}

// lookUp converts half a block by the table. The 16 bytes have the elements of the first half
// in their lower bits, the only ones that a lookup reads, and those of the second above.
func (p *packedWriter) lookUp(at, v, t int) {
	const bytes = elements + packedSums - 1 // the last of the registers for elements
	if v == 0 {
		p.Vector(asm.WidenUint8, bytes, 0, asm.At(asm.SI, at))
	} else {
		p.Shift(asm.ShiftByByte, asm.ShiftRight, 4, bytes, bytes)
	}
	p.Vector(asm.PermuteWords, t, bytes, asm.Register(numberTable))
}

// nibbles loads elements of 4 bits as integers.
func (p *packedWriter) nibbles(at, first, t int) {
	const half = PackedElements / 2
	p.Vector(asm.WidenUint8, t, 0, asm.At(asm.SI, at+first%half))
	if first < half {
		p.Vector(asm.BitsAnd, t, t, asm.Register(lowBits))
	} else {
		p.Shift(asm.ShiftByByte, asm.ShiftRight, 4, t, t)
	}
	if p.packing == Q4 {
		p.Vector(asm.SubtractInt, t, t, asm.Register(bias))
	}
}

// next advances by some blocks, and prefetches, as hardware prefetchers stop at pages.
func (p *packedWriter) next(blocks int) {
	for at := 0; at < blocks*p.packing.Bytes(); at += cacheLine {
		p.Prefetch(asm.At(asm.SI, ahead+at))
	}
	p.AddConst(asm.Register(asm.SI), blocks*p.packing.Bytes())
	p.AddConst(asm.Register(asm.DI), 4*blocks*PackedElements)
	p.SubConst(asm.Register(asm.AX), blocks)
}
