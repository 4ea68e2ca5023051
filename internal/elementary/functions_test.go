package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestAngleReduction compares the reduction of angles of every size with that by integers of 1,300 bits.
func TestAngleReduction(t *testing.T) {
	inverse := new(big.Int) // 2/π times 2^1280
	for _, w := range twoOverPi[1:] {
		inverse.Or(inverse.Lsh(inverse, 64), new(big.Int).SetUint64(w))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		x := math.Ldexp(1+rng.Float64(), rng.IntN(1024))
		q, r, tail := reducePiOver2(x)
		m, e := math.Frexp(x)
		turns := new(big.Int).Mul(inverse, big.NewInt(int64(math.Ldexp(m, 53))))
		turns.Lsh(turns, 1100).Rsh(turns, uint(1100+53-e)) // times 2^1280
		half := new(big.Int).Lsh(big.NewInt(1), 1279)
		whole := new(big.Int).Rsh(new(big.Int).Add(turns, half), 1280)
		left := new(big.Float).SetInt(new(big.Int).Sub(turns, new(big.Int).Lsh(whole, 1280)))
		left.SetMantExp(left, -1280)
		want, _ := left.Float64()
		if got := (r + tail) / (math.Pi / 2); q&3 != new(big.Int).And(whole, big.NewInt(3)).Uint64() || !(math.Abs(got-want) <= 1e-15*math.Abs(want)) {
			t.Fatalf("of %v: %d and %v, want %v and %v", x, q&3, got, whole, want)
		}
	}
}

// TestSpecialOperands holds results where package math's are those of C99.
func TestSpecialOperands(t *testing.T) {
	inf, nan, negativeZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	special := []float64{0, negativeZero, 1, -1, 2, -2, 3, -3, 0.5, -0.5, inf, -inf, nan, math.MaxFloat64, 0x1p-1074}
	same := func(a, b float64) bool {
		return a != a && b != b || math.Signbit(a) == math.Signbit(b) && (a == b || math.Abs(a-b) <= 1e-13*math.Abs(b)) // package math loses digits at huge arguments
	}
	for name, f := range map[string][2]func(float64) float64{
		"exp": {Exp, math.Exp}, "sin": {Sin, math.Sin}, "cos": {Cos, math.Cos}, "tan": {Tan, math.Tan}, "asin": {Asin, math.Asin},
		"acos": {Acos, math.Acos}, "sinh": {Sinh, math.Sinh}, "cosh": {Cosh, math.Cosh}, "log2": {Log2, math.Log2},
	} {
		for _, x := range special {
			if got, want := f[0](x), f[1](x); !same(got, want) {
				t.Errorf("%s of %v is %v, not %v", name, x, got, want)
			}
		}
	}
	for name, f := range map[string][2]func(a, b float64) float64{"pow": {Pow, math.Pow}, "atan2": {Atan2, math.Atan2}} {
		for _, x := range special {
			for _, y := range special {
				if got, want := f[0](x, y), f[1](x, y); !same(got, want) {
					t.Errorf("%s of %v and %v is %v, not %v", name, x, y, got, want)
				}
			}
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	x := make([]float64, 1024)
	for i := range x {
		x[i] = 0.01 + float64(i)*0.1
	}
	for name, f := range map[string]func(x float64) float64{
		"sin": Sin, "math.Sin": math.Sin, "tan": Tan, "math.Tan": math.Tan, "log": Log, "math.Log": math.Log,
		"pow":      func(x float64) float64 { return Pow(x, 1.7) },
		"math.Pow": func(x float64) float64 { return math.Pow(x, 1.7) },
	} {
		b.Run(name, func(b *testing.B) {
			sum := 0.0
			for b.Loop() {
				for _, x := range x {
					sum += f(x)
				}
			}
			if sum == math.Inf(1) {
				b.Fatal(sum)
			}
		})
	}
}
