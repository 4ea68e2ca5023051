package jit

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// narrowOperations returns the operations on integers of type t, of 8 or 16 bits, and the
// conversions from and to it.
func narrowOperations(t dtype.DType) []Operation {
	var out []Operation
	for _, op := range append([]scalar.Op{scalar.OpSelect}, integerOps...) {
		out = append(out, Operation{op, t, t})
	}
	if t.IsSigned() {
		out = append(out, Operation{scalar.OpNeg, t, t}, Operation{scalar.OpAbs, t, t}, Operation{scalar.OpSign, t, t})
	}
	for _, op := range comparisonOps {
		out = append(out, Operation{op, t, dtype.Bool})
	}
	for _, other := range []dtype.DType{dtype.I8, dtype.U8, dtype.I16, dtype.U16, dtype.I32, dtype.U32, dtype.F32, dtype.F16, dtype.BF16} {
		if other != t {
			out = append(out, Operation{scalar.OpConvert, t, other}, Operation{scalar.OpConvert, other, t})
		}
	}
	return append(out, Operation{scalar.OpConvert, dtype.Bool, t})
}

// TestNarrowIntegersEqualScalarEvaluation compares all pairs of 8-bit integers, many of 16
// bits, and booleans, from memory to memory, with the evaluator of package scalar.
func TestNarrowIntegersEqualScalarEvaluation(t *testing.T) {
	n := sampled(1 << 16)
	everyLevel(t, func(t *testing.T) {
		for _, d := range []dtype.DType{dtype.I8, dtype.U8, dtype.I16, dtype.U16} {
			for _, o := range narrowOperations(d) {
				var types []dtype.DType
				for i := range o.Op.Arity() {
					types = append(types, operandType(o, i))
				}
				k, args := &Kernel{}, []Value(nil)
				for _, t := range types {
					if t.IsBool() {
						args = append(args, k.LoadBools(k.Array()))
					} else {
						args = append(args, k.Load(k.Array(), t))
					}
				}
				z, ok := k.Apply(o, args...)
				if !ok {
					t.Fatalf("no kernel of %v", o)
				}
				if o.To.IsBool() {
					k.StoreBools(k.Array(), z)
				} else {
					k.Store(k.Array(), o.To, z)
				}
				c, in := loadKernel(t, k), make([][]byte, len(types))
				for i, t := range types {
					in[i] = narrowOperands(t, i, n)
					c.Set(i, unsafe.Pointer(&in[i][0]))
				}
				size := o.To.Size()
				out := make([]byte, n*size+1)
				c.Set(len(types), unsafe.Pointer(&out[0]))
				c.Run(n)
				if out[n*size] != 0 {
					t.Fatalf("%v writes behind its result", o)
				}
				node := nodeOf(o)
				for i := range n {
					var v [3]scalar.Value
					for k, t := range types {
						v[k] = valueIn(t, in[k], i)
					}
					want, got := scalar.Apply(node, v), valueIn(o.To, out, i)
					if got.I != want.I || !same(float32(got.F), float32(o.To.Round(want.F))) {
						t.Fatalf("%s of %s %v is %s %v, not %v", o.Op, o.From, v, o.To, got, want)
					}
				}
			}
		}
	})
}

// narrowOperands returns n elements of an operand of type t. For 8 bits, two operands of 1<<16
// elements cover all pairs.
func narrowOperands(t dtype.DType, operand, n int) []byte {
	out := make([]byte, n*t.Size())
	for i, bits := range operands(t, uint64(operand), n) {
		switch t.Size() {
		case 1:
			if out[i] = byte(scattered(i) >> (8 * operand)); t.IsBool() {
				out[i] = byte(bits)
			}
		case 2:
			binary.LittleEndian.PutUint16(out[2*i:], uint16(bits>>(bits>>28)))
		default:
			binary.LittleEndian.PutUint32(out[4*i:], bits)
		}
	}
	return out
}

// valueIn returns element i of memory with elements of type t.
func valueIn(t dtype.DType, memory []byte, i int) scalar.Value {
	bits := uint64(0)
	for k := range t.Size() {
		bits |= uint64(memory[i*t.Size()+k]) << (8 * k)
	}
	if t.IsFloat() {
		return scalar.Value{F: t.FloatFromBits(bits)}
	}
	if t.IsBool() {
		return scalar.Value{I: int64(bits)}
	}
	return scalar.Value{I: t.Wrap(int64(bits))}
}
