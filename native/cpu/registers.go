package cpu

import (
	"math"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// blockLanes is the maximum number of points of a block: a register of f32 then takes 2 KB, and a
// few dozen fit the first- and second-level caches.
const blockLanes = 512

// class is the Go type in which values of an element type are computed.
type class uint8

const (
	classF32  class = iota // f32, f16, bf16
	classF64               // f64
	classInt               // integers of up to 32 bits as int32 (u32 by its bits), bool as 0 and 1
	classLong              // i64 and u64 as int64, by their bits
	classCplx              // c64 and c128 as complex128
)

func classOf(d ir.DType) class {
	switch {
	case d == ir.F64:
		return classF64
	case d.IsFloat():
		return classF32
	case d.IsComplex():
		return classCplx
	case d == ir.I64 || d == ir.U64:
		return classLong
	}
	return classInt
}

// register is a virtual register: a wide one has a lane for each point of a block, a uniform
// one a single lane.
type register struct {
	class class
	index int
}

// files are the registers of one worker.
type files struct {
	f32  [][]float32
	f64  [][]float64
	ints [][]int32
	long [][]int64
	cplx [][]complex128
	// byClass are the same registers, for code that is independent of the class.
	byClass [5]registerFile
}

func (f *files) of(r register) registerFile { return f.byClass[r.class] }

// sizes holds the number of lanes of each register, by class.
type sizes [5][]int

func (s *sizes) add(c class, width int) register {
	s[c] = append(s[c], width)
	return register{c, len(s[c]) - 1}
}

func (s *sizes) allocate() *files {
	f := &files{}
	f.f32 = cut[float32](s[classF32])
	f.f64 = cut[float64](s[classF64])
	f.ints = cut[int32](s[classInt])
	f.long = cut[int64](s[classLong])
	f.cplx = cut[complex128](s[classCplx])
	f.byClass = [5]registerFile{
		classF32:  &file[float32]{f.f32, func(v scalar.Value) float32 { return float32(v.F) }, func(x float32, _ ir.DType) scalar.Value { return scalar.Value{F: float64(x)} }},
		classF64:  &file[float64]{f.f64, func(v scalar.Value) float64 { return v.F }, func(x float64, _ ir.DType) scalar.Value { return scalar.Value{F: x} }},
		classInt:  &file[int32]{f.ints, func(v scalar.Value) int32 { return int32(v.I) }, integerOf},
		classLong: &file[int64]{f.long, func(v scalar.Value) int64 { return v.I }, func(x int64, _ ir.DType) scalar.Value { return scalar.Value{I: x} }},
		classCplx: &file[complex128]{f.cplx, func(v scalar.Value) complex128 { return v.C }, func(x complex128, _ ir.DType) scalar.Value { return scalar.Value{C: x} }},
	}
	return f
}

// cut allocates slices of the given lengths in one piece of memory. Each is aligned to a cache
// line, and kernels may write past its end up to a multiple of [jit.MaxLanes].
func cut[T lane](lengths []int) [][]T {
	up := func(n int) int { return (n + jit.MaxLanes - 1) / jit.MaxLanes * jit.MaxLanes }
	total := jit.MaxLanes // kernels may read a whole vector at the end of the last slice
	for _, n := range lengths {
		total += up(n)
	}
	var one T
	memory := allocate(total * int(unsafe.Sizeof(one)))
	all, out := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), total), make([][]T, len(lengths))
	for i, n := range lengths {
		out[i], all = all[:n:n], all[up(n):]
	}
	return out
}

// lane is a Go type that registers hold.
type lane interface {
	float32 | float64 | int32 | uint32 | int64 | complex128
}

// lanesOf returns the lanes of a register, those of integers as signed or unsigned.
func lanesOf[T lane](f *files, r register) []T {
	var file any
	switch r.class {
	case classF32:
		file = f.f32[r.index]
	case classF64:
		file = f.f64[r.index]
	case classInt:
		if _, unsigned := any(*new(T)).(uint32); unsigned {
			file = unsignedLanes(f.ints[r.index])
		} else {
			file = f.ints[r.index]
		}
	case classLong:
		file = f.long[r.index]
	default:
		file = f.cplx[r.index]
	}
	return file.([]T)
}

// size returns the bytes of a lane in a kernel.
func (c class) size() int {
	if c == classF64 || c == classLong {
		return 8
	}
	return 4
}

func unsignedLanes(x []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// roundTo rounds a value of class f32 to a narrower type.
func roundTo(d ir.DType, x float32) float32 {
	if d == ir.BF16 {
		// Round to nearest even on the upper 16 bits, as package dtype does.
		b := math.Float32bits(x)
		if b&0x7fffffff > 0x7f800000 {
			return math.Float32frombits(b | 0x00400000)
		}
		return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
	}
	return float32(d.Round(float64(x)))
}

// registerFile is the registers of one class.
type registerFile interface {
	// value returns a lane of type d as a [scalar.Value]; set stores one.
	value(r, lane int, d ir.DType) scalar.Value
	set(r, lane int, v scalar.Value)
	// fill sets the first n lanes.
	fill(r int, v scalar.Value, n int)
	// shift copies lanes [from, to) of src to the first lanes of dst.
	shift(dst, src, from, to int)
	// move copies lanes, splat copies lane 0 of src to all lanes.
	move(dst, src int) op
	splat(dst, src int) op
	// choose selects lanes of yes where cond is not 0, otherwise of no; with uniform, by lane 0 of
	// cond.
	choose(dst, yes, no int, cond []int32, uniform bool) op
	// memory returns the address of the lanes.
	memory(r int) unsafe.Pointer
}

// file is a registerFile with lanes of type T; from and to convert from and to values.
type file[T lane] struct {
	registers [][]T
	from      func(v scalar.Value) T
	to        func(x T, d ir.DType) scalar.Value
}

// integerOf returns the value of a 32-bit lane, which holds the bits of a u32.
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

// fill sets a few elements and copies them to the others by doubling.
func fill[T unit](d []T, x T) {
	few := d[:min(len(d), 16)]
	for i := range few {
		few[i] = x
	}
	for done := len(few); done < len(d); done *= 2 {
		copy(d[done:], d[:done])
	}
}
