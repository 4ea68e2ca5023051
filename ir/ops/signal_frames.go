package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// spectraOf returns frequencies 0 to n/2 of the windowed frames of x, with their means
// subtracted if centred.
func spectraOf(b *ir.Builder, op ir.Op, x, window ir.Value, a FrameAttrs, centred bool) (re, im ir.Value) {
	none := ir.Value{}
	switch {
	case x.Rank() < 1 || window.Rank() != 1 || x.DType() != window.DType():
		b.Failf(op, []ir.Value{x, window}, ir.Shapef("a signal %s and a window %s", x.Type(), window.Type()))
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
		b.Failf(OpISTFT, []ir.Value{re, im, window}, ir.Shapef("%s and %s are no transforms of frames of %s", re.Type(), im.Type(), window.Type()))
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
		b.Failf(OpISTFT, []ir.Value{re, im, window}, ir.Attrf("length is %d: it must be what %d frames give at a hop of %d", length, frames, a.Hop))
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
