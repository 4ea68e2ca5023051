package simd

import (
	"encoding/binary"
	"strings"
)

// cpuid executes CPUID, xgetbv XGETBV for the registers that the operating system saves.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() uint32

// beyondGo returns the levels other than plain Go that processor and operating system support.
func beyondGo() []Level {
	const (
		fma, osxsave, avx, f16c = 1 << 12, 1 << 27, 1 << 28, 1 << 29 // leaf 1, c
		avx2, f, dq, bw, vl     = 1 << 5, 1 << 16, 1 << 17, 1 << 30, 1 << 31
		ymm, zmm                = 0x06, 0xe6
	)
	if last, _, _, _ := cpuid(0, 0); last < 7 {
		return nil
	}
	_, _, c, _ := cpuid(1, 0)
	_, b, _, _ := cpuid(7, 0)
	if c&(fma|osxsave|avx|f16c) != fma|osxsave|avx|f16c || b&avx2 == 0 || xgetbv()&ymm != ymm {
		return nil
	}
	if b&(f|dq|bw|vl) != f|dq|bw|vl || xgetbv()&zmm != zmm {
		return []Level{AVX2}
	}
	return []Level{AVX2, AVX512}
}

// hasPairs reports whether the processor multiplies pairs of bf16: AVX512_BF16.
var hasPairs = func() bool {
	const bf16 = 1 << 5
	if len(beyondGo()) < 2 {
		return false
	}
	highest, _, _, _ := cpuid(7, 0)
	a, _, _, _ := cpuid(7, 1)
	return highest > 0 && a&bf16 != 0
}()

// Processor returns the name that the processor reports, "" for none.
func Processor() string {
	const first, last = 0x80000002, 0x80000004
	if highest, _, _, _ := cpuid(0x80000000, 0); highest < last {
		return ""
	}
	var text []byte
	for leaf := uint32(first); leaf <= last; leaf++ {
		a, b, c, d := cpuid(leaf, 0)
		for _, word := range []uint32{a, b, c, d} {
			text = binary.LittleEndian.AppendUint32(text, word)
		}
	}
	name, _, _ := strings.Cut(string(text), "\x00")
	return strings.Join(strings.Fields(name), " ")
}
