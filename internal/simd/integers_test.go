package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
)

// TestRoundBlocks holds the rounding to its definition in float64, and NaN, infinite, zero and subnormal elements.
func TestRoundBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const blocks = 40
	x, got := make([]float32, blocks*PackedElements), make([]float32, blocks*PackedElements)
	for i := range x {
		x[i] = float32(math.Ldexp(r.Float64()-0.5, 3*(i/PackedElements)-60))
	}
	clear(x[:PackedElements])
	x[32], x[64+5], x[96] = float32(math.NaN()), float32(math.Inf(-1)), 1e-44
	RoundBlocks(x, got)
	for b := range blocks {
		block, largest := x[b*PackedElements:][:PackedElements], 0.
		for _, v := range block {
			largest = max(largest, math.Abs(float64(v)))
		}
		scale := float64(float32(largest) / 127)
		for i, v := range block {
			want := math.RoundToEven(float64(v)/scale) * scale
			if scale == 0 {
				want = math.RoundToEven(float64(v))
			}
			if g := float64(got[b*PackedElements+i]); b == 1 || b == 2 {
				if !math.IsNaN(g) {
					t.Errorf("block %d: element %d is %v, not NaN", b, i, g)
				}
			} else if !(math.Abs(g-want) <= 1e-6*largest) {
				t.Errorf("block %d: element %d is %v, not %v", b, i, g, want)
			}
		}
	}
}

// TestDotsOfIntegers holds products with a rounded vector to sums in float64 of the rounded numbers.
func TestDotsOfIntegers(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		if !HasIntegers() {
			return // products are those of numbers
		}
		r := rand.New(rand.NewPCG(5, 6))
		for p := range packings {
			for _, blocks := range []int{1, 2, 3, 4, 7, 18, 128} {
				const rows = 5
				rowBytes := blocks*p.Bytes() + 2
				w, x, c := make([]byte, rows*rowBytes), make([]float32, blocks*PackedElements), make([]float32, rows+1)
				for i := range w {
					w[i] = byte(r.Uint32())
				}
				for i := range x {
					x[i] = r.Float32() - 0.3
				}
				for i := range rows * blocks {
					at := w[i/blocks*rowBytes+i%blocks*p.Bytes():]
					binary.LittleEndian.PutUint16(at, uint16(dtype.F16.FloatBits(r.Float64()-0.5)))
					if p == Q4Min {
						binary.LittleEndian.PutUint16(at[2:], uint16(dtype.F16.FloatBits(r.Float64()-0.5)))
					}
				}
				integers, rounded := make([]Integers, IntegersLen(blocks)), slices.Clone(x)
				RoundToIntegers(p, x, integers)
				RoundBlocks(x, rounded)
				DotsIntegers(p, rows, blocks, w, rowBytes, integers, c)
				for i := range rows {
					want, size := packedSum(p, w[i*rowBytes:], rounded)
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
