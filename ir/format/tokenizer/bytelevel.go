package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// byteRune is the alphabet of byte-level vocabularies: printable bytes of Latin-1 map to
// themselves, the others to U+0100 and up, in order.
var byteRune = func() (of [256]rune) {
	next := rune(256)
	for b := range of {
		printable := b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae
		if of[b] = rune(b); !printable {
			of[b] = next
			next++
		}
	}
	return of
}()

// runeByte is the inverse of byteRune.
var runeByte = func() map[rune]byte {
	of := map[rune]byte{}
	for b, r := range byteRune {
		of[r] = byte(b)
	}
	return of
}()

// toByteLevel writes each byte of a text in the alphabet.
func toByteLevel(text string) string {
	var sb strings.Builder
	sb.Grow(2 * len(text))
	for _, b := range []byte(text) {
		sb.WriteRune(byteRune[b])
	}
	return sb.String()
}

// appendFromByteLevel appends the bytes of a token: the token itself if it contains a character
// outside the alphabet.
func appendFromByteLevel(out []byte, token string) []byte {
	at := len(out)
	for _, r := range token {
		b, ok := runeByte[r]
		if !ok {
			return append(out[:at], token...)
		}
		out = append(out, b)
	}
	return out
}

// valid returns text with U+FFFD for each maximal part that is no UTF-8, as decoders of the Unicode
// standard write it.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var sb strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			size = invalidPrefix(text)
		}
		sb.WriteRune(r)
		text = text[size:]
	}
	return sb.String()
}

// invalidPrefix returns the length of the longest prefix of text, which begins with no character, that
// begins a character; at least 1.
func invalidPrefix(text string) int {
	n := 1
	for n < len(text) && n < utf8.UTFMax && !utf8.FullRuneInString(text[:n]) {
		n++
	}
	if n > 1 && (n == len(text) && !utf8.FullRuneInString(text[:n])) {
		return n
	}
	return max(1, n-1)
}
