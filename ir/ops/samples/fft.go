package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
