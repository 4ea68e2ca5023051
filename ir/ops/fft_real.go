package ops

import "github.com/rlx-go/rlx/ir"

// Fourier transforms of real numbers: half of the spectrum, the rest being conjugates.
const (
	OpRFFT  ir.Op = "rfft"
	OpIRFFT ir.Op = "irfft"
)

// RFFTAttrs describe a transform of Length real numbers along an axis.
type RFFTAttrs struct {
	Axis   int
	Length int // of the result of irfft; rfft ignores it
	Norm   string
}

// Visit shows the attributes.
func (a *RFFTAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Int("length", &a.Length)
	v.Text("norm", &a.Norm)
}

// Complete sets the defaults: the last axis, and the even length of the two possible ones.
func (a *RFFTAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if len(in) == 0 || len(in[0].Shape) == 0 {
		return
	}
	if !given("axis") {
		a.Axis = len(in[0].Shape) - 1
	}
	if !given("length") && a.Axis >= 0 && a.Axis < len(in[0].Shape) {
		n, _ := in[0].Shape[a.Axis].Const()
		a.Length = 2 * max(n-1, 0)
	}
}

func defineRealFFT(sized string) {
	newAttrs := func() ir.Attrs { return &RFFTAttrs{Norm: FFTBackward} }
	check := func(n *ir.Node) error {
		a := n.Attrs().(*RFFTAttrs)
		return checkTransform(n, a.Norm, a.Axis)
	}
	defineComposite(composite{
		op: OpRFFT, doc: "The discrete Fourier transform of real numbers along an axis of n elements: frequencies 0 to ⌊n/2⌋; the others are their conjugates.",
		types: floats, constraints: []string{"x is f32 or f64, the result c64 or c128", "axis is an axis of x", sized, normText}, newAttrs: newAttrs, check: check,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*RFFTAttrs)
			size, _ := in[0].Dim(a.Axis).Const()
			re, im := dftAlong(b, in[0], ir.Value{}, a.Axis, false, a.Norm)
			half := func(x ir.Value) ir.Value { return SliceAxis(b, x, a.Axis, ir.N(0), ir.N(size/2+1)) }
			return Complex(b, half(re), half(im))
		},
	})
	defineComposite(composite{
		op: OpIRFFT, doc: "The inverse of rfft, with length elements along an axis: the other frequencies are the conjugates of those given; the imaginary parts of frequency 0 and length/2 are ignored.",
		types:       complexes,
		constraints: []string{"axis is an axis of x", "length is positive and the axis has length/2 + 1 elements", normText}, newAttrs: newAttrs,
		check: func(n *ir.Node) error {
			if err := check(n); err != nil {
				return err
			}
			a := n.Attrs().(*RFFTAttrs)
			if size := n.Input(0).Dim(a.Axis); a.Length < 1 || !size.Is(a.Length/2+1) {
				return ir.Shapef("axis %d of %s has not the %d elements for a length of %d", a.Axis, n.Input(0).Type(), max(a.Length, 0)/2+1, a.Length)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*RFFTAttrs)
			re, im := wholeSpectrum(b, Real(b, in[0]), Imag(b, in[0]), a.Axis, a.Length)
			re, _ = dftAlong(b, re, im, a.Axis, true, a.Norm)
			return re
		},
	})
}

// wholeSpectrum appends the conjugates of frequencies (n-1)/2 down to 1 along an axis.
func wholeSpectrum(b *ir.Builder, re, im ir.Value, axis, n int) (wholeRe, wholeIm ir.Value) {
	mirrored := func(x ir.Value) ir.Value {
		return Reverse(b, SliceAxis(b, x, axis, ir.N(1), ir.N((n-1)/2)), axis)
	}
	if (n-1)/2 == 0 {
		return re, im
	}
	return Concatenate(b, axis, re, mirrored(re)), Concatenate(b, axis, im, Neg(b, mirrored(im)))
}

// RFFT returns frequencies 0 to ⌊n/2⌋ of n real numbers, f32 or f64, along axis. norm is
// [FFTBackward] also for "".
func RFFT(b *ir.Builder, x ir.Value, axis int, norm string) ir.Value {
	return b.Add1(OpRFFT, &RFFTAttrs{Axis: fromFront([]int{axis}, x.Rank())[0], Norm: orBackward(norm)}, x)
}

// IRFFT returns length real numbers from frequencies 0 to ⌊length/2⌋ along axis, the
// inverse of [RFFT].
func IRFFT(b *ir.Builder, x ir.Value, axis, length int, norm string) ir.Value {
	return b.Add1(OpIRFFT, &RFFTAttrs{fromFront([]int{axis}, x.Rank())[0], length, orBackward(norm)}, x)
}
