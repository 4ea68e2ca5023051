package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addSince("DFT", 17, func(c *call) []ir.Value { return one(dft(c, c.int("axis", 1))) })
	addSince("DFT", 20, func(c *call) []ir.Value { return one(dft(c, c.knownInt(2, -2))) })
	add("STFT", single(stft))
	for name, coefficients := range map[string][]float64{
		"HannWindow": {0.5, 0.5}, "HammingWindow": {25. / 46, 21. / 46}, "BlackmanWindow": {0.42, 0.5, 0.08},
	} {
		add(name, func(c *call) []ir.Value { return one(cosineWindow(c, coefficients)) })
	}
	add("MelWeightMatrix", single(melMatrix))
}

// maxTransform bounds the length of a transform, and the sides of windows.
const maxTransform = 1 << 12

// resized cuts an axis to n elements, or fills it up with zeros.
func resized(c *call, x ir.Value, axis, n int) ir.Value {
	size, ok := x.Dim(axis).Const()
	if !ok || n < 1 || n > maxTransform {
		c.failf("an axis of size %s is transformed by %d elements: both must be numbers, the latter from 1 to %d", x.Dim(axis), n, maxTransform)
		return x
	}
	high := spread(0, x.Rank())
	high[axis] = n - size
	return ops.Pad(c.b, x, ops.Const(c.b, x.DType(), 0), spread(0, x.Rank()), high, nil)
}

// transform returns the discrete Fourier transform of n elements of an axis of re and im; an invalid im is 0.
func transform(c *call, re, im ir.Value, axis, n int, inverse bool) (outRe, outIm ir.Value) {
	d, last := re.DType(), re.Rank()-1
	moved := func(x ir.Value) ir.Value {
		if !x.Valid() {
			return x
		}
		return ops.Convert(c.b, ops.MoveAxis(c.b, resized(c, x, axis, n), axis, last), wide(d))
	}
	back := func(x ir.Value) ir.Value {
		if inverse {
			x = scaled(c, x, 1/float64(n))
		}
		return ops.Convert(c.b, ops.MoveAxis(c.b, x, last, axis), d)
	}
	outRe, outIm = ops.DFT(c.b, moved(re), moved(im), inverse)
	return back(outRe), back(outIm)
}

// wide returns the element type in which numbers of a type are transformed.
func wide(d ir.DType) ir.DType {
	if d == ir.F64 {
		return d
	}
	return ir.F32
}

// parts returns the real and imaginary parts of a last axis of one or two elements.
func parts(c *call, x ir.Value) (re, im ir.Value) {
	list := ops.Unstack(c.b, x, x.Rank()-1)
	switch len(list) {
	case 1:
		return list[0], im
	case 2:
		return list[0], list[1]
	}
	c.fail(ir.Shapef("the signal is %s: its last axis must have one or two elements", x.Shape()))
	return x, im
}

func dft(c *call, axis int) ir.Value {
	x := c.x(0)
	if x.Rank() < 2 {
		c.fail(ir.Shapef("the signal is %s: it must have two axes or more", x.Shape()))
		return ir.Value{}
	}
	axis = c.axisOf(axis, x.Rank())
	re, im := parts(c, x)
	inverse, half := c.bool("inverse"), c.bool("onesided")
	size := c.size(x, axis)
	n := size
	if inverse && half {
		n = 2 * (size - 1)
	}
	n = c.knownInt(1, n)
	if c.err != nil || axis >= re.Rank() {
		c.fail(ir.Errorf(ir.ErrIndex, "the axis is %d: it must be one of the signal, %s, before its last", axis, x.Shape()))
		return ir.Value{}
	}
	if inverse && half {
		return ops.ExpandDims(c.b, halfInverse(c, re, im, axis, n), re.Rank())
	}
	re, im = transform(c, re, im, axis, n, inverse)
	return spectrum(c, re, im, axis, half)
}

// spectrum returns real and imaginary parts along a new last axis, with half those of frequencies 0 to ⌊n/2⌋ of an axis.
func spectrum(c *call, re, im ir.Value, axis int, half bool) ir.Value {
	y := ops.Stack(c.b, re.Rank(), re, im)
	if n, ok := re.Dim(axis).Const(); half && ok {
		y = ops.SliceAxis(c.b, y, axis, ir.N(0), ir.N(n/2+1))
	}
	return y
}

// halfInverse returns the real signal of n elements of the first half of a spectrum.
func halfInverse(c *call, re, im ir.Value, axis, n int) ir.Value {
	if !im.Valid() {
		im = ops.ZerosLike(c.b, re)
	}
	part := func(x ir.Value) ir.Value { return ops.Convert(c.b, resized(c, x, axis, n/2+1), wide(x.DType())) }
	return c.like(ops.IRFFT(c.b, ops.Complex(c.b, part(re), part(im)), axis, n, ops.FFTBackward), re)
}

func stft(c *call) ir.Value {
	x := c.x(0)
	if x.Rank() == 2 {
		x = ops.ExpandDims(c.b, x, 2)
	}
	hop := c.knownInt(1, 1)
	var window ir.Value
	length := 0
	if c.has(2) {
		window = c.x(2)
		length, _ = window.Dim(0).Const()
	}
	length = c.knownInt(3, length)
	if x.Rank() != 3 || hop < 1 || length < 1 || length > maxTransform {
		c.fail(ir.Shapef("frames have %d elements, and frame_step is %d: they must be from 1 to %d and 1 or more, and the signal, %s, have three axes", length, hop, maxTransform, x.Shape()))
		return ir.Value{}
	}
	framed := func(v ir.Value) ir.Value {
		if !v.Valid() {
			return v
		}
		v = ops.Windows(c.b, v, ops.WindowsAttrs{Axes: []int{1}, Sizes: []int{length}, Strides: []int{hop}})
		if window.Valid() {
			v = ops.Mul(c.b, v, c.like(window, v))
		}
		return v
	}
	re, im := parts(c, x)
	re, im = transform(c, framed(re), framed(im), 2, length, false)
	return spectrum(c, re, im, 2, c.int("onesided", 1) != 0)
}

// cosineWindow is a sum of cosines of multiples of a turn, periodic or symmetric.
func cosineWindow(c *call, coefficients []float64) ir.Value {
	n := c.knownInt(0, 0)
	if n < 0 || n > foldElements {
		c.fail(ir.Shapef("the window has %d elements: it must have from 0 to %d", n, foldElements))
		return ir.Value{}
	}
	period := float64(n)
	if c.int("periodic", 1) == 0 {
		period--
	}
	list := make([]float64, n)
	for i := range list {
		sign := 1.0
		for k, a := range coefficients {
			list[i] += sign * a * math.Cos(2*math.Pi*float64(k)*float64(i)/period)
			sign = -sign
		}
	}
	return ops.Convert(c.b, ops.Literal(c.b, ir.Floats(ir.F64, list)), c.element("output_datatype", Float).DType())
}

// melMatrix has triangles over whole frequency bins, evenly spaced on the mel scale.
func melMatrix(c *call) ir.Value {
	bands, length, rate := c.knownInt(0, 0), c.knownInt(1, 0), c.knownInt(2, 0)
	low, high := c.knownFloats(3), c.knownFloats(4)
	if c.err != nil || bands < 1 || length < 1 || rate < 1 || len(low) != 1 || len(high) != 1 || bands > foldElements || length > foldElements || bands*length > maxMatrix {
		c.fail(ir.Shapef("there are %d bands and %d frequencies: both must be 1 or more, and within the limits of a table", bands, length))
		return ir.Value{}
	}
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	lo, hi := mel(low[0]), mel(high[0])
	edge := make([]int, bands+2)
	for i := range edge {
		f := 700 * (math.Pow(10, (lo+float64(i)*(hi-lo)/float64(bands+2))/2595) - 1)
		edge[i] = int(min(max(math.Floor(float64(length+1)*f/float64(rate)), 0), float64(length)))
	}
	rows := length/2 + 1
	m := make([]float64, rows*bands)
	set := func(row, band int, x float64) {
		if row >= 0 && row < rows {
			m[row*bands+band] = x
		}
	}
	for i := range bands {
		left, centre, right := edge[i], edge[i+1], edge[i+2]
		if left == centre {
			set(centre, i, 1)
		}
		for j := left; j <= centre && left < centre; j++ {
			set(j, i, float64(j-left)/float64(centre-left))
		}
		for j := centre; j < right; j++ {
			set(j, i, float64(right-j)/float64(right-centre))
		}
	}
	return ops.Literal(c.b, ir.Floats(c.element("output_datatype", Float).DType(), m, rows, bands))
}
