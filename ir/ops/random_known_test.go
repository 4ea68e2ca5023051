package ops

import "testing"

// TestThreefryMatchesKnownAnswers uses the vectors for threefry2x32 with 13
// and 20 rounds from the file kat_vectors of the Random123 library.
func TestThreefryMatchesKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		rounds         int
		counter        uint64
		k0, k1, x0, x1 uint32
	}{
		{20, 0, 0, 0, 0x6b200159, 0x99ba4efe},
		{20, 0xffffffffffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
		{20, 0x243f6a8885a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0},
		{13, 0, 0, 0, 0x9d1c5ec6, 0x8bd50731},
		{13, 0xffffffffffffffff, 0xffffffff, 0xffffffff, 0xfd36d048, 0x2d17272c},
		{13, 0x243f6a8885a308d3, 0x13198a2e, 0x03707344, 0xba3e4725, 0xf27d669e},
	} {
		if x0, x1 := threefryWords(c.rounds, c.k0, c.k1, c.counter); x0 != c.x0 || x1 != c.x1 {
			t.Errorf("%d rounds, key %08x %08x, counter %016x: got %08x %08x, want %08x %08x", c.rounds, c.k0, c.k1, c.counter, x0, x1, c.x0, c.x1)
		}
	}
}
