package jit

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// doubles returns numbers of all kinds: special ones, random bits, and random ones of
// a common size.
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

// sameDouble compares numbers by their bits, and all NaN alike; of zeros, what the
// lesser or greater is may be either.
func sameDouble(op scalar.Op, a, b float64) bool {
	return a != a && b != b || math.Float64bits(a) == math.Float64bits(b) || a == b && (op == scalar.OpMin || op == scalar.OpMax)
}

// longs returns numbers of type d by their bits: integers of all kinds, and [doubles].
func longs(d dtype.DType, seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 3))
	special := []uint64{0, 1, 2, 31, 33, 63, 65, math.MaxUint64, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint32, 1 << 32, 1 << 31}
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

// TestLongLanesAreWhatTheirExpressionsSay compares every operation on numbers of 64 bits
// with the evaluator of package scalar, by the bits.
func TestLongLanesAreWhatTheirExpressionsSay(t *testing.T) {
	const n = 4096
	everyLevel(t, func(t *testing.T) {
		for _, o := range LongOperations() {
			k := &Kernel{Long: true}
			x, y := k.Load(k.Array(), o.From), k.Load(k.Array(), o.From)
			truths := k.Array()
			truth := k.Load(truths, Truths)
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
			for i := range n {
				in := [3]scalar.Value{longValue(o.From, a[i]), longValue(o.From, b[i])}
				switch {
				case o.Op == scalar.OpSelect:
					in = [3]scalar.Value{{I: int64(truthsIn[i])}, in[0], in[1]}
				case o.From == dtype.Bool:
					in = [3]scalar.Value{{I: int64(truthsIn[i])}}
				}
				want, got := scalar.Apply(nodeOf(o), in), longValue(o.To, numbers[i])
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

// nodeOf returns an operation on arguments.
func nodeOf(o Operation) scalar.Expr {
	switch {
	case o.Op == scalar.OpConvert:
		return scalar.Convert(scalar.Arg(0, o.From), o.To)
	case o.Op == scalar.OpSelect:
		return scalar.Select(scalar.Arg(0, dtype.Bool), scalar.Arg(1, o.From), scalar.Arg(2, o.From))
	}
	return scalar.New(o.Op, []scalar.Expr{scalar.Arg(0, o.From), scalar.Arg(1, o.From)}[:o.Op.Arity()]...)
}

// TestRunningDoubles adds up rows of every length, with lanes that do not count, and
// folds the lanes.
func TestRunningDoubles(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		add := Operation{scalar.OpAdd, dtype.F64, dtype.F64}
		for n := 1; n <= 2*Lanes; n++ {
			k := &Kernel{Long: true}
			sum := k.Running(dtype.F64, math.Float64bits(0.5))
			next, _ := k.Apply(add, sum, k.Load(k.Array(), dtype.F64))
			k.Next(sum, next)
			k.After()
			for by := k.Width() / 2; by > 0; by /= 2 {
				sum, _ = k.Apply(add, sum, k.Rotate(sum, by))
			}
			out := k.Array()
			k.StoreFirst(out, sum)
			c := loadKernel(t, k)
			in, result := make([]float64, 3*Lanes), []float64{0, -1}
			for i := range in {
				in[i] = float64(i + 1)
			}
			c.Set(out, unsafe.Pointer(&result[0]))
			total, full := 0.0, n-n%c.Width()
			if full > 0 {
				c.Set(0, unsafe.Pointer(&in[0]))
				c.Run(full)
				total += result[0] - 0.5*float64(k.Width())
			}
			if full < n {
				c.Set(0, unsafe.Pointer(&in[full]))
				c.RunLast(n - full)
				total += result[0] - 0.5*float64(k.Width())
			}
			if want := float64(n * (n + 1) / 2); total != want || result[1] != -1 {
				t.Fatalf("%d lanes: %v, not %v; behind it %v", n, total, want, result[1])
			}
		}
	})
}

// TestFunctionsOfDoubles compares with package math, which is within one ULP, on
// numbers of every size.
func TestFunctionsOfDoubles(t *testing.T) {
	const n = 1 << 14
	exp := func(x float64) float64 { // math.Exp of Go 1.26 is infinite from 709.44 on
		if x > 700 {
			return math.Exp(x/2) * math.Exp(x/2)
		}
		return math.Exp(x)
	}
	log := func(x float64) float64 { // math.Log of Go 1.26 on x86-64 is wrong for subnormal numbers
		if x > 0 && x < 0x1p-1022 {
			return math.Log(x*0x1p54) - 54*math.Ln2
		}
		return math.Log(x)
	}
	sigmoid := func(x float64) float64 {
		if x < 0 {
			return exp(x) / (1 + exp(x))
		}
		return 1 / (1 + math.Exp(-x))
	}
	everyLevel(t, func(t *testing.T) {
		for op, f := range map[scalar.Op]func(float64) float64{
			scalar.OpExp: exp, scalar.OpSigmoid: sigmoid, scalar.OpTanh: math.Tanh, scalar.OpExpm1: math.Expm1,
			scalar.OpLog: log, scalar.OpLog1p: math.Log1p, scalar.OpErf: math.Erf,
		} {
			k := &Kernel{Long: true}
			y, _ := k.Apply(Operation{op, dtype.F64, dtype.F64}, k.Load(k.Array(), dtype.F64))
			k.Store(k.Array(), dtype.F64, y)
			c := loadKernel(t, k)
			in, out := doubles(uint64(op), n), make([]float64, n)
			for i := range in {
				if i%4 == 1 {
					in[i] = float64(i-n/2) * 1500 / n // where exp neither is 0 nor infinite, and a little more
				}
			}
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&out[0]))
			c.Run(n)
			for i, x := range in {
				want := f(x)
				apart := math.Abs(float64(int64(math.Float64bits(out[i])) - int64(math.Float64bits(want))))
				if same := out[i] != out[i] && want != want; !same && !(apart <= 3) {
					t.Fatalf("%s(%v) is %v, not %v: %g numbers apart", op, x, out[i], want, apart)
				}
			}
		}
	})
}
