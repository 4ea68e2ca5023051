package scalar

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// ulps returns the distance of got from want in units of the last place of the
// f32 nearest to want; it is infinite if the signs of two zeros, or kinds of
// NaN and infinity, differ.
func ulps(got, want float64) float64 {
	w := float64(float32(want))
	switch {
	case math.IsNaN(want) && math.IsNaN(got):
		return 0
	case math.Signbit(got) != math.Signbit(w), math.IsNaN(want), math.IsNaN(got):
		return math.Inf(1)
	case got == w:
		return 0
	case math.IsInf(w, 0) || math.IsInf(got, 0):
		return math.Inf(1)
	}
	unit := 0x1p-149
	if math.Abs(w) >= 0x1p-126 {
		unit = math.Ldexp(1, math.Ilogb(w)-23)
	}
	return math.Abs(got-want) / unit
}

// edges32 are arguments where functions change or end, of both signs.
func edges32() []float32 {
	inf := float32(math.Inf(1))
	xs := []float32{
		0, 1e-45, 1.1754944e-38, 1e-20, 1e-4, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 7, 10, 100, 1e4, 32768,
		8388607, 8388607.5, 8388608, 16777215, 16777216, 1e10, 0x1p100, math.MaxFloat32, inf,
		maxExp, 88.72284, maxSinh, 89.415993, 87.33654, 103.97208, 104, 0.6, 0.92, 9.02, 10.06, 3.95,
		0.41421357, 2.4142137, 0.70710677, 1.4142135, math.Pi, math.Pi / 2, math.Pi / 4,
		float32(math.NaN()),
	}
	for _, x := range xs {
		if next := math.Nextafter32(x, inf); next < inf {
			xs = append(xs, next, -next)
		}
		xs = append(xs, -x)
	}
	return xs
}

// expanded32 returns a function that evaluates op expanded for f32, every step
// rounded.
func expanded32(t *testing.T, op Op) func(x ...float32) float64 {
	args := []Expr{Arg(0, dtype.F32), Arg(1, dtype.F32)}[:op.Arity()]
	p := Compile(Expand(New(op, args...), Portable))
	env := &Env{Args: make([]Value, len(args))}
	var mem []Value
	return func(x ...float32) float64 {
		for i := range x {
			env.Args[i].F = float64(x[i])
		}
		var err error
		if mem, err = p.Run(env, mem); err != nil {
			t.Fatal(err)
		}
		return mem[0].F
	}
}

// truth returns op in float64, by package math.
func truth(op Op, x ...float32) float64 {
	if op.Arity() == 1 {
		return floatUnary(op, float64(x[0]))
	}
	return floatBinary(op, float64(x[0]), float64(x[1]))
}

// boundChecker returns a function that reports errors of op above its bound.
func boundChecker(t *testing.T, op Op) func(x ...float32) {
	f, bound, worst := expanded32(t, op), ErrorBound(op), 0.0
	t.Cleanup(func() { t.Logf("largest error seen: %.3f ULP", worst) })
	return func(x ...float32) {
		got, want := f(x...), truth(op, x...)
		e := ulps(got, want)
		if worst = max(worst, e); e > bound {
			t.Errorf("%v%v = %v, want %v: %.2f ULP, bound %v", op, x, got, want, e, bound)
		}
	}
}

func TestExpandKeepsErrorBounds(t *testing.T) {
	const samples = 12000 // of each sign
	for op := range opCount {
		if ErrorBound(op) == 0 || op.Arity() != 1 {
			continue
		}
		t.Run(op.String(), func(t *testing.T) {
			check := boundChecker(t, op)
			for _, x := range edges32() {
				check(x)
			}
			// Bit patterns spread over all magnitudes, then over those where
			// functions are neither the identity nor constant.
			rng := rand.New(rand.NewSource(int64(op)))
			for i := range uint32(samples) {
				u := i * (0x7f800000 / samples)
				if i%2 == 1 {
					u = math.Float32bits(1e-3) + uint32(rng.Intn(0x0b000000))
				}
				x := math.Float32frombits(u)
				check(x)
				check(-x)
			}
		})
	}
}

// The first of these f32 come nearest to multiples of π/2 of all: within 7e-9,
// as a sweep of all of them with the C library's sin and cos found. The second
// are near ones, too, where the third word of 2/π carries into the first.
var nearQuadrants = []uint32{
	0x6f79be45, 0x50a3e87f, 0x6ff9be45, 0x5123e87f, 0x437ce5f1, 0x7079be45, 0x6a1976f1, 0x53b146a6,
	0x55c28dbf, 0x4a7b4fb8, 0x4a14046b, 0x58456b3f,
}

func TestExpandReducesTheHardestAngles(t *testing.T) {
	for _, op := range []Op{OpSin, OpCos, OpTan} {
		check := boundChecker(t, op)
		for _, u := range nearQuadrants {
			check(math.Float32frombits(u))
			check(-math.Float32frombits(u))
		}
	}
}

func TestExpandedExactOperations(t *testing.T) {
	round, low, high := expanded32(t, OpRound), expanded32(t, OpMin), expanded32(t, OpMax)
	edges := edges32()
	for x := float32(-6); x < 6; x += 0.0625 {
		edges = append(edges, x)
	}
	for _, x := range edges {
		if got, want := round(x), math.RoundToEven(float64(x)); !same(dtype.F64, Value{F: got}, Value{F: want}) {
			t.Errorf("round(%v) = %v, want %v", x, got, want)
		}
		for _, y := range edges {
			gotLow, gotHigh := Value{F: low(x, y)}, Value{F: high(x, y)}
			wantLow, wantHigh := Value{F: float64(min(x, y))}, Value{F: float64(max(x, y))}
			if x == 0 && y == 0 {
				continue // which zero is not specified
			}
			if !same(dtype.F64, gotLow, wantLow) || !same(dtype.F64, gotHigh, wantHigh) {
				t.Errorf("min, max(%v, %v) = %v, %v, want %v, %v", x, y, gotLow.F, gotHigh.F, wantLow.F, wantHigh.F)
			}
		}
	}
}

func TestExpandedRemainderIsExact(t *testing.T) {
	rem := expanded32(t, OpRem)
	check := func(x, y float32) {
		if q := math.Abs(float64(x) / float64(y)); q >= 1<<24 && !math.IsInf(q, 0) {
			if got := rem(x, y); math.Abs(got) >= math.Abs(float64(y)) && y != 0 {
				t.Errorf("rem(%v, %v) = %v is not below the divisor", x, y, got)
			}
			return
		}
		got, want := rem(x, y), math.Mod(float64(x), float64(y))
		if !same(dtype.F64, Value{F: got}, Value{F: want}) {
			t.Errorf("rem(%v, %v) = %v, want %v", x, y, got, want)
		}
	}
	check(1, 0.1) // 1/0.1 rounds to 10
	edges := edges32()
	for _, x := range edges {
		for _, y := range edges {
			check(x, y)
		}
	}
	rng := rand.New(rand.NewSource(1))
	for range 20000 {
		y := math.Float32frombits(rng.Uint32())
		check(y*float32(rng.NormFloat64()*math.Exp2(rng.Float64()*24)), y)
		check(y*float32(rng.Intn(5000)), y)
	}
}

func TestExpandKeepsErrorBoundsOfTwoOperands(t *testing.T) {
	for _, op := range []Op{OpPow, OpAtan2} {
		t.Run(op.String(), func(t *testing.T) {
			check := boundChecker(t, op)
			edges := edges32()
			for i := 0; i < len(edges); i += 2 {
				for _, y := range edges {
					check(edges[i], y)
				}
			}
			rng := rand.New(rand.NewSource(int64(op)))
			for range 8000 {
				check(math.Float32frombits(rng.Uint32()), math.Float32frombits(rng.Uint32()))
				check(float32(rng.Float64()*6-2), float32(rng.Intn(60)-30))
				// Powers spread over the whole range of results.
				x := math.Abs(float64(math.Float32frombits(rng.Uint32())))
				check(float32(x), float32((rng.Float64()*2-1)*150/math.Log2(x)))
				x = 1 + (rng.Float64()-0.5)*1e-3
				check(float32(x), float32((rng.Float64()*2-1)*140/math.Log2(x)))
			}
		})
	}
}

func TestExpandedPowersOfSmallIntegersAreExact(t *testing.T) {
	f := expanded32(t, OpPow)
	for x := float32(-12); x <= 12; x++ {
		for y := float32(0); y <= 6; y++ {
			if got, want := f(x, y), math.Pow(float64(x), float64(y)); got != want {
				t.Errorf("pow(%v, %v) = %v, want %v", x, y, got, want)
			}
		}
	}
}

// hostile evaluates e as a compiler may that assumes there are no infinities
// and no NaN: arithmetic on one gives an arbitrary number, comparisons
// with NaN the opposite result, conversions out of range an arbitrary integer.
func hostile(e Expr, args ...float32) float64 {
	value := map[*Node]Value{}
	Walk(e, func(n Expr) {
		var v [3]Value
		wild, nan := false, false
		for i, a := range n.Args {
			v[i] = value[a]
			wild = wild || a.Type.IsFloat() && !isFinite(v[i].F)
			nan = nan || a.Type.IsFloat() && math.IsNaN(v[i].F)
		}
		switch n.Op {
		case OpConst:
			value[n], _ = n.Value()
			return
		case OpArg:
			value[n] = Value{F: float64(args[n.Ref])}
			return
		}
		r := apply(n, v, Exact)
		switch {
		case n.Op == OpBitcast, n.Op == OpSelect, n.Op == OpNeg, n.Op == OpAbs:
		case n.Op.isCompare() && nan:
			r.I = 1 - r.I
		case n.Op.isCompare():
		case n.Op == OpConvert && n.Args[0].Type.IsFloat() && (wild || math.Abs(v[0].F) >= 1<<32):
			r.I = 12345
		case n.Type == dtype.F32 && (wild || !isFinite(r.F)):
			r.F = 1.25
		}
		value[n] = r
	})
	return value[e].F
}

func TestExpandedFunctionsSurviveFiniteMath(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	edges := []float32{0, 1, -1, 0.5, 2, -3, 1e4, -1e4, 90, -110, 3e38, -3e38, 1e-45, inf, -inf, nan}
	for op := range opCount {
		if portableRules[op] == nil || op == OpConvert || op.info().result == ofBool {
			continue
		}
		e := Expand(New(op, []Expr{Arg(0, dtype.F32), Arg(1, dtype.F32)}[:op.Arity()]...), Portable)
		bound := max(ErrorBound(op), 0.5)
		check := func(x ...float32) {
			got, want := hostile(e, x...), truth(op, x...)
			open := (op == OpMin || op == OpMax) && want == 0 && got == 0 ||
				op == OpRem && math.Abs(float64(x[0])/float64(x[len(x)-1])) >= 1<<24
			if ulps(got, want) > bound && !open {
				t.Errorf("%v%v = %v, want %v", op, x, got, want)
			}
		}
		for _, x := range edges {
			if op.Arity() == 1 {
				check(x)
				continue
			}
			for _, y := range edges {
				check(x, y)
			}
		}
	}
}

func TestExpandedTestsOfNumbersUseBits(t *testing.T) {
	x := Arg(0, dtype.F32)
	for _, op := range []Op{OpIsNaN, OpIsFinite} {
		Walk(Expand(New(op, x), Portable), func(n Expr) {
			if n.Op.isCompare() && n.Args[0].Type.IsFloat() {
				t.Errorf("%v compares floats: %s", op, n)
			}
		})
		for _, x := range edges32() {
			e := Expand(New(op, Bitcast(ConstI(dtype.U32, int64(math.Float32bits(x))), dtype.F32)), Portable)
			want := floatUnaryTest(op, x)
			if got, _ := e.IntConst(); (got != 0) != want {
				t.Errorf("%v(%v) = %v", op, x, got)
			}
		}
	}
}

func floatUnaryTest(op Op, x float32) bool {
	if op == OpIsNaN {
		return x != x
	}
	return x-x == 0
}

func TestExpandConversionSaturates(t *testing.T) {
	for _, to := range []dtype.DType{dtype.I32, dtype.U32, dtype.I64, dtype.U64, dtype.I8, dtype.U16} {
		e := Expand(Convert(Arg(0, dtype.F32), to), Portable)
		for _, x := range edges32() {
			env := &Env{Args: []Value{{F: float64(x)}}}
			got, err := Eval(e, env)
			if want := saturate(float64(x), to); err != nil || got.I != want {
				t.Errorf("convert %v to %v = %d, %v; want %d", x, to, got.I, err, want)
			}
		}
	}
}

func TestExpandNarrowFloatsThroughF32(t *testing.T) {
	for _, typ := range []dtype.DType{dtype.F16, dtype.BF16} {
		e := Expand(Tanh(Arg(0, typ)), Portable)
		if e.Type != typ {
			t.Fatalf("type %v, want %v", e.Type, typ)
		}
		for x := -12.0; x < 12; x += 0.0625 {
			got, err := Eval(e, &Env{Args: []Value{{F: x}}})
			want := typ.Round(math.Tanh(typ.Round(x)))
			if err != nil || !(math.Abs(got.F-want) <= typ.Epsilon()*math.Abs(want)) {
				t.Errorf("%v tanh(%v) = %v, %v; want %v", typ, x, got.F, err, want)
			}
		}
	}
	if e := Tanh(Arg(0, dtype.F64)); Expand(e, Portable) != e {
		t.Error("f64 was expanded")
	}
}

// TestExpandPreservesIntegerResults compares on all pairs of 8-bit operands.
func TestExpandPreservesIntegerResults(t *testing.T) {
	ops := []Op{OpDiv, OpRem, OpFloorDiv, OpMod, OpShl, OpShr, OpMulZero, OpMin, OpMax}
	for _, typ := range []dtype.DType{dtype.I8, dtype.U8} {
		for _, op := range ops {
			n := New(op, Arg(0, typ), Arg(1, typ))
			before, after := Compile(n), Compile(Expand(n, Accurate))
			lo, hi, _ := typ.IntRange()
			var m1, m2 []Value
			for a := lo; a <= hi; a++ {
				for b := lo; b <= hi; b++ {
					env := &Env{Args: []Value{{I: a}, {I: b}}}
					m1, _ = before.Run(env, m1)
					m2, _ = after.Run(env, m2)
					if m1[0] != m2[0] {
						t.Fatalf("%v %v(%d, %d) = %d, expanded %d", typ, op, a, b, m1[0].I, m2[0].I)
					}
				}
			}
		}
	}
}

func TestExpandAccuratePreservesFloatResults(t *testing.T) {
	a, b := Arg(0, dtype.F64), Arg(1, dtype.F64)
	for _, e := range []Expr{
		Min(a, b), Max(a, b), Sign(a), Recip(a), MulZero(a, b), Clamp(a, ConstF(dtype.F64, -1), b),
		Sigmoid(a), Rem(a, b),
	} {
		x := Expand(e, Accurate)
		for _, p := range edges32() {
			for _, q := range []float64{0, 1, -2.5, math.Inf(1), math.NaN()} {
				env := &Env{Args: []Value{{F: float64(p)}, {F: q}}}
				want, _ := Eval(e, env)
				got, err := Eval(x, env)
				same := got.F == want.F || math.Abs(got.F-want.F) < 1e-15*math.Abs(want.F) ||
					math.IsNaN(got.F) && math.IsNaN(want.F)
				if err != nil || !same {
					t.Errorf("%s at %v, %v: %v, want %v", e, p, q, got.F, want.F)
				}
			}
		}
	}
}

// TestExpandKeepsSupportedOperations checks the list in the comment of Expand.
func TestExpandKeepsSupportedOperations(t *testing.T) {
	for op := range opCount {
		info := op.info()
		if info.result == ofNode || info.result == ofComplex || info.operands&kReal == 0 {
			continue
		}
		for _, typ := range []dtype.DType{dtype.F32, dtype.I32} {
			if kindOf(typ)&info.operands == 0 {
				continue
			}
			args := []Expr{Arg(0, typ), Arg(1, typ), Arg(2, typ)}[:info.arity]
			if op == OpSelect {
				args[0] = Arg(0, dtype.Bool)
			}
			t.Run(fmt.Sprintf("%v/%v", op, typ), func(t *testing.T) {
				Walk(Expand(New(op, args...), Portable), func(n Expr) {
					if n.Op > OpArg && !remains[n.Op] {
						t.Errorf("%v is left", n.Op)
					}
				})
			})
		}
	}
}

var remains = [opCount]bool{
	OpNeg: true, OpAbs: true, OpAdd: true, OpSub: true, OpMul: true, OpDiv: true, OpRem: true, // OpRem of integers
	OpFma: true, OpSqrt: true, OpRsqrt: true, OpFloor: true, OpCeil: true, OpTrunc: true,
	OpEq: true, OpNe: true, OpLt: true, OpLe: true, OpGt: true, OpGe: true,
	OpSelect: true, OpConvert: true, OpBitcast: true, OpPopCount: true, OpMin: true, OpMax: true,
	OpAnd: true, OpOr: true, OpXor: true, OpNot: true, OpShl: true, OpShr: true,
	OpDot4: true, // which only CUDA gets
}
