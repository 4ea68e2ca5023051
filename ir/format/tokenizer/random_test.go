package tokenizer_test

import (
	"strings"
)

// The generator of suite/make.py, to the bit.

const (
	stringCount = 10000
	blockSize   = 100 // strings with one row of testdata/hashes.txt
)

var (
	words = []string{
		"the", "and", " of", " to", "ing", "tion", "'s", "'LL", " don't", "<s>", "</s>", "<|end|>", "[MASK]", "ſ", "İ", "ß", "ŉ",
		"ﬁ", "½", "é", "##", "▁", "<0x0A>", "👩‍👩‍👧", "中文", "한국어", "\r\n", "   ", "\n\n", " 12345", "Ａ", "'ſ",
	}
	whiteSpace = []string{"\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x0b", "\x0c", "\u0085", "  "}
	codeRanges = [][2]rune{
		{0x61, 0x7a},
		{0x61, 0x7a},
		{0x61, 0x7a},
		{0x41, 0x5a},
		{0x20, 0x20},
		{0x20, 0x20},
		{0x20, 0x20},
		{0x30, 0x39},
		{0x20, 0x7e},
		{0xa1, 0x17f},
		{0x300, 0x36f},
		{0x3a3, 0x3ff},
		{0x400, 0x4ff},
		{0x4e00, 0x9fa5},
		{0xac00, 0xd7a3},
		{0x3041, 0x3096},
		{0x621, 0x64a},
		{0x905, 0x94d},
		{0xe01, 0xe3a},
		{0x1f600, 0x1f64f},
		{0x2010, 0x2027},
		{0xff01, 0xff5e},
		{0x1100, 0x11ff},
		{0, 0x1f},
		{0xe000, 0xe0ff},
		{0x1e00, 0x1eff},
		{0x2150, 0x218b},
		{0x1d400, 0x1d454},
		{0xfe0e, 0xfe0f},
		{0x20000, 0x2a6d6},
	}
)

// random is Marsaglia's xorshift of 32 bits.
type random uint32

func newRandom(seed int) random { return max(random(uint32(seed)*2654435761+1), 1) }

func (r *random) below(n int) int {
	*r ^= *r << 13
	*r ^= *r >> 17
	*r ^= *r << 5
	return int(uint32(*r) % uint32(n))
}

// randomString returns the string of a number.
func randomString(i int) string {
	r := newRandom(i)
	var sb strings.Builder
	for range r.below(40) + 1 {
		kind := r.below(len(codeRanges) + 4)
		switch {
		case kind > len(codeRanges):
			sb.WriteString(words[r.below(len(words))])
		case kind == len(codeRanges):
			sb.WriteString(whiteSpace[r.below(len(whiteSpace))])
		default:
			of := codeRanges[kind]
			sb.WriteRune(of[0] + rune(r.below(int(of[1]-of[0])+1)))
		}
	}
	return sb.String()
}

// randomIDs returns ids below a size, for the string of a number.
func randomIDs(i, size int) []int32 {
	r := newRandom(i + stringCount)
	ids := make([]int32, r.below(12)+1)
	for k := range ids {
		ids[k] = int32(r.below(size))
	}
	return ids
}
