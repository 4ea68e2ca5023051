package jit

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestNaNAndInfinitiesGoThroughLanesAsThroughScalars applies every operation on f32 to all bit
// patterns of f16, which include all kinds of NaN; for two operands to every 64th, combined
// with infinities, NaN, zeros and common numbers. NaN and infinities must equal those of the
// evaluator of package scalar; numbers may differ by the error bound of a function.
func TestNaNAndInfinitiesGoThroughLanesAsThroughScalars(t *testing.T) {
	patterns := sampled(1 << 16)
	beside := []float32{0, float32(math.Copysign(0, -1)), 1, -2.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32}
	halves, others := make([]uint32, patterns), make([]uint32, patterns)
	for i := range halves {
		halves[i] = math.Float32bits(float32(half(i)))
	}
	everyLevel(t, func(t *testing.T) {
		for _, o := range Operations() {
			arity := o.Op.Arity()
			if o.From != dtype.F32 || o.Op == scalar.OpSelect {
				continue
			}
			run, out, times, step := compiled(t, o), make([]uint32, patterns), 1, 1
			n := nodeOf(o)
			if arity == 2 {
				times, step = len(beside), 64
			}
			for k := range times {
				for i := range others {
					others[i] = math.Float32bits(beside[k])
				}
				run(patterns, out, [][]uint32{halves, others}[:arity]...)
				for i := 0; i < patterns; i += step {
					in := [3]scalar.Value{valueOf(dtype.F32, halves[i]), valueOf(dtype.F32, others[i])}
					want, got := scalar.Apply(n, in), valueOf(o.To, out[i])
					if !alike(o, got, want) {
						t.Fatalf("%s of %v (%#x) and %v is %v, not %v", o.Op, in[0].F, scattered(i), in[1].F, got, want)
					}
				}
			}
		}
	})
}

// alike reports whether a lane equals a scalar result, up to the error of functions and the
// sign of a zero that is a minimum or maximum of two.
func alike(o Operation, got, want scalar.Value) bool {
	if o.To != dtype.F32 {
		return got.I == want.I
	}
	x, y := float32(got.F), float32(want.F)
	if math.IsInf(want.F, 0) || math.IsInf(got.F, 0) || x == y && x != 0 {
		return x == y || ulps(x, y) <= uint32(math.Ceil(scalar.ErrorBound(o.Op))) // next to the largest number
	}
	if x == 0 && y == 0 && (o.Op == scalar.OpMin || o.Op == scalar.OpMax) {
		return true
	}
	if same(x, y) {
		return true
	}
	most := scalar.ErrorBound(o.Op)
	if o.Op == scalar.OpRsqrt {
		most = 1 // a root and a quotient, each rounded
	}
	return most > 0 && math.Float32bits(x)>>31 == math.Float32bits(y)>>31 && ulps(x, y) <= uint32(math.Ceil(most+1))
}

// TestNaNAndInfinitiesGoThroughLongLanesAsThroughScalars is the same for f64, with all bit
// patterns of f16 for one operand; functions may differ by the three ULPs that
// [TestFunctionsOfDoubles] allows.
func TestNaNAndInfinitiesGoThroughLongLanesAsThroughScalars(t *testing.T) {
	patterns := sampled(1 << 16)
	list := LongOperations()
	for op := range doubleFunctions {
		list = append(list, Operation{op, dtype.F64, dtype.F64})
	}
	beside := []float64{0, math.Copysign(0, -1), -2.5, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64}
	halves, others, out := make([]float64, patterns), make([]float64, patterns), make([]uint64, patterns)
	for i := range halves {
		halves[i], others[i] = half(i), beside[i/64%len(beside)]
	}
	everyLevel(t, func(t *testing.T) {
		for _, o := range list {
			if o.From != dtype.F64 || o.To != dtype.F64 || o.Op == scalar.OpSelect {
				continue
			}
			k := &Kernel{Long: true}
			x, y := k.Load(k.Array(), o.From), k.Load(k.Array(), o.From)
			z, ok := k.Apply(o, []Value{x, y}[:o.Op.Arity()]...)
			if !ok {
				t.Fatalf("no kernel of %v", o)
			}
			k.Store(k.Array(), o.To, z)
			c := loadKernel(t, k)
			c.Set(0, unsafe.Pointer(&halves[0]))
			c.Set(1, unsafe.Pointer(&others[0]))
			c.Set(2, unsafe.Pointer(&out[0]))
			c.Run(patterns)
			n := nodeOf(o)
			for i, bits := range out {
				want, got := scalar.Apply(n, [3]scalar.Value{{F: halves[i]}, {F: others[i]}}).F, math.Float64frombits(bits)
				f := doubleReferences[o.Op]
				if f != nil {
					want = f(halves[i])
				}
				near := f != nil && math.Signbit(got) == math.Signbit(want) &&
					math.Abs(float64(int64(bits)-int64(math.Float64bits(want)))) <= maxDistance(o.Op)
				if !near && !sameDouble(o.Op, got, want) {
					t.Fatalf("%s of %v (%#x) and %v is %v, not %v", o.Op, halves[i], scattered(i), others[i], got, want)
				}
			}
		}
	})
}
