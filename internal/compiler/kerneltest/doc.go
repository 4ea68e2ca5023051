// Package kerneltest has kernels written by hand in the loop IR, each with
// inputs and with the results that plain Go loops give. The simulator, the
// printers and the devices are tested with them; together they have every
// statement and every storage type.
package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Case is a kernel with what to run it on and what must come out.
type Case struct {
	Kernel *loop.Kernel
	// Arrays holds the elements of each storage array before the run.
	Arrays [][]float64
	// Scalars and Counters are the values of the run.
	Scalars  []scalar.Value
	Counters []int
	// Want holds the elements of each storage array after the run, nil where
	// the kernel leaves it as it is.
	Want [][]float64
	// Tolerance is how far an element may be from Want, relative to its size
	// or to 1 if that is larger.
	Tolerance float64
}

// Storage returns the storage arrays of the kernel, in the order of Arrays and
// Want.
func (c *Case) Storage() []loop.Array {
	var out []loop.Array
	for _, a := range c.Kernel.Arrays {
		if a.Space == loop.Storage {
			out = append(out, a)
		}
	}
	return out
}

// Compare returns an error that tells the first element of got, which has the
// elements of each storage array after a run, that is not as wanted.
func (c *Case) Compare(got [][]float64) error {
	for i, want := range c.Want {
		for j, w := range want {
			g := got[i][j]
			near := math.Abs(g-w) <= c.Tolerance*max(1, math.Abs(w))
			if !near && g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				return fmt.Errorf("%s: %s[%d] is %v, not %v", c.Kernel.Name, c.Storage()[i].Name, j, g, w)
			}
		}
	}
	return nil
}

// Encode returns elements as device memory holds them: little endian, a Bool
// as a 32-bit word.
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

// EncodeScalars returns the entry's uniform block with the given members: each
// aligned to its size, a Bool and an unread member as a 32-bit word, and the
// whole a multiple of 16 bytes.
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

// Wide returns kernels with types that only some dialects have: 64-bit ones.
func Wide() []*Case { return []*Case{wideFloats(), wideIntegers()} }

// Half returns kernels that compute in f16.
func Half() []*Case { return []*Case{halfPrecision()} }

// AtomicFloats returns kernels that add to floats by atomics.
func AtomicFloats() []*Case { return []*Case{weights()} }

// Cases returns the kernels that every dialect has, in a fixed order and with
// the same inputs every time.
func Cases() []*Case {
	return []*Case{
		scaleTail(), reluVec4(), sumTree(), softmaxRow(),
		matmul("matmul_64", 64, 128, 64, 64, 64, 4), matmul("matmul_32", 50, 64, 48, 32, 32, 2),
		subgroupSum(), histogram(), gatherChecked(), sliceByCounter(),
		activations(), integers(), threefry(), booleans(), conversions(), specials(), scanLoop(), countedState(),
	}
}
