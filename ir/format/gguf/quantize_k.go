package gguf

import "math"

// The block types of 256 elements divide a block into parts, each with a scale, and for some types
// a minimum, of a few bits, in units of one or two f16. The format does not define the scales: they
// are searched for the smallest error.

// searchSteps is how many scales around the plain one are tried for a part.
const searchSteps = 9

// symmetricScale returns the scale s that minimises the squared error of s·round(x/s), clamped to
// [-levels, levels). For given integers q it is Σqx/Σq², by least squares.
func symmetricScale(x []float32, levels int) float32 {
	largest := float32(0)
	for _, v := range x {
		if math.Abs(float64(v)) > math.Abs(float64(largest)) {
			largest = v
		}
	}
	if largest == 0 {
		return 0
	}
	best, highest := float32(0), -1.
	for step := range searchSteps {
		// The largest element is −levels, or up to half a level more or less.
		s := largest / -(float32(levels) + (float32(step)-searchSteps/2)*0.125)
		var qx, qq float64
		for _, v := range x {
			q := float64(nearest(v/s, -levels, levels-1))
			qx, qq = qx+q*float64(v), qq+q*q
		}
		// Σ(x − sq)² = Σx² − (Σqx)²/Σq² for the best s
		if qq > 0 && qx*qx/qq > highest {
			best, highest = float32(qx/qq), qx*qx/qq
		}
	}
	return best
}

// nearest rounds to the nearest integer, ties to even, in a range.
func nearest(x float32, low, high int) int {
	return min(max(int(math.RoundToEven(float64(x))), low), high)
}

// rangeScale returns a scale s and a minimum m ≥ 0 with a small squared error of s·q − m, q from 0
// to top. For given q both follow by least squares.
func rangeScale(x []float32, top int) (s, m float32) {
	lo, hi := float32(0), x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	if hi == lo {
		return 0, -lo
	}
	lowest := math.Inf(1)
	for step := range searchSteps {
		scale := (hi - lo) / (float32(top) + (float32(step)-searchSteps/2)*0.1)
		a, b := fitRange(x, scale, -lo, top)
		if e := rangeError(x, a, b, top); e < lowest {
			lowest, s, m = e, a, b
		}
	}
	return s, m
}

// fitRange returns the scale and the minimum of least squares for the numbers that others round to.
func fitRange(x []float32, s, m float32, top int) (scale, minimum float32) {
	var n, q1, q2, x1, qx float64
	for _, v := range x {
		q := float64(nearest((v+m)/s, 0, top))
		n, q1, q2, x1, qx = n+1, q1+q, q2+q*q, x1+float64(v), qx+q*float64(v)
	}
	det := n*q2 - q1*q1
	if det <= 0 {
		return s, m
	}
	a, b := (n*qx-q1*x1)/det, (q2*x1-q1*qx)/det
	if b > 0 || a <= 0 { // the minimum is stored without a sign
		if q2 == 0 || qx <= 0 {
			return s, m
		}
		return float32(qx / q2), 0
	}
	return float32(a), float32(-b)
}

func rangeError(x []float32, s, m float32, top int) float64 {
	sum := 0.
	for _, v := range x {
		e := float64(v + m)
		if s > 0 {
			e -= float64(s * float32(nearest((v+m)/s, 0, top)))
		}
		sum += e * e
	}
	return sum
}

// quotientOf returns x/d, 0 for d = 0.
func quotientOf(x, d float32) float32 { return x * inverse(d) }

// putQ6_K stores 16 parts of 16 elements with scales of 8 bits, and numbers of 6.
func putQ6_K(x []float32, b []byte) {
	var scales [16]float32
	largest := float32(0)
	for k := range scales {
		scales[k] = symmetricScale(x[16*k:][:16], 32)
		if math.Abs(float64(scales[k])) > math.Abs(float64(largest)) {
			largest = scales[k]
		}
	}
	putHalf(b[208:], largest/-128)
	d := half(b[208:])
	for k := range scales {
		scale := nearest(quotientOf(scales[k], d), -128, 127)
		b[192+k] = byte(int8(scale))
		s := d * float32(scale)
		for i := 16 * k; i < 16*k+16; i++ {
			q := byte(nearest(quotientOf(x[i], s), -32, 31) + 32)
			n, at := i/128, i%128
			b[64*n+at%64] |= q & 15 << (4 * (at / 64))
			b[128+32*n+at%32] |= q >> 4 << (2 * (at / 32))
		}
	}
}

// putQ4_K and putQ5_K store eight parts of 32 elements with scales and minima of 6 bits, and numbers of 4 or 5.
func putQ4_K(x []float32, b []byte) {
	putParts(x, b, 15, func(i, q int) { b[16+i/64*32+i%32] |= byte(q) << (4 * (i / 32 % 2)) })
}

func putQ5_K(x []float32, b []byte) {
	putParts(x, b, 31, func(i, q int) {
		b[48+i/64*32+i%32] |= byte(q&15) << (4 * (i / 32 % 2))
		b[16+i%32] |= byte(q>>4) << (i / 32)
	})
}

func putParts(x []float32, b []byte, top int, put func(i, q int)) {
	var scales, mins [8]float32
	var largest, deepest float32
	for k := range scales {
		scales[k], mins[k] = rangeScale(x[32*k:][:32], top)
		largest, deepest = max(largest, scales[k]), max(deepest, mins[k])
	}
	putHalf(b, largest/63)
	putHalf(b[2:], deepest/63)
	d, m := half(b), half(b[2:])
	for k := range scales {
		scale, low := nearest(quotientOf(scales[k], d), 0, 63), nearest(quotientOf(mins[k], m), 0, 63)
		putScale(b[4:16], k, byte(scale), byte(low))
		s, lo := d*float32(scale), m*float32(low)
		for i := 32 * k; i < 32*k+32; i++ {
			put(i, nearest(quotientOf(x[i]+lo, s), 0, top))
		}
	}
}

// putScale stores 6 bits of a scale and of a minimum where scalesAndMins reads them.
func putScale(b []byte, k int, scale, low byte) {
	if k < 4 {
		b[k] |= scale
		b[4+k] |= low
		return
	}
	b[4+k] |= scale&15 | low&15<<4
	b[k-4] |= scale >> 4 << 6
	b[k] |= low >> 4 << 6
}
