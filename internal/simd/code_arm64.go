package simd

import (
	"math/bits"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// masksTails is false: kernels write whole vectors.
const masksTails = false

// transposeCode, pieceCode and shuffleCode return nil: there is no code for these kernels.
func transposeCode(Level, int, int) []byte { return nil }

func shuffleCode(Level, shuffle) []byte { return nil }

func pieceCode(Level) []byte { return nil }

// writer writes kernels for arm64. They have their arguments at register 0 and n in register 1.
type writer struct{ asm.Encoder }

const (
	arguments = 0
	count     = 1
)

// argument loads an argument at an offset, stride loads one in elements and converts it to
// bytes.
func (w *writer) argument(reg int, offset uintptr) { w.Load(reg, arguments, int(offset)) }

func (w *writer) stride(reg int, offset uintptr) {
	w.argument(reg, offset)
	w.ShiftLeft(reg, bits.TrailingZeros(uint(w.size())))
}

// size returns the size of an element in bytes.
func (w *writer) size() int {
	if w.Long {
		return 8
	}
	return 4
}

// clear sets vector registers to 0.
func (w *writer) clear(first, count int) {
	for r := first; r < first+count; r++ {
		w.Three(asm.BitsXor, r, r, r)
	}
}

// countDown counts n down by a number, and jumps back while some remain.
func (w *writer) countDown(by int, loop *asm.Label) {
	w.SubConst(count, count, by)
	w.JumpIfNotZero(count, loop)
}

// rowRegs are the addresses of rows of the left factor.
var rowRegs = [...]int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}

// rows loads the address of the first row, and computes those of others.
func (w *writer) rows(rows int, at, stride uintptr) {
	const step = 14
	w.argument(rowRegs[0], at)
	w.stride(step, stride)
	for i := 1; i < rows; i++ {
		w.Add(rowRegs[i], rowRegs[i-1], step)
	}
}

// tileCode returns the code of a micro-kernel for strided factors: it computes a tile of
// rows × (vectors·lanes) elements of a product. The accumulators stay in registers; each element
// of a is broadcast and multiplied with the vectors of b.
func tileCode(_ Level, of kind, rows, vectors int, reads reading) []byte {
	double := of == doubles
	if reads != strided || of == pairs {
		return nil
	}
	w := &writer{asm.Encoder{Long: double}}
	var x tileArguments
	const aCol, b, bRow, c, cRow, at, add = 14, 15, 16, 19, 20, 17, 21
	w.rows(rows, unsafe.Offsetof(x.a), unsafe.Offsetof(x.aRow))
	w.stride(aCol, unsafe.Offsetof(x.aCol))
	w.argument(b, unsafe.Offsetof(x.b))
	w.stride(bRow, unsafe.Offsetof(x.bRow))
	w.argument(c, unsafe.Offsetof(x.c))
	w.stride(cRow, unsafe.Offsetof(x.cRow))
	splat, sum := vectors, vectors+2 // the registers of broadcast elements of a, and of accumulators
	w.clear(sum, rows*vectors)
	var loop, done, store asm.Label
	w.JumpIfZero(count, &done)
	w.Bind(&loop)
	w.Move(at, b)
	w.LoadVectors(0, vectors, at)
	w.Add(b, b, bRow)
	for i := range rows {
		w.Splat(splat+i%2, rowRegs[i], aCol)
		for v := range vectors {
			w.Three(w.Lanes(asm.FusedAdd), sum+i*vectors+v, splat+i%2, v)
		}
	}
	w.countDown(1, &loop)
	w.Bind(&done)
	w.argument(add, unsafe.Offsetof(x.add))
	w.JumpIfZero(add, &store)
	w.Move(b, c)
	for i := range rows {
		w.Move(at, b)
		for v := range vectors {
			w.LoadVectors(v%2, 1, at)
			to := sum + i*vectors + v
			w.Three(w.Lanes(asm.AddFloat), to, to, v%2)
		}
		w.Add(b, b, cRow)
	}
	w.Bind(&store)
	for i := range rows {
		w.Move(at, c)
		w.StoreVectors(sum+i*vectors, vectors, at)
		w.Add(c, c, cRow)
	}
	w.Return()
	return w.Finish()
}

// dotsCode returns the code for fourDots: each row has two accumulators.
func dotsCode(_ Level, double bool) []byte {
	w := &writer{asm.Encoder{Long: double}}
	var args dotsArguments
	w.rows(4, unsafe.Offsetof(args.a), unsafe.Offsetof(args.aRow))
	const xAt, sumsAt = 15, 16
	w.argument(xAt, unsafe.Offsetof(args.x))
	w.argument(sumsAt, unsafe.Offsetof(args.sums))
	const vectors, x, row, sum = 2, 0, 2, 4
	w.clear(sum, 4*vectors)
	var loop asm.Label
	w.Bind(&loop)
	w.LoadVectors(x, vectors, xAt)
	for i := range 4 {
		w.LoadVectors(row, vectors, rowRegs[i])
		for v := range vectors {
			w.Three(w.Lanes(asm.FusedAdd), sum+vectors*i+v, row+v, x+v)
		}
	}
	w.countDown(vectors*NEON.vectorBytes()/w.size(), &loop)
	w.StoreVectors(sum, 4*vectors, sumsAt)
	w.Return()
	return w.Finish()
}

// substituteCode returns the code for Substitute: the row of the panel stays in registers.
func substituteCode(_ Level, double bool, vectors int) []byte {
	w := &writer{asm.Encoder{Long: double}}
	var args substituteArguments
	const at, aRow, first, row, index, size = 2, 3, 4, 5, 6, 7 // at and row are those of the current row
	const left, from, by, before = 8, 9, 10, 11
	const above, splat = 8, 16 // vectors
	w.argument(at, unsafe.Offsetof(args.a))
	w.argument(first, unsafe.Offsetof(args.panel))
	w.stride(aRow, unsafe.Offsetof(args.aRow))
	w.Move(row, first)
	w.Number(index, 0)
	w.Number(size, w.size())
	var next, step, done asm.Label
	w.Bind(&next)
	w.Move(from, row)
	w.LoadVectors(0, vectors, from)
	w.Move(before, first)
	w.Move(by, at)
	w.Move(left, index)
	w.JumpIfZero(left, &done)
	w.Bind(&step)
	w.Splat(splat, by, size)
	w.LoadVectors(above, vectors, before)
	for v := range vectors {
		w.Three(w.Lanes(asm.FusedAdd), v, above+v, splat)
	}
	w.SubConst(left, left, 1)
	w.JumpIfNotZero(left, &step)
	w.Bind(&done)
	w.Splat(splat, by, size)
	for v := range vectors {
		w.Three(w.Lanes(asm.MultiplyFloat), v, v, splat)
	}
	w.StoreVectors(0, vectors, row)
	w.Add(at, at, aRow)
	w.AddConst(index, index, 1)
	w.countDown(1, &next)
	w.Return()
	return w.Finish()
}
