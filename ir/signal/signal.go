// Package signal has functions of signals over a builder: cosine transforms by [ops.DFT], and
// interpolation in tables. They compose ops, so derivatives of every order exist. Spectra, frames and
// filters are in package ops: [ops.FFT], [ops.RFFT], [ops.STFT], [ops.Welch]. Errors are recorded in the
// builder: of kind [ir.ErrShape] for a wrong shape, [ir.ErrDType] for a wrong element type, [ir.ErrAttr]
// for options outside their domain and [ir.ErrSymbol] where a size must be a number and is symbolic.
package signal

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// DCTOptions are the options of [DCT] and [IDCT].
type DCTOptions struct {
	// Type is 1, 2, 3 or 4; 0 means 2.
	Type int
	// Norm is [ops.FFTBackward], also for "", where the inverse is divided by the length of the
	// extended signal, [ops.FFTForward], where the transform is, or [ops.FFTOrtho], where both are
	// orthogonal.
	Norm string
}

// DCT returns the discrete cosine transform of real numbers x, f32 or f64, along an axis of n elements, a number
// of 1 or more, of 2 or more for type 1, as scipy.fft.dct (Makhoul, A Fast Cosine Transform in One and Two Dimensions):
//
//   - type 1: x₀ + (−1)ᵏ·xₙ₋₁ + 2·Σ xⱼ·cos(π·j·k/(n−1)) over 0 < j < n − 1;
//   - type 2: 2·Σ xⱼ·cos(π·k·(2j+1)/2n);
//   - type 3: x₀ + 2·Σ xⱼ·cos(π·j·(2k+1)/2n) over j > 0;
//   - type 4: 2·Σ xⱼ·cos(π·(2k+1)·(2j+1)/4n).
func DCT(b *ir.Builder, x ir.Value, axis int, o ...DCTOptions) ir.Value {
	return transform(b, "signal.dct", x, axis, o, false)
}

// IDCT returns the inverse of [DCT] with the same options (scipy.fft.idct).
func IDCT(b *ir.Builder, x ir.Value, axis int, o ...DCTOptions) ir.Value {
	return transform(b, "signal.idct", x, axis, o, true)
}

func transform(b *ir.Builder, op ir.Op, x ir.Value, axis int, o []DCTOptions, inverse bool) ir.Value {
	c, ok := argument.Of(b, op, x)
	if !ok {
		return ir.Value{}
	}
	opts := argument.Option(c, o)
	c.That(x.DType() == ir.F32 || x.DType() == ir.F64, func() error { return ir.DTypef("x is %s: it must be f32 or f64", x.Type()) })
	kind, norm := opts.Type, c.Word("Norm", opts.Norm, ops.FFTBackward, ops.FFTForward, ops.FFTOrtho)
	if kind == 0 {
		kind = 2
	}
	c.Attr(kind >= 1 && kind <= 4, "Type is %d: it must be 1, 2, 3 or 4", kind)
	axis = c.Axis(axis, x.Rank())
	if b.Err() != nil {
		return ir.Value{}
	}
	n := c.Size(x, axis, "x")
	least := 1
	if kind == 1 {
		least = 2
	}
	if !c.Shape(n >= least, "axis %d of x, %s, must have %d elements or more", axis, x.Type(), least) {
		return ir.Value{}
	}
	if inverse && (kind == 2 || kind == 3) { // they are inverses of each other
		kind = 5 - kind
	}
	t := &cosines{Builder: b, n: n}
	y := t.scaled(ops.MoveAxis(b, x, axis, -1), kind, norm, inverse)
	return ops.MoveAxis(b, y, -1, axis)
}

// cosines computes transforms of n elements along the last axis.
type cosines struct {
	*ir.Builder
	n int
}

// scaled normalises the transform of a type.
func (t *cosines) scaled(x ir.Value, kind int, norm string, inverse bool) ir.Value {
	extended := float64(2 * t.n)
	if kind == 1 {
		extended -= 2
	}
	switch {
	case norm == ops.FFTOrtho:
		before, after := t.ends(kind)
		y := t.unscaled(t.times(x, before), kind)
		return t.times(y, func(k int) float64 { return after(k) / math.Sqrt(extended) })
	case inverse == (norm == ops.FFTBackward):
		return t.times(t.unscaled(x, kind), func(int) float64 { return 1 / extended })
	}
	return t.unscaled(x, kind)
}

// ends returns the factors of elements before and after a transform that make it orthogonal up to a
// constant.
func (t *cosines) ends(kind int) (before, after func(k int) float64) {
	at := func(factor float64, last bool) func(k int) float64 {
		return func(k int) float64 {
			if k == 0 || last && k == t.n-1 {
				return factor
			}
			return 1
		}
	}
	before, after = at(1, false), at(1, false)
	switch kind {
	case 1:
		return at(math.Sqrt2, true), at(math.Sqrt2/2, true)
	case 2:
		after = at(math.Sqrt2/2, false)
	case 3:
		before = at(math.Sqrt2, false)
	}
	return before, after
}

// times multiplies elements by factors.
func (t *cosines) times(x ir.Value, factor func(k int) float64) ir.Value {
	f, same := make([]float64, t.n), true
	for k := range f {
		f[k] = factor(k)
		same = same && f[k] == 1
	}
	if same || t.Err() != nil {
		return x
	}
	return ops.Mul(t.Builder, x, ops.Literal(t.Builder, ir.Floats(x.DType(), f)))
}

// rotated multiplies complex elements by e^(i·angle).
func (t *cosines) rotated(re, im ir.Value, angle func(k int) float64) (outRe, outIm ir.Value) {
	b := t.Builder
	cos := func(x ir.Value) ir.Value { return t.times(x, func(k int) float64 { return math.Cos(angle(k)) }) }
	sin := func(x ir.Value) ir.Value { return t.times(x, func(k int) float64 { return math.Sin(angle(k)) }) }
	if !im.Valid() {
		return cos(re), sin(re)
	}
	return ops.Sub(b, cos(re), sin(im)), ops.Add(b, sin(re), cos(im))
}

func (t *cosines) unscaled(x ir.Value, kind int) ir.Value {
	b, n := t.Builder, float64(t.n)
	if b.Err() != nil {
		return x
	}
	part := func(x ir.Value, from, count int) ir.Value { return ops.SliceAxis(b, x, -1, ir.N(from), ir.N(count)) }
	double := func(x ir.Value) ir.Value { return ops.Mul(b, x, ops.ConstLike(b, x, 2)) }
	switch kind {
	case 1: // the spectrum of the signal, mirrored at both ends
		whole := x
		if t.n > 2 {
			whole = ops.Concatenate(b, x.Rank()-1, x, ops.Reverse(b, part(x, 1, t.n-2), -1))
		}
		re, _ := ops.DFT(b, whole, ir.Value{}, false)
		return part(re, 0, t.n)
	case 2:
		re, im := ops.DFT(b, t.interleaved(x), ir.Value{}, false)
		re, _ = t.rotated(re, im, func(k int) float64 { return -math.Pi * float64(k) / (2 * n) })
		return double(re)
	case 3: // the steps of type 2, backwards
		re, im := t.rotated(x, t.mirrored(x), func(k int) float64 { return math.Pi * float64(k) / (2 * n) })
		re, _ = ops.DFT(b, re, im, true)
		return t.separated(re)
	}
	re, im := t.rotated(x, ir.Value{}, func(j int) float64 { return -math.Pi * float64(2*j+1) / (4 * n) })
	longer := func(x ir.Value) ir.Value {
		low, high := make([]int, x.Rank()), make([]int, x.Rank())
		high[x.Rank()-1] = t.n
		return ops.Pad(b, x, ops.Zeros(b, x.DType()), low, high, nil)
	}
	re, im = ops.DFT(b, longer(re), longer(im), false)
	re, _ = t.rotated(part(re, 0, t.n), part(im, 0, t.n), func(k int) float64 { return -math.Pi * float64(k) / (2 * n) })
	return double(re)
}

// interleaved returns the elements of even positions and then those of odd ones backwards.
func (t *cosines) interleaved(x ir.Value) ir.Value {
	if t.n < 3 {
		return x
	}
	order := make([]int64, t.n)
	for i := range order {
		if order[i] = int64(2 * i); 2*i >= t.n {
			order[i] = int64(2*(t.n-1-i) + 1)
		}
	}
	return t.ordered(x, order)
}

// separated is the inverse of interleaved.
func (t *cosines) separated(x ir.Value) ir.Value {
	if t.n < 3 {
		return x
	}
	order := make([]int64, t.n)
	for i := range order {
		if order[i] = int64(i / 2); i%2 == 1 {
			order[i] = int64(t.n - 1 - i/2)
		}
	}
	return t.ordered(x, order)
}

// mirrored returns −x[n − k] for k > 0, and 0 for k = 0.
func (t *cosines) mirrored(x ir.Value) ir.Value {
	b := t.Builder
	order := make([]int64, t.n)
	for k := range order {
		order[k] = int64(t.n-k) % int64(t.n)
	}
	return t.times(t.ordered(x, order), func(k int) float64 {
		if b.Err() != nil || k == 0 {
			return 0
		}
		return -1
	})
}

func (t *cosines) ordered(x ir.Value, order []int64) ir.Value {
	return ops.Take(t.Builder, x, ops.Literal(t.Builder, ir.Ints(ir.I32, order)), -1, ops.OutsideClip)
}

// InterpOptions are the options of [Interp].
type InterpOptions struct {
	// Left is the result below the first point, Right above the last; nil means the value there.
	Left, Right *float64
}

// Interp returns the piecewise linear function through the points (xp, fp) at x, of any shape
// (numpy.interp). xp and fp are vectors of one size, 1 or more; xp increases. All are of one float type.
// NaN gives NaN. The derivative by x at a point is that of the piece on the right; beyond the ends it is 0. Where two points have one
// xp, the second counts.
func Interp(b *ir.Builder, x, xp, fp ir.Value, o ...InterpOptions) ir.Value {
	c, ok := argument.Of(b, "signal.interp", x, xp, fp)
	if !ok || !c.Floats() {
		return ir.Value{}
	}
	opts := argument.Option(c, o)
	c.Shape(xp.Rank() == 1 && fp.Rank() == 1 && xp.Dim(0) == fp.Dim(0), "xp is %s and fp %s: they must be vectors of one size", xp.Type(), fp.Type())
	n := c.Size(xp, 0, "xp")
	if !c.Shape(n > 0, "xp is %s: there must be a point", xp.Type()) {
		return ir.Value{}
	}
	d := x.DType()
	wide := func(x ir.Value) ir.Value { return ops.Convert(b, x, argument.Wide(d)) }
	x, xp, fp = wide(x), wide(xp), wide(fp)
	y := interpolated(b, x, xp, fp, n)
	end := func(list ir.Value, i int) ir.Value {
		return ops.Squeeze(b, ops.SliceAxis(b, list, 0, ir.N(i), ir.N(1)), 0)
	}
	beyond := func(given *float64, i int) ir.Value {
		if given != nil {
			return ops.Const(b, x.DType(), *given)
		}
		return end(fp, i)
	}
	at := func(v ir.Value) ir.Value { return ops.BroadcastTo(b, v, x.Shape()) }
	y = ops.Select(b, ops.Lt(b, x, end(xp, 0)), at(beyond(opts.Left, 0)), y)
	y = ops.Select(b, ops.Gt(b, x, end(xp, n-1)), at(beyond(opts.Right, n-1)), y)
	return ops.Convert(b, y, d)
}

// interpolated returns the values between the points.
func interpolated(b *ir.Builder, x, xp, fp ir.Value, n int) ir.Value {
	index := ops.SearchSorted(b, ops.StopGradient(b, xp), ops.StopGradient(b, x), true) // the number of points up to x
	number := func(i int) ir.Value { return ops.ConstLike(b, index, float64(i)) }
	right := ops.Clamp(b, index, number(0), number(n-1))
	left := ops.Clamp(b, ops.Sub(b, index, number(1)), number(0), number(n-1))
	take := func(list, i ir.Value) ir.Value { return ops.Take(b, list, i, 0, ops.OutsideClip) }
	x0, y0 := take(xp, left), take(fp, left)
	run, rise := ops.Sub(b, take(xp, right), x0), ops.Sub(b, take(fp, right), y0)
	run = ops.Select(b, ops.Eq(b, run, ops.ZerosLike(b, run)), ops.OnesLike(b, run), run)
	part := ops.Div(b, ops.Sub(b, x, x0), run)
	return ops.Add(b, y0, ops.Mul(b, part, rise))
}
