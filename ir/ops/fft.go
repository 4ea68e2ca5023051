package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Fourier transforms of complex numbers, with bodies of dft. For the convention of complex
// derivatives see [OpComplex].
const (
	OpFFT      ir.Op = "fft"
	OpFFTShift ir.Op = "fftshift"
)

// Normalisations by the number n of elements, as in NumPy.
const (
	FFTBackward = "backward" // the inverse
	FFTForward  = "forward"  // the transform
	FFTOrtho    = "ortho"    // both, by √n
)

// FFTAttrs describe a transform along some axes.
type FFTAttrs struct {
	Axes    []int
	Inverse bool
	Norm    string // FFTBackward where empty
}

// Visit shows the attributes.
func (a *FFTAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("axes", &a.Axes)
	v.Bool("inverse", &a.Inverse)
	v.Text("norm", &a.Norm)
}

// Complete sets the default: the last axis.
func (a *FFTAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axes") && len(in) > 0 {
		a.Axes = []int{max(len(in[0].Shape)-1, 0)}
	}
}

// ShiftAttrs hold the axes to shift along.
type ShiftAttrs struct {
	Axes    []int
	Inverse bool
}

// Visit shows the attributes.
func (a *ShiftAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("axes", &a.Axes)
	v.Bool("inverse", &a.Inverse)
}

// Complete sets the default: all axes.
func (a *ShiftAttrs) Complete(in []ir.Type, given func(name string) bool) {
	defaultAxes(&a.Axes, in, given)
}

const normText = `norm is "backward" (the inverse is divided by n), "forward" (the transform is) or "ortho" (both are, by √n), for n elements`

func init() {
	sized := "the axes have elements, and no symbolic size"
	defineComposite(composite{
		op: OpFFT, doc: "The discrete Fourier transform along some axes, of any length: Σⱼ xⱼ·exp(-2πi·jk/n) along each, with the sign + for the inverse.",
		types: complexes, constraints: []string{"axes are distinct axes of x", sized, normText}, newAttrs: func() ir.Attrs { return &FFTAttrs{Norm: FFTBackward} },
		check: func(n *ir.Node) error {
			a := n.Attrs().(*FFTAttrs)
			return checkTransform(n, a.Norm, a.Axes...)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*FFTAttrs)
			re, im := Real(b, in[0]), Imag(b, in[0])
			for _, axis := range a.Axes {
				re, im = dftAlong(b, re, im, axis, a.Inverse, a.Norm)
			}
			return Complex(b, re, im)
		},
	})
	defineRealFFT(sized)
	defineFFTShift()
}

func defineFFTShift() {
	defineComposite(composite{
		op: OpFFTShift, doc: "Moves frequency 0 to the middle of some axes, or back with inverse (numpy.fft.fftshift).",
		types: plain, constraints: []string{"axes are distinct axes of x, without symbolic sizes"}, newAttrs: func() ir.Attrs { return &ShiftAttrs{} },
		check: func(n *ir.Node) error { return checkAxes(n.Attrs().(*ShiftAttrs).Axes, n.Input(0).Rank()) },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, x := n.Attrs().(*ShiftAttrs), in[0]
			for _, axis := range a.Axes {
				size, ok := sizeOf(b, OpFFTShift, x, axis)
				if !ok {
					return ir.Value{}
				}
				by := size / 2
				if a.Inverse {
					by = -by
				}
				x = Roll(b, x, axis, by)
			}
			return x
		},
	})
}

// checkTransform refuses axes without elements or with symbolic sizes.
func checkTransform(n *ir.Node, norm string, axes ...int) error {
	t := n.Input(0).Type()
	if err := checkAxes(axes, len(t.Shape)); err != nil {
		return err
	}
	if norms := []string{FFTBackward, FFTForward, FFTOrtho}; !slices.Contains(norms, norm) {
		return ir.Attrf("norm is %q, not one of %q", norm, norms)
	}
	for _, axis := range axes {
		if size, ok := t.Shape[axis].Const(); !ok || size == 0 {
			return ir.Shapef("axis %d of %s has no elements or a symbolic size", axis, t)
		}
	}
	return nil
}

// dftAlong transforms along an axis and normalises. im may be the zero Value, for 0.
func dftAlong(b *ir.Builder, re, im ir.Value, axis int, inverse bool, norm string) (outRe, outIm ir.Value) {
	last := func(x ir.Value) ir.Value {
		if !x.Valid() {
			return x
		}
		return MoveAxis(b, x, axis, -1)
	}
	re, im = DFT(b, last(re), last(im), inverse)
	if b.Err() != nil {
		return re, im
	}
	size, _ := re.Dim(-1).Const()
	factor := 1.0
	switch {
	case norm == FFTOrtho:
		factor = 1 / math.Sqrt(float64(size))
	case inverse == (norm == FFTBackward):
		factor = 1 / float64(size)
	}
	finish := func(x ir.Value) ir.Value {
		if factor != 1 {
			x = Mul(b, x, ConstLike(b, x, factor))
		}
		return MoveAxis(b, x, -1, axis)
	}
	return finish(re), finish(im)
}

// FFT returns the discrete Fourier transform of complex numbers along a.Axes, or along the
// last axis if there are none; a.Norm is [FFTBackward] by default. Negative axes count
// from the last. Two axes make it fft2.
func FFT(b *ir.Builder, x ir.Value, a FFTAttrs) ir.Value {
	if a.Axes == nil {
		a.Axes = []int{-1}
	}
	a.Axes = fromFront(a.Axes, x.Rank())
	a.Norm = orBackward(a.Norm)
	return b.Add1(OpFFT, &a, x)
}

func orBackward(norm string) string {
	if norm == "" {
		return FFTBackward
	}
	return norm
}

// FFTShift moves frequency 0 to the middle of a.Axes, or of all axes if there are none, or
// back with a.Inverse.
func FFTShift(b *ir.Builder, x ir.Value, a ShiftAttrs) ir.Value {
	a.Axes = reducedAlong(x, a.Axes).Axes
	return b.Add1(OpFFTShift, &a, x)
}

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
				return ir.Shapef("length is %d, and axis %d of x, %s, not of length/2 + 1 elements", a.Length, a.Axis, n.Input(0).Type())
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
