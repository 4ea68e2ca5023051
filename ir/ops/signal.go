package ops

import (
	"cmp"

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
	// Hop is the distance between the starts of frames; 0 stands for 1.
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
// stands for all that the frames cover.
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
	// Floor is the lower bound of the energy before the logarithm. 0 stands for 1e-10.
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
// stand for 1.
type WelchAttrs struct {
	Hop  int
	Rate float64
}

// Visit shows the attributes.
func (a *WelchAttrs) Visit(v ir.AttrVisitor) {
	v.Int("hop", &a.Hop)
	v.Float("rate", &a.Rate)
}

const framesText = "frames have the length n of the window, hop is positive, and there is at least one frame; with center, the signal is longer than n/2"

func init() {
	defineSpectra(spectra{
		op: OpSTFT, doc: "The short-time Fourier transform: unnormalised spectra of frames times a window, as real and imaginary parts, [..., frames, n/2 + 1].",
		operands: []string{"x", "window"}, newAttrs: func() ir.Attrs { return &FrameAttrs{Hop: 1} },
		constraints: []string{"x is f32 or f64, window is of its type and has one axis", framesText},
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
		constraints: []string{"x is f32 or f64, window and filters are of its type: [n] and [filters, n/2 + 1]", framesText, "floor is positive"},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*LogMelAttrs)
			re, im := spectraOf(b, n.Op(), in[0], in[1], a.FrameAttrs, false)
			if b.Err() == nil && (in[2].Rank() != 2 || in[2].DType() != re.DType() || in[2].Dim(1) != re.Dim(-1) || !(a.Floor > 0)) {
				b.Failf(n.Op(), in, ir.Shapef("filters %s for %s frequencies of %s, floor %v", in[2].Type(), re.Dim(-1), re.DType(), a.Floor))
			}
			energy := MatMul(b, power(b, re, im), adjoint(b, in[2]))
			return []ir.Value{Log(b, Max(b, energy, ConstLike(b, energy, a.Floor)))}
		},
	})
	defineSpectra(spectra{
		op: OpWelch, doc: "The power spectral density of real signals by Welch's method: the mean of the squared spectra of windowed, mean-free frames, divided by rate·Σ window², and doubled for one-sided frequencies. " +
			"[..., n/2 + 1], as SciPy's signal.welch with its defaults.",
		operands: []string{"x", "window"}, newAttrs: func() ir.Attrs { return &WelchAttrs{1, 1} },
		constraints: []string{"x is f32 or f64, window is of its type and has one axis", framesText, "rate is positive"},
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
		Infer:       func(n *ir.Node) ([]ir.Type, error) { return bodyTypes(n, s.body) },
		NoTranspose: "taken of its body",
		Body:        s.body,
	})
}

// STFT returns the real and imaginary parts of the short-time Fourier transform of signals
// x along the last axis, of f32 or f64: [..., frames, n/2 + 1] for a window [n].
func STFT(b *ir.Builder, x, window ir.Value, a FrameAttrs) (re, im ir.Value) {
	a.Hop = cmp.Or(a.Hop, 1)
	out := several(2, b.Add(OpSTFT, &a, x, window))
	return out[0], out[1]
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
