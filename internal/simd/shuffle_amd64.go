package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// shuffleCode returns the code of a shuffle, with vectors of 256 bits: memory bounds it.
func shuffleCode(_ Level, s shuffle) []byte {
	w := newWriter(AVX2, false)
	var x shuffleArguments
	w.count()
	w.argument(asm.DI, unsafe.Offsetof(x.to))
	w.argument(asm.BX, unsafe.Offsetof(x.second))
	w.argument(asm.SI, unsafe.Offsetof(x.from))
	vector := w.vector()
	if s == reversedBytes || s == reversedHalves {
		w.Vector(asm.SpreadQuarter, 1, 0, asm.At(asm.BX, 0))
	}
	var loop asm.Label
	w.Bind(&loop)
	w.Vector(asm.MoveIn, 0, 0, asm.At(asm.SI, 0))
	read, written := 2*vector, vector
	switch s {
	case evens: // the second half is read an element before, so that no element after the last one is read
		w.Vector(asm.ShuffleWords.Imm(0xd8), 2, 0, asm.At(asm.SI, vector-w.size()))
		w.Vector(asm.PermuteQuad.Imm(0xd8), 2, 0, asm.Register(2))
		w.Vector(asm.MoveOut, 2, 0, asm.At(asm.DI, 0))
	case join:
		w.Vector(asm.MoveIn, 1, 0, asm.At(asm.BX, 0))
		w.Vector(asm.InterleaveLow, 2, 0, asm.Register(1))
		w.Vector(asm.InterleaveHigh, 3, 0, asm.Register(1))
		for i, halves := range []int{0x20, 0x31} {
			w.Vector(asm.PermuteHalves.Imm(halves), 4+i, 2, asm.Register(3))
			w.Vector(asm.MoveOut, 4+i, 0, asm.At(asm.DI, i*vector))
		}
		w.AddConst(asm.Register(asm.BX), vector)
		read, written = vector, 2*vector
	case reversedBytes, reversedHalves:
		w.Vector(asm.ShuffleBytes, 0, 0, asm.Register(1))
		w.Vector(asm.PermuteHalves.Imm(0x01), 0, 0, asm.Register(0))
	case reversedWords:
		w.Vector(asm.PermuteFour.Imm(0x1b), 0, 0, asm.Register(0))
		w.Vector(asm.PermuteHalves.Imm(0x01), 0, 0, asm.Register(0))
	case reversedDoubles:
		w.Vector(asm.PermuteQuad.Imm(0x1b), 0, 0, asm.Register(0))
	}
	if s >= reversedBytes {
		w.Vector(asm.MoveOut, 0, 0, asm.At(asm.DI, 0))
		read = -vector
	}
	w.AddConst(asm.Register(asm.SI), read)
	w.AddConst(asm.Register(asm.DI), written)
	w.CountDown(asm.Register(asm.AX))
	w.JumpIf(asm.NotEqual, &loop)
	w.Return()
	return w.Finish()
}
