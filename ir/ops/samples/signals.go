package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	x := func(dims ...int) *ir.Array { return draw(uint64(7+len(dims)), ir.F32, -1, 1, dims...) }
	add(ops.OpSTFT, func() []ir.Sample {
		return []ir.Sample{
			{Name: "centred", Attrs: &ops.FrameAttrs{Hop: 3, Center: true}, In: []*ir.Array{x(2, 20), x(8)}},
			{Name: "whole frames", Attrs: &ops.FrameAttrs{Hop: 5, Center: false}, In: []*ir.Array{x(19), x(7)}},
		}
	})
	add(ops.OpISTFT, func() []ir.Sample {
		positive := func(n int) *ir.Array { return draw(3, ir.F32, 0.5, 1.5, n) }
		return []ir.Sample{
			{Name: "centred", Attrs: &ops.UnframeAttrs{FrameAttrs: ops.FrameAttrs{Hop: 3, Center: true}, Length: 13}, In: []*ir.Array{x(2, 5, 5), x(2, 5, 5), positive(8)}},
			{Name: "whole frames", Attrs: &ops.UnframeAttrs{FrameAttrs: ops.FrameAttrs{Hop: 2, Center: false}, Length: 0}, In: []*ir.Array{x(3, 4), x(3, 4), positive(7)}},
		}
	})
	add(ops.OpLogMel, func() []ir.Sample {
		return []ir.Sample{{
			Name: "two rows", Attrs: &ops.LogMelAttrs{FrameAttrs: ops.FrameAttrs{Hop: 3, Center: true}, Floor: 1e-10}, Tol: 1e-4,
			In: []*ir.Array{x(2, 20), x(8), draw(3, ir.F32, 0.25, 1, 3, 5)},
		}}
	})
	add(ops.OpWelch, func() []ir.Sample {
		return []ir.Sample{{Name: "two rows", Attrs: &ops.WelchAttrs{Hop: 3, Rate: 2}, In: []*ir.Array{x(2, 20), x(8)}}, {Name: "odd", Attrs: &ops.WelchAttrs{Hop: 5, Rate: 1}, In: []*ir.Array{x(12), x(7)}}}
	})
	add(ops.OpWindow, byAttrs(
		&ops.WindowAttrs{Kind: "hann", Length: 9, DType: ir.F32}, &ops.WindowAttrs{Kind: "kaiser", Length: 8, Beta: 8.6, Symmetric: true, DType: ir.F64},
		&ops.WindowAttrs{Kind: "bartlett", Length: 5, DType: ir.F32}, &ops.WindowAttrs{Kind: "nuttall", Length: 1, DType: ir.F32}, &ops.WindowAttrs{Kind: "boxcar", DType: ir.F32}))
	add(ops.OpMelBank, byAttrs(
		&ops.MelBankAttrs{Filters: 4, Length: 64, Rate: 8000, High: 4000, Area: true, DType: ir.F32},
		&ops.MelBankAttrs{Filters: 3, Length: 32, Rate: 16000, Low: 100, High: 7000, HTK: true, DType: ir.F64}))
}

func init() {
	add(ops.OpFFT, fftSamples)
	add(ops.OpFFTShift, func() []ir.Sample {
		return moved(movement{&ops.ShiftAttrs{Axes: []int{0}}, []int{5}}, movement{&ops.ShiftAttrs{Axes: []int{0, 1}, Inverse: true}, []int{3, 4}})
	})
	add(ops.OpRFFT, func() []ir.Sample {
		return []ir.Sample{
			transformed(&ops.RFFTAttrs{Axis: 1, Length: 0, Norm: ops.FFTBackward}, ir.F32, 2, 6), transformed(&ops.RFFTAttrs{Axis: 0, Length: 0, Norm: ops.FFTForward}, ir.F32, 7, 3), transformed(&ops.RFFTAttrs{Axis: 0, Length: 0, Norm: ops.FFTOrtho}, ir.F64, 1),
		}
	})
	add(ops.OpIRFFT, func() []ir.Sample {
		return []ir.Sample{
			transformed(&ops.RFFTAttrs{Axis: 1, Length: 6, Norm: ops.FFTBackward}, ir.C64, 2, 4), transformed(&ops.RFFTAttrs{Axis: 0, Length: 7, Norm: ops.FFTForward}, ir.C64, 4, 3), transformed(&ops.RFFTAttrs{Axis: 0, Length: 1, Norm: ops.FFTOrtho}, ir.C128, 1),
		}
	})
}

// transformed returns a sample of a transform.
func transformed(a ir.Attrs, d ir.DType, dims ...int) ir.Sample {
	return ir.Sample{Name: ir.FormatAttrs(a) + shapeName(dims), Attrs: a, In: []*ir.Array{draw(1, d, -1, 1, dims...)}}
}

func fftSamples() []ir.Sample {
	return []ir.Sample{
		transformed(&ops.FFTAttrs{Axes: []int{0}, Inverse: false, Norm: ops.FFTBackward}, ir.C64, 5), transformed(&ops.FFTAttrs{Axes: []int{0, 1}, Inverse: true, Norm: ops.FFTBackward}, ir.C64, 3, 4),
		transformed(&ops.FFTAttrs{Axes: []int{1}, Inverse: false, Norm: ops.FFTOrtho}, ir.C64, 2, 40, 3), transformed(&ops.FFTAttrs{Axes: []int{0}, Inverse: true, Norm: ops.FFTForward}, ir.C128, 6),
		transformed(&ops.FFTAttrs{Axes: nil, Inverse: false, Norm: ops.FFTForward}, ir.C64, 2),
	}
}

func init() {
	add(ops.OpDFT, func() []ir.Sample {
		sample := func(name string, inverse bool, in ...*ir.Array) ir.Sample {
			return ir.Sample{Name: name, Attrs: &ops.DFTAttrs{Inverse: inverse}, In: in}
		}
		pair := func(d ir.DType, dims ...int) []*ir.Array {
			return []*ir.Array{draw(1, d, -1, 1, dims...), draw(2, d, -1, 1, dims...)}
		}
		return []ir.Sample{
			sample("one product", false, pair(ir.F32, 2, 7)...), sample("one element", true, pair(ir.F32, 1)...),
			sample("several products", false, pair(ir.F32, 2, 120)...), sample("inverse", true, pair(ir.F32, 72)...),
			sample("a large prime", false, pair(ir.F32, 37)...), sample("twice a large prime", true, pair(ir.F32, 82)...),
			sample("real", false, draw(3, ir.F32, -1, 1, 3, 10)), sample("real, several products", false, draw(3, ir.F32, -1, 1, 48)),
			sample("real, a large prime", true, draw(3, ir.F32, -1, 1, 41)), sample("no rows", false, draw(3, ir.F32, -1, 1, 0, 4)),
			sample("f64", false, pair(ir.F64, 45)...), sample("passes of kernels", false, pair(ir.F32, 2, 128)...),
		}
	})
}
