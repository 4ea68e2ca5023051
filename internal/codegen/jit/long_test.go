package jit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// doubles returns numbers of all kinds: special, of random bits, and random of a common size.
func doubles(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 2))
	special := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2.5, 1 << 52, 1<<52 + 1, 1 << 53, math.MaxFloat64, -math.MaxFloat64,
		math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022,
	}
	out := make([]float64, n)
	for i := range out {
		switch r.IntN(3) {
		case 0:
			out[i] = special[r.IntN(len(special))]
		case 1:
			out[i] = math.Float64frombits(r.Uint64())
		default:
			out[i] = r.NormFloat64() * 5
		}
	}
	return out
}

// sameDouble compares numbers by their bits, with all NaN equal; a minimum or maximum of zeros
// may have either sign.
func sameDouble(op scalar.Op, a, b float64) bool {
	return a != a && b != b || math.Float64bits(a) == math.Float64bits(b) || a == b && (op == scalar.OpMin || op == scalar.OpMax)
}

// longs returns numbers of type d by their bits: integers of all kinds, and [doubles].
func longs(d dtype.DType, seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 3))
	special := []uint64{
		0, 1, 2, 31, 33, 63, 65, math.MaxUint64, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint32, 1 << 32, 1 << 31,
		1<<62 + 1<<38 + 1, -(1<<62 + 1<<38 + 1) & math.MaxUint64,
	} // f64 of these would round to f32 as if they ended before the 1
	out := make([]uint64, n)
	for i, x := range doubles(seed, n) {
		switch {
		case d.IsFloat():
			out[i] = math.Float64bits(x)
		case r.IntN(2) == 0:
			out[i] = special[r.IntN(len(special))]
		default:
			out[i] = r.Uint64() >> r.IntN(64)
		}
	}
	return out
}

// longValue returns the value with the given bits.
func longValue(d dtype.DType, bits uint64) scalar.Value {
	if d.IsFloat() {
		return scalar.Value{F: math.Float64frombits(bits)}
	}
	return scalar.Value{I: int64(bits)}
}

// TestLongLanesEqualScalarEvaluation compares every operation on numbers of 64 bits
// with the evaluator of package scalar, by the bits.
func TestLongLanesEqualScalarEvaluation(t *testing.T) {
	const n = 4096
	everyLevel(t, func(t *testing.T) {
		for _, o := range LongOperations() {
			if o.Op == scalar.OpConvert && o.From.Size() == 4 || o.To.Size() == 4 {
				continue // of other widths: the next test
			}
			k := &Kernel{Long: true}
			x, y := k.Load(k.Array(), o.From), k.Load(k.Array(), o.From)
			truths := k.Array()
			truth := k.Load(truths, BoolWords)
			args := []Value{x, y}
			switch {
			case o.Op == scalar.OpSelect:
				args = []Value{truth, x, y}
			case o.From == dtype.Bool:
				args = []Value{truth}
			}
			z, ok := k.Apply(o, args[:o.Op.Arity()]...)
			if !ok {
				t.Fatalf("no kernel of %v", o)
			}
			out := k.Array()
			k.Store(out, o.To, z)
			c := loadKernel(t, k)
			a, b, truthsIn := longs(o.From, 1, n), longs(o.From, 2, n), make([]uint32, n)
			numbers, words := make([]uint64, n), make([]uint32, n+1)
			for i := range truthsIn {
				truthsIn[i] = uint32(i / 3 % 2)
			}
			c.Set(0, unsafe.Pointer(&a[0]))
			c.Set(1, unsafe.Pointer(&b[0]))
			c.Set(truths, unsafe.Pointer(&truthsIn[0]))
			c.Set(out, unsafe.Pointer(&numbers[0]))
			if o.To == dtype.Bool {
				c.Set(out, unsafe.Pointer(&words[0]))
			}
			c.Run(n)
			if words[n] != 0 {
				t.Fatalf("%s writes behind its result", o.Op)
			}
			node := nodeOf(o)
			for i := range n {
				in := [3]scalar.Value{longValue(o.From, a[i]), longValue(o.From, b[i])}
				switch {
				case o.Op == scalar.OpSelect:
					in = [3]scalar.Value{{I: int64(truthsIn[i])}, in[0], in[1]}
				case o.From == dtype.Bool:
					in = [3]scalar.Value{{I: int64(truthsIn[i])}}
				}
				want, got := scalar.Apply(node, in), longValue(o.To, numbers[i])
				if o.To == dtype.Bool {
					got.I = int64(words[i])
				}
				if got.I != want.I || o.To.IsFloat() && !sameDouble(o.Op, got.F, want.F) {
					t.Fatalf("%s of %s %v and %v is %v, not %v", o.Op, o.From, in[0], in[1], got, want)
				}
			}
		}
	})
}

// TestConversionsBetweenWidths loads and stores 32-bit numbers in long kernels, and converts
// them there and back.
func TestConversionsBetweenWidths(t *testing.T) {
	const n = 1 << 14
	everyLevel(t, func(t *testing.T) {
		for _, o := range widthOperations() {
			k := &Kernel{Long: true}
			z, ok := k.Apply(o, k.Load(k.Array(), o.From))
			if !ok {
				t.Fatalf("no kernel of %v", o)
			}
			k.Store(k.Array(), o.To, z)
			back := Operation{scalar.OpConvert, o.To, o.From}
			again, ok := k.Apply(back, z)
			if ok {
				k.Store(k.Array(), o.From, again)
			}
			in, out, second := make([]byte, n*o.From.Size()), make([]byte, n*o.To.Size()+1), make([]byte, n*o.From.Size())
			if o.From.Size() == 4 {
				copy(in, narrowOperands(o.From, 0, n))
			} else {
				for i, bits := range longs(o.From, 4, n) {
					binary.LittleEndian.PutUint64(in[8*i:], bits)
				}
			}
			c := loadKernel(t, k)
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&out[0]))
			if ok {
				c.Set(2, unsafe.Pointer(&second[0]))
			}
			c.Run(n)
			if out[len(out)-1] != 0 {
				t.Fatalf("%v writes behind its result", o)
			}
			there, andBack := nodeOf(o), nodeOf(back)
			for i := range n {
				x := valueIn(o.From, in, i)
				want, got := scalar.Apply(there, [3]scalar.Value{x}), valueIn(o.To, out, i)
				if got.I != want.I || !sameDouble(o.Op, got.F, want.F) {
					t.Fatalf("%s %v is %s %v, not %v", o.From, x, o.To, got, want)
				}
				if want = scalar.Apply(andBack, [3]scalar.Value{want}); !ok {
					continue
				}
				if got = valueIn(o.From, second, i); got.I != want.I || !sameDouble(o.Op, got.F, want.F) {
					t.Fatalf("%s %v by way of %s is %v, not %v", o.From, x, o.To, got, want)
				}
			}
		}
	})
}

// nodeOf returns an operation on arguments.
func nodeOf(o Operation) scalar.Expr {
	switch {
	case o.Op == scalar.OpBitcast:
		return scalar.Bitcast(scalar.Arg(0, o.From), o.To)
	case o.Op == scalar.OpConvert:
		return scalar.Convert(scalar.Arg(0, o.From), o.To)
	case o.Op == scalar.OpSelect:
		return scalar.Select(scalar.Arg(0, dtype.Bool), scalar.Arg(1, o.From), scalar.Arg(2, o.From))
	}
	return scalar.New(o.Op, []scalar.Expr{scalar.Arg(0, o.From), scalar.Arg(1, o.From)}[:o.Op.Arity()]...)
}
