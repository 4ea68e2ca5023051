package cpu

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// lanes is how many points a block has at most: registers of f32 then take 2 KB
// and a few dozen of them stay in the nearest caches.
const lanes = 512

// class is the Go type that values of an element type are computed in.
type class uint8

const (
	classF32  class = iota // f32, f16, bf16
	classF64               // f64
	classInt               // all integers as int64 (u64 by its bits), bool as 0 and 1
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
	ints [][]int64
	cplx [][]complex128
}

// sizes are the numbers of lanes of the registers of each class.
type sizes [4][]int

func (s *sizes) add(c class, width int) register {
	s[c] = append(s[c], width)
	return register{c, len(s[c]) - 1}
}

func (s *sizes) allocate() *files {
	f := &files{}
	f.f32 = cut[float32](s[classF32])
	f.f64 = cut[float64](s[classF64])
	f.ints = cut[int64](s[classInt])
	f.cplx = cut[complex128](s[classCplx])
	return f
}

// cut makes slices of the given lengths in one piece of memory.
func cut[T any](lengths []int) [][]T {
	total := 0
	for _, n := range lengths {
		total += n
	}
	all, out := make([]T, total), make([][]T, len(lengths))
	for i, n := range lengths {
		out[i], all = all[:n:n], all[n:]
	}
	return out
}

// lane is a Go type that registers hold.
type lane interface {
	float32 | float64 | int64 | complex128
}

// lanesOf returns a register as a slice of its type.
func lanesOf[T lane](f *files, r register) []T {
	var file any
	switch r.class {
	case classF32:
		file = f.f32[r.index]
	case classF64:
		file = f.f64[r.index]
	case classInt:
		file = f.ints[r.index]
	default:
		file = f.cplx[r.index]
	}
	return file.([]T)
}

// value returns lane i as the evaluator of package scalar has it.
func (f *files) value(r register, i int) scalar.Value {
	switch r.class {
	case classF32:
		return scalar.Value{F: float64(f.f32[r.index][i])}
	case classF64:
		return scalar.Value{F: f.f64[r.index][i]}
	case classInt:
		return scalar.Value{I: f.ints[r.index][i]}
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
		f.ints[r.index][i] = v.I
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
