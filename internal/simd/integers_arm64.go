package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// The vector registers of the kernel for integers, beside those of the kernel for quantised rows.
const (
	groupScales = 5
	groupSums   = 6
	laneFactor  = 7
	numbers     = factors // 2 of them
)

// The general registers of the kernel for integers.
const (
	integersAt = xAt
	blocksLeft = 5
	rowGap     = 6
	integersTo = 7
	firstOfX   = 8
	rowBlocks  = 9
)

// integerCode returns the code of the kernel that multiplies quantised rows with a rounded vector, nil for plain Go. Four
// blocks are a step.
func integerCode(level Level, packing Packing) []byte {
	if level != NEON {
		return nil
	}
	w := &writer{}
	var x integerArguments
	w.argument(packedAt, unsafe.Offsetof(x.w))
	w.argument(rowGap, unsafe.Offsetof(x.gap))
	w.argument(firstOfX, unsafe.Offsetof(x.x))
	w.argument(rowBlocks, unsafe.Offsetof(x.blocks))
	w.argument(integersTo, unsafe.Offsetof(x.out))
	if packing != Q8 {
		w.Constant(lowBits, 0x0f0f0f0f)
		w.Constant(bias, 0x08080808)
	}
	var row, loop, rest, one, done asm.Label
	w.Bind(&row)
	w.Move(integersAt, firstOfX)
	w.clear(totalSum, 1)
	w.SubConst(blocksLeft, rowBlocks, 4)
	w.JumpIf(asm.Less, &rest)
	w.Bind(&loop)
	w.integerBlocks(packing, 4)
	w.JumpIf(asm.AtLeast, &loop)
	w.Bind(&rest)
	w.AddConst(blocksLeft, blocksLeft, 4)
	w.JumpIfZero(blocksLeft, &done)
	w.Bind(&one)
	w.integerBlocks(packing, 1)
	w.JumpIfNotZero(blocksLeft, &one)
	w.Bind(&done)
	w.Three(asm.AddPairFloats, totalSum, totalSum, totalSum)
	w.Three(asm.AddPairFloats, totalSum, totalSum, totalSum)
	w.Two(asm.StoreWord, totalSum, integersTo)
	w.AddConst(integersTo, integersTo, 4)
	w.Add(packedAt, packedAt, rowGap)
	w.countDown(1, &row)
	w.Return()
	return w.Finish()
}

// loadAt loads a vector at a distance from the current [Integers].
func (w *writer) loadAt(reg, distance int) {
	w.Two(asm.LoadAt|asm.Opcode(distance/NEON.vectorBytes())<<10, reg, integersAt)
}

// integerBlocks adds the products of blocks, four or one, of the current [Integers], and advances.
func (w *writer) integerBlocks(packing Packing, count int) {
	var x Integers
	w.loadAt(groupScales, int(unsafe.Offsetof(x.scales)))
	if packing == Q4Min {
		w.loadAt(groupSums, int(unsafe.Offsetof(x.sums)))
	}
	for b := range count {
		w.integerBlock(packing, b)
	}
	w.AddConst(integersAt, integersAt, int(unsafe.Sizeof(x)))
	w.SubConst(blocksLeft, blocksLeft, count)
}

// integerBlock adds the products of a block. Sums of two products fit into 16 bits: at most 2·128·127.
func (w *writer) integerBlock(packing Packing, b int) {
	lane := asm.Opcode(b) << 19 // of a vector that is spread
	if packing == Q4Min {
		// The conversion clears the other lanes.
		w.Two(asm.LoadHalf|1<<10, blockScale, packedAt)
		w.Two(asm.HalfToSingle, blockScale, blockScale)
		w.Two(asm.SplatFirst|lane, laneFactor, groupSums)
		w.Three(asm.FusedAdd, totalSum, blockScale, laneFactor)
	}
	w.Two(asm.LoadHalf, blockScale, packedAt)
	w.Two(asm.HalfToSingle, blockScale, blockScale)
	w.Two(asm.SplatFirst, blockScale, blockScale)
	w.Two(asm.SplatFirst|lane, laneFactor, groupScales)
	w.Three(asm.MultiplyFloat, blockScale, blockScale, laneFactor)
	w.AddConst(packedAt, packedAt, packing.start())
	w.packedBytes(packing)
	first, second := b*PackedElements, b*PackedElements+PackedElements/2
	if packing != Q8 {
		first, second = b*PackedElements/2, (4+b)*PackedElements/2
	}
	w.loadAt(numbers, first)
	w.loadAt(numbers+1, second)
	for half := range 2 {
		w.Three(asm.MultiplyBytes, blockShorts+half, blockBytes+half, numbers+half)
		w.Three(asm.FusedBytes|asm.UpperHalf, blockShorts+half, blockBytes+half, numbers+half)
	}
	w.Two(asm.WidenPairs, blockIntegers, blockShorts)
	w.Two(asm.FusedPairs, blockIntegers, blockShorts+1)
	w.Two(asm.IntToFloat, blockIntegers, blockIntegers)
	w.Three(asm.FusedAdd, totalSum, blockIntegers, blockScale)
}
