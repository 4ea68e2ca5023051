package ops_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func pair(b *ir.Builder, in values) ir.Value { return ops.Complex(b, in[0], in[1]) }

func hann(b *ir.Builder, n int) ir.Value {
	return ops.Window(b, ops.WindowAttrs{Kind: "hann", Length: n, DType: ir.F64})
}

func mel(b *ir.Builder) ir.Value {
	return ops.MelFilterbank(b, ops.MelBankAttrs{Filters: 3, Length: 16, Rate: 8000, Low: 100, High: 3500, Area: true, DType: ir.F64})
}

// spectraCases are digests, of complex numbers that of the real part and three
// times that of the imaginary part, by NumPy 2.4.6, SciPy 1.17.1 and librosa
// 0.11.0: testdata/spectra.py prints them.
var spectraCases = map[string]struct {
	in    shapes
	build func(b *ir.Builder, in values) ir.Value
	want  float64
}{
	"fft": {
		shapes{{3, 7}, {3, 7}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{})
		},
		10.3682765849585,
	},
	"ifft, ortho": {
		shapes{{12}, {12}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{Inverse: true, Norm: ops.FFTOrtho})
		},
		9.002146084858305,
	},
	"fft, forward": {
		shapes{{2, 128}, {2, 128}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{Norm: ops.FFTForward})
		},
		8.813284580018408,
	},
	"fft of a prime": {
		shapes{{101}, {101}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{})
		},
		-134.3508191455657,
	},
	"fft of twice a prime": {
		shapes{{106}, {106}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{Inverse: true})
		},
		-3.6523751879403834,
	},
	"fft of 1000": {
		shapes{{1000}, {1000}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{})
		},
		-911.9525491386937,
	},
	"fft2": {
		shapes{{2, 6, 5}, {2, 6, 5}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{Axes: []int{-2, -1}})
		},
		-161.78264528988583,
	},
	"fftn": {
		shapes{{3, 4, 35}, {3, 4, 35}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFT(b, pair(b, in), ops.FFTAttrs{Axes: []int{0, 1, 2}})
		},
		261.235135573104,
	},
	"irfft, even": {
		shapes{{2, 6}, {2, 6}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.IRFFT(b, pair(b, in), -1, 10, "")
		},
		-1.2320125503336348,
	},
	"irfft, odd": {
		shapes{{2, 6}, {2, 6}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.IRFFT(b, pair(b, in), 1, 11, ops.FFTForward)
		},
		-8.359282556847713,
	},
	"rfft": {
		shapes{{3, 90}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.RFFT(b, in[0], -1, "")
		},
		-197.58304784724302,
	},
	"rfft, first axis": {
		shapes{{7, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.RFFT(b, in[0], 0, ops.FFTOrtho)
		},
		-7.660865634660013,
	},
	"fftshift": {
		shapes{{5, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFTShift(b, in[0], ops.ShiftAttrs{})
		},
		1.125,
	},
	"ifftshift": {
		shapes{{5, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.FFTShift(b, in[0], ops.ShiftAttrs{Inverse: true})
		},
		6.4375,
	},
	"hann": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "hann", Length: 10, DType: ir.F64}),
		0.4683388869532368,
	},
	"hamming, symmetric": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "hamming", Length: 9, Symmetric: true, DType: ir.F64}),
		-0.28760624278029956,
	},
	"blackman": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "blackman", Length: 10, DType: ir.F64}),
		0.35327310886575475,
	},
	"nuttall": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "nuttall", Length: 10, DType: ir.F64}),
		0.3222576004619552,
	},
	"blackmanharris": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "blackmanharris", Length: 10, DType: ir.F64}),
		0.3206038297190709,
	},
	"bartlett": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "bartlett", Length: 10, DType: ir.F64}),
		0.6999999999999995,
	},
	"kaiser": {
		shapes{},
		windowOf(ops.WindowAttrs{Kind: "kaiser", Length: 10, Beta: 8.6, DType: ir.F64}),
		0.3502231232007298,
	},
	"mel_filterbank": {
		shapes{},
		func(b *ir.Builder, _ values) ir.Value {
			return ops.MelFilterbank(b, ops.MelBankAttrs{Filters: 20, Length: 400, Rate: 16000, High: 8000, Area: true, DType: ir.F64})
		},
		0.03321843456324849,
	},
	"mel_filterbank, htk": {
		shapes{},
		func(b *ir.Builder, _ values) ir.Value {
			return ops.MelFilterbank(b, ops.MelBankAttrs{Filters: 4, Length: 64, Rate: 8000, Low: 50, High: 3000, HTK: true, DType: ir.F64})
		},
		1.3230700876419834,
	},
	"stft": {
		shapes{{2, 60}},
		func(b *ir.Builder, in values) ir.Value {
			re, im := ops.STFT(b, in[0], hann(b, 16), ops.FrameAttrs{Hop: 5, Center: true})
			return ops.Complex(b, re, im)
		},
		42.805981206112094,
	},
	"log_mel": {
		shapes{{2, 60}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.LogMel(b, in[0], hann(b, 16), mel(b), ops.LogMelAttrs{FrameAttrs: ops.FrameAttrs{Hop: 5, Center: true}, Floor: 1e-3})
		},
		7.0720978096608995,
	},
	"welch": {
		shapes{{2, 60}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Welch(b, in[0], hann(b, 16), ops.WelchAttrs{Hop: 5, Rate: 3})
		},
		2.238637951467816,
	},
	"welch of odd frames": {
		shapes{{2, 60}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Welch(b, in[0], ops.Window(b, ops.WindowAttrs{Kind: "hamming", Length: 15, DType: ir.F64}), ops.WelchAttrs{Hop: 8, Rate: 1})
		},
		-4.89705232611731,
	},
}

// TestSpectraEqualOthers holds transforms and spectra against other systems, by the
// reference of each op and by its body.
func TestSpectraEqualOthers(t *testing.T) {
	for name, c := range spectraCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inputs := map[string]*ir.Array{}
			g := must(ir.Build("spectra", func(b *ir.Builder) {
				var in values
				for i, dims := range c.in {
					port := "x" + strconv.Itoa(i)
					inputs[port] = pattern(i+1, dims)
					in = append(in, b.Input(port, ir.F64, ir.Dims(dims...)...))
				}
				y := c.build(b, in)
				if b.Err() == nil && y.DType().IsComplex() {
					re, im := digestOf(b, ops.Real(b, y)), digestOf(b, ops.Imag(b, y))
					b.Output("y", ops.Add(b, re, ops.Mul(b, im, ops.ConstLike(b, im, 3))))
					return
				}
				b.Output("y", digestOf(b, y))
			}))(t)
			for form, g := range map[string]*ir.Graph{"reference": g, "bodies": must(passes.Run(g, passes.Options{}))(t)} {
				out, err := evalHeld(g, inputs, ir.EvalOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := out[0].F[0]; !(math.Abs(got-c.want) <= 1e-11*(1+math.Abs(c.want))) {
					t.Errorf("by %s: %v, want %v", form, got, c.want)
				}
			}
		})
	}
}

// windowOf returns what makes a window.
func windowOf(a ops.WindowAttrs) func(b *ir.Builder, _ values) ir.Value {
	return func(b *ir.Builder, _ values) ir.Value { return ops.Window(b, a) }
}
