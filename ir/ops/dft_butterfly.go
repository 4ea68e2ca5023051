package ops

import (
	"math"
	"math/cmplx"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// complexExpr is a complex number as its real and imaginary parts.
type complexExpr [2]scalar.Expr

// turn returns the twiddle factor exp(sign·2πi·k/n) for a power of two n, from an angle of
// at most π, whose rounding error is that of the sine.
func (f *dftPass) turn(k scalar.Expr, n int) complexExpr {
	k = f.Let("k", scalar.Mod(k, loop.Int(n)))
	k = f.Let("k", scalar.Select(scalar.Gt(k, loop.Int(n/2)), scalar.Sub(k, loop.Int(n)), k))
	angle := f.Let("angle", scalar.Mul(scalar.Convert(k, f.d), f.number(f.sign*2*math.Pi/float64(n))))
	return complexExpr{f.Let("cos", scalar.Cos(angle)), f.Let("sin", scalar.Sin(angle))}
}

// times multiplies x[k] by the k-th power of w. Each power is the product of two of about
// half its exponent, which keeps rounding errors small.
func (f *dftPass) times(x []complexExpr, w complexExpr) []complexExpr {
	powers := make([]complexExpr, len(x))
	for k := range x {
		switch {
		case k == 0:
			continue
		case k == 1:
			powers[k] = w
		default:
			powers[k] = f.product(powers[k/2], powers[k-k/2])
		}
		x[k] = f.product(x[k], powers[k])
	}
	return x
}

func (f *dftPass) product(x, y complexExpr) complexExpr {
	return complexExpr{
		f.Let("re", scalar.Sub(scalar.Mul(x[0], y[0]), scalar.Mul(x[1], y[1]))),
		f.Let("im", scalar.Add(scalar.Mul(x[0], y[1]), scalar.Mul(x[1], y[0]))),
	}
}

// transform is a radix-2 FFT of a power of two of numbers.
func (f *dftPass) transform(x []complexExpr) []complexExpr {
	n := len(x)
	if n == 1 {
		return x
	}
	var even, odd []complexExpr
	for i := 0; i < n; i += 2 {
		even, odd = append(even, x[i]), append(odd, x[i+1])
	}
	even, odd = f.transform(even), f.transform(odd)
	out := make([]complexExpr, n)
	for k, e := range even {
		o := odd[k]
		switch w := cmplx.Rect(1, f.sign*2*math.Pi*float64(k)/float64(n)); {
		case k == 0:
		case 4*k == n && f.sign < 0:
			o = complexExpr{o[1], scalar.Neg(o[0])}
		case 4*k == n:
			o = complexExpr{scalar.Neg(o[1]), o[0]}
		default:
			o = f.product(o, complexExpr{f.number(real(w)), f.number(imag(w))})
		}
		for part := range 2 {
			out[k][part] = f.Let("sum", scalar.Add(e[part], o[part]))
			out[k+n/2][part] = f.Let("rest", scalar.Sub(e[part], o[part]))
		}
	}
	return out
}
