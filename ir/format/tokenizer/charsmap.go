package tokenizer

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// charsmap is SentencePiece's table of normalizations: a double-array trie of texts. Its values are
// the offsets of replacements, which end with a zero byte.
type charsmap struct {
	units        []uint32
	replacements string
}

// newCharsmap reads a precompiled_charsmap: the size of the trie in bytes as a u32, the units of the trie,
// the replacements; little endian.
func newCharsmap(data []byte) (*charsmap, error) {
	if len(data) < 4 {
		return nil, damaged("precompiled_charsmap has %d bytes: it must have 4 or more", len(data))
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if size%4 != 0 || size == 0 || size > int64(len(data)-4) {
		return nil, damaged("precompiled_charsmap has a trie of %d bytes in %d", size, len(data)-4)
	}
	c := &charsmap{units: make([]uint32, size/4), replacements: string(data[4+size:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	return c, nil
}

// find returns the replacement of the shortest text of the table that text begins with.
func (c *charsmap) find(text string) (string, bool) {
	offset := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at := offset(c.units[0])
	for i := range len(text) {
		b := uint32(text[i])
		at ^= b
		if b == 0 || int64(at) >= int64(len(c.units)) {
			return "", false
		}
		unit := c.units[at]
		if unit&(1<<31|0xff) != b {
			return "", false
		}
		at ^= offset(unit)
		if int64(at) >= int64(len(c.units)) {
			return "", false
		}
		if unit>>8&1 == 1 {
			start := int64(c.units[at] &^ (1 << 31))
			if start > int64(len(c.replacements)) {
				return "", false
			}
			found, _, _ := strings.Cut(c.replacements[start:], "\x00")
			return found, true
		}
	}
	return "", false
}

// maxCluster is the number of bytes from which on a cluster is looked up character by character.
const maxCluster = 6

// normalize replaces clusters of characters and characters, as the tokenizers library does: a short
// cluster as a whole if the table has a text that it begins with.
func (c *charsmap) normalize(text string) (string, error) {
	var sb strings.Builder
	sb.Grow(len(text))
	for text != "" {
		n := clusterLength(text)
		cluster := text[:n]
		text = text[n:]
		if n < maxCluster {
			if found, ok := c.find(cluster); ok {
				sb.WriteString(found)
				continue
			}
		}
		for _, r := range cluster {
			if found, ok := c.find(string(r)); ok {
				sb.WriteString(found)
			} else {
				sb.WriteRune(r)
			}
		}
	}
	return sb.String(), nil
}

// clusterLength returns the length of the grapheme cluster that text begins with, by the rules of
// Unicode's annex 29 that matter below [maxCluster] bytes: ends of lines, marks and joiners after a
// character, and prefixed signs.
func clusterLength(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	if strings.HasPrefix(text, "\r\n") {
		return 2
	}
	for isPrefixedSign(r) && n < len(text) {
		next, size := utf8.DecodeRuneInString(text[n:])
		if breaksClusters(next) {
			return n
		}
		r, n = next, n+size
	}
	if breaksClusters(r) {
		return n
	}
	for n < len(text) {
		next, size := utf8.DecodeRuneInString(text[n:])
		if !extendsCluster(next) {
			break
		}
		n += size
	}
	return n
}

func breaksClusters(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Cf, r) && !extendsCluster(r) && !isPrefixedSign(r)
}

func extendsCluster(r rune) bool {
	const (
		joiner    = 0x200d
		nonJoiner = 0x200c
		saraAm    = 0x0e33
		laoAm     = 0x0eb3
	)
	return r >= 0x300 && (isMark(r) || r == joiner || r == nonJoiner || r == saraAm || r == laoAm)
}

func isPrefixedSign(r rune) bool {
	return unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r == 0x0d4e
}
