package layers

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/signal"
	"github.com/rlx-go/rlx/ir/stats"
)

// matrices are factorisations and functions of one matrix and of many.
func matrices() (out []Layer) {
	for _, s := range [][2]int{{1, 600}, {30, 100}, {4000, 12}} {
		count, n := s[0], s[1]
		definite := func(b *ir.Builder) ir.Value {
			x := floats(b, "x", count, n, n)
			return ops.Add(b, ops.MatMul(b, x, ops.SwapAxes(b, x, 1, 2)), ops.Diag(b, ops.Const(b, ir.F32, 9, ir.N(n)), 0))
		}
		add := func(name string, f func(b *ir.Builder) ir.Value) {
			out = append(out, of(fmt.Sprint(name, " ", s), f))
		}
		add("Cholesky", func(b *ir.Builder) ir.Value { return ops.Cholesky(b, definite(b)) })
		add("inverse", func(b *ir.Builder) ir.Value { return ops.Inv(b, definite(b)) })
		add("log of determinants", func(b *ir.Builder) ir.Value { _, y := ops.Slogdet(b, definite(b)); return y })
		add("triangular solve", func(b *ir.Builder) ir.Value {
			return ops.TriangularSolve(b, ops.Tril(b, definite(b), 0), floats(b, "y", count, n, 5), ops.TriangularAttrs{LeftSide: true, Lower: true})
		})
		add("eigenvalues", func(b *ir.Builder) ir.Value { w, _ := ops.Eigh(b, definite(b)); return w })
		add("QR", func(b *ir.Builder) ir.Value { _, r := ops.QR(b, definite(b), false); return r })
	}
	return append(out,
		of("solve", func(b *ir.Builder) ir.Value {
			a := ops.Add(b, floats(b, "x", 1000, 16, 16), ops.Diag(b, ops.Const(b, ir.F32, 9, ir.N(16)), 0))
			return ops.Solve(b, a, floats(b, "y", 1000, 16, 4), ops.SolveAttrs{})
		}),
		of("singular values of tall matrices", func(b *ir.Builder) ir.Value { _, s, _ := ops.SVD(b, floats(b, "x", 200, 100, 10), false); return s }),
		of("QR of a tall matrix", func(b *ir.Builder) ir.Value { q, _ := ops.QR(b, floats(b, "x", 20000, 32), false); return q }),
		of("exponentials of matrices", func(b *ir.Builder) ir.Value { return ops.Expm(b, floats(b, "x", 500, 8, 8)) }),
		of("powers of a matrix", func(b *ir.Builder) ir.Value { return ops.MatrixPower(b, floats(b, "x", 16, 128, 128), 6) }),
		of("covariance", func(b *ir.Builder) ir.Value { return stats.Cov(b, floats(b, "x", 300, 5000), 1) }),
		of("distances", func(b *ir.Builder) ir.Value {
			return stats.CDist(b, floats(b, "x", 1000, 64), floats(b, "y", 1200, 64), 2)
		}),
		of("city-block distances", func(b *ir.Builder) ir.Value {
			return stats.CDist(b, floats(b, "x", 1000, 16), floats(b, "y", 1200, 16), 1)
		}),
		of("Kronecker product", func(b *ir.Builder) ir.Value { return ops.Kron(b, floats(b, "x", 60, 50), floats(b, "y", 40, 30)) }),
		of("bilinear form", func(b *ir.Builder) ir.Value {
			return ops.Einsum(b, "bi,kij,bj->bk", floats(b, "x", 2000, 40), floats(b, "w", 30, 40, 50), floats(b, "y", 2000, 50))
		}),
		of("triangular mask", func(b *ir.Builder) ir.Value { return ops.Tril(b, floats(b, "x", 64, 512, 512), 0) }),
		of("traces", func(b *ir.Builder) ir.Value { return ops.Trace(b, floats(b, "x", 2000, 100, 100), 0) }))
}

// spectra are Fourier and cosine transforms, frames and filters.
func spectra() (out []Layer) {
	for _, s := range [][2]int{{256, 1024}, {100, 997}, {2000, 60}, {1, 1 << 20}, {3, 262143}} {
		out = append(out,
			of(fmt.Sprint("spectrum of real rows ", s), func(b *ir.Builder) ir.Value {
				y := ops.RFFT(b, floats(b, "x", s[0], s[1]), 1, "")
				return ops.Add(b, ops.Square(b, ops.Real(b, y)), ops.Square(b, ops.Imag(b, y)))
			}),
			of(fmt.Sprint("filter in the spectrum ", s), func(b *ir.Builder) ir.Value {
				n := s[1]/2 + 1
				y := ops.Mul(b, ops.RFFT(b, floats(b, "x", s[0], s[1]), 1, ""), ops.Complex(b, floats(b, "re", n), floats(b, "im", n)))
				return ops.IRFFT(b, y, 1, s[1], "")
			}))
	}
	return append(out,
		of("Fourier transform", func(b *ir.Builder) ir.Value {
			re, im := ops.DFT(b, floats(b, "x", 512, 1000), floats(b, "y", 512, 1000), false)
			return ops.Add(b, re, im)
		}),
		of("spectrogram", func(b *ir.Builder) ir.Value {
			re, im := ops.STFT(b, floats(b, "x", 32, 32000), floats(b, "window", 400), ops.FrameAttrs{Hop: 160})
			return ops.Add(b, ops.Square(b, re), ops.Square(b, im))
		}),
		of("spectrum of images", func(b *ir.Builder) ir.Value {
			y := ops.FFT(b, ops.Complex(b, floats(b, "x", 32, 128, 96), floats(b, "y", 32, 128, 96)), ops.FFTAttrs{Axes: []int{1, 2}})
			return ops.Add(b, ops.Real(b, y), ops.Imag(b, y))
		}),
		of("spectrum along the first axis", func(b *ir.Builder) ir.Value {
			y := ops.FFT(b, ops.Complex(b, floats(b, "x", 512, 2000), floats(b, "y", 512, 2000)), ops.FFTAttrs{Axes: []int{0}})
			return ops.Add(b, ops.Real(b, y), ops.Imag(b, y))
		}),
		of("cosine transform", func(b *ir.Builder) ir.Value { return signal.DCT(b, floats(b, "x", 2000, 512), 1) }),
		of("log-mel spectrogram", func(b *ir.Builder) ir.Value {
			window := ops.Window(b, ops.WindowAttrs{Kind: "hann", Length: 400, DType: ir.F32})
			filters := ops.MelFilterbank(b, ops.MelBankAttrs{Filters: 80, Length: 400, Rate: 16000, High: 8000, DType: ir.F32})
			return ops.LogMel(b, floats(b, "x", 16, 64000), window, filters, ops.LogMelAttrs{FrameAttrs: ops.FrameAttrs{Hop: 160}, Floor: 1e-10})
		}),
		of("waveform of a spectrogram", func(b *ir.Builder) ir.Value {
			window := ops.Window(b, ops.WindowAttrs{Kind: "hann", Length: 512, DType: ir.F32})
			return ops.ISTFT(b, floats(b, "re", 16, 400, 257), floats(b, "im", 16, 400, 257), window, ops.UnframeAttrs{FrameAttrs: ops.FrameAttrs{Hop: 128}})
		}))
}
