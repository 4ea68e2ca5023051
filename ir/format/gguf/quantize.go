package gguf

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Quantize packs floats into blocks of a type: f32, f16, bf16, q4_0, q4_1, q5_0, q5_1 or q8_0, rounded as
// ggml's reference quantizers do; or q4_k, q5_k or q6_k, with scales of a small squared error, which the format
// does not prescribe. The error is of kind [ir.ErrUnsupported] for another type and
// [ir.ErrShape] if x has no whole number of blocks.
func Quantize(t Type, x []float32) ([]byte, error) {
	pack, ok := packers[t]
	if !ok {
		return nil, ir.Errorf(ir.ErrUnsupported, "type %v has no packing of floats here", t)
	}
	elements, bytes := t.Block()
	if len(x)%elements != 0 {
		return nil, ir.Shapef("there are %d elements; %v has blocks of %d", len(x), t, elements)
	}
	out := make([]byte, len(x)/elements*bytes)
	for n := range len(x) / elements {
		pack(x[n*elements:][:elements], out[n*bytes:][:bytes])
	}
	return out, nil
}

var packers = map[Type]func(x []float32, b []byte){
	F32: func(x []float32, b []byte) { binary.LittleEndian.PutUint32(b, math.Float32bits(x[0])) },
	F16: func(x []float32, b []byte) { putHalf(b, x[0]) },
	BF16: func(x []float32, b []byte) {
		binary.LittleEndian.PutUint16(b, uint16(ir.BF16.FloatBits(float64(x[0]))))
	},
	Q4_0: func(x []float32, b []byte) { putSymmetric(x, b, 8, nil, b[2:]) },
	Q5_0: func(x []float32, b []byte) { putSymmetric(x, b, 16, b[2:6], b[6:]) },
	Q4_1: func(x []float32, b []byte) { putRange(x, b, 15, nil, b[4:]) },
	Q5_1: func(x []float32, b []byte) { putRange(x, b, 31, b[4:8], b[8:]) },
	Q8_0: putQ8_0,
	Q4_K: putQ4_K,
	Q5_K: putQ5_K,
	Q6_K: putQ6_K,
}

func putHalf(b []byte, x float32) {
	binary.LittleEndian.PutUint16(b, uint16(ir.F16.FloatBits(float64(x))))
}

// inverse returns 1/d, 0 for 0.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// putBits stores a number of four bits at i of the nibbles, and a fifth bit where high is not nil.
func putBits(low, high []byte, i, q int) {
	low[i%16] |= byte(q&15) << (4 * (i / 16))
	if high != nil {
		high[i/8] |= byte(q>>4) << (i % 8)
	}
}

// putSymmetric uses the scale that maps the element of largest magnitude to −levels.
func putSymmetric(x []float32, b []byte, levels float32, high, low []byte) {
	largest := float32(0)
	for _, v := range x {
		if math.Abs(float64(v)) > math.Abs(float64(largest)) {
			largest = v
		}
	}
	d := largest / -levels
	putHalf(b, d)
	by := inverse(d)
	for i, v := range x {
		q := int(float32(v*by) + levels + 0.5)
		putBits(low, high, i, min(max(q, 0), int(2*levels)-1))
	}
}

// putRange has a scale and the smallest element, which is 0.
func putRange(x []float32, b []byte, top int, high, low []byte) {
	lo, hi := x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	d := (hi - lo) / float32(top)
	putHalf(b, d)
	putHalf(b[2:], lo)
	by := inverse(d)
	for i, v := range x {
		q := int(float32((v-lo)*by) + 0.5)
		putBits(low, high, i, min(max(q, 0), top))
	}
}

func putQ8_0(x []float32, b []byte) {
	largest := float32(0)
	for _, v := range x {
		largest = max(largest, float32(math.Abs(float64(v))))
	}
	d := largest / 127
	putHalf(b, d)
	by := inverse(d)
	for i, v := range x {
		b[2+i] = byte(int8(math.Round(float64(v * by))))
	}
}
