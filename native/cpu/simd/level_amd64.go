package simd

// cpuid returns what the processor says of itself, xgetbv which registers the
// operating system saves.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() uint32

// best returns the best level that processor and operating system have.
func best() Level {
	const (
		fma, osxsave, avx, f16c = 1 << 12, 1 << 27, 1 << 28, 1 << 29 // leaf 1, c
		avx2, f, dq, bw, vl     = 1 << 5, 1 << 16, 1 << 17, 1 << 30, 1 << 31
		ymm, zmm                = 0x06, 0xe6
	)
	if last, _, _, _ := cpuid(0, 0); last < 7 {
		return Go
	}
	_, _, c, _ := cpuid(1, 0)
	_, b, _, _ := cpuid(7, 0)
	if c&(fma|osxsave|avx|f16c) != fma|osxsave|avx|f16c || b&avx2 == 0 || xgetbv()&ymm != ymm {
		return Go
	}
	if b&(f|dq|bw|vl) != f|dq|bw|vl || xgetbv()&zmm != zmm {
		return AVX2
	}
	return AVX512
}
