package ops

import (
	"math"
	"math/cmplx"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// minKernelDFT is the minimum length of a transform with kernels: a shorter one is a
// matrix product, which fuses with its neighbours.
const minKernelDFT = 64

// dftKernels transforms rows whose length n is a power of two, in passes over all
// numbers (Stockham's order, see Van Loan, "Computational frameworks for the fast
// Fourier transform", 1992, section 1.7). Before a pass the numbers of a row are [p, q],
// where q indexes the s frequencies that earlier passes have separated. A pass of radix r
// transforms over the most significant digit of p and puts its frequencies before q.
func dftKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	t := n.Input(0).Type()
	size, _ := t.Shape[len(t.Shape)-1].Const()
	elements := elementsOf(t)
	if elements == 0 || size < minKernelDFT || size&(size-1) != 0 || caps.Invocations < 256 {
		return nil
	}
	share := caps.SharedBytes / t.DType.Size() // numbers of a workgroup: the real and imaginary parts are exchanged one after the other
	share = 1 << log2(share)
	keep := share / 256
	digits, before, from := log2(size), 1, ir.OperandMemory
	maxDigits := 2 * log2(keep) // log2 of the maximum radix: two stages of the numbers in a thread's registers
	passes := (digits + maxDigits - 1) / maxDigits
	a := &ir.Algorithm{}
	if passes > 1 {
		a.Scratch = []ir.Type{t, t}
	}
	for i := range passes {
		d := (digits + passes - 1 - i) / (passes - i)
		f := &dftPass{d: t.DType, n: size, before: before, r: 1 << d, ra: 1 << ((d + 1) / 2), keep: keep, columns: elements >> d, sign: -1}
		if n.Attrs().(*DFTAttrs).Inverse {
			f.sign = 1
		}
		f.real = i == 0 && len(n.Inputs()) == 1
		to := ir.ResultMemory
		if (passes-1-i)%2 == 1 {
			to = ir.ScratchMemory
		}
		a.Launches = append(a.Launches, f.launch(from, to, share, elements, caps))
		digits, from, before = digits-d, to, before<<d
	}
	return a
}

// dftPass writes the kernel of a pass. A workgroup has some columns, each the r numbers
// that are transformed together, in two stages with r = ra·rb: number ja·rb + jb becomes
// frequency ka + ra·kb.
type dftPass struct {
	*tiles
	d         ir.DType
	n, before int // before is s
	r, ra, rb int
	keep      int // numbers in a thread's registers
	columns   int // of all rows
	width     int // columns of a workgroup
	threads   int
	sign      float64
	real      bool
	in, out   [2]int // arrays of the real and imaginary parts
	exchange  int
	all       int // numbers in all rows
}

func (f *dftPass) launch(from, to ir.MemorySpace, share, elements int, caps loop.Caps) ir.KernelLaunch {
	f.rb, f.all = f.r/f.ra, elements
	f.width = share / f.r
	for f.width/2 >= f.columns && f.width/2*f.r >= 32*f.keep {
		f.width /= 2
	}
	f.threads = f.width * f.r / f.keep
	f.tiles = newTiles("pass", f.d, 1, f.threads, (f.columns+f.width-1)/f.width, 1, caps)
	for part := range f.in {
		f.in[part] = -1
		if part == 0 || !f.real {
			f.in[part] = f.array("x", f.d, elements, loop.Storage, loop.Read)
			f.memory = append(f.memory, ir.Memory{Space: from, Number: part})
		}
	}
	for part := range f.out {
		f.out[part] = f.array("y", f.d, elements, loop.Storage, loop.ReadWrite)
		f.memory = append(f.memory, ir.Memory{Space: to, Number: part})
	}
	f.exchange = f.shared("exchange", f.d, f.width*f.r)
	f.finish(f.exchanged(f.begin()))
	return f.algorithm().Launches[0]
}

// combination returns what a thread's i-th transform of a stage computes: a column of the
// workgroup and one of count other indices. Neighbouring threads have neighbouring
// columns, or neighbouring other indices if those are contiguous in memory.
func (f *dftPass) combination(i, count int, byColumns bool) (column, other scalar.Expr) {
	number := f.Let("number", plus(f.j, i*f.threads))
	if byColumns {
		return f.Let("column", rest(number, f.width)), f.Let("other", over(number, f.width))
	}
	return f.Let("column", over(number, count)), f.Let("other", rest(number, count))
}

// row returns the offset of a column's row, and the column's index in it.
func (f *dftPass) row(column scalar.Expr) (first, at scalar.Expr) {
	number := scalar.Add(times(f.matrix, f.width), column)
	number = f.Let("near", scalar.Min(number, loop.Int(f.columns-1)))
	each := loop.Int(f.n / f.r)
	return f.Let("first", times(scalar.FloorDiv(number, each), f.n)), f.Let("at", scalar.Mod(number, each))
}

// begin loads the numbers and computes the first stage.
func (f *dftPass) begin() [][]complexExpr {
	stages := make([][]complexExpr, f.keep/f.ra)
	for i := range stages {
		column, jb := f.combination(i, f.rb, f.n/f.r >= f.width)
		first, at := f.row(column)
		x := make([]complexExpr, f.ra)
		for ja := range x {
			j := plus(jb, ja*f.rb)
			from := f.Let("from", scalar.Add(first, scalar.Add(at, times(j, f.n/f.r))))
			x[ja] = complexExpr{f.Let("re", f.get(f.in[0], from)), f.number(0)}
			if !f.real {
				x[ja][1] = f.Let("im", f.get(f.in[1], from))
			}
		}
		stages[i] = f.times(f.transform(x), f.turn(jb, f.r))
	}
	return stages
}

// exchanged transposes the numbers between the stages through workgroup memory, one part
// at a time. The layout is rotated (swizzled) to avoid bank conflicts on both sides.
func (f *dftPass) exchanged(stages [][]complexExpr) [][]complexExpr {
	place := func(ka, jb, column scalar.Expr) scalar.Expr {
		column = rest(scalar.Add(column, scalar.Add(ka, jb)), f.width)
		return scalar.Add(times(scalar.Add(times(ka, f.rb), jb), f.width), column)
	}
	out := make([][]complexExpr, f.keep/f.rb)
	for part := range 2 {
		if part > 0 {
			f.Barrier()
		}
		for i, stage := range stages {
			column, jb := f.combination(i, f.rb, f.n/f.r >= f.width)
			for ka, y := range stage {
				f.Store(f.exchange, place(loop.Int(ka), jb, column), y[part])
			}
		}
		f.Barrier()
		for i := range out {
			column, ka := f.combination(i, f.ra, f.before >= f.width)
			out[i] = append(out[i], make([]complexExpr, f.rb-len(out[i]))...)
			for jb := range out[i] {
				out[i][jb][part] = f.Let("part", f.get(f.exchange, place(ka, loop.Int(jb), column)))
			}
		}
	}
	return out
}

// finish computes the second stage and stores the results times the twiddle factors
// between passes.
func (f *dftPass) finish(stages [][]complexExpr) {
	for i, x := range stages {
		column, ka := f.combination(i, f.ra, f.before >= f.width)
		first, at := f.row(column)
		p, q := f.Let("p", over(at, f.before)), f.Let("q", rest(at, f.before))
		y := f.transform(x)
		if rest := f.n / f.before; rest > f.r {
			y = f.times(y, f.turn(times(p, f.ra), rest))
			by := f.turn(scalar.Mul(p, ka), rest)
			for kb := range y {
				y[kb] = f.product(y[kb], by)
			}
		}
		there := f.Let("there", scalar.Lt(scalar.Add(times(f.matrix, f.width), column), loop.Int(f.columns)))
		f.When(scalar.And(f.exists, there), func() {
			base := scalar.Add(first, scalar.Add(times(p, f.before*f.r), q))
			for kb, y := range y {
				k := plus(ka, f.ra*kb)
				to := f.Let("to", scalar.Add(base, times(k, f.before)))
				f.Store(f.out[0], to, y[0])
				f.Store(f.out[1], to, y[1])
			}
		})
	}
}

// log2 returns ⌊log₂ n⌋ for positive n.
func log2(n int) int { return int(math.Log2(float64(n))) }

// complexExpr is a complex number as its real and imaginary parts.
type complexExpr [2]scalar.Expr

// turn returns the twiddle factor exp(sign·2πi·k/n) for a power of two n, from an angle of
// at most π, whose rounding error is that of the sine.
func (f *dftPass) turn(k scalar.Expr, n int) complexExpr {
	k = f.Let("k", rest(k, n))
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
