package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// loadKernel returns a call of a kernel with its arrays in order.
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

// TestNarrowFloatsAreRoundedToNearestEven rounds the midpoints between two numbers, their
// neighbours, and all of [operands].
func TestNarrowFloatsAreRoundedToNearestEven(t *testing.T) {
	in := operands(dtype.F32, 5, 1<<16)
	for i := range uint32(1 << 16) {
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
					// A minimum or maximum of zeros may have either sign.
					if got := d.FloatFromBits(uint64(out[i])); !same(float32(got), float32(want)) && (got != want || op != scalar.OpMin && op != scalar.OpMax) {
						t.Fatalf("%s of %s %v and %v is %v, not %v (%s)", op, d, u, v, got, want, simd.Has)
					}
				}
			}
		}
	})
}
