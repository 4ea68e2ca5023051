// Package kerneltest holds hand-written kernels in the loop IR with inputs and the results of
// plain Go loops. The simulator, the code generators and the devices are tested with them;
// together they use every statement and every storage type.
//
// They stand in for the output of package sched, so that what comes after it is tested without it.
// A kernel of [Cases] runs on every device; those of [Wide], [Half], [AtomicFloats] and others on devices
// with such types. Start reading at doc.go, then types.go, one of the cases.
package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Case is a kernel with its inputs and the expected results.
type Case struct {
	Kernel *loop.Kernel
	// Arrays holds the elements of each storage array before the run.
	Arrays [][]float64
	// Scalars and Counters are the values of the run.
	Scalars  []scalar.Value
	Counters []int
	// Want holds the elements of each storage array after the run, nil if the kernel does
	// not change it.
	Want [][]float64
	// Tolerance is the maximal error of an element, relative to max(1, |want|).
	Tolerance float64
}

// Storage returns the storage arrays of the kernel, in the order of Arrays and Want.
func (c *Case) Storage() []loop.Array {
	var out []loop.Array
	for _, a := range c.Kernel.Arrays {
		if a.Space == loop.Storage {
			out = append(out, a)
		}
	}
	return out
}

// Compare returns an error for the first element of got, the contents of the storage arrays
// after a run, that differs from Want.
func (c *Case) Compare(got [][]float64) error {
	for i, want := range c.Want {
		for j, w := range want {
			g := got[i][j]
			near := math.Abs(g-w) <= c.Tolerance*max(1, math.Abs(w))
			if !near && g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				return fmt.Errorf("%s: %s[%d] is %v; want %v", c.Kernel.Name, c.Storage()[i].Name, j, g, w)
			}
		}
	}
	return nil
}

// Encode returns elements in device layout: little endian, a Bool as a 32-bit word.
func Encode(t dtype.DType, elems []float64) []byte {
	var out []byte
	for _, x := range elems {
		bits := uint64(int64(x))
		if t.IsFloat() {
			bits = t.FloatBits(x)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bits)
		out = append(out, b[:loop.DeviceSize(t)]...)
	}
	return out
}

// Decode is the inverse of Encode.
func Decode(t dtype.DType, data []byte) []float64 {
	size := loop.DeviceSize(t)
	out := make([]float64, len(data)/size)
	for i := range out {
		var b [8]byte
		copy(b[:], data[i*size:(i+1)*size])
		bits := binary.LittleEndian.Uint64(b[:])
		switch {
		case t.IsFloat():
			out[i] = t.FloatFromBits(bits)
		case t == dtype.Bool:
			out[i] = float64(bits)
		default:
			out[i] = float64(t.Wrap(int64(bits)))
		}
	}
	return out
}

// EncodeScalars encodes the entry's uniform block: each member aligned to its size, a Bool and
// an unread member as a 32-bit word, and the whole padded to a multiple of 16 bytes.
func EncodeScalars(types []dtype.DType, values []scalar.Value) []byte {
	var out []byte
	for i, t := range types {
		size := 4
		if t != dtype.Invalid {
			size = loop.DeviceSize(t)
		}
		for len(out)%size != 0 {
			out = append(out, 0)
		}
		bits := uint64(values[i].I)
		if t.IsFloat() {
			bits = t.FloatBits(values[i].F)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bits)
		out = append(out, b[:size]...)
	}
	for len(out)%16 != 0 {
		out = append(out, 0)
	}
	return out
}

// Wide returns kernels with 64-bit types, which only some dialects have.
func Wide() []*Case { return []*Case{wideFloats(), wideIntegers()} }

// Half returns kernels that compute in f16.
func Half() []*Case { return []*Case{halfPrecision()} }

// AtomicFloats returns kernels that add to floats by atomics.
func AtomicFloats() []*Case { return []*Case{weights()} }

// Cases returns the kernels that every dialect supports, always in the same order and with the
// same inputs.
func Cases() []*Case {
	return []*Case{
		scaleTail(), reluVec4(), sumTree(), softmaxRow(),
		matmul{64, 128, 64, 64, 64, 4}.of("matmul_64"), matmul{50, 64, 48, 32, 32, 2}.of("matmul_32"),
		subgroupSum(), histogram(), gatherChecked(), sliceByCounter(),
		activations(), integers(), threefry(), booleans(), conversions(), specials(), scanLoop(), countedState(),
	}
}
