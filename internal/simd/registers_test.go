package simd

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestAVX2KernelsKeepToAVX2 scans the assembly of AVX2 kernels: the assembler accepts
// registers from 16 on, masks and 64-byte vectors in any function, and a processor with
// AVX-512 would run them.
func TestAVX2KernelsKeepToAVX2(t *testing.T) {
	beyond := regexp.MustCompile(`\b(Z\d+|K[0-7]|[XY](1[6-9]|[23]\d))\b`)
	kernels := 0
	for _, file := range []string{"product_amd64.s", "packed_amd64.s", "pieces_amd64.s", "transpose_amd64.s"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kernel := range strings.Split(string(text), "TEXT ")[1:] {
			name, code, _ := strings.Cut(kernel, "(SB)")
			if !strings.Contains(name, "AVX2") {
				continue
			}
			kernels++
			if found := beyond.FindString(code); found != "" {
				t.Errorf("%s: %s uses %s", file, name, found)
			}
		}
	}
	if kernels < 40 {
		t.Errorf("%d kernels for AVX2 were found", kernels)
	}
}
