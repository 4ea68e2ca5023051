package ops

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/ir"
)

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
		func() ir.Attrs { return &WindowAttrs{Kind: "hann", DType: ir.F32} },
		func(n *ir.Node) (*ir.Array, error) { return n.Attrs().(*WindowAttrs).table() })
	defineTable(OpMelBank, "Triangular filters evenly spaced on the mel scale, [filters, length/2 + 1]: weights of the frequencies of a transform of length elements (librosa's filters.mel).",
		[]string{"filters and length are positive", "0 ≤ low < high ≤ rate/2, all finite", "dtype is a float type"},
		func() ir.Attrs { return &MelBankAttrs{Area: true, DType: ir.F32} },
		func(n *ir.Node) (*ir.Array, error) { return n.Attrs().(*MelBankAttrs).table() })
}

// defineTable defines an op without operands whose result is a constant computed from its
// attributes.
func defineTable(op ir.Op, doc string, constraints []string, newAttrs func() ir.Attrs, table func(n *ir.Node) (*ir.Array, error)) {
	define(&ir.Def{
		Op: op, Doc: doc, Constraints: numbered(constraints...), NewAttrs: newAttrs,
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			a, err := table(n)
			if err != nil {
				return nil, err
			}
			return []ir.Type{a.Type()}, nil
		},
		NoGrad: noOperands, NoTranspose: noOperands, NoBatch: noOperands,
		Body: func(b *ir.Builder, n *ir.Node, _ []ir.Value) []ir.Value {
			a, err := table(n)
			if err != nil {
				b.Fail(n.Fail(err))
				return make([]ir.Value, 1)
			}
			return []ir.Value{Literal(b, a)}
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

func (a *WindowAttrs) table() (*ir.Array, error) {
	cosines, known := windowCosines[a.Kind]
	switch {
	case !known && a.Kind != "bartlett" && a.Kind != "kaiser":
		return nil, ir.Attrf("kind is %q, no window that is known", a.Kind)
	case a.Length < 0 || a.Length > maxTable:
		return nil, ir.Attrf("length is %d, not in [0, %d]", a.Length, maxTable)
	case a.Beta-a.Beta != 0:
		return nil, ir.Attrf("beta is %v, not finite", a.Beta)
	}
	if err := floats.check(a.DType); err != nil {
		return nil, err
	}
	out := ir.NewArray(a.DType, a.Length)
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
	return out, nil
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

func (a *MelBankAttrs) table() (*ir.Array, error) {
	switch {
	case a.Filters < 1 || a.Length < 1 || a.Filters > maxTable/(a.Length/2+1):
		return nil, ir.Attrf("filters is %d and length %d: they must be positive, and the table of at most %d elements", a.Filters, a.Length, maxTable)
	case !(0 <= a.Low && a.Low < a.High && a.High <= a.Rate/2) || math.IsInf(a.Rate, 0):
		return nil, ir.Attrf("low is %v, high %v and rate %v: it must be that 0 ≤ low < high ≤ rate/2", a.Low, a.High, a.Rate)
	}
	if err := floats.check(a.DType); err != nil {
		return nil, err
	}
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
	return out, nil
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
