package jit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// everyLevel runs a test at each level with an encoder.
func everyLevel(t *testing.T, f func(t *testing.T)) {
	best := simd.Has
	defer func() { simd.Has = best }()
	for _, l := range simd.Levels() {
		if simd.Has = l; l != simd.Go {
			t.Run(l.String(), f)
		}
	}
}

// sampled returns how many of n values a test computes: for go test -short a sixteenth, as where an emulator runs
// code that the processor under it has run with all of them.
func sampled(n int) int {
	if testing.Short() {
		return n / 16
	}
	return n
}

// scattered returns 16 bits for an index: all of them for the first 1<<16, and for fewer some of each kind.
func scattered(i int) uint16 { return uint16(i * 40503) }

// half returns a number of type f16 for an index, see [scattered].
func half(i int) float64 { return dtype.F16.FloatFromBits(uint64(scattered(i))) }

// compiled returns a function that applies an operation to arrays of n lanes.
func compiled(t *testing.T, o Operation) func(n int, d []uint32, in ...[]uint32) {
	t.Helper()
	k := &Kernel{}
	arity := o.Op.Arity()
	args := make([]Value, arity)
	for i := range args {
		args[i] = k.Load(k.Array(), operandType(o, i))
	}
	v, ok := k.Apply(o, args...)
	if !ok {
		t.Fatal("no kernel")
	}
	to := o.To
	if isNarrow(to) {
		to = dtype.I32
	}
	k.Store(k.Array(), to, v)
	set := &Set{}
	code := set.Compile(One(k))
	if err := set.Load(); err != nil {
		t.Fatal(err)
	}
	c := code.NewCall()
	return func(n int, d []uint32, in ...[]uint32) {
		for i := range args {
			c.Set(i, unsafe.Pointer(&in[i][0]))
		}
		c.Set(arity, unsafe.Pointer(&d[0]))
		c.Run(n)
	}
}

func operandType(o Operation, i int) dtype.DType {
	if o.Op == scalar.OpSelect && i == 0 {
		return dtype.Bool
	}
	return o.From
}

// operands returns bit patterns for operands of type d: all kinds of special
// values, then random bits, and random values of a common size.
func operands(d dtype.DType, seed uint64, n int) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	special := []uint32{
		0, 1 << 31, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
		0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x3f000000, 0x4b000001, 0xcb000001, 2, 31, 33, math.MaxUint32,
	}
	out := make([]uint32, n)
	for i := range out {
		switch {
		case d.IsBool():
			out[i] = r.Uint32() & 1
		case r.IntN(3) == 0:
			out[i] = special[r.IntN(len(special))]
		case d == dtype.F32 && r.IntN(2) == 0:
			out[i] = math.Float32bits(float32(r.NormFloat64() * 5))
		default:
			out[i] = r.Uint32()
		}
	}
	return out
}

func valueOf(d dtype.DType, bits uint32) scalar.Value {
	switch {
	case d == dtype.F32:
		return scalar.Value{F: float64(math.Float32frombits(bits))}
	case d.IsSigned():
		return scalar.Value{I: int64(int32(bits))}
	}
	return scalar.Value{I: int64(bits)}
}

// ulps returns the number of floats between two numbers of one sign.
func ulps(a, b float32) uint32 {
	x, y := math.Float32bits(a), math.Float32bits(b)
	return max(x, y) - min(x, y)
}

// fusedULP is the allowance for one more rounding in a function.
func fusedULP(op scalar.Op) uint32 {
	if scalar.ErrorBound(op) == 0 {
		return 0
	}
	return 2
}

// TestFunctionsKeepTheirErrorBounds checks the bounds of package scalar plus the quarter of an
// ULP that it allows for fused multiply-adds.
func TestFunctionsKeepTheirErrorBounds(t *testing.T) {
	exact := map[scalar.Op]func(float64) float64{
		scalar.OpExp: math.Exp, scalar.OpExpm1: math.Expm1, scalar.OpLog: math.Log, scalar.OpLog1p: math.Log1p,
		scalar.OpSinh: math.Sinh, scalar.OpCosh: math.Cosh, scalar.OpTanh: math.Tanh, scalar.OpErf: math.Erf, scalar.OpErfc: math.Erfc,
		scalar.OpAsin: math.Asin, scalar.OpAcos: math.Acos, scalar.OpAtan: math.Atan,
		scalar.OpSin: math.Sin, scalar.OpCos: math.Cos, scalar.OpTan: math.Tan,
		scalar.OpSigmoid: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	}
	n := sampled(3 << 16)
	everyLevel(t, func(t *testing.T) {
		for op, want := range exact {
			in, d := operands(dtype.F32, uint64(op), n), make([]uint32, n)
			compiled(t, Operation{Op: op, From: dtype.F32, To: dtype.F32})(n, d, in)
			for i := range d {
				got := math.Float32frombits(d[i])
				x := math.Float32frombits(in[i])
				y := want(float64(x))
				if math.IsNaN(y) && math.IsNaN(float64(got)) || float64(got) == y || math.Abs(y) < 0x1p-126 && math.Abs(float64(got)-y) < 0x1p-148 {
					continue
				}
				unit := math.Ldexp(1, math.Ilogb(y)-23)
				if r := float32(y); math.IsInf(float64(r), 0) && got == r {
					continue
				}
				if e := math.Abs(float64(got)-y) / unit; !(e <= scalar.ErrorBound(op)+0.25) {
					t.Fatalf("%s of %v (%#x) is %v, not %v: %.2f ULP", op, x, in[i], got, y, e)
				}
			}
		}
	})
}

// TestLanesEqualScalarEvaluation compares bit by bit, except the bits of NaN.
func TestLanesEqualScalarEvaluation(t *testing.T) {
	const n = 3008
	everyLevel(t, func(t *testing.T) {
		for k, o := range Operations() {
			if functions[o.Op] != nil { // another expansion, within the same bounds
				continue
			}
			t.Run(fmt.Sprint(o.Op, " ", o.From, " ", o.To), func(t *testing.T) {
				var in [3][]uint32
				for i := range in {
					in[i] = operands(operandType(o, i), uint64(7*k+i), n)
				}
				d := make([]uint32, n)
				compiled(t, o)(n, d, in[:]...)
				p := scalar.Compile(o.Expr())
				env := &scalar.Env{Args: make([]scalar.Value, 3)}
				var scratch []scalar.Value
				for i := range n {
					for j := range in {
						env.Args[j] = valueOf(operandType(o, j), in[j][i])
					}
					out, err := p.Run(env, scratch)
					if err != nil {
						t.Fatal(err)
					}
					scratch = out
					got, want := valueOf(o.To, d[i]), out[0]
					if o.To == dtype.F32 && math.IsNaN(got.F) && math.IsNaN(want.F) {
						continue
					}
					// The evaluator quiets signalling NaN.
					if quiet := int64(1 << 22); o.Op == scalar.OpBitcast && o.From == dtype.F32 && got.I|quiet == want.I {
						continue
					}
					// The evaluator rounds a fused sum of products twice.
					if o.To == dtype.F32 && ulps(float32(got.F), float32(want.F)) <= fusedULP(o.Op) {
						continue
					}
					if got.I != want.I || math.Float64bits(got.F) != math.Float64bits(want.F) {
						t.Fatalf("of %#x, %#x, %#x: %v, not %v", in[0][i], in[1][i], in[2][i], got, want)
					}
				}
			})
		}
	})
}
