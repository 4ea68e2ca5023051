package simd

import (
	"math/bits"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// masksTails means that kernels mask the stores of their last vectors.
const masksTails = true

// writer writes kernels for x86-64. They have their arguments at SI and n in R13.
type writer struct{ asm.Encoder }

// newWriter returns a writer of code for a level and float64, or 32-bit elements.
func newWriter(level Level, double bool) writer {
	return writer{asm.Encoder{Wide: level == AVX512, Long: double}}
}

// vector returns the size of a vector in bytes.
func (w *writer) vector() int {
	if w.Wide {
		return AVX512.vectorBytes()
	}
	return AVX2.vectorBytes()
}

// size returns the size of an element in bytes.
func (w *writer) size() int {
	if w.Long {
		return 8
	}
	return 4
}

// argument loads an argument at an offset, stride loads one in elements and converts it to
// bytes.
func (w *writer) argument(reg int, offset uintptr) {
	w.General(asm.Move, reg, asm.At(asm.SI, int(offset)))
}

func (w *writer) stride(reg int, offset uintptr) {
	w.argument(reg, offset)
	w.ShiftLeft(reg, bits.TrailingZeros(uint(w.size())))
}

// count moves n to AX.
func (w *writer) count() { w.General(asm.Move, asm.AX, asm.Register(asm.R13)) }

// clear sets vector registers to 0.
func (w *writer) clear(first, count int) {
	for r := first; r < first+count; r++ {
		w.Vector(asm.BitsXor, r, r, asm.Register(r))
	}
}

func indexed(base, index, scale int) asm.Operand {
	return asm.Operand{Base: base, Index: index, Scale: scale}
}

// rows returns the addresses of four rows, whose stride is in a register and three times in
// another.
func rows(base, stride, thrice int) [4]asm.Operand {
	return [4]asm.Operand{asm.At(base, 0), indexed(base, stride, 1), indexed(base, stride, 2), indexed(base, thrice, 1)}
}

// after returns memory at a distance in bytes after an operand.
func after(at asm.Operand, distance int) asm.Operand {
	at.Disp += distance
	return at
}

// dotsCode returns the code for fourDots: each row has two accumulators.
func dotsCode(level Level, double bool) []byte {
	w := newWriter(level, double)
	var x dotsArguments
	w.count()
	w.stride(asm.R8, unsafe.Offsetof(x.aRow))
	w.argument(asm.DI, unsafe.Offsetof(x.x))
	w.argument(asm.DX, unsafe.Offsetof(x.sums))
	w.argument(asm.SI, unsafe.Offsetof(x.a))
	w.General(asm.Address, asm.R12, indexed(asm.R8, asm.R8, 2))
	const vectors, first = 2, 8 // first is the register of x
	w.clear(0, 4*vectors)
	var loop asm.Label
	w.Bind(&loop)
	for v := range vectors {
		w.Vector(asm.MoveIn, first+v, 0, asm.At(asm.DI, v*w.vector()))
	}
	for i, row := range rows(asm.SI, asm.R8, asm.R12) {
		for v := range vectors {
			w.Vector(asm.Fused231, vectors*i+v, first+v, after(row, v*w.vector()))
		}
	}
	w.AddConst(asm.Register(asm.SI), vectors*w.vector())
	w.AddConst(asm.Register(asm.DI), vectors*w.vector())
	w.SubConst(asm.Register(asm.AX), vectors*w.vector()/w.size())
	w.JumpIf(asm.NotEqual, &loop)
	for r := range 4 * vectors {
		w.Vector(asm.MoveOut, r, 0, asm.At(asm.DX, r*w.vector()))
	}
	w.Return()
	return w.Finish()
}

// substituteCode returns the code for Substitute: the row of the panel stays in registers.
func substituteCode(level Level, double bool, vectors int) []byte {
	w := newWriter(level, double)
	var x substituteArguments
	const first, row, at, index, splat = asm.R9, asm.DX, asm.DI, asm.R10, 8 // row and at are those of the current row
	w.argument(at, unsafe.Offsetof(x.a))
	w.argument(first, unsafe.Offsetof(x.panel))
	w.stride(asm.R8, unsafe.Offsetof(x.aRow))
	w.General(asm.Move, row, asm.Register(first))
	w.ClearGeneral(index)
	var next, step, done asm.Label
	w.Bind(&next)
	for v := range vectors {
		w.Vector(asm.MoveIn, v, 0, asm.At(row, v*w.vector()))
	}
	w.General(asm.Move, asm.BX, asm.Register(first))
	w.General(asm.Move, asm.CX, asm.Register(at))
	w.General(asm.Move, asm.AX, asm.Register(index))
	w.General(asm.Test, asm.AX, asm.Register(asm.AX))
	w.JumpIf(asm.Equal, &done)
	w.Bind(&step)
	w.Vector(asm.Broadcast, splat, 0, asm.At(asm.CX, 0))
	for v := range vectors {
		w.Vector(asm.Fused231, v, splat, asm.At(asm.BX, v*w.vector()))
	}
	w.AddConst(asm.Register(asm.CX), w.size())
	w.AddConst(asm.Register(asm.BX), vectors*w.vector())
	w.CountDown(asm.Register(asm.AX))
	w.JumpIf(asm.NotEqual, &step)
	w.Bind(&done)
	w.Vector(asm.Broadcast, splat, 0, asm.At(asm.CX, 0))
	for v := range vectors {
		w.Vector(asm.MultiplyFloat, v, v, asm.Register(splat))
		w.Vector(asm.MoveOut, v, 0, asm.At(row, v*w.vector()))
	}
	w.AddConst(asm.Register(row), vectors*w.vector())
	w.General(asm.Add, at, asm.Register(asm.R8))
	w.AddConst(asm.Register(index), 1)
	w.CountDown(asm.Register(asm.R13))
	w.JumpIf(asm.NotEqual, &next)
	w.Return()
	return w.Finish()
}

// pieceCode returns the code that fills a vector of each row from a list of pieces, of type
// piece.
func pieceCode(level Level) []byte {
	w := newWriter(level, false)
	var x pieceArguments
	var p piece
	w.count()
	w.argument(asm.DI, unsafe.Offsetof(x.to))
	w.stride(asm.R8, unsafe.Offsetof(x.toRow))
	w.argument(asm.R9, unsafe.Offsetof(x.rowAt))
	w.argument(asm.R10, unsafe.Offsetof(x.pieces))
	w.argument(asm.R11, unsafe.Offsetof(x.count))
	w.argument(asm.SI, unsafe.Offsetof(x.from))
	var row, next asm.Label
	w.Bind(&row)
	w.General(asm.LoadInt32, asm.R12, asm.At(asm.R9, 0))
	w.General(asm.Address, asm.R12, indexed(asm.SI, asm.R12, 4))
	w.General(asm.Move, asm.BX, asm.Register(asm.R10))
	w.General(asm.Move, asm.CX, asm.Register(asm.R11))
	w.clear(0, 1)
	w.Bind(&next)
	w.General(asm.Move, asm.R13, asm.At(asm.BX, int(unsafe.Offsetof(p.at))))
	from := indexed(asm.R12, asm.R13, 1)
	if w.Wide {
		w.VEX(asm.MaskIn, 1, 0, asm.At(asm.BX, int(unsafe.Offsetof(p.bits))), true)
		w.EVEX(asm.MoveIn, 0, 0, from, asm.Masking{Mask: 1})
	} else {
		w.Vector(asm.MoveIn, 1, 0, asm.At(asm.BX, int(unsafe.Offsetof(p.mask))))
		w.Vector(asm.MaskedIn, 2, 1, from)
		w.Vector(asm.BitsOr, 0, 0, asm.Register(2))
	}
	w.AddConst(asm.Register(asm.BX), int(unsafe.Sizeof(p)))
	w.CountDown(asm.Register(asm.CX))
	w.JumpIf(asm.NotEqual, &next)
	w.Vector(asm.MoveOut, 0, 0, asm.At(asm.DI, 0))
	w.General(asm.Add, asm.DI, asm.Register(asm.R8))
	w.AddConst(asm.Register(asm.R9), 4)
	w.CountDown(asm.Register(asm.AX))
	w.JumpIf(asm.NotEqual, &row)
	w.Return()
	return w.Finish()
}
