package ops

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Short-time spectra of signals. Spectra are pairs of real values, which every device
// supports; [Complex] joins them.
const (
	OpSTFT   ir.Op = "stft"
	OpISTFT  ir.Op = "istft"
	OpLogMel ir.Op = "log_mel"
	OpWelch  ir.Op = "welch"
)

// FrameAttrs describe how a signal is split into frames.
type FrameAttrs struct {
	// Hop is the distance between the starts of frames; 0 means 1.
	Hop int
	// Center pads the signal by half a frame of reflection at both ends, so that frame i
	// is centred at element i·Hop.
	Center bool
}

// Visit shows the attributes.
func (a *FrameAttrs) Visit(v ir.AttrVisitor) {
	v.Int("hop", &a.Hop)
	v.Bool("center", &a.Center)
}

// UnframeAttrs describe how the frames were split, and hold the length of the signal: 0
// means all that the frames cover.
type UnframeAttrs struct {
	FrameAttrs
	Length int
}

// Visit shows the attributes.
func (a *UnframeAttrs) Visit(v ir.AttrVisitor) {
	a.FrameAttrs.Visit(v)
	v.Int("length", &a.Length)
}

// LogMelAttrs describe a log-mel spectrogram.
type LogMelAttrs struct {
	FrameAttrs
	// Floor is the lower bound of the energy before the logarithm. 0 means 1e-10.
	Floor float64
}

// Visit shows the attributes.
func (a *LogMelAttrs) Visit(v ir.AttrVisitor) {
	a.FrameAttrs.Visit(v)
	v.Float("floor", &a.Floor)
}

// defaultFloor is the floor of [LogMel], as in Whisper.
const defaultFloor = 1e-10

// WelchAttrs describe an estimate of spectral density: Rate is the sampling rate. Zeros
// mean 1.
type WelchAttrs struct {
	Hop  int
	Rate float64
}

// Visit shows the attributes.
func (a *WelchAttrs) Visit(v ir.AttrVisitor) {
	v.Int("hop", &a.Hop)
	v.Float("rate", &a.Rate)
}

const framesDoc = "frames have the length n of the window, hop is positive, and there is at least one frame; with center, the signal is longer than n/2"

func init() {
	defineSpectra(spectra{
		op: OpSTFT, doc: "The short-time Fourier transform: unnormalised spectra of frames times a window, as real and imaginary parts, [..., frames, n/2 + 1].",
		operands: []string{"x", "window"}, newAttrs: func() ir.Attrs { return &FrameAttrs{Hop: 1} },
		constraints: []string{"x is f32 or f64, window is of its type and has one axis", framesDoc},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			re, im := spectraOf(b, n.Op(), in[0], in[1], *n.Attrs().(*FrameAttrs), false)
			return []ir.Value{re, im}
		},
	})
	defineSpectra(spectra{
		op: OpISTFT, doc: "The inverse short-time Fourier transform, in the least-squares sense: the overlap-add of windowed frames divided by the overlap-added squares of the window, which must not be 0 (Griffin and Lim).",
		operands: []string{"re", "im", "window"}, newAttrs: func() ir.Attrs { return &UnframeAttrs{FrameAttrs: FrameAttrs{Hop: 1}} },
		constraints: []string{"re and im have one type, [..., frames, n/2 + 1], of f32 or f64; window is of its element type and has one axis, of n elements", "hop is positive and length is not more than the frames cover"},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{unframed(b, in[0], in[1], in[2], n.Attrs().(*UnframeAttrs))}
		},
	})
	defineSpectra(spectra{
		op: OpLogMel, doc: "The log-mel spectrogram of a signal: log(max(|stft|²·filtersᵀ, floor)), [..., frames, filters]. It is differentiable by the filters too.",
		operands: []string{"x", "window", "filters"}, newAttrs: func() ir.Attrs { return &LogMelAttrs{FrameAttrs{Hop: 1}, defaultFloor} },
		constraints: []string{"x is f32 or f64, window and filters are of its type: [n] and [filters, n/2 + 1]", framesDoc, "floor is positive"},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*LogMelAttrs)
			re, im := spectraOf(b, n.Op(), in[0], in[1], a.FrameAttrs, false)
			if b.Err() == nil && (in[2].Rank() != 2 || in[2].DType() != re.DType() || in[2].Dim(1) != re.Dim(-1) || !(a.Floor > 0)) {
				b.Failf(n.Op(), in, ir.Shapef("filters is %s and floor %v: filters must be [filters, %s] of %s, and floor positive", in[2].Type(), a.Floor, re.Dim(-1), re.DType()))
			}
			energy := MatMul(b, power(b, re, im), adjoint(b, in[2]))
			return []ir.Value{Log(b, Max(b, energy, ConstLike(b, energy, a.Floor)))}
		},
	})
	defineSpectra(spectra{
		op: OpWelch, doc: "The power spectral density of real signals by Welch's method: the mean of the squared spectra of windowed, mean-free frames, divided by rate·Σ window², and doubled for one-sided frequencies. " +
			"[..., n/2 + 1], as SciPy's signal.welch with its defaults.",
		operands: []string{"x", "window"}, newAttrs: func() ir.Attrs { return &WelchAttrs{1, 1} },
		constraints: []string{"x is f32 or f64, window is of its type and has one axis", framesDoc, "rate is positive"},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			return []ir.Value{welch(b, n, in)}
		},
	})
}

// spectra describes a composite of any number of results whose shape rule is its
// body's.
type spectra struct {
	op          ir.Op
	doc         string
	operands    []string
	constraints []string
	newAttrs    func() ir.Attrs
	body        func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value
}

func defineSpectra(s spectra) {
	define(&ir.Def{
		Op: s.op, Doc: s.doc, Operands: s.operands, Constraints: numbered(s.constraints...), NewAttrs: s.newAttrs,
		Infer: func(n *ir.Node) ([]ir.Type, error) { return bodyTypes(n, s.body) },
		Body:  s.body,
	})
}

// STFT returns the real and imaginary parts of the short-time Fourier transform of signals
// x along the last axis, of f32 or f64: [..., frames, n/2 + 1] for a window [n].
func STFT(b *ir.Builder, x, window ir.Value, a FrameAttrs) (re, im ir.Value) {
	a.Hop = cmp.Or(a.Hop, 1)
	return two(b.Add(OpSTFT, &a, x, window))
}

// ISTFT returns the signals, [..., length], with the given short-time Fourier transforms,
// the inverse of [STFT]: re and im are [..., frames, n/2 + 1], of f32 or f64, and window
// is [n].
func ISTFT(b *ir.Builder, re, im, window ir.Value, a UnframeAttrs) ir.Value {
	a.Hop = cmp.Or(a.Hop, 1)
	return b.Add1(OpISTFT, &a, re, im, window)
}

// LogMel returns the log-mel spectrogram of signals x, [..., samples], for a window [n]
// and filters [filters, n/2 + 1]: [..., frames, filters]. All are f32 or f64. See
// [MelFilterbank].
func LogMel(b *ir.Builder, x, window, filters ir.Value, a LogMelAttrs) ir.Value {
	a.Hop, a.Floor = cmp.Or(a.Hop, 1), cmp.Or(a.Floor, defaultFloor)
	return b.Add1(OpLogMel, &a, x, window, filters)
}

// Welch returns the power spectral density of signals x, [..., samples] of f32 or f64, by
// Welch's method with a window [n]: [..., n/2 + 1]. a.Rate is the sampling rate in hertz.
func Welch(b *ir.Builder, x, window ir.Value, a WelchAttrs) ir.Value {
	a.Hop, a.Rate = cmp.Or(a.Hop, 1), cmp.Or(a.Rate, 1)
	return b.Add1(OpWelch, &a, x, window)
}

// spectraOf returns frequencies 0 to n/2 of the windowed frames of x, with their means
// subtracted if centred.
func spectraOf(b *ir.Builder, op ir.Op, x, window ir.Value, a FrameAttrs, centred bool) (re, im ir.Value) {
	none := ir.Value{}
	switch {
	case x.Rank() < 1 || window.Rank() != 1 || x.DType() != window.DType():
		b.Failf(op, []ir.Value{x, window}, ir.Shapef("x is %s and window %s, not of one element type and of rank 1 or more and 1", x.Type(), window.Type()))
		return none, none
	case a.Hop < 1:
		b.Failf(op, []ir.Value{x, window}, ir.Attrf("hop is %d, less than 1", a.Hop))
		return none, none
	}
	n, ok := sizeOf(b, op, window, 0)
	size, ok2 := sizeOf(b, op, x, -1)
	switch {
	case !ok || !ok2:
		return none, none
	case n < 1 || a.Center && size <= n/2 || !a.Center && size < n:
		b.Failf(op, []ir.Value{x, window}, ir.Shapef("a signal of %d elements is too short for frames of %d", size, n))
		return none, none
	}
	if a.Center {
		ends := make([]int, x.Rank())
		ends[x.Rank()-1] = n / 2
		x = PadMode(b, x, ends, slices.Clone(ends), PadReflect)
	}
	frames := Windows(b, x, WindowsAttrs{Axes: []int{-1}, Sizes: []int{n}, Strides: []int{a.Hop}})
	if centred {
		frames = Sub(b, frames, KeepDims(b, Mean, frames, -1))
	}
	re, im = DFT(b, Mul(b, frames, window), none, false)
	half := func(x ir.Value) ir.Value { return SliceAxis(b, x, -1, ir.N(0), ir.N(n/2+1)) }
	return half(re), half(im)
}

// power returns re² + im².
func power(b *ir.Builder, re, im ir.Value) ir.Value {
	return Add(b, Mul(b, re, re), Mul(b, im, im))
}

// unframed overlap-adds frames and divides by the overlap-added squares of the window.
func unframed(b *ir.Builder, re, im, window ir.Value, a *UnframeAttrs) ir.Value {
	n, ok := sizeOf(b, OpISTFT, window, 0)
	if !ok {
		return ir.Value{}
	}
	if re.Rank() < 2 || window.Rank() != 1 || !re.Type().Equal(im.Type()) || window.DType() != re.DType() || !re.Dim(-1).Is(n/2+1) || n < 1 {
		b.Failf(OpISTFT, []ir.Value{re, im, window}, ir.Shapef("re is %s and im %s, not the spectra of frames of window, %s", re.Type(), im.Type(), window.Type()))
		return ir.Value{}
	}
	frames, ok := sizeOf(b, OpISTFT, re, -2)
	start := 0
	if a.Center {
		start = n / 2
	}
	covered := (frames-1)*a.Hop + n
	length := a.Length
	if length == 0 {
		length = covered - 2*start
	}
	if !ok || a.Hop < 1 || frames < 1 || length < 0 || start+length > covered {
		b.Failf(OpISTFT, []ir.Value{re, im, window}, ir.Attrf("length is %d: it must be that of %d frames at a hop of %d", length, frames, a.Hop))
		return ir.Value{}
	}
	re, im = wholeSpectrum(b, re, im, re.Rank()-1, n)
	x, _ := dftAlong(b, re, im, re.Rank()-1, true, FFTBackward)
	lay := func(x ir.Value) ir.Value {
		axis := x.Rank() - 2
		sum := OverlapAdd(b, x, OverlapAddAttrs{Axes: []int{axis}, Strides: []int{a.Hop}, Dilations: []int{1}, Dims: ir.Dims(covered)})
		return SliceAxis(b, sum, -1, ir.N(start), ir.N(length))
	}
	squares := Mul(b, window, window)
	return Div(b, lay(Mul(b, x, window)), lay(BroadcastTo(b, squares, ir.Dims(frames, n))))
}

func welch(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a := n.Attrs().(*WelchAttrs)
	if !(a.Rate > 0) {
		b.Failf(n.Op(), in, ir.Attrf("rate is %v, not positive and finite", a.Rate))
		return ir.Value{}
	}
	re, im := spectraOf(b, n.Op(), in[0], in[1], FrameAttrs{Hop: a.Hop}, true)
	if b.Err() != nil {
		return ir.Value{}
	}
	size, _ := in[1].Dim(0).Const()
	density := Mean(b, power(b, re, im), -2)
	k := Iota(b, ir.I32, density.Rank()-1, density.Shape()...)
	alone := Or(b, Eq(b, k, int32Like(b, k, 0)), Eq(b, Add(b, k, k), int32Like(b, k, size)))
	density = Select(b, alone, density, Add(b, density, density))
	squares := ReduceSum(b, Mul(b, in[1], in[1]), 0)
	return Div(b, density, Mul(b, squares, ConstLike(b, squares, a.Rate)))
}

// Windows and mel filterbanks.
const (
	OpWindow  ir.Op = "window"
	OpMelBank ir.Op = "mel_filterbank"
)

// windowCosines are the windows Σᵢ (-1)ⁱ·aᵢ·cos(2πi·k/n) by name.
var windowCosines = map[string][]float64{
	"boxcar": {1}, "hann": {0.5, 0.5}, "hamming": {0.54, 0.46}, "blackman": {0.42, 0.5, 0.08},
	"nuttall": {0.3635819, 0.4891775, 0.1365995, 0.0106411}, "blackmanharris": {0.35875, 0.48829, 0.14128, 0.01168},
}

// WindowAttrs describe a window of Length elements. [Window] takes an empty Kind for
// "hann" and a zero DType for f32.
type WindowAttrs struct {
	Kind   string
	Length int
	// Symmetric makes the last element equal to the first one; otherwise the window is
	// periodic, as spectra need.
	Symmetric bool
	// Beta is the shape parameter of a Kaiser window.
	Beta  float64
	DType ir.DType
}

// Visit shows the attributes.
func (a *WindowAttrs) Visit(v ir.AttrVisitor) {
	v.Text("kind", &a.Kind)
	v.Int("length", &a.Length)
	v.Bool("symmetric", &a.Symmetric)
	v.Float("beta", &a.Beta)
	v.DType("dtype", &a.DType)
}

// MelBankAttrs describe a bank of triangular filters, evenly spaced on the mel scale.
type MelBankAttrs struct {
	// Filters is the number of filters, Length the transform length: filters weigh
	// frequencies 0 to Length/2.
	Filters, Length int
	// Rate is the sampling rate, Low and High the frequency range, in hertz.
	Rate, Low, High float64
	// HTK selects the mel scale 2595·log₁₀(1 + f/700) instead of Slaney's, which is linear
	// up to 1 kHz.
	HTK bool
	// Area normalises each filter to unit area: it divides by half the width.
	Area  bool
	DType ir.DType
}

// Visit shows the attributes.
func (a *MelBankAttrs) Visit(v ir.AttrVisitor) {
	v.Int("filters", &a.Filters)
	v.Int("length", &a.Length)
	v.Float("rate", &a.Rate)
	v.Float("low", &a.Low)
	v.Float("high", &a.High)
	v.Bool("htk", &a.HTK)
	v.Bool("area", &a.Area)
	v.DType("dtype", &a.DType)
}

func init() {
	defineTable(OpWindow, "A window function, by SciPy's names and definitions, periodic unless symmetric.",
		[]string{
			`kind is "boxcar", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "bartlett" or "kaiser"`,
			"length is not negative", "dtype is a float type",
		},
		func() ir.Attrs { return &WindowAttrs{Kind: "hann", DType: ir.F32} })
	defineTable(OpMelBank, "Triangular filters evenly spaced on the mel scale, [filters, length/2 + 1]: weights of the frequencies of a transform of length elements (librosa's filters.mel).",
		[]string{"filters and length are positive", "0 ≤ low < high ≤ rate/2, all finite", "dtype is a float type"},
		func() ir.Attrs { return &MelBankAttrs{Area: true, DType: ir.F32} })
}

// tableAttrs describe a constant: its type, of valid attributes, and its elements.
type tableAttrs interface {
	ir.Attrs
	typ() (ir.Type, error)
	table() *ir.Array
}

// TableBytes returns the size of the constant that the attributes of a node describe, as those of a window: 0 for
// nodes that describe none.
func TableBytes(n *ir.Node) int {
	if _, ok := n.Attrs().(tableAttrs); !ok {
		return 0
	}
	bytes, _ := n.Types()[0].Bytes() // of a constant shape
	return bytes
}

// defineTable defines an op without operands whose result is a constant computed from its
// attributes.
func defineTable(op ir.Op, doc string, constraints []string, newAttrs func() ir.Attrs) {
	define(&ir.Def{
		Op: op, Doc: doc, Constraints: numbered(constraints...), NewAttrs: newAttrs,
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := n.Attrs().(tableAttrs).typ()
			return []ir.Type{t}, err
		},
		NoGrad: noOperands, NoBatch: noOperands,
		Body: func(b *ir.Builder, n *ir.Node, _ []ir.Value) []ir.Value {
			return []ir.Value{Literal(b, n.Attrs().(tableAttrs).table())}
		},
	})
}

// Window returns a window function, [a.Length], by SciPy's names and definitions: see
// [WindowAttrs].
func Window(b *ir.Builder, a WindowAttrs) ir.Value {
	a.Kind, a.DType = cmp.Or(a.Kind, "hann"), cmp.Or(a.DType, ir.F32)
	return b.Add1(OpWindow, &a)
}

// MelFilterbank returns triangular filters on the mel scale, [a.Filters, a.Length/2 + 1],
// as librosa's filters.mel.
func MelFilterbank(b *ir.Builder, a MelBankAttrs) ir.Value { return b.Add1(OpMelBank, &a) }

func (a *WindowAttrs) typ() (ir.Type, error) {
	_, known := windowCosines[a.Kind]
	switch {
	case !known && a.Kind != "bartlett" && a.Kind != "kaiser":
		return ir.Type{}, ir.Attrf("kind is %q, no window that is known", a.Kind)
	case a.Length < 0 || a.Length > maxTable:
		return ir.Type{}, ir.Attrf("length is %d, not in [0, %d]", a.Length, maxTable)
	case a.Beta-a.Beta != 0:
		return ir.Type{}, ir.Attrf("beta is %v, not finite", a.Beta)
	}
	return ir.TypeOf(a.DType, ir.N(a.Length)), floats.check(a.DType)
}

func (a *WindowAttrs) table() *ir.Array {
	out, cosines := ir.NewArray(a.DType, a.Length), windowCosines[a.Kind]
	period := a.Length
	if a.Symmetric {
		period--
	}
	for k := range out.F {
		turn := float64(k) / float64(max(period, 1))
		switch {
		case a.Length == 1:
			out.F[k] = 1
		case a.Kind == "bartlett":
			out.F[k] = 1 - math.Abs(2*turn-1)
		case a.Kind == "kaiser":
			out.F[k] = besselI0(a.Beta*math.Sqrt(max(0, 1-(2*turn-1)*(2*turn-1)))) / besselI0(a.Beta)
		default:
			sign := 1.0
			for i, c := range cosines {
				out.F[k] += sign * c * math.Cos(2*math.Pi*float64(i)*turn)
				sign = -sign
			}
		}
	}
	out.Round()
	return out
}

// maxTable bounds the size of a literal computed from attributes.
const maxTable = 1 << 24

// besselI0 is the modified Bessel function Σ (x²/4)ᵏ/k!² of order 0.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-17; k++ {
		term *= x / 2 / k * (x / 2 / k)
		sum += term
	}
	return sum
}

func (a *MelBankAttrs) typ() (ir.Type, error) {
	switch {
	case a.Filters < 1 || a.Length < 1 || a.Filters > maxTable/(a.Length/2+1):
		return ir.Type{}, ir.Attrf("filters is %d and length %d: they must be positive, and the table of at most %d elements", a.Filters, a.Length, maxTable)
	case !(0 <= a.Low && a.Low < a.High && a.High <= a.Rate/2) || math.IsInf(a.Rate, 0):
		return ir.Type{}, ir.Attrf("low is %v, high %v and rate %v: it must be that 0 ≤ low < high ≤ rate/2", a.Low, a.High, a.Rate)
	}
	return ir.TypeOf(a.DType, ir.Dims(a.Filters, a.Length/2+1)...), floats.check(a.DType)
}

func (a *MelBankAttrs) table() *ir.Array {
	bins := a.Length/2 + 1
	out := ir.NewArray(a.DType, a.Filters, bins)
	low, high := a.mel(a.Low), a.mel(a.High)
	edge := func(i int) float64 { return a.hertz(low + (high-low)*float64(i)/float64(a.Filters+1)) }
	for f := range a.Filters {
		left, top, right := edge(f), edge(f+1), edge(f+2)
		scale := 1.0
		if a.Area {
			scale = 2 / (right - left)
		}
		for k := range bins {
			x := float64(k) * a.Rate / float64(a.Length)
			out.F[f*bins+k] = scale * max(0, min((x-left)/(top-left), (right-x)/(right-top)))
		}
	}
	out.Round()
	return out
}

// Slaney's scale: 200/3 Hz a mel up to 1 kHz, and 27 mels for each factor of 6.4
// from there on.
const (
	slaneyWidth = 200.0 / 3
	slaneyKnee  = 1000.0
)

var slaneyStep = math.Log(6.4) / 27

func (a *MelBankAttrs) mel(hertz float64) float64 {
	switch {
	case a.HTK:
		return 2595 * math.Log10(1+hertz/700)
	case hertz < slaneyKnee:
		return hertz / slaneyWidth
	}
	return slaneyKnee/slaneyWidth + math.Log(hertz/slaneyKnee)/slaneyStep
}

func (a *MelBankAttrs) hertz(mel float64) float64 {
	switch {
	case a.HTK:
		return 700 * (math.Pow(10, mel/2595) - 1)
	case mel < slaneyKnee/slaneyWidth:
		return mel * slaneyWidth
	}
	return slaneyKnee * math.Exp(slaneyStep*(mel-slaneyKnee/slaneyWidth))
}
