package jit

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/simd"
)

// loadKernel returns the call of a kernel, with its arrays in order.
func loadKernel(t *testing.T, k *Kernel) *Call {
	t.Helper()
	set := &Set{}
	code := set.Compile(One(k))
	if err := set.Load(); err != nil {
		t.Fatal(err)
	}
	return code.NewCall()
}

// same compares numbers by their bits, and all NaN alike.
func same(a, b float32) bool {
	return a != a && b != b || math.Float32bits(a) == math.Float32bits(b)
}

// TestNarrowFloatsAreReadAsTheyAre takes all bit patterns.
func TestNarrowFloatsAreReadAsTheyAre(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, d := range []dtype.DType{dtype.F16, dtype.BF16} {
			k := &Kernel{}
			k.Store(1, dtype.F32, k.Load(k.Array(), d))
			k.Array()
			c := loadKernel(t, k)
			in, out := make([]uint16, 1<<16), make([]float32, 1<<16)
			for i := range in {
				in[i] = uint16(i)
			}
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&out[0]))
			c.Run(len(in))
			for i, got := range out {
				if want := float32(d.FloatFromBits(uint64(i))); !same(got, want) {
					t.Fatalf("%s %#x is %v, not %v", d, i, got, want)
				}
			}
		}
	})
}

// TestNarrowFloatsAreRoundedToNearestEven takes the numbers halfway between two,
// those next to them, and all others of [operands].
func TestNarrowFloatsAreRoundedToNearestEven(t *testing.T) {
	in := operands(dtype.F32, 5, 1<<16)
	for i := uint32(0); i < 1<<16; i++ {
		half := math.Float32bits(float32(dtype.F16.FloatFromBits(uint64(i)))) + 1<<12
		in = append(in, half-1, half, half+1, i<<16|0x7fff, i<<16|0x8000, i<<16|0x8001)
	}
	everyLevel(t, func(t *testing.T) {
		for _, d := range []dtype.DType{dtype.F16, dtype.BF16} {
			k := &Kernel{}
			x := k.Load(k.Array(), dtype.F32)
			y, ok := k.Apply(Operation{scalar.OpConvert, dtype.F32, d}, x)
			if !ok {
				t.Fatal("no kernel")
			}
			k.Store(k.Array(), dtype.F32, y)
			k.Store(k.Array(), d, y)
			c := loadKernel(t, k)
			lanes, stored := make([]float32, len(in)), make([]uint16, len(in))
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&lanes[0]))
			c.Set(2, unsafe.Pointer(&stored[0]))
			c.Run(len(in))
			for i, bits := range in {
				x := float64(math.Float32frombits(bits))
				if want := float32(d.Round(x)); !same(lanes[i], want) {
					t.Fatalf("%v (%#x) as %s is %v in lanes, not %v", x, bits, d, lanes[i], want)
				}
				if got, want := d.FloatFromBits(uint64(stored[i])), d.Round(x); !same(float32(got), float32(want)) {
					t.Fatalf("%v (%#x) as %s is %v in memory, not %v", x, bits, d, got, want)
				}
			}
		}
	})
}

// TestArithmeticOfNarrowFloatsRoundsOnce compares with the evaluator of package
// scalar, which computes in float64.
func TestArithmeticOfNarrowFloatsRoundsOnce(t *testing.T) {
	const n = 1 << 14
	everyLevel(t, func(t *testing.T) {
		for _, d := range []dtype.DType{dtype.F16, dtype.BF16} {
			for _, op := range []scalar.Op{scalar.OpAdd, scalar.OpSub, scalar.OpMul, scalar.OpDiv, scalar.OpMin, scalar.OpMax, scalar.OpSqrt} {
				k := &Kernel{}
				x, y := k.Load(k.Array(), d), k.Load(k.Array(), d)
				z, ok := k.Apply(Operation{op, d, d}, []Value{x, y}[:op.Arity()]...)
				if !ok {
					t.Fatalf("no kernel of %s", op)
				}
				k.Store(k.Array(), d, z)
				c := loadKernel(t, k)
				a, b, out := make([]uint16, n), make([]uint16, n), make([]uint16, n)
				for i, bits := range operands(dtype.U32, uint64(op), n) {
					a[i], b[i] = uint16(bits), uint16(bits>>16)
				}
				c.Set(0, unsafe.Pointer(&a[0]))
				c.Set(1, unsafe.Pointer(&b[0]))
				c.Set(2, unsafe.Pointer(&out[0]))
				c.Run(n)
				node := scalar.New(op, []scalar.Expr{scalar.Arg(0, d), scalar.Arg(1, d)}[:op.Arity()]...)
				for i := range out {
					u, v := d.FloatFromBits(uint64(a[i])), d.FloatFromBits(uint64(b[i]))
					want := d.Round(scalar.Apply(node, [3]scalar.Value{{F: u}, {F: v}}).F)
					// Of zeros, the extremes are either.
					if got := d.FloatFromBits(uint64(out[i])); !same(float32(got), float32(want)) && (got != want || op != scalar.OpMin && op != scalar.OpMax) {
						t.Fatalf("%s of %s %v and %v is %v, not %v (%s)", op, d, u, v, got, want, simd.Has)
					}
				}
			}
		}
	})
}

// narrowOperations are operations on integers of 8 or 16 bits, t, and conversions from them
// and to them.
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

// TestNarrowIntegersAreAsTheirExpressionsSay computes with all pairs of integers of 8 bits,
// many of 16 bits and truths, from memory to memory, and compares with the evaluator of
// package scalar.
func TestNarrowIntegersAreAsTheirExpressionsSay(t *testing.T) {
	const n = 1 << 16
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
				for i := range n {
					var v [3]scalar.Value
					for k, t := range types {
						v[k] = valueIn(t, in[k], i)
					}
					want, got := scalar.Apply(nodeOf(o), v), valueIn(o.To, out, i)
					if got.I != want.I || !same(float32(got.F), float32(o.To.Round(want.F))) {
						t.Fatalf("%s of %s %v is %s %v, not %v", o.Op, o.From, v, o.To, got, want)
					}
				}
			}
		}
	})
}

// narrowOperands returns n elements of an operand of type t: of 8 bits such that two
// operands make all pairs.
func narrowOperands(t dtype.DType, operand, n int) []byte {
	out := make([]byte, n*t.Size())
	for i, bits := range operands(t, uint64(operand), n) {
		switch t.Size() {
		case 1:
			if out[i] = byte(i >> (8 * operand)); t.IsBool() {
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
