package cpu

import (
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// registerFile is the registers of one class, by their indices.
type registerFile interface {
	// value returns a lane, of type d, as the evaluator of package scalar has it;
	// set is the reverse.
	value(r, lane int, d ir.DType) scalar.Value
	set(r, lane int, v scalar.Value)
	// fill sets n lanes.
	fill(r int, v scalar.Value, n int)
	// shift copies lanes from up to to of a register to the beginning of another.
	shift(dst, src, from, to int)
	// move copies lanes, splat lane 0 of src to all lanes.
	move(dst, src int) op
	splat(dst, src int) op
	// choose takes lanes of yes where there is no 0 in those of cond, else of no;
	// lane 0 of cond for all of them where uniform is set.
	choose(dst, yes, no int, cond []int32, uniform bool) op
	// memory returns where the lanes lie.
	memory(r int) unsafe.Pointer
}

// file is a registerFile with lanes of type T, made of values and back by from and to.
type file[T lane] struct {
	registers [][]T
	from      func(v scalar.Value) T
	to        func(x T, d ir.DType) scalar.Value
}

// integerOf returns the value of 32 bits, which those of u32 lie in as they are.
func integerOf(x int32, d ir.DType) scalar.Value {
	if d == ir.U32 {
		return scalar.Value{I: int64(uint32(x))}
	}
	return scalar.Value{I: int64(x)}
}

func (f *file[T]) value(r, lane int, d ir.DType) scalar.Value { return f.to(f.registers[r][lane], d) }

func (f *file[T]) set(r, lane int, v scalar.Value) { f.registers[r][lane] = f.from(v) }

func (f *file[T]) fill(r int, v scalar.Value, n int) { fill(f.registers[r][:n], f.from(v)) }

func (f *file[T]) shift(dst, src, from, to int) { copy(f.registers[dst], f.registers[src][from:to]) }

func (f *file[T]) move(dst, src int) op {
	d, a := f.registers[dst], f.registers[src]
	return func(n int) { copy(d[:n], a) }
}

func (f *file[T]) splat(dst, src int) op {
	d, a := f.registers[dst], f.registers[src]
	return func(int) { fill(d, a[0]) }
}

func (f *file[T]) choose(dst, yes, no int, cond []int32, uniform bool) op {
	d, a, b := f.registers[dst], f.registers[yes], f.registers[no]
	if uniform {
		return func(n int) {
			if cond[0] != 0 {
				copy(d[:n], a)
			} else {
				copy(d[:n], b)
			}
		}
	}
	return func(n int) {
		d, a, b, cond := d[:n], a[:n], b[:n], cond[:n]
		for i, c := range cond {
			x := b[i]
			if c != 0 {
				x = a[i]
			}
			d[i] = x
		}
	}
}

func (f *file[T]) memory(r int) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(f.registers[r]))
}

// fill sets a few lanes, and copies them to the others.
func fill[T lane](d []T, x T) {
	few := d[:min(len(d), 16)]
	for i := range few {
		few[i] = x
	}
	for done := len(few); done < len(d); done *= 2 {
		copy(d[done:], d[:done])
	}
}
