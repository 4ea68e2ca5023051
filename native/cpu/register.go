package cpu

import (
	"math"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// lanes is how many points a block has at most: registers of f32 then take 2 KB
// and a few dozen of them stay in the nearest caches.
const lanes = 512

// class is the Go type that values of an element type are computed in.
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

// register names a place for values. A wide one has a lane for each point of a
// block, any other has one.
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
}

// sizes are the numbers of lanes of the registers of each class.
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
	return f
}

// cut makes slices of the given lengths in one piece of memory. Each begins on
// a cache line, and kernels may write past its end up to a multiple of
// [jit.Lanes].
func cut[T lane](lengths []int) [][]T {
	up := func(n int) int { return (n + jit.Lanes - 1) / jit.Lanes * jit.Lanes }
	total := 0
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

// lanesOf returns a register as a slice of its type, one of integers as signed
// or unsigned ones.
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

// memory returns where the lanes of a register of 32 bits lie.
func (f *files) memory(r register) unsafe.Pointer {
	if r.class == classF32 {
		return unsafe.Pointer(unsafe.SliceData(f.f32[r.index]))
	}
	return unsafe.Pointer(unsafe.SliceData(f.ints[r.index]))
}

func unsignedLanes(x []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// value returns lane i, of type d, as the evaluator of package scalar has it.
func (f *files) value(r register, d ir.DType, i int) scalar.Value {
	switch r.class {
	case classF32:
		return scalar.Value{F: float64(f.f32[r.index][i])}
	case classF64:
		return scalar.Value{F: f.f64[r.index][i]}
	case classInt:
		if d == ir.U32 {
			return scalar.Value{I: int64(uint32(f.ints[r.index][i]))}
		}
		return scalar.Value{I: int64(f.ints[r.index][i])}
	case classLong:
		return scalar.Value{I: f.long[r.index][i]}
	}
	return scalar.Value{C: f.cplx[r.index][i]}
}

// set is the reverse of value.
func (f *files) set(r register, i int, v scalar.Value) {
	switch r.class {
	case classF32:
		f.f32[r.index][i] = float32(v.F)
	case classF64:
		f.f64[r.index][i] = v.F
	case classInt:
		f.ints[r.index][i] = int32(v.I)
	case classLong:
		f.long[r.index][i] = v.I
	default:
		f.cplx[r.index][i] = v.C
	}
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

// shift copies lanes from up to to of a register to the beginning of another.
func (f *files) shift(dst, src register, from, to int) {
	switch src.class {
	case classF32:
		copy(f.f32[dst.index], f.f32[src.index][from:to])
	case classF64:
		copy(f.f64[dst.index], f.f64[src.index][from:to])
	case classInt:
		copy(f.ints[dst.index], f.ints[src.index][from:to])
	case classLong:
		copy(f.long[dst.index], f.long[src.index][from:to])
	default:
		copy(f.cplx[dst.index], f.cplx[src.index][from:to])
	}
}

// fill sets n lanes of a register.
func (f *files) fill(r register, v scalar.Value, n int) {
	switch r.class {
	case classF32:
		fill(f.f32[r.index][:n], float32(v.F))
	case classF64:
		fill(f.f64[r.index][:n], v.F)
	case classInt:
		fill(f.ints[r.index][:n], int32(v.I))
	case classLong:
		fill(f.long[r.index][:n], v.I)
	default:
		fill(f.cplx[r.index][:n], v.C)
	}
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
