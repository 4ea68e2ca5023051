package ops_test

import (
	"maps"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() { maps.Copy(refusals, refusalsOfMatrices) }

// of makes a case of an op of one operand.
func of(op func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { op(b, in[0]) }
}

func stft(a ops.FrameAttrs) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) { ops.STFT(b, in[0], in[1], a) }
}

func istft(length int) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, in values) {
		ops.ISTFT(b, in[0], in[1], in[2], ops.UnframeAttrs{FrameAttrs: ops.FrameAttrs{Hop: 2}, Length: length})
	}
}

func window(a ops.WindowAttrs) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, _ values) { ops.Window(b, a) }
}

func filters(a ops.MelBankAttrs) func(b *ir.Builder, in values) {
	return func(b *ir.Builder, _ values) { ops.MelFilterbank(b, a) }
}

func fullGradient(b *ir.Builder, in values, f func(b *ir.Builder, x ir.Value) ir.Value) {
	g, err := ir.Build("f", func(b *ir.Builder) {
		b.Output("y", ops.ReduceSum(b, f(b, b.Input("x", in[0].DType(), in[0].Shape()...))))
	})
	if err == nil {
		_, err = autodiff.Grad(g, "y", "x")
	}
	if err != nil {
		b.Fail(err)
	}
}

var refusalsOfMatrices = map[string]struct {
	in    []ir.Type
	build func(b *ir.Builder, in values)
	kind  error
	says  string
}{
	"cholesky of a vector":           {types("f32[3]"), of(ops.Cholesky), ir.ErrShape, "the operand is f32[3]: it must have rank 2 or more"},
	"cholesky of a rectangle":        {types("f32[2,3]"), of(ops.Cholesky), ir.ErrShape, "a matrix of 2 by 3 is not square"},
	"cholesky of halves":             {types("f16[3,3]"), of(ops.Cholesky), ir.ErrDType, "f16, not f32 or f64"},
	"cholesky of integers":           {types("i32[3,3]"), of(ops.Cholesky), ir.ErrDType, ", not float"},
	"inverse of a rectangle":         {types("f32[2,3]"), of(ops.Inv), ir.ErrShape, "a matrix of 2 by 3 is not square"},
	"determinant of a symbolic size": {types("f32[n,n]"), of(ops.Det), ir.ErrShape, "a matrix of n by n has a symbolic size"},
	"exponential of a rectangle":     {types("f32[2,3]"), of(ops.Expm), ir.ErrShape, "is not square"},
	"root of complex numbers":        {types("c64[2,2]"), of(ops.SPDSqrtm), ir.ErrDType, "x is c64[2,2], not float"},
	"triangular_solve of other rows": {types("f32[3,3]", "f32[2,3]"), func(b *ir.Builder, in values) {
		ops.TriangularSolve(b, in[0], in[1], ops.TriangularAttrs{LeftSide: true})
	}, ir.ErrShape, "a is of size 3 and b has 2 rows"},
	"triangular_solve of other columns": {types("f32[3,3]", "f32[3,2]"), func(b *ir.Builder, in values) { ops.TriangularSolve(b, in[0], in[1], ops.TriangularAttrs{}) }, ir.ErrShape, "a is of size 3 and b has 2 columns"},
	"solve of other rows":               {types("f32[3,3]", "f32[2,1]"), func(b *ir.Builder, in values) { ops.Solve(b, in[0], in[1], ops.SolveAttrs{}) }, ir.ErrShape, "a has 3 rows and b has 2"},
	"solve of other types":              {types("f32[3,3]", "f64[3,1]"), func(b *ir.Builder, in values) { ops.Solve(b, in[0], in[1], ops.SolveAttrs{}) }, ir.ErrDType, "b is f64, not f32 as a is"},
	"solve of other batches":            {types("f32[4,3,3]", "f32[5,3,1]"), func(b *ir.Builder, in values) { ops.Solve(b, in[0], in[1], ops.SolveAttrs{}) }, ir.ErrShape, "[4] and [5] cannot be broadcast together"},
	"strict solve of other batches":     {types("f32[4,3,3]", "f32[1,3,1]"), func(b *ir.Builder, in values) { b.Add(ops.OpSolve, &ops.SolveAttrs{}, in...) }, ir.ErrShape, "b is [1,3,1], not of the axes before the last two of a, [4,3,3]"},
	"lyapunov of other sizes":           {types("f32[3,3]", "f32[2,2]"), func(b *ir.Builder, in values) { ops.Lyapunov(b, in[0], in[1]) }, ir.ErrShape, "a is 3 by 3 and c is 2 by 2"},
	"lstsq of other rows":               {types("f32[3,2]", "f32[2,1]"), func(b *ir.Builder, in values) { ops.Lstsq(b, in[0], in[1], -1) }, ir.ErrShape, "a has 3 rows and b has 2"},
	"norm of an unknown order":          {types("f32[3,2]"), func(b *ir.Builder, in values) { ops.MatrixNorm(b, in[0], "3") }, ir.ErrAttr, `order is "3", not one of ["fro"`},
	"condition number of nothing":       {types("f32[0,0]"), func(b *ir.Builder, in values) { ops.CondNumber(b, in[0], "2") }, ir.ErrShape, "f32[0,0] has no elements"},
	"slope of a full qr": {types("f32[3,2]"), func(b *ir.Builder, in values) {
		fullGradient(b, in, func(b *ir.Builder, x ir.Value) ir.Value { q, _ := ops.QR(b, x, true); return q })
	}, ir.ErrNoRule, "full factors of 3 rows and 2 columns have no derivative"},
	"slope of a full svd": {types("f32[2,3]"), func(b *ir.Builder, in values) {
		fullGradient(b, in, func(b *ir.Builder, x ir.Value) ir.Value { _, _, vt := ops.SVD(b, x, true); return vt })
	}, ir.ErrNoRule, "full factors of 2 rows and 3 columns have no derivative"},
	"fft of real numbers":                {types("f32[4]"), func(b *ir.Builder, in values) { ops.FFT(b, in[0], ops.FFTAttrs{}) }, ir.ErrDType, "x is f32[4], not complex"},
	"fft of nothing":                     {types("c64[0]"), func(b *ir.Builder, in values) { ops.FFT(b, in[0], ops.FFTAttrs{}) }, ir.ErrShape, "axis 0 of c64[0] has no elements"},
	"fft along an axis twice":            {types("c64[4]"), func(b *ir.Builder, in values) { ops.FFT(b, in[0], ops.FFTAttrs{Axes: []int{0, -1}}) }, ir.ErrAttr, "axis 0 is named twice"},
	"fft with an unknown norm":           {types("c64[4]"), func(b *ir.Builder, in values) { ops.FFT(b, in[0], ops.FFTAttrs{Norm: "none"}) }, ir.ErrAttr, `norm is "none", not one of ["backward" "forward" "ortho"]`},
	"irfft of another length":            {types("c64[4]"), func(b *ir.Builder, in values) { ops.IRFFT(b, in[0], 0, 8, "") }, ir.ErrShape, "length is 8, and axis 0 of x, c64[4], not of length/2 + 1 elements"},
	"dft of a symbolic size":             {types("f32[n]"), func(b *ir.Builder, in values) { ops.DFT(b, in[0], ir.Value{}, false) }, ir.ErrShape, "the last axis of f32[n] has a symbolic size"},
	"dft of parts that differ":           {types("f32[4]", "f32[5]"), func(b *ir.Builder, in values) { ops.DFT(b, in[0], in[1], false) }, ir.ErrShape, "im is [5], not [4] as re is"},
	"an unknown window":                  {nil, window(ops.WindowAttrs{Kind: "flat", Length: 4, DType: ir.F32}), ir.ErrAttr, `kind is "flat", no window`},
	"a window of integers":               {nil, window(ops.WindowAttrs{Kind: "hann", Length: 4, DType: ir.I32}), ir.ErrDType, ", not float"},
	"a window of negative length":        {nil, window(ops.WindowAttrs{Kind: "hann", Length: -4, DType: ir.F32}), ir.ErrAttr, "length is -4, not in [0, 16777216]"},
	"filters beyond half the rate":       {nil, filters(ops.MelBankAttrs{Filters: 3, Length: 16, Rate: 8000, High: 4001, DType: ir.F32}), ir.ErrAttr, "low is 0, high 4001 and rate 8000: it must be that 0 ≤ low < high ≤ rate/2"},
	"no filters":                         {nil, filters(ops.MelBankAttrs{Length: 16, Rate: 8000, High: 4000, DType: ir.F32}), ir.ErrAttr, "filters is 0 and length 16: they must be positive, and the table of at most 16777216 elements"},
	"stft of a short signal":             {types("f32[4]", "f32[8]"), stft(ops.FrameAttrs{Hop: 1, Center: true}), ir.ErrShape, "a signal of 4 elements is too short for frames of 8"},
	"stft with a hop below 1":            {types("f32[9]", "f32[8]"), stft(ops.FrameAttrs{Hop: -1}), ir.ErrAttr, "hop is -1"},
	"stft with a window of another type": {types("f32[9]", "f16[8]"), stft(ops.FrameAttrs{Hop: 1}), ir.ErrShape, "x is f32[9] and window f16[8]"},
	"istft of other frames":              {types("f32[3,5]", "f32[3,5]", "f32[7]"), istft(0), ir.ErrShape, "re is f32[3,5] and im f32[3,5], not the spectra of frames of window, f32[7]"},
	"istft of too long a signal":         {types("f32[3,5]", "f32[3,5]", "f32[8]"), istft(13), ir.ErrAttr, "length is 13: it must be that of 3 frames at a hop of 2"},
	"log_mel with other filters": {types("f32[20]", "f32[8]", "f32[3,4]"), func(b *ir.Builder, in values) {
		ops.LogMel(b, in[0], in[1], in[2], ops.LogMelAttrs{FrameAttrs: ops.FrameAttrs{Hop: 2}, Floor: 1})
	}, ir.ErrShape, "filters must be [filters, 5] of f32"},
	"welch at a rate below 0": {types("f32[20]", "f32[8]"), func(b *ir.Builder, in values) { ops.Welch(b, in[0], in[1], ops.WelchAttrs{Hop: 2, Rate: -1}) }, ir.ErrAttr, "rate is -1"},
}
