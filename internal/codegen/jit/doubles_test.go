package jit

import (
	"math"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestRunningDoubles sums rows of every length, with masked lanes, and folds the lanes.
func TestRunningDoubles(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		add := Operation{scalar.OpAdd, dtype.F64, dtype.F64}
		for n := 1; n <= 2*MaxLanes; n++ {
			k := &Kernel{Long: true}
			sum := k.Accumulator(dtype.F64, math.Float64bits(0.5))
			next, _ := k.Apply(add, sum, k.Load(k.Array(), dtype.F64))
			k.Next(sum, next)
			k.After()
			for by := k.Width() / 2; by > 0; by /= 2 {
				sum, _ = k.Apply(add, sum, k.Rotate(sum, by))
			}
			out := k.Array()
			k.StoreFirst(out, sum)
			c := loadKernel(t, k)
			in, result := make([]float64, 3*MaxLanes), []float64{0, -1}
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
				c.RunTail(n - full)
				total += result[0] - 0.5*float64(k.Width())
			}
			if want := float64(n * (n + 1) / 2); total != want || result[1] != -1 {
				t.Fatalf("%d lanes: %v, not %v; behind it %v", n, total, want, result[1])
			}
		}
	})
}

// maxDistance returns how many numbers a result may be from that of doubleReferences. Where the compiler fuses multiply-adds, as on
// arm64, math.Erfc(0.83203125) is 3.1 ULP from the true value, of which the kernel is within one.
func maxDistance(op scalar.Op) float64 {
	if op == scalar.OpErfc && runtime.GOARCH == "arm64" {
		return 6
	}
	return 3
}

// doubleReferences are the functions of package math, within one ULP, except where that of
// Go 1.26 is wrong on x86-64.
var doubleReferences = map[scalar.Op]func(float64) float64{
	scalar.OpExp: exactExp, scalar.OpTanh: math.Tanh, scalar.OpExpm1: math.Expm1, scalar.OpLog1p: math.Log1p, scalar.OpErf: math.Erf, scalar.OpErfc: math.Erfc,
	scalar.OpSin: elementary.Sin, scalar.OpCos: elementary.Cos, scalar.OpTan: elementary.Tan,
	scalar.OpAsin: elementary.Asin, scalar.OpAcos: elementary.Acos, scalar.OpAtan: math.Atan, scalar.OpSinh: elementary.Sinh, scalar.OpCosh: elementary.Cosh,
	scalar.OpLog: func(x float64) float64 {
		if x > 0 && x < 0x1p-1022 {
			return math.Log(x*0x1p54) - 54*math.Ln2
		}
		return math.Log(x)
	},
	scalar.OpSigmoid: func(x float64) float64 {
		if x < 0 {
			return exactExp(x) / (1 + exactExp(x))
		}
		return 1 / (1 + math.Exp(-x))
	},
}

// exactExp is math.Exp, which overflows from 709.44 on.
func exactExp(x float64) float64 {
	if x > 700 {
		return math.Exp(x/2) * math.Exp(x/2)
	}
	return math.Exp(x)
}

// TestFunctionsOfDoubles compares with references on numbers of every size.
func TestFunctionsOfDoubles(t *testing.T) {
	n := sampled(1 << 14)
	everyLevel(t, func(t *testing.T) {
		for op := range doubleFunctions {
			f := doubleReferences[op]
			k := &Kernel{Long: true}
			y, _ := k.Apply(Operation{op, dtype.F64, dtype.F64}, k.Load(k.Array(), dtype.F64))
			k.Store(k.Array(), dtype.F64, y)
			c := loadKernel(t, k)
			in, out := doubles(uint64(op), n), make([]float64, n)
			for i := range in {
				switch i % 8 {
				case 1, 5:
					in[i] = float64(i-n/2) * 1500 / float64(n) // slightly beyond the range in which exp is neither 0 nor infinite
				case 3:
					in[i] = float64(i-n/2) * math.Pi / 2 // where sine or cosine is small
				case 7:
					in[i] = float64(i-n/2) * 2.2 / float64(n)
				case 6:
					in[i] = float64(i-n/4) * 36 / float64(n) // where erfc is neither 2 nor 0
				}
			}
			c.Set(0, unsafe.Pointer(&in[0]))
			c.Set(1, unsafe.Pointer(&out[0]))
			c.Run(n)
			for i, x := range in {
				want := f(x)
				apart := math.Abs(float64(int64(math.Float64bits(out[i])) - int64(math.Float64bits(want))))
				if same := out[i] != out[i] && want != want; !same && !(apart <= maxDistance(op)) {
					t.Fatalf("%s(%v) is %v, not %v: %g numbers apart", op, x, out[i], want, apart)
				}
			}
		}
	})
}

// TestAnglesOfPoints compares with package elementary, signs of zeros included.
func TestAnglesOfPoints(t *testing.T) {
	const n = 1 << 12
	x, y := doubles(3, n), doubles(4, n)
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0x1p-1074, -0x1p-1074, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	for i, a := range special {
		for j, b := range special {
			x[i*len(special)+j], y[i*len(special)+j] = a, b
		}
	}
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{Long: true}
		z, _ := k.Apply(Operation{scalar.OpAtan2, dtype.F64, dtype.F64}, k.Load(k.Array(), dtype.F64), k.Load(k.Array(), dtype.F64))
		k.Store(k.Array(), dtype.F64, z)
		c, out := loadKernel(t, k), make([]float64, n)
		for i, array := range [][]float64{y, x, out} {
			c.Set(i, unsafe.Pointer(&array[0]))
		}
		c.Run(n)
		for i, got := range out {
			want := elementary.Atan2(y[i], x[i])
			apart := math.Abs(float64(int64(math.Float64bits(got)) - int64(math.Float64bits(want))))
			if same := got != got && want != want; !same && !(apart <= 3) {
				t.Fatalf("the angle of (%v, %v) is %v, not %v: %g numbers apart", x[i], y[i], got, want, apart)
			}
		}
	})
}

// TestRareSteps sums functions with steps that vectors skip, beside more values than registers: all are as they were
// whether or not a vector skips.
func TestRareSteps(t *testing.T) {
	const n, beside = 64, 36
	everyLevel(t, func(t *testing.T) {
		k := &Kernel{Long: true}
		apply := func(op scalar.Op, args ...Value) Value {
			v, _ := k.Apply(Operation{op, dtype.F64, dtype.F64}, args...)
			return v
		}
		total := k.Accumulator(dtype.F64, 0)
		x := k.Load(k.Array(), dtype.F64)
		var multiples []Value
		for i := range beside {
			multiples = append(multiples, apply(scalar.OpMul, x, k.Const(scalar.ConstF(dtype.F64, float64(i)))))
		}
		y := apply(scalar.OpSin, apply(scalar.OpCos, x))
		for _, m := range multiples {
			y = apply(scalar.OpAdd, y, m)
		}
		k.Store(k.Array(), dtype.F64, y)
		k.Next(total, apply(scalar.OpAdd, total, apply(scalar.OpTan, x)))
		k.After()
		sum := k.Array()
		for by := k.Width() / 2; by > 0; by /= 2 {
			total = apply(scalar.OpAdd, total, k.Rotate(total, by))
		}
		k.StoreFirst(sum, total)
		c, in, out, got := loadKernel(t, k), make([]float64, n), make([]float64, n), 0.0
		want := 0.0
		for i := range in {
			in[i] = float64(i)
			if i == 21 || i > 50 {
				in[i] *= 0x1p40
			}
			want += math.Tan(in[i])
		}
		for i, p := range []*float64{&in[0], &out[0], &got} {
			c.Set(i, unsafe.Pointer(p))
		}
		c.Run(n)
		for i, y := range out {
			if want := math.Sin(math.Cos(in[i])) + in[i]*beside*(beside-1)/2; !(math.Abs(y-want) <= 1e-14*math.Abs(want)) {
				t.Errorf("sums of %v are %v, not %v", in[i], y, want)
			}
		}
		if !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
			t.Errorf("the tangents sum up to %v, not %v", got, want)
		}
	})
}
