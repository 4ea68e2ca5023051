package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/simd/spec"
)

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
	switch d {
	case dtype.F32:
		return scalar.Value{F: float64(math.Float32frombits(bits))}
	case dtype.I32:
		return scalar.Value{I: int64(int32(bits))}
	}
	return scalar.Value{I: int64(bits)}
}

// ulps returns how many numbers apart two numbers of one sign are.
func ulps(a, b float32) uint32 {
	x, y := math.Float32bits(a), math.Float32bits(b)
	return max(x, y) - min(x, y)
}

// fusedULP is how much a rounding more may change the value of a function.
func fusedULP(op scalar.Op) uint32 {
	if scalar.ErrorBound(op) == 0 {
		return 0
	}
	return 2
}

// TestFunctionsKeepTheirErrorBounds takes the bounds of package scalar, and the
// quarter of an ULP that it allows for products and sums that are fused.
func TestFunctionsKeepTheirErrorBounds(t *testing.T) {
	exact := map[scalar.Op]func(float64) float64{
		scalar.OpExp: math.Exp, scalar.OpExpm1: math.Expm1, scalar.OpLog: math.Log, scalar.OpLog1p: math.Log1p,
		scalar.OpSinh: math.Sinh, scalar.OpCosh: math.Cosh, scalar.OpTanh: math.Tanh, scalar.OpErf: math.Erf, scalar.OpErfc: math.Erfc,
		scalar.OpAsin: math.Asin, scalar.OpAcos: math.Acos, scalar.OpAtan: math.Atan,
		scalar.OpSigmoid: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	}
	const n = 200_000
	everyLevel(t, func(t *testing.T) {
		for op, want := range exact {
			f := LanesOf(spec.Operation{Op: op, From: dtype.F32, To: dtype.F32})
			if f == nil {
				continue
			}
			in, d := operands(dtype.F32, uint64(op), n+Round), make([]float32, n+Round)
			f(n, unsafe.Pointer(&d[0]), unsafe.Pointer(&in[0]), nil, nil)
			for i, got := range d[:n] {
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

// TestLanesAreWhatTheirExpressionsSay compares bit by bit, NaN but for its bits.
func TestLanesAreWhatTheirExpressionsSay(t *testing.T) {
	const n = 3001
	everyLevel(t, func(t *testing.T) {
		for k, o := range spec.Operations() {
			f := LanesOf(o)
			if f == nil && Has == Go {
				continue
			}
			t.Run(fmt.Sprint(o.Op, " ", o.From, " ", o.To), func(t *testing.T) {
				var in [3][]uint32
				for i := range in {
					from := o.From
					if o.Op == scalar.OpSelect && i == 0 {
						from = dtype.Bool
					}
					in[i] = operands(from, uint64(7*k+i), n+Round)
				}
				d := make([]uint32, n+Round)
				f(n, unsafe.Pointer(&d[0]), unsafe.Pointer(&in[0][0]), unsafe.Pointer(&in[1][0]), unsafe.Pointer(&in[2][0]))
				p := scalar.Compile(o.Expr())
				env := &scalar.Env{Args: make([]scalar.Value, 3)}
				var scratch []scalar.Value
				for i := range n {
					for j := range in {
						from := o.From
						if o.Op == scalar.OpSelect && j == 0 {
							from = dtype.Bool
						}
						env.Args[j] = valueOf(from, in[j][i])
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
