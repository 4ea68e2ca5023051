package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// TestDotsOfPackedRows has random bits and scales of every size and both signs, and compares
// with sums in float64.
func TestDotsOfPackedRows(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for p := range packings {
			for _, blocks := range []int{0, 1, 2, 3, 4, 7, 128} {
				const rows = 5
				rowBytes := blocks*p.Bytes() + 2
				w, x, c := make([]byte, rows*rowBytes), make([]float32, blocks*PackedElements), make([]float32, rows+1)
				for i := range w {
					w[i] = byte(r.Uint32())
				}
				for i := range x {
					x[i] = r.Float32() - 0.5
				}
				for i := range rows * blocks {
					scale := (r.Float64() - 0.5) * math.Ldexp(1, -r.IntN(24)) // some subnormal
					binary.LittleEndian.PutUint16(w[i/blocks*rowBytes+i%blocks*p.Bytes():], uint16(dtype.F16.FloatBits(scale)))
				}
				for i := range rows * blocks {
					if p == Q4Min {
						binary.LittleEndian.PutUint16(w[i/blocks*rowBytes+i%blocks*p.Bytes()+2:], uint16(dtype.F16.FloatBits(r.Float64()-0.5)))
					}
				}
				sums := make([]float32, SumsLen(blocks))
				BlockSums(x, sums)
				DotsPacked(p, blocks, w, rowBytes, x, sums, c[:rows])
				for i := range rows {
					want, size := packedSum(p, w[i*rowBytes:], x)
					if got := float64(c[i]); !(math.Abs(got-want) <= 1e-6*size) {
						t.Fatalf("format %d, %d blocks: row %d is %v, not %v", p, blocks, i, got, want)
					}
				}
				if c[rows] != 0 {
					t.Fatalf("format %d: something is written after the results", p)
				}
			}
		}
	})
}

// TestUnpackedDots compares unpacked blocks with the numbers of a format, bit for bit, and finds nothing written behind.
func TestUnpackedDots(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for p := range packings {
			for _, blocks := range []int{0, 1, 2, 3, 17} {
				w, got := make([]byte, blocks*p.Bytes()+3), make([]float32, blocks*PackedElements+1)
				for i := range w {
					w[i] = byte(r.Uint32())
				}
				half := func(at int) float32 {
					w[at+1] &= 0xbf // finite
					return float32(dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(w[at:]))))
				}
				var want []float32
				for b := range blocks {
					at := b * p.Bytes()
					scale := half(at)
					for i := range PackedElements {
						x := float32(scale * float32(p.number(w[at+p.start():], i)))
						if p == Q4Min {
							x += half(at + 2)
						}
						want = append(want, x)
					}
				}
				p.Unpack(got[:blocks*PackedElements], w)
				for i, x := range want {
					if math.Float32bits(got[i]) != math.Float32bits(x) {
						t.Fatalf("format %d, %d blocks: element %d is %v, not %v", p, blocks, i, got[i], x)
					}
				}
				if got[len(want)] != 0 {
					t.Fatalf("format %d: something is written after the elements", p)
				}
			}
		}
	})
}

// packedSum returns the dot product of a row, and the sum of the absolute products.
func packedSum(p Packing, w []byte, x []float32) (sum, size float64) {
	for i, v := range x {
		block := w[i/PackedElements*p.Bytes():]
		at, q, minimum := i%PackedElements, 0, 0.
		if p == Q4Min {
			minimum = dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(block[2:])))
		}
		switch {
		case p == Q8:
			q = int(int8(block[2+at]))
		case p == Q4Min && at < 16:
			q = int(block[4+at] & 15)
		case p == Q4Min:
			q = int(block[4+at-16] >> 4)
		case at < 16:
			q = int(block[2+at]&15) - 8
		default:
			q = int(block[2+at-16]>>4) - 8
		}
		product := dtype.F16.FloatFromBits(uint64(binary.LittleEndian.Uint16(block))) * float64(q) * float64(v)
		product, size = product+minimum*float64(v), size+math.Abs(product)+math.Abs(minimum*float64(v))
		sum += product
	}
	return sum, size
}
