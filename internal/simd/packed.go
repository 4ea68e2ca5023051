package simd

import (
	"encoding/binary"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Packing is a block-quantised format of GGUF files: an f16 scale and 32 integers a block.
type Packing uint8

// The formats that there are kernels for.
const (
	Q8 Packing = iota // q8_0: 32 signed bytes
	Q4                // q4_0: 16 bytes, integers 0 to 15 in the lower halves; biased by 8
)

// PackedElements is the number of elements of a block.
const PackedElements = 32

// Bytes returns the size of a block.
func (p Packing) Bytes() int { return [...]int{34, 18}[p] }

// packedDot multiplies a row of blocks with x; sums, which has room for [maxLanes], receives
// the partial sum of each lane.
type packedDot func(blocks int, w *byte, x, sums *float32)

// DotsPacked computes c[i·step] = Σ w[i][l]·x[l] for m quantised rows, rowBytes apart, of the
// given number of blocks. A sum depends on its row alone.
func DotsPacked(p Packing, m, blocks int, w []byte, rowBytes int, x, c []float32, step int) {
	dot, lanes := packedDots(p)
	var sums [maxLanes]float32
	for i := range m {
		clear(sums[:])
		if blocks > 0 {
			dot(blocks, &w[i*rowBytes : i*rowBytes+blocks*p.Bytes()][0], &x[:blocks*PackedElements][0], &sums[0])
		}
		c[i*step] = pairwise(sums[:lanes])
	}
}

// plainPacked returns the kernel in Go, of one lane.
func plainPacked(p Packing) packedDot {
	return func(blocks int, w *byte, x, sums *float32) {
		packed := unsafe.Slice(w, blocks*p.Bytes())
		factors := unsafe.Slice(x, blocks*PackedElements)
		for i := range blocks {
			block := packed[i*p.Bytes():][:p.Bytes()]
			sum, by := float32(0), factors[i*PackedElements:][:PackedElements]
			for l, v := range by {
				sum += float32(p.number(block[2:], l)) * v
			}
			*sums += sum * float32(dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(block))))
		}
	}
}

// number returns an element of a block before scaling.
func (p Packing) number(block []byte, i int) int {
	const half = PackedElements / 2
	switch {
	case p == Q8:
		return int(int8(block[i]))
	case i < half:
		return int(block[i]&15) - 8
	}
	return int(block[i-half]>>4) - 8
}
