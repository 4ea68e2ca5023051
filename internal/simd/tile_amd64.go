package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// tileWriter writes a micro-kernel: it computes a tile of rows × (vectors·lanes) elements of a
// product.
type tileWriter struct {
	writer
	rows, vectors int
	reads         reading
	multiply      asm.Opcode // and add
}

// tileCode returns the code of a micro-kernel. The accumulators stay in registers; each element
// of a is broadcast and multiplied with the vectors of b.
func tileCode(level Level, of kind, rows, vectors int, reads reading) []byte {
	t := &tileWriter{newWriter(level, of == doubles), rows, vectors, reads, asm.Fused231}
	if of == pairs {
		t.multiply = asm.PairDots
	}
	t.argument(asm.DI, unsafe.Offsetof(tileArguments{}.b))
	t.clear(t.sum(0, 0), rows*vectors)
	t.prefetch()
	if reads == gathered {
		t.gatheredLoop()
	} else {
		t.loop()
	}
	t.finish()
	return t.Finish()
}

// What the stack holds, the end of the columns and the stride of b only where a has tables.
var (
	columnEnd = asm.Stack(0)
	arguments = asm.Stack(8)
	bRow      = asm.Stack(16)
)

// splat returns the first of two registers with broadcast elements of a. The registers before
// hold vectors of b, except in a kernel of one row, which uses them from memory.
func (t *tileWriter) splat() int {
	if t.rows == 1 {
		return 0
	}
	return t.vectors
}

// sum returns the accumulator of a vector of a row.
func (t *tileWriter) sum(row, vector int) int { return t.splat() + 2 + row*t.vectors + vector }

// result loads the address and the stride of the tile.
func (t *tileWriter) result() {
	t.argument(asm.DX, unsafe.Offsetof(tileArguments{}.c))
	t.stride(asm.R11, unsafe.Offsetof(tileArguments{}.cRow))
}

// prefetch prefetches the tile, to which finish may add.
func (t *tileWriter) prefetch() {
	t.result()
	for i := range t.rows {
		for v := range t.vectors {
			t.Prefetch(asm.At(asm.DX, v*t.vector()))
		}
		if i < t.rows-1 {
			t.General(asm.Add, asm.DX, asm.Register(asm.R11))
		}
	}
}

// loop writes the loop over k for strided a.
func (t *tileWriter) loop() {
	t.count()
	t.stride(asm.R8, unsafe.Offsetof(tileArguments{}.aRow))
	t.stride(asm.R9, unsafe.Offsetof(tileArguments{}.aCol))
	if t.reads == tabled {
		t.argument(asm.R10, unsafe.Offsetof(tileArguments{}.bRowAt))
	} else {
		t.stride(asm.R10, unsafe.Offsetof(tileArguments{}.bRow))
	}
	t.argument(asm.SI, unsafe.Offsetof(tileArguments{}.a))
	t.General(asm.Address, asm.R12, indexed(asm.R8, asm.R8, 2))
	bases := []int{asm.SI, asm.R13, asm.BX, asm.CX}[:(t.rows+3)/4] // of four rows each
	var a []asm.Operand
	for i, base := range bases {
		if i > 0 {
			t.General(asm.Address, base, indexed(bases[i-1], asm.R8, 4))
		}
		four := rows(base, asm.R8, asm.R12)
		a = append(a, four[:]...)
	}
	t.General(asm.Test, asm.AX, asm.Register(asm.AX))
	var loop, done asm.Label
	t.JumpIf(asm.Equal, &done)
	t.Bind(&loop)
	if t.reads == tabled {
		t.General(asm.LoadInt32, asm.R15, asm.At(asm.R10, 0))
		t.step(indexed(asm.DI, asm.R15, t.size()), a)
		t.AddConst(asm.Register(asm.R10), 4)
	} else {
		t.step(asm.At(asm.DI, 0), a)
		t.General(asm.Add, asm.DI, asm.Register(asm.R10))
	}
	for _, base := range bases {
		t.General(asm.Add, base, asm.Register(asm.R9))
	}
	t.CountDown(asm.Register(asm.AX))
	t.JumpIf(asm.NotEqual, &loop)
	t.Bind(&done)
	t.General(asm.Move, asm.SI, arguments)
}

// gatheredRows are the registers with the addresses of the rows of a; the last ones also hold
// what these are computed from.
var gatheredRows = [...]int{asm.BX, asm.CX, asm.DX, asm.R9, asm.R10, asm.R11, asm.R12, asm.R13, asm.R14, asm.BP, asm.R8, asm.SI}

// gatheredLoop writes the loop over k for a with tables. The row addresses take all registers:
// the end of the columns and the stride of b are on the stack.
func (t *tileWriter) gatheredLoop() {
	saved := int(unsafe.Offsetof(tileArguments{}.saved))
	t.General(asm.MoveTo, asm.BP, asm.At(asm.SI, saved))
	t.argument(asm.AX, unsafe.Offsetof(tileArguments{}.aColAt))
	t.General(asm.Address, asm.R15, indexed(asm.AX, asm.R13, 4))
	t.General(asm.MoveTo, asm.R15, columnEnd)
	t.stride(asm.R15, unsafe.Offsetof(tileArguments{}.bRow))
	t.General(asm.MoveTo, asm.R15, bRow)
	t.argument(asm.R8, unsafe.Offsetof(tileArguments{}.aRowAt))
	t.argument(asm.SI, unsafe.Offsetof(tileArguments{}.a))
	const own = 10 // rows without another use of their registers
	for i, reg := range gatheredRows[:min(t.rows, own)] {
		t.General(asm.LoadInt32, reg, asm.At(asm.R8, 4*i))
		t.General(asm.Address, reg, indexed(asm.SI, reg, t.size()))
	}
	if t.rows > own {
		t.General(asm.LoadInt32, asm.R15, asm.At(asm.R8, 4*own+4))
		t.General(asm.LoadInt32, asm.R8, asm.At(asm.R8, 4*own))
		t.General(asm.Address, asm.R8, indexed(asm.SI, asm.R8, t.size()))
		t.General(asm.Address, asm.SI, indexed(asm.SI, asm.R15, t.size()))
	}
	a := make([]asm.Operand, t.rows)
	for i := range a {
		a[i] = indexed(gatheredRows[i], asm.R15, t.size())
	}
	t.General(asm.Compare, asm.AX, columnEnd)
	var loop, done asm.Label
	t.JumpIf(asm.Equal, &done)
	t.Bind(&loop)
	t.General(asm.LoadInt32, asm.R15, asm.At(asm.AX, 0))
	t.step(asm.At(asm.DI, 0), a)
	t.General(asm.Add, asm.DI, bRow)
	t.AddConst(asm.Register(asm.AX), 4)
	t.General(asm.Compare, asm.AX, columnEnd)
	t.JumpIf(asm.NotEqual, &loop)
	t.Bind(&done)
	t.General(asm.Move, asm.SI, arguments)
	t.General(asm.Move, asm.BP, asm.At(asm.SI, saved))
}

// step multiplies the elements of a column of a with a row of b.
func (t *tileWriter) step(b asm.Operand, a []asm.Operand) {
	of := asm.Register
	if t.rows == 1 {
		of = func(v int) asm.Operand { return after(b, v*t.vector()) }
	}
	for v := 0; t.rows > 1 && v < t.vectors; v++ {
		t.Vector(asm.MoveIn, v, 0, after(b, v*t.vector()))
	}
	for i := range t.rows {
		splat := t.splat() + i%2
		t.Vector(asm.Broadcast, splat, 0, a[i])
		for v := range t.vectors {
			t.Vector(t.multiply, t.sum(i, v), splat, of(v))
		}
	}
}

// finish stores the tile with the last vectors masked. With AVX2, where masked stores are
// slower, tiles of whole vectors have code of their own.
func (t *tileWriter) finish() {
	t.result()
	if !t.Wide {
		var partly asm.Label
		t.CompareConst(asm.At(asm.SI, int(unsafe.Offsetof(tileArguments{}.last))), t.vector()/t.size())
		t.JumpIf(asm.NotEqual, &partly)
		t.store(false)
		t.Bind(&partly)
	}
	t.argument(asm.CX, unsafe.Offsetof(tileArguments{}.mask))
	t.Vector(asm.MoveIn, 0, 0, asm.At(asm.CX, 0))
	if t.Wide {
		t.EVEX(t.Lanes(asm.TestWords), 1, 0, asm.Register(0), asm.Masking{})
	}
	t.store(true)
}

// store stores the accumulators or adds them to c; with masked, the last vectors under mask
// register 1 or vector register 0.
func (t *tileWriter) store(masked bool) {
	var store asm.Label
	t.CompareConst(asm.At(asm.SI, int(unsafe.Offsetof(tileArguments{}.add))), 0)
	t.JumpIf(asm.Equal, &store)
	t.General(asm.Move, asm.DI, asm.Register(asm.DX))
	for i := range t.rows {
		for v := range t.vectors {
			t.add(t.sum(i, v), asm.At(asm.DI, v*t.vector()), masked && v == t.vectors-1)
		}
		t.General(asm.Add, asm.DI, asm.Register(asm.R11))
	}
	t.Bind(&store)
	for i := range t.rows {
		for v := range t.vectors {
			sum, at := t.sum(i, v), asm.At(asm.DX, v*t.vector())
			switch {
			case !masked || v < t.vectors-1:
				t.Vector(asm.MoveOut, sum, 0, at)
			case t.Wide:
				t.EVEX(t.Lanes(asm.MoveOut), sum, 0, at, asm.Masking{Mask: 1})
			default:
				t.Vector(asm.MaskedOut, sum, 0, at)
			}
		}
		t.General(asm.Add, asm.DX, asm.Register(asm.R11))
	}
	t.Return()
}

// add adds a vector of c to an accumulator.
func (t *tileWriter) add(sum int, at asm.Operand, masked bool) {
	switch {
	case !masked:
		t.Vector(asm.AddFloat, sum, sum, at)
	case t.Wide:
		t.EVEX(t.Lanes(asm.AddFloat), sum, sum, at, asm.Masking{Mask: 1})
	default:
		t.Vector(asm.MaskedIn, 1, 0, at)
		t.Vector(asm.AddFloat, sum, sum, asm.Register(1))
	}
}
