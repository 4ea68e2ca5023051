package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// twiddling is which twiddle factors multiply the results of a pass.
type twiddling uint8

const (
	noTwiddles      twiddling = iota
	groupTwiddles             // those of a group
	elementTwiddles           // those of each element
)

// fourierKernel writes the code of a pass, whose rows are groups. Its arrays are the real and
// imaginary parts of each number, of each frequency, and of each twiddle factor.
type fourierKernel struct {
	d          ir.DType
	sign       float64
	radix, run int
	real       bool // the numbers have no imaginary parts
	twiddles   twiddling

	k    *jit.Kernel
	rows *jit.Rows
}

// complexLanes is a complex number in each lane.
type complexLanes struct{ re, im jit.Value }

func (f *fourierKernel) compile(set *jit.Set) *jit.Code {
	f.k = &jit.Kernel{Long: f.d == ir.F64}
	f.rows = &jit.Rows{Kernels: []*jit.Kernel{f.k}, Counter: -1}
	x := make([]complexLanes, f.radix)
	for j := range x {
		x[j].re = f.k.Load(f.array(f.run), f.d)
		if f.real {
			x[j].im = f.constant(0)
		} else {
			x[j].im = f.k.Load(f.array(f.run), f.d)
		}
	}
	y := f.transform(x)
	var to [2][]int
	for range y {
		for i := range to {
			to[i] = append(to[i], f.array(f.radix*f.run))
		}
	}
	for k := range y {
		y[k] = f.twiddled(y[k], k)
		f.k.Store(to[0][k], f.d, y[k].re)
		f.k.Store(to[1][k], f.d, y[k].im)
	}
	return set.Compile(f.rows)
}

// array adds an array, whose elements of a group and the next are some elements apart.
func (f *fourierKernel) array(step int) int {
	f.rows.Strides = append(f.rows.Strides, step*f.d.Size())
	return f.k.Array()
}

// twiddled multiplies frequency k by its twiddle factor.
func (f *fourierKernel) twiddled(y complexLanes, k int) complexLanes {
	switch step := 2 * (f.radix - 1); {
	case f.twiddles == elementTwiddles:
		return f.times(y, complexLanes{f.k.Load(f.array(0), f.d), f.k.Load(f.array(0), f.d)})
	case f.twiddles == groupTwiddles && k > 0:
		return f.times(y, complexLanes{f.k.Splat(f.array(step), f.d), f.k.Splat(f.array(step), f.d)})
	}
	return y
}

func (f *fourierKernel) constant(x float64) jit.Value { return f.k.Const(scalar.ConstF(f.d, x)) }

func (f *fourierKernel) apply(op scalar.Op, x ...jit.Value) jit.Value {
	v, _ := f.k.Apply(jit.Operation{Op: op, From: f.d, To: f.d}, x...)
	return v
}

func (f *fourierKernel) sum(x, y complexLanes) complexLanes {
	return complexLanes{f.apply(scalar.OpAdd, x.re, y.re), f.apply(scalar.OpAdd, x.im, y.im)}
}

func (f *fourierKernel) difference(x, y complexLanes) complexLanes {
	return complexLanes{f.apply(scalar.OpSub, x.re, y.re), f.apply(scalar.OpSub, x.im, y.im)}
}

func (f *fourierKernel) times(x, y complexLanes) complexLanes {
	return complexLanes{
		f.apply(scalar.OpSub, f.apply(scalar.OpMul, x.re, y.re), f.apply(scalar.OpMul, x.im, y.im)),
		f.apply(scalar.OpAdd, f.apply(scalar.OpMul, x.re, y.im), f.apply(scalar.OpMul, x.im, y.re)),
	}
}

// scaled multiplies a number by a real constant.
func (f *fourierKernel) scaled(x complexLanes, by float64) complexLanes {
	c := f.constant(by)
	return complexLanes{f.apply(scalar.OpMul, x.re, c), f.apply(scalar.OpMul, x.im, c)}
}

// butterfly returns e + w·x and e − w·x for the twiddle factor w = exp(sign·2πi·k/n), with k less than n/2.
func (f *fourierKernel) butterfly(e, x complexLanes, k, n int) (plus, minus complexLanes) {
	switch {
	case k == 0:
	case 4*k == n: // by sign·i
		plus = complexLanes{f.apply(scalar.OpSub, e.re, x.im), f.apply(scalar.OpAdd, e.im, x.re)}
		minus = complexLanes{f.apply(scalar.OpAdd, e.re, x.im), f.apply(scalar.OpSub, e.im, x.re)}
		if f.sign < 0 {
			plus, minus = minus, plus
		}
		return plus, minus
	default:
		w := twiddle(k, n, f.sign)
		x = f.times(x, complexLanes{f.constant(real(w)), f.constant(imag(w))})
	}
	return f.sum(e, x), f.difference(e, x)
}

// transform returns the Fourier transform of a few numbers: by radix 2 where their number is even.
func (f *fourierKernel) transform(x []complexLanes) []complexLanes {
	n := len(x)
	if n%2 == 1 {
		return f.odd(x)
	}
	var even, odd []complexLanes
	for i := 0; i < n; i += 2 {
		even, odd = append(even, x[i]), append(odd, x[i+1])
	}
	even, odd = f.transform(even), f.transform(odd)
	out := make([]complexLanes, n)
	for k := range even {
		out[k], out[k+n/2] = f.butterfly(even[k], odd[k], k, n)
	}
	return out
}

// odd transforms an odd number of numbers: x[j] and x[n-j] have conjugate factors.
func (f *fourierKernel) odd(x []complexLanes) []complexLanes {
	n := len(x)
	out := make([]complexLanes, n)
	var sums, differences []complexLanes
	out[0] = x[0]
	for j := 1; j <= n/2; j++ {
		sums, differences = append(sums, f.sum(x[j], x[n-j])), append(differences, f.difference(x[j], x[n-j]))
		out[0] = f.sum(out[0], sums[j-1])
	}
	for k := 1; k <= n/2; k++ {
		even, across := x[0], complexLanes{}
		for j := 1; j <= n/2; j++ {
			sin, cos := math.Sincos(2 * math.Pi * float64(j*k%n) / float64(n))
			even = f.sum(even, f.scaled(sums[j-1], cos))
			if part := f.scaled(differences[j-1], sin); j == 1 {
				across = part
			} else {
				across = f.sum(across, part)
			}
		}
		out[k], out[n-k] = f.butterfly(even, across, 1, 4)
	}
	return out
}
