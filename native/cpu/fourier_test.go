package cpu_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestFourierTransforms compares some frequencies of transforms of many lengths with their
// definition in f64.
func TestFourierTransforms(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.F64} {
		for i, n := range []int{33, 34, 39, 48, 64, 100, 128, 169, 210, 256, 512, 1001, 1024, 2048, 2310, 4096, 30030} {
			for _, parts := range []int{1, 2} {
				inverse := i%2 == 1
				t.Run(fmt.Sprint(d, " ", n, " of ", parts, " parts"), func(t *testing.T) { checkFourier(t, d, 2, n, parts, inverse) })
			}
		}
		// Many rows, one to a lane.
		for i, size := range [][2]int{{2100, 2}, {700, 6}, {300, 16}, {37, 100}, {17, 143}} {
			checkFourier(t, d, size[0], size[1], 1+i%2, i%3 == 0)
		}
	}
}

// TestFourierOfLargePrimes transforms lengths whose chirps are computed, by convolutions of which a table would be
// larger than the limit.
func TestFourierOfLargePrimes(t *testing.T) {
	for i, n := range []int{65_537, 3 * 65_539, 1_000_003} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { checkFourier(t, ir.F32, 1, n, 1+i%2, i == 1) })
	}
}

func checkFourier(t *testing.T, d ir.DType, rows, n, parts int, inverse bool) {
	t.Helper()
	g := build(t, func(b *ir.Builder) {
		var im ir.Value
		re := b.Input("x", d, ir.Dims(rows, n)...)
		if parts == 2 {
			im = ops.Neg(b, ops.Reverse(b, re, 1))
		}
		re, im = ops.DFT(b, re, im, inverse)
		b.Output("re", re)
		b.Output("im", im)
	})
	x := ir.NewArray(d, rows, n)
	norm, random := 0.0, 0.5
	for i := range x.F {
		random = math.Mod(random*997+0.377, 1)
		x.F[i] = random - 0.5
		norm += x.F[i] * x.F[i]
	}
	x.Round()
	y := rerun(t, g, native.FromArray(x))
	re, _ := y["re"].Array()
	im, _ := y["im"].Array()
	sign := -1.0
	if inverse {
		sign = 1
	}
	// The second term bounds the error of the definition.
	bound := 4*d.Epsilon()*math.Sqrt(norm*math.Log2(float64(n))) + 0x1p-52*math.Sqrt(norm*float64(n))
	for at := 0; at < rows*n; at += 1 + n/37 {
		row, k := x.F[at/n*n:][:n], at%n
		var want complex128
		for j, v := range row {
			z := complex(v, 0)
			if parts == 2 {
				z = complex(v, -row[n-1-j])
			}
			want += z * cmplx.Rect(1, sign*2*math.Pi*float64(j*k%n)/float64(n))
		}
		if off := cmplx.Abs(complex(re.F[at], im.F[at]) - want); !(off <= bound) {
			t.Fatalf("frequency %d of row %d is off by %.3g, more than %.3g", k, at/n, off, bound)
		}
	}
}

// TestFourierOfComplexNumbers transforms a plane wave along two axes of an array, which gives one
// frequency, and back.
func TestFourierOfComplexNumbers(t *testing.T) {
	const rows, columns, k, l = 40, 64, 3, 17
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.C64, ir.Dims(rows, columns)...)
		y := ops.FFT(b, x, ops.FFTAttrs{Axes: []int{0, 1}, Norm: ops.FFTForward})
		b.Output("y", y)
		b.Output("z", ops.FFT(b, y, ops.FFTAttrs{Axes: []int{1, 0}, Inverse: true, Norm: ops.FFTForward}))
		b.Output("double", ops.Add(b, ops.Real(b, x), ops.Real(b, x)))
	})
	x := ir.NewArray(ir.C64, rows, columns)
	for i := range x.C {
		x.C[i] = cmplx.Rect(1, 2*math.Pi*(float64(i/columns*k)/rows+float64(i%columns*l)/columns))
	}
	x.Round()
	out := rerun(t, g, native.FromArray(x))
	y, _ := out["y"].Array()
	z, _ := out["z"].Array()
	double, _ := out["double"].Array()
	for i := range x.C {
		want := complex(0, 0)
		if i == k*columns+l {
			want = 1
		}
		if cmplx.Abs(y.C[i]-want) > 1e-6 || cmplx.Abs(z.C[i]-x.C[i]) > 2e-6 || double.F[i] != 2*real(x.C[i]) {
			t.Fatalf("element %d is %v, not %v, and %v after the inverse, not %v; twice its real part is %v", i, y.C[i], want, z.C[i], x.C[i], double.F[i])
		}
	}
}
