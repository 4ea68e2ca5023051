package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// hasIntegerDots reports whether the processor adds dot products of bytes: AVX512_VNNI.
var hasIntegerDots = func() bool {
	const vnni = 1 << 11
	if len(beyondGo()) < 2 {
		return false
	}
	_, _, c, _ := cpuid(7, 0)
	return c&vnni != 0
}()

// The vector registers, beside those of [packedWriter].
const (
	rowSum = iota
	blockDots
	lowHalves
	highHalves
	scaleLanes // of the blocks of a vector
	scaleLanesOfLast
	signs // 128 in each byte
)

// integerWriter writes the kernel that multiplies quantised rows with a rounded vector. Four blocks are a step. Vectors of
// 512 bits have dot products of bytes; those of 256 bits sum up products of pairs: see [integerWriter.narrow].
type integerWriter struct {
	writer
	packing Packing
}

// integerCode returns the code of the kernel, nil for plain Go.
func integerCode(level Level, packing Packing) []byte {
	if level == AVX512 && !hasIntegerDots {
		level = AVX2
	}
	if level != AVX512 && level != AVX2 {
		return nil
	}
	w := &integerWriter{newWriter(level, false), packing}
	var x integerArguments
	w.count()
	w.argument(asm.BX, unsafe.Offsetof(x.gap))
	w.argument(asm.R12, unsafe.Offsetof(x.x))
	w.argument(asm.R13, unsafe.Offsetof(x.blocks))
	w.argument(asm.DX, unsafe.Offsetof(x.out))
	w.argument(asm.R8, unsafe.Offsetof(x.lanes))
	w.argument(asm.SI, unsafe.Offsetof(x.w))
	w.constants()
	var row, loop, rest, one, done asm.Label
	w.Bind(&row)
	w.General(asm.Move, asm.DI, asm.Register(asm.R12))
	w.General(asm.Move, asm.CX, asm.Register(asm.R13))
	w.clear(rowSum, 1)
	w.clear(minimumSums, 1)
	w.SubConst(asm.Register(asm.CX), 4)
	w.JumpIf(asm.Less, &rest)
	w.Bind(&loop)
	w.four()
	w.next(4)
	w.JumpIf(asm.GreaterOrEqual, &loop)
	w.Bind(&rest)
	w.AddConst(asm.Register(asm.CX), 4)
	w.JumpIf(asm.Equal, &done)
	w.Bind(&one)
	w.one()
	w.next(1)
	w.JumpIf(asm.Greater, &one)
	w.Bind(&done)
	w.sum()
	w.AddConst(asm.Register(asm.DX), 4)
	w.General(asm.Add, asm.SI, asm.Register(asm.BX))
	w.CountDown(asm.Register(asm.AX))
	w.JumpIf(asm.NotEqual, &row)
	w.Return()
	return w.Finish()
}

// constants loads the constants; the table of lanes is at R8.
func (w *integerWriter) constants() {
	if !w.Wide {
		w.narrowConstants()
		return
	}
	if w.packing == Q8 {
		w.Vector(asm.MoveIn, scaleLanes, 0, asm.At(asm.R8, 1*cacheLine))
		w.Vector(asm.MoveIn, scaleLanesOfLast, 0, asm.At(asm.R8, 2*cacheLine))
		w.Vector(asm.Broadcast, signs, 0, asm.Constant(0x80808080))
		return
	}
	w.Vector(asm.MoveIn, scaleLanes, 0, asm.At(asm.R8, 0))
	w.Vector(asm.Broadcast, lowBits, 0, asm.Constant(0x0f0f0f0f))
}

// next advances by some blocks: by one [Integers].
func (w *integerWriter) next(blocks int) {
	for at := 0; at < blocks*w.packing.Bytes(); at += cacheLine {
		w.Prefetch(asm.At(asm.SI, ahead+at))
	}
	w.AddConst(asm.Register(asm.SI), blocks*w.packing.Bytes())
	w.AddConst(asm.Register(asm.DI), int(unsafe.Sizeof(Integers{})))
	w.SubConst(asm.Register(asm.CX), blocks)
}

// field returns a field of the current [Integers].
func field(offset uintptr) asm.Operand { return asm.At(asm.DI, int(offset)) }

// four adds the products of four blocks.
func (w *integerWriter) four() {
	var x Integers
	w.halves(w.packing, blockScale, 0)
	w.VEX(asm.MultiplyFloat, blockScale, blockScale, field(unsafe.Offsetof(x.scales)), true)
	if w.packing == Q4Min {
		w.halves(w.packing, minimum, 2)
		w.VEX(asm.Fused231, minimumSums, minimum, field(unsafe.Offsetof(x.sums)), true)
	}
	if !w.Wide {
		for b := 0; b < 4; b += w.narrowBlocks() {
			w.narrow(b, w.narrowBlocks())
		}
		return
	}
	if w.packing == Q8 {
		w.bytes(0, 2, scaleLanes)
		w.bytes(2, 2, scaleLanesOfLast)
		return
	}
	start, size := w.packing.start(), w.packing.Bytes()
	w.Vector(asm.SpreadQuarter, lowHalves, 0, asm.At(asm.SI, start))
	for b := 1; b < 4; b++ {
		w.Vector(asm.InsertQuarter.Imm(b), lowHalves, lowHalves, asm.At(asm.SI, b*size+start))
	}
	w.nibbles()
	w.add(scaleLanes)
}

// one adds the products of a block, which is followed by zeros in x.
func (w *integerWriter) one() {
	var x Integers
	w.VEX(asm.BroadcastHalf, blockScale, 0, asm.At(asm.SI, 0), true)
	w.VEX(asm.HalfToFloat, blockScale, 0, asm.Register(blockScale), true)
	w.VEX(asm.MultiplyFloat, blockScale, blockScale, field(unsafe.Offsetof(x.scales)), true)
	if w.packing == Q4Min {
		w.VEX(asm.BroadcastHalf, minimum, 0, asm.At(asm.SI, 2), true)
		w.VEX(asm.HalfToFloat, minimum, 0, asm.Register(minimum), true)
		w.VEX(asm.Fused231, minimumSums, minimum, field(unsafe.Offsetof(x.sums)), true)
	}
	if !w.Wide {
		w.narrow(0, 1)
		return
	}
	if w.packing == Q8 {
		w.bytes(0, 1, scaleLanes)
		return
	}
	w.Vector(asm.SpreadQuarter, lowHalves, 0, asm.At(asm.SI, w.packing.start()))
	w.nibbles()
	w.add(scaleLanes)
}

// nibbles adds the dot products of the halves of blocks in a vector.
func (w *integerWriter) nibbles() {
	var x Integers
	w.Shift(asm.ShiftByByte, asm.ShiftRight, 4, lowHalves, highHalves)
	w.Vector(asm.BitsAnd, lowHalves, lowHalves, asm.Register(lowBits))
	w.Vector(asm.BitsAnd, highHalves, highHalves, asm.Register(lowBits))
	if w.packing == Q4 {
		w.Vector(asm.MoveIn, blockDots, 0, field(unsafe.Offsetof(x.starts)))
	} else {
		w.clear(blockDots, 1)
	}
	w.Vector(asm.ByteDots, blockDots, lowHalves, field(unsafe.Offsetof(x.numbers)))
	w.Vector(asm.ByteDots, blockDots, highHalves, after(field(unsafe.Offsetof(x.numbers)), cacheLine))
}

// bytes adds the products of blocks of bytes from a block on: two, or one.
func (w *integerWriter) bytes(from, count, lanes int) {
	var x Integers
	start, size := w.packing.start(), w.packing.Bytes()
	w.Vector(asm.SpreadHalf, lowHalves, 0, asm.At(asm.SI, from*size+start))
	if count > 1 {
		w.Vector(asm.InsertHalf.Imm(1), lowHalves, lowHalves, asm.At(asm.SI, (from+1)*size+start))
	}
	w.Vector(asm.BitsXor, lowHalves, lowHalves, asm.Register(signs))
	w.Vector(asm.MoveIn, blockDots, 0, after(field(unsafe.Offsetof(x.starts)), from/2*cacheLine))
	w.Vector(asm.ByteDots, blockDots, lowHalves, after(field(unsafe.Offsetof(x.numbers)), from/2*cacheLine))
	w.add(lanes)
}

// add adds the dot products times the scales of the blocks that lanes belong to.
func (w *integerWriter) add(lanes int) {
	w.Vector(asm.IntToFloat, blockDots, 0, asm.Register(blockDots))
	w.Vector(asm.PermuteWords, lowHalves, lanes, asm.Register(blockScale))
	w.Vector(asm.Fused231, rowSum, blockDots, asm.Register(lowHalves))
}

// sum stores the sum of the lanes.
func (w *integerWriter) sum() {
	if w.Wide {
		w.Vector(asm.ExtractHalf.Imm(1), rowSum, 0, asm.Register(lowHalves))
		w.VEX(asm.AddFloat, rowSum, rowSum, asm.Register(lowHalves), false)
	}
	w.VEX(asm.ExtractQuarter.Imm(1), rowSum, 0, asm.Register(lowHalves), false)
	w.VEX(asm.AddFloat, rowSum, rowSum, asm.Register(lowHalves), true)
	if w.packing == Q4Min {
		w.VEX(asm.AddFloat, rowSum, rowSum, asm.Register(minimumSums), true)
	}
	for _, order := range []int{0x4e, 0xb1} { // the other half, then the other of each pair
		w.VEX(asm.PermuteFour.Imm(order), lowHalves, 0, asm.Register(rowSum), true)
		w.VEX(asm.AddFloat, rowSum, rowSum, asm.Register(lowHalves), true)
	}
	w.VEX(asm.MoveOutFirst, rowSum, 0, asm.At(asm.DX, 0), true)
}
