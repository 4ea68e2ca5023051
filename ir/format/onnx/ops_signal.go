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

// rotations returns the cosines and sines of 2π·row·column/n, [rows, columns].
func rotations(b *ir.Builder, d ir.DType, rows, columns, n int) (cos, sin ir.Value) {
	re, im := make([]float64, rows*columns), make([]float64, rows*columns)
	for i := range rows {
		for k := range columns {
			im[i*columns+k], re[i*columns+k] = math.Sincos(2 * math.Pi * float64(i*k%n) / float64(n))
		}
	}
	return ops.Literal(b, ir.Floats(d, re, rows, columns)), ops.Literal(b, ir.Floats(d, im, rows, columns))
}

// maxTransform bounds the length of a transform: its matrices are constants of the graph.
const maxTransform = 1 << 12

// transform returns the product of an axis of re and im with the matrix of a discrete Fourier
// transform; im may be invalid.
func transform(c *call, re, im ir.Value, axis, n, out int, inverse bool) (outRe, outIm ir.Value) {
	in, ok := re.Dim(axis).Const()
	if !ok || n < 1 || n > maxTransform {
		c.failf("a transform of %s to %d elements", re.Dim(axis), n)
		return re, re
	}
	if in > n {
		re = ops.SliceAxis(c.b, re, axis, ir.N(0), ir.N(n))
		if im.Valid() {
			im = ops.SliceAxis(c.b, im, axis, ir.N(0), ir.N(n))
		}
		in = n
	}
	cos, sin := rotations(c.b, re.DType(), in, out, n)
	along := func(x, m ir.Value) ir.Value {
		y := ops.DotGeneral(c.b, x, m, ops.DotAttrs{LhsContract: []int{axis}, RhsContract: []int{0}})
		return ops.MoveAxis(c.b, y, y.Rank()-1, axis)
	}
	if !inverse {
		sin = ops.Neg(c.b, sin)
	}
	outRe, outIm = along(re, cos), along(re, sin)
	if im.Valid() {
		outRe, outIm = ops.Sub(c.b, outRe, along(im, sin)), ops.Add(c.b, outIm, along(im, cos))
	}
	if inverse {
		outRe, outIm = scaled(c, outRe, 1/float64(n)), scaled(c, outIm, 1/float64(n))
	}
	return outRe, outIm
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
	c.fail(ir.Shapef("the last axis of %s must have one or two elements", x.Shape()))
	return x, im
}

func dft(c *call, axis int) ir.Value {
	x := c.x(0)
	if x.Rank() < 2 {
		c.fail(ir.Shapef("a signal %s", x.Shape()))
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
		c.fail(ir.Errorf(ir.ErrIndex, "axis %d of a signal %s", axis, x.Shape()))
		return ir.Value{}
	}
	if inverse && half {
		return halfInverse(c, re, im, axis, n)
	}
	out := n
	if half {
		out = n/2 + 1
	}
	re, im = transform(c, re, im, axis, n, out, inverse)
	return ops.Stack(c.b, re.Rank(), re, im)
}

// halfInverse returns the real signal of the first half of a spectrum, with a last axis of one.
func halfInverse(c *call, re, im ir.Value, axis, n int) ir.Value {
	if n < 1 || n > maxTransform {
		c.failf("a transform to %d elements", n)
		return ir.Value{}
	}
	m := min(c.size(re, axis), n/2+1)
	cosines, sines := make([]float64, m*n), make([]float64, m*n)
	for k := range m {
		weight := 2.0 // for the frequency that is not given
		if k == 0 || 2*k == n {
			weight = 1
		}
		for i := range n {
			s, co := math.Sincos(2 * math.Pi * float64(i*k%n) / float64(n))
			cosines[k*n+i], sines[k*n+i] = weight*co/float64(n), -weight*s/float64(n)
		}
	}
	along := func(x ir.Value, m2 []float64) ir.Value {
		x = ops.SliceAxis(c.b, x, axis, ir.N(0), ir.N(m))
		y := ops.DotGeneral(c.b, x, ops.Literal(c.b, ir.Floats(x.DType(), m2, m, n)), ops.DotAttrs{LhsContract: []int{axis}, RhsContract: []int{0}})
		return ops.MoveAxis(c.b, y, y.Rank()-1, axis)
	}
	y := along(re, cosines)
	if im.Valid() {
		y = ops.Add(c.b, y, along(im, sines))
	}
	return ops.ExpandDims(c.b, y, y.Rank())
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
		c.fail(ir.Shapef("frames of %d elements, %d apart, of %s", length, hop, x.Shape()))
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
	out := length
	if c.int("onesided", 1) != 0 {
		out = length/2 + 1
	}
	re, im = transform(c, framed(re), framed(im), 2, length, out, false)
	return ops.Stack(c.b, re.Rank(), re, im)
}

// cosineWindow is a sum of cosines of multiples of a turn, periodic or symmetric.
func cosineWindow(c *call, coefficients []float64) ir.Value {
	n := c.knownInt(0, 0)
	if n < 0 || n > foldElements {
		c.fail(ir.Shapef("a window of %d elements", n))
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
		c.fail(ir.Shapef("%d bands of %d frequencies", bands, length))
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
