package gguf

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Products that are summed are converted to float32 by name, so that no processor fuses them: the
// results are those of the format's definition, bit for bit.

func convertFloats(d ir.DType, dst []float32, src []byte) {
	for i := range dst {
		switch d {
		case ir.F32:
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		case ir.F64:
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		default:
			dst[i] = float32(d.FloatFromBits(uint64(binary.LittleEndian.Uint16(src[2*i:]))))
		}
	}
}

// half returns the f16 at the start of b.
func half(b []byte) float32 {
	return float32(ir.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(b))))
}

// nibbles calls f with the 4-bit numbers of q: the low ones of all bytes, then the high ones.
func nibbles(q []byte, f func(i int, x byte)) {
	for i, x := range q {
		f(i, x&15)
		f(i+len(q), x>>4)
	}
}

func unpackQ4_0(b []byte, out []float32) {
	d := half(b)
	nibbles(b[2:], func(i int, x byte) { out[i] = d * float32(int(x)-8) })
}

func unpackQ4_1(b []byte, out []float32) {
	d, m := half(b), half(b[2:])
	nibbles(b[4:], func(i int, x byte) { out[i] = float32(d*float32(x)) + m })
}

func unpackQ5_0(b []byte, out []float32) {
	d, high := half(b), binary.LittleEndian.Uint32(b[2:])
	nibbles(b[6:], func(i int, x byte) { out[i] = d * float32(int(x)|int(high>>i&1)<<4-16) })
}

func unpackQ5_1(b []byte, out []float32) {
	d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
	nibbles(b[8:], func(i int, x byte) { out[i] = float32(d*float32(int(x)|int(high>>i&1)<<4)) + m })
}

func unpackQ8_0(b []byte, out []float32) {
	d := half(b)
	for i := range out {
		out[i] = float32(int8(b[2+i])) * d
	}
}

// unpackQ8_K has an f32 scale, 256 numbers and sums of 16 of them, which are for products.
func unpackQ8_K(b []byte, out []float32) {
	d := math.Float32frombits(binary.LittleEndian.Uint32(b))
	for i := range out {
		out[i] = d * float32(int8(b[4+i]))
	}
}

// crumbs calls f with the 2-bit numbers of q, 128 of each 32 bytes: the lowest bits of all bytes first.
func crumbs(q []byte, f func(i int, x byte)) {
	for i, x := range q {
		for k := range 4 {
			f(i/32*128+k*32+i%32, x>>(2*k)&3)
		}
	}
}

func unpackQ2_K(b []byte, out []float32) {
	scales, d, m := b[:16], half(b[80:]), half(b[82:])
	crumbs(b[16:80], func(i int, x byte) {
		s := scales[i/16]
		out[i] = float32(float32(d*float32(s&15))*float32(x)) - float32(m*float32(s>>4))
	})
}

func unpackQ3_K(b []byte, out []float32) {
	mask, packed, d := b[:32], b[96:108], half(b[108:])
	var scales [16]float32
	for i := range scales {
		low := packed[i%8] >> (4 * (i / 8)) & 15
		high := packed[8+i%4] >> (2 * (i / 4)) & 3
		scales[i] = d * float32(int(low|high<<4)-32)
	}
	crumbs(b[32:96], func(i int, x byte) {
		q := int(x)
		if mask[i%32]>>(i/32)&1 == 0 {
			q -= 4
		}
		out[i] = scales[i/16] * float32(q)
	})
}

// scalesAndMins unpacks the eight 6-bit scales and minima of Q4_K and Q5_K.
func scalesAndMins(b []byte) (scales, mins [8]byte) {
	for i := range 4 {
		scales[i], mins[i] = b[i]&63, b[4+i]&63
		scales[4+i] = b[8+i]&15 | b[i]>>2&0x30
		mins[4+i] = b[8+i]>>4 | b[4+i]>>2&0x30
	}
	return scales, mins
}

func unpackQ4_K(b []byte, out []float32) {
	d, m := half(b), half(b[2:])
	scales, mins := scalesAndMins(b[4:16])
	for n := range 4 { // 64 elements of 32 bytes
		nibbles(b[16+32*n:][:32], func(i int, x byte) {
			k := 2*n + i/32
			out[64*n+i] = float32(float32(d*float32(scales[k]))*float32(x)) - float32(m*float32(mins[k]))
		})
	}
}

func unpackQ5_K(b []byte, out []float32) {
	d, m := half(b), half(b[2:])
	scales, mins := scalesAndMins(b[4:16])
	for n := range 4 {
		nibbles(b[48+32*n:][:32], func(i int, x byte) {
			k := 2*n + i/32
			q := int(x) | int(b[16+i%32]>>k&1)<<4
			out[64*n+i] = float32(float32(d*float32(scales[k]))*float32(q)) - float32(m*float32(mins[k]))
		})
	}
}

func unpackQ6_K(b []byte, out []float32) {
	high, scales, d := b[128:192], b[192:208], half(b[208:])
	for n := range 2 { // 128 elements of 64 bytes
		nibbles(b[64*n:][:64], func(i int, x byte) {
			q := int(x|high[32*n+i%32]>>(2*(i/32))&3<<4) - 32
			at := 128*n + i
			out[at] = float32(d*float32(int8(scales[at/16]))) * float32(q)
		})
	}
}

// unpackTQ1_0 has five digits of base 3 in a byte: 240 elements of 48 bytes, and 16 of 4 bytes.
func unpackTQ1_0(b []byte, out []float32) {
	d := half(b[52:])
	digits := func(q []byte, n, at int) {
		for i, x := range q {
			power := byte(1)
			for k := range n {
				out[at+k*len(q)+i] = d * float32(int(uint16(x*power)*3>>8)-1)
				power *= 3
			}
		}
	}
	digits(b[:32], 5, 0)
	digits(b[32:48], 5, 160)
	digits(b[48:52], 4, 240)
}

func unpackTQ2_0(b []byte, out []float32) {
	d := half(b[64:])
	crumbs(b[:64], func(i int, x byte) { out[i] = d * float32(int(x)-1) })
}

// levels4 are the levels of the 4-bit formats with a table.
var levels4 = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func unpackIQ4NL(b []byte, out []float32) {
	d := half(b)
	nibbles(b[2:], func(i int, x byte) { out[i] = d * levels4[x] })
}

func unpackIQ4XS(b []byte, out []float32) {
	d, high := half(b), binary.LittleEndian.Uint16(b[2:])
	for n := range 8 {
		low := b[4+n/2] >> (4 * (n % 2)) & 15
		scale := d * float32(int(low|byte(high>>(2*n)&3)<<4)-32)
		nibbles(b[8+16*n:][:16], func(i int, x byte) { out[32*n+i] = scale * levels4[x] })
	}
}

// levelsFP4 are twice the numbers of 2 exponent bits and 1 mantissa bit (OCP Microscaling Formats).
var levelsFP4 = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// unpackMXFP4 has a scale that is half a power of two.
func unpackMXFP4(b []byte, out []float32) {
	bits := uint32(0x00200000) << b[0]
	if b[0] >= 2 {
		bits = uint32(b[0]-1) << 23
	}
	d := math.Float32frombits(bits)
	nibbles(b[1:], func(i int, x byte) { out[i] = d * levelsFP4[x] })
}

// unpackNVFP4 has four scales of 4 exponent and 3 mantissa bits, for 16 elements each.
func unpackNVFP4(b []byte, out []float32) {
	for n := range 4 {
		x := b[n]
		exponent, mantissa := int(x>>3&15), float64(x&7)
		d := math.Ldexp(mantissa, -10)
		if exponent > 0 {
			d = math.Ldexp(1+mantissa/8, exponent-8)
		}
		if x == 0 || x == 0x7f {
			d = 0
		}
		nibbles(b[4+8*n:][:8], func(i int, q byte) { out[16*n+i] = float32(d) * levelsFP4[q] })
	}
}
