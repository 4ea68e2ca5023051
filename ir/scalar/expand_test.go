package scalar

import (
	"math"
	"math/rand"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// ulps returns the distance of got from want in units of the last place of the
// f32 nearest to want.
func ulps(got, want float64) float64 {
	w := float64(float32(want))
	switch {
	case math.IsNaN(want) || math.IsNaN(got):
		if math.IsNaN(want) && math.IsNaN(got) {
			return 0
		}
		return math.Inf(1)
	case got == w:
		return 0
	case math.IsInf(w, 0) || math.IsInf(got, 0):
		return math.Inf(1)
	}
	unit := math.Ldexp(1, max(math.Ilogb(w), -126)-23)
	if w == 0 {
		unit = 0x1p-149
	}
	return math.Abs(got-want) / unit
}

// sweep32 calls visit with f32 values: the special ones, then n spread evenly
// over the bit patterns of magnitudes in [lo, hi], of both signs.
func sweep32(n int, lo, hi float32, visit func(x float32)) {
	for _, x := range []float32{0, 1, 0.5, 2, 3, 10, 1e-45, 1.1754944e-38, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())} {
		visit(x)
		visit(-x)
	}
	a, b := math.Float32bits(lo), math.Float32bits(hi)
	rng := rand.New(rand.NewSource(1))
	step := max(1, (b-a)/uint32(n))
	for u := a; u < b; u += step {
		x := math.Float32frombits(u + uint32(rng.Intn(int(step))))
		visit(x)
		visit(-x)
		if u > math.MaxUint32-step {
			break
		}
	}
}

func TestMeasure(t *testing.T) {
	for op := OpExp; op <= OpErfc; op++ {
		if portableRules[op] == nil || floatFuncs[op] == nil && op != OpSigmoid {
			continue
		}
		p := Compile(Expand(New(op, Arg(0, dtype.F32)), Portable))
		env := &Env{Args: make([]Value, 1)}
		var mem []Value
		worst, at, got, bad := 0.0, float32(0), 0.0, 0
		sweep32(200000, 1e-45, math.MaxFloat32, func(x float32) {
			env.Args[0].F = float64(x)
			mem, _ = p.Run(env, mem)
			want := floatUnary(op, float64(x))
			e := ulps(mem[0].F, want)
			if e > 5 { bad++ ; if bad < 5 { t.Logf("   %v(%v) = %v want %v", op, x, mem[0].F, want) } }
			if e > worst {
				worst, at, got = e, x, mem[0].F
			}
		})
		t.Logf("%v: %.3f ULP at %v (%v), bad %d, %d ops", op, worst, at, got, bad, Count(Expand(New(op, Arg(0, dtype.F32)), Portable)))
	}
}
