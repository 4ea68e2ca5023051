package simd

import (
	"math"
	"testing"
	"time"
)

// BenchmarkDotsPacked reports the minimum nanoseconds of a block, also of integers, in the first-level cache.
func BenchmarkDotsPacked(b *testing.B) {
	for p := range packings {
		b.Run([]string{"q8_0", "q4_0", "q4_1"}[p], func(b *testing.B) {
			const blocks = 128
			w, x, c := make([]byte, blocks*p.Bytes()), make([]float32, blocks*PackedElements), make([]float32, 1)
			sums := make([]float32, SumsLen(blocks))
			integers := make([]Integers, IntegersLen(blocks))
			RoundToIntegers(p, x, integers)
			least, rounded := math.Inf(1), math.Inf(1)
			for b.Loop() {
				start := time.Now()
				for range 20 {
					DotsPacked(p, blocks, w, len(w), x, sums, c)
				}
				least = min(least, float64(time.Since(start).Nanoseconds())/20/blocks)
				if HasIntegers() {
					start = time.Now()
					for range 20 {
						DotsIntegers(p, 1, blocks, w, len(w), integers, c)
					}
					rounded = min(rounded, float64(time.Since(start).Nanoseconds())/20/blocks)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(least, "ns/block")
			b.ReportMetric(rounded, "ns/block-integers")
		})
	}
}
